"""Batches: how many draws are handed out at once. It has no influence on the rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

from echobound.errors import InputError

SECONDS = 1.0  # what a batch should take: long compared with handing it out, short enough to wait for
CLIENT = 0.01  # what handing one out and writing its rows costs the client on Dask; see benchmarks/campaign.py
FIRST = 8  # draws in a batch before anything is measured


class Batches:
    """Cuts indices, `todo` of them, into batches of about a second, or of a fixed size.

    Examples
    --------
    >>> batches = Batches(iter(range(1000)), 1000)
    >>> len(batches.cut(workers=2))
    8
    >>> batches.took(draws=8, seconds=0.2)
    >>> len(batches.cut(workers=2))
    40
    """

    def __init__(self, indices: Iterator[int], todo: int, size: int | None = None) -> None:
        if size is not None and size < 1:
            raise InputError(f"a batch must hold at least 1 draw, got {size}")
        self._indices, self.left, self._fixed = indices, todo, size
        self._timings: deque[tuple[int, float]] = deque(maxlen=16)

    def cut(self, workers: int) -> list[int]:
        """The next batch; empty when all are handed out."""
        # All workers should finish at about the same time: the last batches are smaller.
        size = self._fixed or max(1, min(self._by_time(workers), self.left // (4 * workers)))
        batch = list(islice(self._indices, size))
        self.left = self.left - len(batch) if batch else 0
        return batch

    def took(self, draws: int, seconds: float) -> None:
        """Learn from a finished batch."""
        self._timings.append((draws, seconds))

    def _by_time(self, workers: int) -> int:
        if not self._timings:
            return FIRST
        draws, seconds = (sum(part) for part in zip(*self._timings, strict=True))
        wanted = max(SECONDS, CLIENT * workers)  # beyond a hundred workers, longer batches keep the client ahead
        return max(1, int(wanted * draws / max(seconds, 1e-9)))
