"""Engine: blocks of draws to workers, rows to the ledger, events to whoever watches."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice

import numpy as np

from echobound.campaign.ledger import Ledger
from echobound.errors import InputError
from echobound.kernels.base import Kernel, Rows, Status
from echobound.kernels.blas import one_blas_thread
from echobound.kernels.problem import Problem

__all__ = ["Progress", "run_campaign", "usable_cores", "worker_count"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a campaign is, for those who watch it.

    Parameters
    ----------
    done, planned
        Networks.
    best, worst
        By the first score, so far; None before the first row.
    failures
        Diverged networks so far.
    seconds
        Since this start.
    fresh
        Networks evaluated since this start (the others were in the ledger already).
    """

    done: int
    planned: int
    best: float | None
    worst: float | None
    failures: int
    seconds: float
    fresh: int

    @property
    def remaining(self) -> float | None:
        """Seconds still needed at the rate so far."""
        return self.seconds / self.fresh * (self.planned - self.done) if self.fresh else None


def usable_cores() -> int:
    """Number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_gib() -> float:
    """Memory of this machine; infinite where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (AttributeError, ValueError, OSError):
        return float("inf")


def worker_count(workers: int | None) -> int:
    """Number of workers: as asked for, or one for each core."""
    if workers is not None and workers < 1:
        raise InputError(f"the number of workers must be at least 1, got {workers}")
    return usable_cores() if workers is None else workers


def run_campaign(
    kernel: Kernel,
    problem: Problem,
    indices: range,
    ledger: Ledger,
    *,
    workers: int | None = None,
    block: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Rows:
    """Evaluate the draws that the ledger does not have yet, and return the rows of all, in the order of their index.

    The result does not depend on `workers` or `block`. Rows go to the ledger as blocks end; an interruption loses the
    blocks in hand, and the same call goes on from there.
    """
    workers = worker_count(workers)
    if block is not None and block < 1:
        raise InputError(f"a block must hold at least 1 network, got {block}")
    done = ledger.present(indices, problem.stream, problem.family)
    todo = len(indices) - len(done)
    # Small enough that all workers end at about the same time and progress is seen, large enough to be worth a call.
    size = block or max(1, min(64, todo // (8 * workers)))
    watch = _Watch(problem, len(indices), ledger, todo, on_progress)
    left = (index for index in indices if index not in done)
    blocks = iter(lambda: list(islice(left, size)), [])
    if todo:
        with one_blas_thread(), ThreadPoolExecutor(workers, thread_name_prefix="echobound") as pool:
            for rows in _in_hand(pool, kernel, problem, blocks, 2 * workers):
                ledger.append(rows)
                watch.saw(rows)
    rows = ledger.rows(problem.stream, problem.family)
    return rows[(rows["index"] >= indices.start) & (rows["index"] < indices.stop)]


def _in_hand(
    pool: ThreadPoolExecutor, kernel: Kernel, problem: Problem, blocks: Iterator[Sequence[int]], most: int
) -> Iterator[Rows]:
    """Rows of blocks as they end; never more than `most` blocks are submitted."""
    pending: set[Future[Rows]] = {pool.submit(kernel.evaluate, problem, b) for b in islice(blocks, most)}
    try:
        while pending:
            ended, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in ended:
                pending |= {pool.submit(kernel.evaluate, problem, b) for b in islice(blocks, 1)}
                yield future.result()
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise


class _Watch:
    """Keeps count and tells."""

    def __init__(
        self,
        problem: Problem,
        planned: int,
        ledger: Ledger,
        todo: int,
        tell: Callable[[Progress], None] | None,
    ) -> None:
        self._tell, self._planned, self._start, self._fresh = tell, planned, time.perf_counter(), 0
        self._sign = 1.0 if problem.scores[0].direction == "max" else -1.0
        self._best, self._worst, self._done, self._failures = -np.inf, np.inf, planned - todo, 0
        if tell is not None:
            self._count(ledger.rows(problem.stream, problem.family))
            self._report()

    def saw(self, rows: Rows) -> None:
        self._done += len(rows)
        self._fresh += len(rows)
        self._count(rows)
        self._report()

    def _count(self, rows: Rows) -> None:
        if len(rows):
            scores = self._sign * rows["scores"][:, 0]
            self._best, self._worst = max(self._best, scores.max()), min(self._worst, scores.min())
            self._failures += int((rows["status"] == Status.DIVERGED).sum())

    def _report(self) -> None:
        if self._tell is None:
            return
        seen = self._best >= self._worst
        self._tell(
            Progress(
                done=self._done,
                planned=self._planned,
                best=self._sign * self._best if seen else None,
                worst=self._sign * self._worst if seen else None,
                failures=self._failures,
                seconds=time.perf_counter() - self._start,
                fresh=self._fresh,
            )
        )
