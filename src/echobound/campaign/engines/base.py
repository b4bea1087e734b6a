"""What all engines share: a job, reports of its blocks, and where they come from."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from echobound.arrays import Rows
from echobound.kernels.base import Kernel
from echobound.kernels.blas import one_blas_thread
from echobound.kernels.problem import Problem
from echobound.runs.provenance import Place, here

__all__ = ["Engine", "Job", "Report", "is_parallel"]

_alone = threading.Lock()


@dataclass(frozen=True, slots=True)
class Report:
    """Rows of a block, the seconds it took, and where."""

    rows: Rows
    seconds: float
    place: Place


@dataclass(frozen=True, eq=False)
class Job:
    """A kernel and a problem: what a worker needs to turn indices into rows."""

    kernel: Kernel
    problem: Problem

    def evaluate(self, indices: Sequence[int]) -> Report:
        """Evaluate a block here and now."""
        with one_blas_thread(), nullcontext() if is_parallel(self.kernel) else _alone:
            start = time.perf_counter()
            rows = self.kernel.evaluate(self.problem, indices)
            return Report(rows, time.perf_counter() - start, here())


def is_parallel(kernel: Kernel) -> bool:
    """Whether several threads of a process may call the kernel at once; one that fills its device alone says no."""
    return bool(getattr(kernel, "parallel", True))


class Engine(ABC):
    """Where blocks of draws are evaluated. It has no influence on the rows.

    An engine works on one job at a time. It can be used for several campaigns, one after the other, and is closed at
    the end of a ``with`` statement.
    """

    name = "engine"

    @property
    @abstractmethod
    def workers(self) -> int:
        """Blocks that are evaluated at the same time, by now."""

    @abstractmethod
    def start(self, job: Job) -> None:
        """Get ready for the blocks of a job."""

    @abstractmethod
    def submit(self, indices: Sequence[int]) -> Future[Report]:
        """Have a block of the job evaluated."""

    def cancel(self, waiting: Iterable[Future[Report]]) -> set[Future[Report]]:
        """Take back the blocks that nobody has begun, and return them."""
        return {future for future in waiting if future.cancel()}

    def check(self) -> None:  # noqa: B027 (most engines have nothing to check)
        """Raise an error if no block can end any more."""

    def recovered(self, error: Exception) -> bool:
        """Whether the error means that a worker was lost with its block, and the block can run elsewhere."""
        return False

    def close(self) -> None:  # noqa: B027 (nor to close)
        """Let the workers go."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
