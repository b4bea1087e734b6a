"""Paired: how much better one model is than another, with an interval over blocks of the same data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from echobound.arrays import Array, Signal

BLOCKS = 16  # of the data, at most
SHORTEST = 20  # samples of a block
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Difference:
    """By how many points of FIT one model is better than another.

    Parameters
    ----------
    fit
        Mean over folds, as FIT is.
    low, high
        Interval of 95 %, by the jackknife over blocks of the data that both models ran over. It takes the blocks as
        independent, which those of one record are only roughly. None with fewer than three blocks.
    blocks
        How many there are.
    """

    fit: float
    low: float | None
    high: float | None
    blocks: int

    @property
    def certain(self) -> bool:
        """Whether the interval leaves no doubt which one is better."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def words(self) -> str:
        """As in "better by 12.3 points of FIT (95 % interval over 16 blocks: 8.1 to 16.5)"."""
        sign = 1.0 if self.fit >= 0 else -1.0
        said = f"{'better' if sign > 0 else 'worse'} by {abs(self.fit):.1f} points of FIT"
        if self.low is None or self.high is None:
            return said
        low, high = sorted((sign * self.low, sign * self.high))
        return f"{said} (95 % interval over {self.blocks} blocks: {low:.1f} to {high:.1f})"


def difference(measured: Sequence[Signal], first: Sequence[Signal], second: Sequence[Signal]) -> Difference | None:
    """How much better the first model is than the second on the same folds; None if one of them ran off.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.standard_normal((2000, 1))
    >>> found = difference([y], [y + 0.1 * rng.standard_normal(y.shape)], [y + 0.3 * rng.standard_normal(y.shape)])
    >>> round(found.fit), found.low < 20 < found.high, found.certain
    (20, True, True)
    """
    if not all(np.isfinite(signal).all() for signal in (*first, *second)):
        return None
    each = max(1, -(-BLOCKS // len(measured)))
    folds = [_squares(*fold, each) for fold in zip(measured, first, second, strict=True)]
    parts = [_fits(*fold) for fold in folds]
    whole = float(np.mean([one for one, _ in parts]))
    # Without block b of fold f, the mean over folds changes by what that fold changes.
    left_out = np.concatenate([whole + (without - one) / len(parts) for one, without in parts])
    count = len(left_out)
    if count < 3:
        return Difference(whole, None, None, count)
    from scipy.stats import t

    pseudo = count * whole - (count - 1) * left_out
    half = float(t.ppf((1.0 + CONFIDENCE) / 2.0, count - 1) * pseudo.std(ddof=1) / np.sqrt(count))
    return Difference(whole, whole - half, whole + half, count)


def _squares(measured: Signal, first: Signal, second: Signal, blocks: int) -> tuple[Array, Array, Array]:
    """Sums of squared errors of both models for each block, ``(2, block, output)``; samples; spread of the outputs."""
    blocks = max(1, min(blocks, len(measured) // SHORTEST))
    edges = np.linspace(0, len(measured), blocks + 1).round().astype(int)
    errors = np.stack([np.square(first - measured), np.square(second - measured)])
    sums = np.add.reduceat(errors, edges[:-1], axis=1)
    return sums, np.diff(edges), measured.std(axis=0)


def _fits(sums: Array, samples: Array, spread: Array) -> tuple[float, Array]:
    """Difference in FIT over all blocks of a fold, and with each of them left out."""
    moving = spread > 0
    total, count = sums.sum(axis=1), samples.sum()

    def gap(squares: Array, number: Array) -> Array:
        rms = np.sqrt(squares / number) / spread
        return np.asarray(100.0 * (rms[1] - rms[0])[..., moving].mean(axis=-1))

    if len(samples) == 1:
        return float(gap(total, count)), np.zeros(0)
    without = gap(total[:, None] - sums, (count - samples)[:, None])
    return float(gap(total, count)), without
