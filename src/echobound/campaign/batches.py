"""Batches: how many networks are handed out at once. It has no influence on the rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

from echobound.errors import InputError
from echobound.kernels.base import Kernel

__all__ = ["Batches"]

SECONDS = 1.0  # what a block should take: long against handing it out, short enough to wait for
CLIENT = 0.01  # what handing one out and writing its rows costs the client on Dask; see benchmarks/campaign.py
FIRST = 8  # networks in a block before anything is measured


class Batches:
    """Cuts indices into blocks of about a second.

    Parameters
    ----------
    indices
        What is to be evaluated.
    todo
        How many they are.
    size
        A fixed size instead.
    kernel
        It may prefer a size of its own, as `batch`.

    Examples
    --------
    >>> blocks = Batches(iter(range(1000)), 1000)
    >>> len(blocks.cut(workers=2))
    8
    >>> blocks.took(networks=8, seconds=0.2)
    >>> len(blocks.cut(workers=2))
    40
    """

    def __init__(
        self, indices: Iterator[int], todo: int, size: int | None = None, kernel: Kernel | None = None
    ) -> None:
        if size is not None and size < 1:
            raise InputError(f"a block must hold at least 1 network, got {size}")
        self._indices, self.left = indices, todo
        self._fixed: int | None = size or getattr(kernel, "batch", None)
        self._seen: deque[tuple[int, float]] = deque(maxlen=16)

    def cut(self, workers: int) -> list[int]:
        """The next block; empty when all are handed out."""
        # All workers should end at about the same time: the last blocks are smaller.
        size = self._fixed or max(1, min(self._by_time(workers), self.left // (4 * workers)))
        block = list(islice(self._indices, size))
        self.left = self.left - len(block) if block else 0
        return block

    def took(self, networks: int, seconds: float) -> None:
        """Learn from a block that ended."""
        self._seen.append((networks, seconds))

    def _by_time(self, workers: int) -> int:
        if not self._seen:
            return FIRST
        networks, seconds = (sum(part) for part in zip(*self._seen, strict=True))
        wanted = max(SECONDS, CLIENT * workers)  # beyond a hundred workers, longer ones keep the client ahead of them
        return max(1, int(wanted * networks / max(seconds, 1e-9)))
