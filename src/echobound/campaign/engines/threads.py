"""Threads of this process: the default. The kernels hold no lock while they compute."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from echobound.campaign.engines.base import Engine, Job, Report, is_parallel
from echobound.campaign.machine import worker_count

__all__ = ["Threads"]


class Threads(Engine):
    """Evaluate blocks in threads of this process.

    Parameters
    ----------
    workers
        How many; one for each core if not given, and one for a kernel that fills its device alone.

    Examples
    --------
    >>> Threads(3).workers
    3
    """

    name = "threads"

    def __init__(self, workers: int | None = None) -> None:
        self._most = self._workers = worker_count(workers)
        self._pool = ThreadPoolExecutor(self._most, thread_name_prefix="echobound")
        self._job: Job | None = None

    @property
    def workers(self) -> int:
        """Threads that are used."""
        return self._workers

    def start(self, job: Job) -> None:
        """Get ready for the blocks of a job."""
        self._job, self._workers = job, self._most if is_parallel(job.kernel) else 1

    def submit(self, indices: Sequence[int]) -> Future[Report]:
        """Have a block of the job evaluated."""
        assert self._job is not None
        return self._pool.submit(self._job.evaluate, indices)

    def close(self) -> None:
        """Let the threads end."""
        self._pool.shutdown(cancel_futures=True)
