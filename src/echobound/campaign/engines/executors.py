"""Any executor of `concurrent.futures`, and processes of this machine."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import suppress
from multiprocessing.shared_memory import SharedMemory
from typing import Any

from echobound.campaign.engines.base import Engine, Job, Report
from echobound.campaign.machine import usable_cores, worker_count
from echobound.errors import InputError, RunError

__all__ = ["AnyExecutor", "Processes", "pack"]


def pack(job: Job) -> bytes:
    """A job as bytes for another process, or a sentence that says what cannot travel."""
    try:
        return pickle.dumps(job, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        for score in job.problem.scores:
            try:
                pickle.dumps(score)
            except (pickle.PicklingError, AttributeError, TypeError):
                raise InputError(
                    f"score {score.name!r} cannot be sent to other processes: define its function by name in a module"
                    " that they can import, or take the engine 'threads'"
                ) from None
        raise


class _Unpacked:
    """The job that this process works on: unpacked once, however many blocks come."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}

    def __call__(self, key: str, cargo: bytes | tuple[str, int]) -> Job:
        with self._lock:
            if key not in self._jobs:
                self._jobs = {key: pickle.loads(_bytes(cargo))}
            return self._jobs[key]


_unpacked = _Unpacked()


def _bytes(cargo: bytes | tuple[str, int]) -> bytes:
    if isinstance(cargo, bytes):
        return cargo
    name, size = cargo
    shared = SharedMemory(name)
    try:
        return bytes(_buffer(shared)[:size])
    finally:
        shared.close()


def _buffer(shared: SharedMemory) -> memoryview:
    assert shared.buf is not None  # it is, while open
    return shared.buf


def evaluate(key: str, cargo: bytes | tuple[str, int], indices: Sequence[int]) -> Report:
    """Evaluate a block in a worker."""
    return _unpacked(key, cargo).evaluate(indices)


class AnyExecutor(Engine):
    """Evaluate blocks on an executor of `concurrent.futures`: those of mpi4py, Parsl, loky and many others are.

    The data travel with each block, since such an executor has no other way, and are unpacked once in each worker.

    Parameters
    ----------
    executor
        It is not shut down at the end.
    workers
        Blocks it evaluates at the same time; as many as it says it has workers if not given.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> AnyExecutor(ThreadPoolExecutor(4)).workers
    4
    """

    def __init__(self, executor: Executor, workers: int | None = None) -> None:
        known = (getattr(executor, name, None) for name in ("_max_workers", "num_workers"))
        counted = next((number for number in known if isinstance(number, int) and number > 0), usable_cores())
        self._executor, self._workers = executor, worker_count(counted if workers is None else workers)
        self.name = type(executor).__name__
        self._job: tuple[str, Any] = ("", b"")

    @property
    def workers(self) -> int:
        """Blocks that are evaluated at the same time."""
        return self._workers

    def start(self, job: Job) -> None:
        """Get ready for the blocks of a job."""
        packed = pack(job)
        self._job = hashlib.sha256(packed).hexdigest(), packed

    def submit(self, indices: Sequence[int]) -> Future[Report]:
        """Have a block of the job evaluated."""
        try:
            return self._executor.submit(evaluate, *self._job, indices)
        except BrokenExecutor as error:
            future: Future[Report] = Future()  # a lost worker shows where the results of all blocks are looked at
            future.set_exception(error)
            return future

    def recovered(self, error: Exception) -> bool:
        """An executor of somebody else's cannot be started again from here."""
        if isinstance(error, BrokenExecutor):
            raise RunError(
                f"the executor {self.name} is broken ({error}): the rows before are safe in the ledger; start again to"
                " go on, with this or another engine"
            ) from None
        return False


class Processes(AnyExecutor):
    """Evaluate blocks in processes of this machine; a process that is lost is replaced.

    Parameters
    ----------
    workers
        How many; one for each core if not given.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._count = worker_count(workers)
        super().__init__(self._pool(), self._count)
        self.name = "processes"
        self._shared: SharedMemory | None = None

    def _pool(self) -> ProcessPoolExecutor:
        # A fork would copy locks that threads hold.
        return ProcessPoolExecutor(self._count, multiprocessing.get_context("spawn"), initializer=_settle_in)

    def start(self, job: Job) -> None:
        """Put the data where all processes find them, once."""
        super().start(job)
        key, packed = self._job
        self._forget()
        self._shared = SharedMemory(create=True, size=len(packed))
        _buffer(self._shared)[: len(packed)] = packed
        self._job = key, (self._shared.name, len(packed))

    def recovered(self, error: Exception) -> bool:
        """A process that is lost takes its pool with it: the blocks run in a new one."""
        if not isinstance(error, BrokenExecutor):
            return False
        if getattr(self._executor, "_broken", True):
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = self._pool()
        return True

    def _forget(self) -> None:
        if self._shared is not None:
            self._shared.close()
            with suppress(FileNotFoundError):
                self._shared.unlink()
            self._shared = None

    def close(self) -> None:
        """Let the processes end."""
        self._executor.shutdown(cancel_futures=True)
        self._forget()


def _settle_in() -> None:
    """In a new process: Ctrl-C is for the one that started it, and without that one there is nothing to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
