"""Dask: workers on many machines, or a cluster on this one."""

from __future__ import annotations

import gc
import logging
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from echobound.campaign.engines.base import Engine, Report, evaluate
from echobound.campaign.machine import worker_count
from echobound.candidates import Candidates
from echobound.errors import MissingExtra, RunError
from echobound.runs.provenance import require_same_versions

T = TypeVar("T")
ANSWER = 30.0  # seconds for all workers to answer, after which it is said that one does not
REFRESH = 2.0  # seconds after which workers are counted again
LIFELESS = 15.0  # seconds since a worker said that it lives, after which it may be stopped: it does every few seconds
SHUNNED = 300.0  # seconds for which a worker that seems to be stopped is given nothing, where there are others
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
        self._addresses: list[str] = []
        self._shunned: dict[str, float] = {}  # workers that seem to be stopped, and until when they are taken to be
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

        for worker, found in self._answered(lambda: self._client.run(versions), "said their versions").items():
            require_same_versions(worker, found)

    def _answered(self, ask: Callable[[], T], what: str) -> T:
        """What all workers answer. One that was stopped never does, and Dask would wait for it without a word."""
        answer: Future[T] = Future()

        def work() -> None:
            try:
                answer.set_result(ask())
            except BaseException as error:  # raised where it is waited for
                answer.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        while not wait([answer], timeout=ANSWER).done:
            warnings.warn(
                f"not all workers of the Dask scheduler at {self.address} have {what}: is one of them stopped?"
                " Continue or end it, or wait until Dask takes it for lost; Ctrl-C ends",
                stacklevel=2,
            )
        return answer.result()

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
            threads = self._client.nthreads(callback_timeout=REFRESH)
            self._addresses, self._workers = list(threads), sum(threads.values())
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
            [self._data] = self._answered(
                lambda: self._client.scatter([self._candidates], self._trusted, broadcast=True, hash=False),
                "taken the data",
            )

    def submit(self, indices: Sequence[int]) -> Future[Report]:
        """Have a batch scored."""
        if self._data is None:
            self._scatter()
        # A preference, not a condition: those that are trusted may leave.
        prefer = {} if (trusted := self._trusted) is None else {"workers": trusted, "allow_other_workers": True}
        with self._scheduler_errors():
            task = self._client.submit(evaluate, self._data, indices, pure=False, **prefer)
        promise: Future[Report] = Future()
        self._tasks[promise] = task
        task.add_done_callback(partial(self._deliver, promise))
        return promise

    def _deliver(self, promise: Future[Report], task: Any) -> None:
        """Pass on the outcome of a task; rows are fetched beside, since a worker that is stopped holds its own."""
        if task.status == "finished":
            threading.Thread(target=self._fetch, args=(promise, task), daemon=True).start()
        else:
            self._settle(promise, task.exception() if task.status == "error" else Lost())

    def _fetch(self, promise: Future[Report], task: Any) -> None:
        try:
            report = task.result()
        except Exception:  # its worker went before the rows could be fetched
            self._settle(promise, Lost())
        else:
            self._settle(promise, report)

    def _settle(self, promise: Future[Report], outcome: Report | BaseException) -> None:
        self._tasks.pop(promise, None)
        if not promise.set_running_or_notify_cancel():
            return
        if isinstance(outcome, BaseException):
            promise.set_exception(outcome)
        else:
            promise.set_result(outcome)

    def cancel(self, waiting: Iterable[Future[Report]]) -> set[Future[Report]]:
        """Withdraw the batches that no worker has begun, and return them."""
        tasks = {promise: task for promise in waiting if (task := self._tasks.get(promise)) is not None}
        with self._scheduler_errors():
            begun = {key for stacks in self._client.call_stack(list(tasks.values())).values() for key in stacks}
            idle = {promise for promise, task in tasks.items() if task.status == "pending" and task.key not in begun}
            left = {promise for promise in idle if promise.cancel()}
            self._client.cancel([tasks[promise] for promise in left])
        return left

    @property
    def _trusted(self) -> list[str] | None:
        """Workers that do not seem to be stopped; None if that is all or none of them."""
        now = time.monotonic()
        self._shunned = {address: until for address, until in self._shunned.items() if until > now}
        others = [address for address in self._addresses if address not in self._shunned]
        return others if 0 < len(others) < len(self._addresses) else None

    def elsewhere(self, overdue: Iterable[Future[Report]]) -> set[Future[Report]]:
        """Take batches back where workers give no sign of life or are paused; these get nothing for a while.

        A process that was stopped keeps its connection, and Dask waits for it for five minutes. The batches of others
        may wait for it too, since Dask keeps no more copies of the data than it thinks it needs: they are sent again.
        """

        def stopped(dask_scheduler: Any) -> list[str]:  # travels by value: a scheduler may lack echobound
            import time

            workers, now = dask_scheduler.workers.values(), time.time()
            return [w.address for w in workers if w.status.name == "paused" or now - w.last_seen > lifeless]

        lifeless = LIFELESS
        tasks = {promise: task for promise in overdue if (task := self._tasks.get(promise)) is not None}
        with self._scheduler_errors():
            self._shunned |= dict.fromkeys(self._client.run_on_scheduler(stopped), time.monotonic() + SHUNNED)
            if self._trusted is None:
                return set()
            taken = {promise for promise in tasks if promise.cancel()}
            self._client.cancel([tasks[promise] for promise in taken])
        self._data = None if taken else self._data
        return taken

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
