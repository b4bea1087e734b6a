"""Dask: workers on many machines, or a cluster on this one."""

from __future__ import annotations

import gc
import logging
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any

from echobound.campaign.engines.base import Engine, Report, evaluate
from echobound.campaign.machine import worker_count
from echobound.candidates import Candidates
from echobound.errors import MissingExtra, RunError
from echobound.runs.provenance import require_same_versions

REFRESH = 2.0  # seconds after which workers are counted again
SILENT = 120.0  # seconds after which a scheduler that does not answer is lost


class Lost(Exception):
    """A batch, or the data it needs, was lost with its worker."""


class Dask(Engine):
    """Score batches on a Dask cluster.

    The data go to the workers once. The batches of a lost worker run again elsewhere, and workers may join at any time.
    The Dask protocol runs code: whoever can connect to a scheduler, also another user of the same machine, can do on
    all its workers what you can. So use TLS, unless you trust everybody who can reach it.

    The scheduler is given by its address, such as ``"tls://10.0.0.1:8786"`` (with certificates from Dask's
    configuration) or ``"tcp://127.0.0.1:8786"``, or as a `distributed.Client`. None starts a cluster within this
    process, which has no port that anybody could connect to, with a thread for each worker: so many, or one for each
    core. A scheduler and its first worker have `timeout` seconds to answer.
    """

    name = "dask"

    def __init__(self, scheduler: Any = None, workers: int | None = None, *, timeout: float = 30.0) -> None:
        try:
            import distributed
        except ImportError:
            raise MissingExtra("the Dask engine", extra="dask") from None
        self._cluster: Any = None
        self._own = not isinstance(scheduler, distributed.Client)
        self._count, self._timeout = worker_count(workers), timeout
        self._client: Any = self._connect(distributed, scheduler) if self._own else scheduler
        self.address = self._client.scheduler.address
        self._tasks: dict[Future[Report], Any] = {}
        self._candidates: Candidates | None = None
        self._data: Any = None
        self._counted, self._heard, self._warned = 0.0, time.monotonic(), False
        try:
            self._require_workers()
        except BaseException:
            self.close()
            raise

    def _connect(self, distributed: Any, scheduler: str | None) -> Any:
        for name in ("distributed.client", "distributed.core", "distributed.batched"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what goes wrong is said in one sentence, here
        if scheduler is None:
            self._cluster = _own_cluster(distributed, self._count)
        try:
            return distributed.Client(self._cluster or scheduler, timeout=self._timeout, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            first_line = (str(error) or type(error).__name__).splitlines()[0]
        # A client that could not connect closes itself when it is collected: now, and not whenever Python comes to it.
        # While another client starts, that one holds the lock which closing waits for, in the same thread: for ever.
        gc.collect()
        raise RunError(
            f"no Dask scheduler answers at {scheduler} ({first_line}): nothing was drawn; start one with"
            " 'dask scheduler', or correct --scheduler tcp://HOST:PORT"
        )

    def _require_workers(self) -> None:
        """At least one worker, and the same versions on all."""
        try:
            self._client.wait_for_workers(1, timeout=self._timeout)
        except TimeoutError:
            raise RunError(
                f"the Dask scheduler at {self.address} has no workers: nothing was drawn; start some with 'dask worker"
                f" {self.address}'"
            ) from None

        def versions() -> dict[str, str]:  # travels by value: a worker may lack echobound
            from importlib.metadata import PackageNotFoundError, version

            def of(name: str) -> str:
                try:
                    return version(name)
                except PackageNotFoundError:
                    return "not installed"

            return {name: of(name) for name in ("echobound", "numpy")}

        for worker, found in self._client.run(versions).items():
            require_same_versions(worker, found)

    @property
    def workers(self) -> int:
        """Threads of all workers, by now."""
        self.check()
        return self._workers

    def _listen(self) -> None:
        """Count the workers from time to time; a scheduler that never answers, as behind a dead proxy, is lost."""
        if time.monotonic() - self._counted <= REFRESH:
            return
        try:
            self._workers = sum(self._client.nthreads(callback_timeout=REFRESH).values())
        except (TimeoutError, OSError):  # it may be busy, or about to be lost: the last count must do, for a while
            silent = time.monotonic() - self._heard
            if silent > SILENT:
                raise RunError(
                    f"the Dask scheduler at {self.address} has not answered for {silent:.0f} s: finished rows are safe"
                    " in the ledger; start again to resume, with this or another engine"
                ) from None
        else:
            self._heard = time.monotonic()
        self._counted = time.monotonic()
        if self._workers == 0 and not self._warned:
            told = f"the Dask scheduler at {self.address} has no workers left: waiting for new ones"
            warnings.warn(told, stacklevel=2)
        self._warned = self._workers == 0

    def start(self, candidates: Candidates) -> None:
        """Send the data to all workers, once."""
        candidates.packed()  # refuses here what cannot be sent
        self._candidates = candidates
        self._scatter()

    def _scatter(self) -> None:
        with self._scheduler_errors():
            [self._data] = self._client.scatter([self._candidates], broadcast=True, hash=False)

    def submit(self, indices: Sequence[int]) -> Future[Report]:
        """Have a batch scored."""
        if self._data is None:
            self._scatter()
        with self._scheduler_errors():
            task = self._client.submit(evaluate, self._data, indices, pure=False)
        promise: Future[Report] = Future()
        self._tasks[promise] = task
        task.add_done_callback(partial(self._deliver, promise))
        return promise

    def _deliver(self, promise: Future[Report], task: Any) -> None:
        """Pass on the outcome of a task."""
        self._tasks.pop(promise, None)
        if not promise.set_running_or_notify_cancel():
            return
        if task.status == "finished":
            try:
                promise.set_result(task.result())
                return
            except Exception:  # its worker went before the rows could be fetched
                promise.set_exception(Lost())
        elif task.status == "error":
            promise.set_exception(task.exception())
        else:
            promise.set_exception(Lost())

    def cancel(self, waiting: Iterable[Future[Report]]) -> set[Future[Report]]:
        """Withdraw the batches that no worker has begun, and return them."""
        tasks = {promise: task for promise in waiting if (task := self._tasks.get(promise)) is not None}
        with self._scheduler_errors():
            begun = {key for stacks in self._client.call_stack(list(tasks.values())).values() for key in stacks}
            left = {promise for promise, task in tasks.items() if task.key not in begun and promise.cancel()}
            self._client.cancel([tasks[promise] for promise in left])
        return left

    def check(self) -> None:
        """Raise an error if the scheduler is lost."""
        if self._client.status != "running":
            raise RunError(
                f"the Dask scheduler at {self.address} is lost: finished rows are safe in the ledger; start again to"
                " resume, with this or another engine"
            )
        self._listen()

    @contextmanager
    def _scheduler_errors(self) -> Iterator[None]:
        """An error while talking to the scheduler may mean that it is lost: then that is raised."""
        self.check()
        try:
            yield
        except Exception:
            self.check()
            raise

    def recovered(self, error: Exception) -> bool:
        """Whether a batch was lost with its worker; Dask itself reruns most of those."""
        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker):
            raise RunError(
                f"a batch was lost with {error.allowed_failures + 1} workers, one after the other: do they have enough"
                " memory? Finished rows are safe in the ledger; start again to resume"
            ) from None
        if not isinstance(error, Lost):
            return False
        self.check()
        self._data = None  # it may be gone too: send it again
        return True

    def close(self) -> None:
        """Leave the cluster, and end it if it was started here."""
        self._data = None
        if self._own:
            self._client.close()
            if self._cluster is not None:
                self._cluster.close()


def _own_cluster(distributed: Any, workers: int) -> Any:
    """A cluster within this process: a port, even on 127.0.0.1, would take code from every user of this machine."""
    import dask

    pages: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
    with dask.config.set(pages):
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=False,
            protocol="inproc",
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )

    async def without_ports() -> None:  # dashboards cannot be had without; these have no pages, and now no port
        for one in (cluster.scheduler, *cluster.workers.values()):
            one.http_server.stop()

    cluster.sync(without_ports)
    return cluster
