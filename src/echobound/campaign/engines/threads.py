"""Threads of this process: the default. The kernels release Python's lock while they compute."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from echobound.campaign.engines.base import Engine, Report, evaluate
from echobound.campaign.machine import worker_count
from echobound.candidates import Candidates


class Threads(Engine):
    """Score batches in threads: one for each core if not given, and one for candidates that fill their device alone.

    Examples
    --------
    >>> Threads(3).workers
    3
    """

    name = "threads"

    def __init__(self, workers: int | None = None) -> None:
        self._most = self._workers = worker_count(workers)
        self._pool = ThreadPoolExecutor(self._most, thread_name_prefix="echobound")
        self._candidates: Candidates | None = None

    def start(self, candidates: Candidates) -> None:
        """Get ready for batches of these candidates."""
        self._candidates, self._workers = candidates, self._most if candidates.parallel else 1

    def submit(self, indices: Sequence[int]) -> Future[Report]:
        """Have a batch scored."""
        assert self._candidates is not None
        return self._pool.submit(evaluate, self._candidates, indices)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)
