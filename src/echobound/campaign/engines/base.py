"""What all engines share: batches of candidates in, reports out."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Self

from echobound.arrays import Rows
from echobound.candidates import Candidates
from echobound.kernels.blas import one_blas_thread
from echobound.runs.provenance import Place, here

_alone = threading.Lock()


@dataclass(frozen=True, slots=True)
class Report:
    """Rows of a batch, the seconds it took, and where."""

    rows: Rows
    seconds: float
    place: Place


def evaluate(candidates: Candidates, indices: Sequence[int]) -> Report:
    """Score a batch here and now."""
    with one_blas_thread(), nullcontext() if candidates.parallel else _alone:
        start = time.perf_counter()
        rows = candidates.score(indices)
        return Report(rows, time.perf_counter() - start, here())


class Engine(ABC):
    """Where batches of draws are scored. It has no influence on the rows.

    An engine works for one set of candidates at a time. It can be used for several campaigns, one after the other, and
    is closed at the end of a ``with`` statement.
    """

    name = "engine"
    _workers = 1

    @property
    def workers(self) -> int:
        """Batches that are scored at the same time, by now."""
        return self._workers

    @abstractmethod
    def start(self, candidates: Candidates) -> None:
        """Get ready for batches of these candidates."""

    @abstractmethod
    def submit(self, indices: Sequence[int]) -> Future[Report]:
        """Have a batch scored."""

    def cancel(self, waiting: Iterable[Future[Report]]) -> set[Future[Report]]:
        """Withdraw the batches that no worker has begun, and return them."""
        return {future for future in waiting if future.cancel()}

    def elsewhere(self, overdue: Iterable[Future[Report]]) -> set[Future[Report]]:
        """Take batches from workers that seem to be stopped, where there are others for them, and return them."""
        return set()

    def check(self) -> None:  # noqa: B027 (most engines have nothing to check)
        """Raise an error if no batch can be finished any more."""

    def recovered(self, error: Exception) -> bool:
        """Whether the error means that a worker was lost with its batch, and the batch can run elsewhere."""
        return False

    def close(self) -> None:  # noqa: B027 (nor to close)
        """Release the workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
