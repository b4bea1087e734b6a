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

from echobound.campaign.engines.base import Engine, Report, evaluate
from echobound.campaign.machine import usable_cores, worker_count
from echobound.candidates import Candidates
from echobound.errors import RunError


class _Unpacked:
    """The candidates that this process works on: unpacked once, however many batches come."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Candidates] = {}

    def __call__(self, key: str, cargo: bytes | tuple[str, int]) -> Candidates:
        with self._lock:
            if key not in self._known:
                self._known = {key: pickle.loads(_bytes(cargo))}
            return self._known[key]


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


def evaluate_packed(key: str, cargo: bytes | tuple[str, int], indices: Sequence[int]) -> Report:
    """Score a batch in a worker."""
    return evaluate(_unpacked(key, cargo), indices)


class AnyExecutor(Engine):
    """Score batches on an executor of `concurrent.futures`, such as those of mpi4py, Parsl and loky.

    The data are sent with each batch, since such an executor has no other way, and unpacked once in each worker. It is
    not shut down at the end. It gets as many batches at a time as it says it has workers, if their number is not given.

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
        self._packed: tuple[str, Any] = ("", b"")

    def start(self, candidates: Candidates) -> None:
        """Get ready for batches of these candidates."""
        packed = candidates.packed()
        self._packed = hashlib.sha256(packed).hexdigest(), packed

    def submit(self, indices: Sequence[int]) -> Future[Report]:
        """Have a batch scored."""
        try:
            return self._executor.submit(evaluate_packed, *self._packed, indices)
        except BrokenExecutor as error:
            future: Future[Report] = Future()  # a lost worker shows up where results are collected
            future.set_exception(error)
            return future

    def recovered(self, error: Exception) -> bool:
        """Somebody else's executor cannot be restarted from here."""
        if isinstance(error, BrokenExecutor):
            raise RunError(
                f"the executor {self.name} is broken ({error}): finished rows are safe in the ledger; start again to"
                " resume, with this or another engine"
            ) from None
        return False


class Processes(AnyExecutor):
    """Score batches in processes of this machine, one for each core if not given; one that is lost is replaced."""

    def __init__(self, workers: int | None = None) -> None:
        self._count = worker_count(workers)
        super().__init__(self._pool(), self._count)
        self.name = "processes"
        self._shared: SharedMemory | None = None

    def _pool(self) -> ProcessPoolExecutor:
        # A fork would copy locks that threads hold.
        return ProcessPoolExecutor(self._count, multiprocessing.get_context("spawn"), initializer=_begin_worker)

    def start(self, candidates: Candidates) -> None:
        """Put the data where all processes find them, once."""
        super().start(candidates)
        key, packed = self._packed
        self._free_shared()
        self._shared = SharedMemory(create=True, size=len(packed))
        _buffer(self._shared)[: len(packed)] = packed
        self._packed = key, (self._shared.name, len(packed))

    def recovered(self, error: Exception) -> bool:
        """A process that is lost takes its pool with it: the batches run in a new one."""
        if not isinstance(error, BrokenExecutor):
            return False
        if getattr(self._executor, "_broken", True):
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = self._pool()
        return True

    def _free_shared(self) -> None:
        if self._shared is not None:
            self._shared.close()
            with suppress(FileNotFoundError):
                self._shared.unlink()
            self._shared = None

    def close(self) -> None:
        """End the processes."""
        self._executor.shutdown(cancel_futures=True)
        self._free_shared()


def _begin_worker() -> None:
    """Leave Ctrl-C to the process that started this one, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
