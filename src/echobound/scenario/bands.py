"""Bands: limits for the violation probabilities of all ranks together.

V_(k), the probability to beat the k-th best of N, has the law of the k-th smallest of N uniform numbers. A band gives
limits for all k together. The bands here have *equal local level*: each rank alone would miss with the same small
probability, so that the tails are as sharp as the middle; bands of constant width (Kolmogorov, DKW) say next to nothing
about the best networks.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echobound.arrays import Array
from echobound.errors import InputError
from echobound.scenario.bounds import as_count, as_probability

LEAST = 1e-150  # a beta below which bands share it equally among their ranks
MARGIN = 1e-10  # relative: a band is calibrated to beta (1 - MARGIN), far more than its arithmetic errs


def crossing_probability(networks: int, upper: ArrayLike, lower: ArrayLike = ()) -> float:
    """P(U_(k) > upper_k or U_(k) < lower_k for some k), exactly, for the ordered U of N uniform numbers.

    The number of U up to time t is followed as a Poisson process that is known to end in N; whatever leaves the band is
    added up at its first crossing, so that small probabilities keep their digits. Limits, for k = 1, 2, ..., do not
    decrease; there may be as many as wanted.

    Examples
    --------
    >>> round(crossing_probability(59, [0.05]), 6)  # the best alone: 0.95 ** 59
    0.048495
    """
    from scipy.special import gammaln

    n = as_count("networks", networks)
    times = np.concatenate([np.asarray(upper, float), np.asarray(lower, float)])
    ranks = np.concatenate([np.arange(1, len(np.atleast_1d(upper)) + 1), -np.arange(1, len(np.atleast_1d(lower)) + 1)])
    order = np.lexsort((ranks, times))
    log_factorial = np.asarray(gammaln(np.arange(n + 1) + 1.0))
    log_all = n * math.log(n) - n - log_factorial[n]  # ln P(Poisson(n) = n)
    alive, first, now, crossed = np.ones(1), 0, 0.0, 0.0  # P(count = first, first + 1, ...) of those inside so far
    for time, rank in zip(times[order].tolist(), ranks[order].tolist(), strict=True):
        if time > now:
            alive = np.convolve(alive, _poisson(n * (time - now), n, log_factorial))
            # Counts far above their mean have no weight in double precision; nor have counts above n.
            alive = alive[: max(1, min(n, math.ceil(n * time + 14 * math.sqrt(n * time) + 40)) + 1 - first)]
            now = time
        leaves = slice(0, max(rank - first, 0)) if rank > 0 else slice(max(-rank - first, 0), None)
        gone = alive[leaves]
        if len(gone):
            start = first + (leaves.start or 0)
            left = n - np.arange(start, start + len(gone))
            ends = _poisson_at(left, n * (1.0 - now), log_factorial)
            crossed += float(gone @ np.exp(ends - log_all))
            if rank > 0:
                alive, first = alive[len(gone) :], first + len(gone)
            else:
                alive = alive[: leaves.start]
        if not len(alive):
            break
    return min(crossed, 1.0)


def _poisson(mean: float, n: int, log_factorial: Array) -> Array:
    """Probabilities of 0, 1, 2, ... until they have no weight in double precision."""
    counts = np.arange(min(n, math.ceil(mean + 12 * math.sqrt(mean) + 30)) + 1)
    return np.asarray(np.exp(_poisson_at(counts, mean, log_factorial)))


def _poisson_at(counts: NDArray[np.int64], mean: float, log_factorial: Array) -> Array:
    """Logarithms of Poisson probabilities."""
    if mean <= 0:
        return np.where(counts == 0, 0.0, -np.inf)
    return np.asarray(counts * math.log(mean) - mean - log_factorial[counts])


def local_level(networks: int, beta: float, ranks: int | None = None, *, two_sided: bool = False) -> float:
    """The level at which each rank alone may miss, so that all together miss with probability beta.

    The band covers the best so many `ranks`; all if not given, as a two-sided one always does. In a two-sided band each
    rank has a lower limit too, and each side half the level.
    """
    from scipy.optimize import brentq

    n, target = as_count("networks", networks), float(as_probability("beta", beta)) * (1 - MARGIN)
    count = covered_ranks(n, ranks)

    def excess(log_level: float) -> float:
        lower, upper = rank_limits(n, math.exp(log_level), count, two_sided=two_sided)
        return math.log(max(crossing_probability(n, upper, lower), 1e-320) / target)

    if count == 1 and not two_sided:  # nothing to share
        return float(as_probability("beta", beta))
    if target < LEAST:
        # Crossing probabilities so small have lost their digits. By the union bound this level is safe; it is hardly
        # smaller, since ranks that each miss once in so many times hardly ever miss together.
        return target / count
    low, high = math.log(target / (2 * count)), math.log(target)
    return math.exp(float(brentq(excess, low, high, xtol=1e-13, rtol=1e-13)) - MARGIN)


def rank_limits(networks: int, level: float, ranks: int, *, two_sided: bool) -> tuple[Array, Array]:
    """Lower and upper limits of V_(k), k = 1 .. ranks, each rank alone missing with probability `level`."""
    from scipy.special import betainccinv, betaincinv

    k = np.arange(1, ranks + 1)
    side = level / 2 if two_sided else level
    # Where the inverse finds nothing, which it does beyond 1e-150, no limit is stated.
    upper = np.maximum.accumulate(np.nan_to_num(betainccinv(k, networks - k + 1, side), nan=1.0))
    if not two_sided:
        return np.empty(0), upper
    lower = np.minimum.accumulate(np.nan_to_num(betaincinv(k, networks - k + 1, side), nan=0.0)[::-1])[::-1]
    return np.asarray(lower), np.asarray(upper)


def covered_ranks(networks: int, ranks: int | None) -> int:
    """How many ranks a band covers: all if not said."""
    count = networks if ranks is None else as_count("ranks", ranks)
    if count > networks:
        raise InputError(f"a band cannot cover {count} ranks of {networks} networks: cover at most all")
    return count
