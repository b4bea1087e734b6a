"""Whitening: the part of a signal that its own past does not tell, and correlations of such parts.

Two signals that have nothing to do with each other still look correlated if each resembles its own past. With both
whitened by an autoregression of its own, the correlations at M lags are independent with variance 1/N, and N times the
sum of their squares is chi-squared with M degrees of freedom (Haugh, 1976). So tests have the rate that they state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Array, Vector

MOST = 30  # past samples of an autoregression
SHORT = 12  # samples for each coefficient, at least


@dataclass(frozen=True, eq=False)
class Autoregression:
    """x(k) = c + a_1 x(k-1) + ... + a_p x(k-p) + what is new in x(k)."""

    a: Vector
    constant: float

    @classmethod
    def of(cls, pieces: Sequence[Vector], most: int = MOST) -> Autoregression:
        """Fitted by least squares to all pieces together, of the order with the least information criterion.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x = np.zeros(4000)
        >>> for k, new in enumerate(rng.standard_normal(4000)):
        ...     x[k] = 0.9 * x[k - 1] + new
        >>> [round(one, 1) for one in Autoregression.of([x]).a.tolist()][:1]
        [0.9]
        """
        samples = sum(len(piece) for piece in pieces)
        most = max(0, min(most, samples // SHORT, min(len(piece) for piece in pieces) // 4))
        rows = np.concatenate([_rows(piece, most) for piece in pieces])
        # Of R, the squared last column below row p is the sum of squares that p columns leave: all orders at once.
        factor = np.asarray(np.linalg.qr(rows, mode="r"))
        left = np.cumsum(np.square(factor[::-1, -1]))[::-1]
        count = len(rows)
        orders = np.arange(most + 1)
        sums = np.maximum(left[orders + 1], 1e-300)
        order = int(np.argmin(count * np.log(sums / count) + 2.0 * orders * (1.0 + 2.0 * orders / count)))
        found = np.linalg.lstsq(factor[:, : order + 1], factor[:, -1], rcond=1e-12)[0]
        return cls(found[1:], float(found[0]))

    def new(self, piece: Vector, *, constant: bool = True) -> Vector:
        """What is new in each sample, from the first one with a full past on."""
        order = len(self.a)
        if not order:
            return piece - self.constant * constant
        past = np.lib.stride_tricks.sliding_window_view(piece[:-1], order)[:, ::-1]
        return np.asarray(piece[order:] - past @ self.a - self.constant * constant)


def _rows(piece: Vector, most: int) -> Array:
    lags = [piece[most - lag : len(piece) - lag, None] for lag in range(1, most + 1)]
    return np.concatenate([np.ones((len(piece) - most, 1)), *lags, piece[most:, None]], axis=1)


@dataclass(frozen=True, eq=False)
class Correlation:
    """Correlations of two signals at several lags, and how many products each rests on."""

    lags: NDArray[np.int64]
    values: Array
    products: Array
    samples: int

    @property
    def statistic(self) -> float:
        """Chi-squared with one degree of freedom for each lag, if the signals have nothing to do with each other."""
        return float(np.sum(np.square(self.values) * self.samples**2 / np.maximum(self.products, 1)))

    @property
    def p_value(self) -> float:
        """How probable a statistic as large as this one would be."""
        from scipy.stats import chi2

        return float(chi2.sf(self.statistic, len(self.lags)))

    def part(self, low: int, high: int) -> Correlation:
        """The lags from `low` to `high`, both included."""
        of = (self.lags >= low) & (self.lags <= high)
        return Correlation(self.lags[of], self.values[of], self.products[of], self.samples)

    def bound(self, level: float = 0.01) -> float:
        """Between plus and minus this, a single correlation stays with probability 1 - `level`."""
        from scipy.stats import norm

        return float(norm.isf(level / 2.0) / np.sqrt(self.samples))


def correlation(first: Sequence[Vector], second: Sequence[Vector], low: int, high: int) -> Correlation:
    """Correlations of first(k - lag) with second(k), for the lags from `low` to `high`; pieces are not bridged.

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal(1000)
    >>> found = correlation([x[3:]], [x[:-3]], -5, 5)
    >>> int(found.lags[np.argmax(found.values)])
    3
    """
    lags, samples = np.arange(low, high + 1, dtype=np.int64), sum(len(piece) for piece in first)
    sums, products = np.zeros(len(lags)), np.zeros(len(lags))
    for a, b in zip(first, second, strict=True):
        for i, lag in enumerate(lags):
            earlier, now = (a[: len(a) - lag], b[lag:]) if lag >= 0 else (a[-lag:], b[:lag])
            if len(now):
                sums[i] += earlier @ now
                products[i] += len(now)
    norm = np.sqrt(sum(float(a @ a) for a in first) * sum(float(b @ b) for b in second))
    return Correlation(lags, sums / norm if norm > 0 else sums, products, samples)


def whitened(pieces: Sequence[Vector], by: Autoregression | None = None) -> list[Vector]:
    """The new part of each piece, by an autoregression of their own if none is given; all of unit size."""
    size = float(np.std(np.concatenate(pieces)))
    scaled = [piece / size if size > 0 else piece for piece in pieces]
    by = Autoregression.of(scaled) if by is None else by
    return [by.new(piece) for piece in scaled]


def aligned(first: Sequence[Vector], second: Sequence[Vector]) -> tuple[list[Vector], list[Vector]]:
    """The ends of pieces that began together: filters of different lengths take different samples from the start."""
    sizes = [min(len(a), len(b)) for a, b in zip(first, second, strict=True)]
    return (
        [a[len(a) - size :] for a, size in zip(first, sizes, strict=True)],
        [b[len(b) - size :] for b, size in zip(second, sizes, strict=True)],
    )
