"""All ranks at once: bands for the whole distribution of scores, and ranks that are chosen after a look.

V_(k), the probability to beat the k-th best of N, has the law of the k-th smallest of N uniform numbers. A band gives
limits for all k together. The bands here have *equal local level*: each rank alone would miss with the same small
probability, so that the tails are as sharp as the middle; bands of constant width (Kolmogorov, DKW) say next to nothing
about the best networks, and are here for comparison.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echobound.arrays import Array
from echobound.errors import InputError
from echobound.scenario.bounds import as_count, as_probability
from echobound.scenario.ordering import Case, goodness, ordered
from echobound.scenario.statement import ScoreStatement, Scoring
from echobound.scenario.words import beyond, scored, upward, where

__all__ = [
    "DistributionBand",
    "RankBand",
    "SecondSet",
    "crossing_probability",
    "dkw_width",
    "kolmogorov_width",
    "local_level",
]


MARGIN = 1e-10  # relative: a band is calibrated to beta (1 - MARGIN), far more than its arithmetic errs


def dkw_width(networks: int, beta: float, *, two_sided: bool = True) -> float:
    """Half-width of the constant band by the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant.

    Examples
    --------
    >>> round(dkw_width(645, 0.05), 10)
    0.053475195
    """
    n, b = as_count("networks", networks), float(as_probability("beta", beta))
    if not two_sided and b > 0.5:
        raise InputError(f"the one-sided inequality holds for beta up to 0.5, got {beta}")
    return math.sqrt(math.log((2 if two_sided else 1) / b) / (2 * n))


def kolmogorov_width(networks: int, beta: float, *, two_sided: bool = True) -> float:
    """Half-width of the constant band by the exact law of Kolmogorov's statistic.

    Examples
    --------
    >>> round(kolmogorov_width(645, 0.05), 10)
    0.0532095849
    """
    from scipy.stats import ksone, kstwo

    n, b = as_count("networks", networks), float(as_probability("beta", beta))
    return float((kstwo if two_sided else ksone).isf(b, n))


def crossing_probability(networks: int, upper: ArrayLike, lower: ArrayLike = ()) -> float:
    """P(U_(k) > upper_k or U_(k) < lower_k for some k), exactly, for the ordered U of N uniform numbers.

    The number of U up to time t is followed as a Poisson process that is known to end in N; whatever leaves the band is
    added up at its first crossing, so that small probabilities keep their digits.

    Parameters
    ----------
    networks
        N.
    upper, lower
        Limits for k = 1, 2, ...; not decreasing, as many as wanted.

    Examples
    --------
    >>> round(crossing_probability(59, [0.05]), 6)  # the best alone: 0.95 ** 59
    0.048495
    """
    n = as_count("networks", networks)
    times = np.concatenate([np.asarray(upper, float), np.asarray(lower, float)])
    ranks = np.concatenate([np.arange(1, len(np.atleast_1d(upper)) + 1), -np.arange(1, len(np.atleast_1d(lower)) + 1)])
    order = np.lexsort((ranks, times))
    log_factorial = _log_factorial(n)
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


def _log_factorial(n: int) -> Array:
    from scipy.special import gammaln

    return np.asarray(gammaln(np.arange(n + 1) + 1.0))


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

    Parameters
    ----------
    networks, beta
        N and beta.
    ranks
        The band covers the best so many; all if not given (a two-sided one always does).
    two_sided
        Whether each rank has a lower limit too; each side of it then has half the level.

    Examples
    --------
    >>> round(local_level(59, 0.05, ranks=1), 9)  # one rank: nothing to share
    0.05
    """
    from scipy.optimize import brentq

    n, target = as_count("networks", networks), float(as_probability("beta", beta)) * (1 - MARGIN)
    count = _covered(n, ranks)

    def excess(log_level: float) -> float:
        lower, upper = rank_limits(n, math.exp(log_level), count, two_sided=two_sided)
        return math.log(max(crossing_probability(n, upper, lower), 1e-320) / target)

    low, high = math.log(target / (2 * count)), math.log(target)
    if count == 1 and not two_sided:
        return float(as_probability("beta", beta))
    return math.exp(float(brentq(excess, low, high, xtol=1e-13, rtol=1e-13)) - MARGIN)


def rank_limits(networks: int, level: float, ranks: int, *, two_sided: bool) -> tuple[Array, Array]:
    """Lower and upper limits of V_(k), k = 1 .. ranks, each rank alone missing with probability `level`."""
    from scipy.special import betainccinv, betaincinv

    k = np.arange(1, ranks + 1)
    side = level / 2 if two_sided else level
    upper = np.maximum.accumulate(betainccinv(k, networks - k + 1, side))
    lower = np.minimum.accumulate(betaincinv(k, networks - k + 1, side)[::-1])[::-1] if two_sided else np.empty(0)
    return np.asarray(lower), np.asarray(upper)


def _covered(networks: int, ranks: int | None) -> int:
    count = networks if ranks is None else as_count("ranks", ranks)
    if count > networks:
        raise InputError(f"a band cannot cover {count} ranks of {networks} networks: cover at most all")
    return count


@dataclass(frozen=True, kw_only=True)
class RankBand(ScoreStatement):
    """Limits for the best (or worst) K networks together: any of them may be made the threshold after a look.

    Parameters
    ----------
    networks, case
        N, and which end.
    thresholds
        Scores of the K best (or worst), K settled beforehand; None for one that diverged.
    """

    kind = "rank band"
    derived = ("level", "epsilons")

    networks: int
    case: Case
    thresholds: tuple[float | None, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        _covered(as_count("networks", self.networks), len(self.thresholds))

    @cached_property
    def level(self) -> float:
        """The probability with which each rank alone misses."""
        return local_level(self.networks, self.beta, len(self.thresholds))

    @cached_property
    def epsilons(self) -> tuple[float, ...]:
        """For each rank, the probability that a new network lies beyond its threshold, at most."""
        return tuple(rank_limits(self.networks, self.level, len(self.thresholds), two_sided=False)[1].tolist())

    @property
    def words(self) -> str:
        """The statement in plain words."""
        shown = [k for k in (1, 2, 5, 10, len(self.thresholds)) if k <= len(self.thresholds)]
        said = []
        for k in sorted(set(shown)):
            threshold, epsilon = self.thresholds[k - 1], upward(self.epsilons[k - 1])
            if threshold is not None:
                said.append(f"{self._beyond(threshold)} at most {epsilon} (rank {k})")
            elif self.case == "best":
                said.append(f"any finite score at most {epsilon} (rank {k})")
        return (
            f"{self.start}, the probability that a new network drawn and trained in the same way scores {scored(self)}"
            f" beyond the k-th {self.case} of {self.networks} is limited for k = 1 to {len(self.thresholds)} together,"
            f" so that k may be chosen after a look: {'; '.join(said) or 'nothing is worse than divergence'}."
        )

    def words_of(self, rank: int) -> str:
        """What holds for one rank, chosen after a look.

        Examples
        --------
        >>> print(RankBand.of(range(645), beta=0.05, ranks=50).words_of(5))
        With confidence 1 - 0.05, a new network drawn and trained in the same way scores a score above 640 on these
        validation data with probability at most 0.0187281. The threshold is that of rank 5 of 645, and may be chosen
        after a look: the limits of the 50 best hold together.
        """
        if not 1 <= as_count("rank", rank) <= len(self.thresholds):
            raise InputError(f"the band covers the {self.case} {len(self.thresholds)} networks, got rank {rank}")
        threshold = self.thresholds[rank - 1]
        what = "gives a finite score" if threshold is None else f"scores {scored(self)} {self._beyond(threshold)}"
        return (
            f"{self.start}, a new network drawn and trained in the same way {what} {where(self)} with probability at"
            f" most {upward(self.epsilons[rank - 1])}. The threshold is that of rank {rank} of {self.networks}, and may"
            f" be chosen after a look: the limits of the {len(self.thresholds)} {self.case} hold together."
        )

    def _beyond(self, threshold: float) -> str:
        return beyond(self, threshold, best=self.case == "best")

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        *,
        beta: float,
        ranks: int | None = None,
        case: Case = "best",
        **scoring: Unpack[Scoring],
    ) -> RankBand:
        """State limits for the first so many ranks together (all if not given).

        Examples
        --------
        >>> band = RankBand.of(range(645), beta=0.05, ranks=10)
        >>> round(band.level, 7), round(band.epsilons[4], 7), band.thresholds[4]
        (0.0136128, 0.0171969, 640.0)
        """
        _, values = ordered(scores, scoring.get("direction", "max"), case)
        count = _covered(len(values), ranks)
        return cls(networks=len(values), case=case, thresholds=tuple(values[:count]), beta=beta, **scoring)

    def again(self, *data: Any) -> RankBand:
        """The statement from the scores of all N networks."""
        (scores,) = data
        return RankBand.of(scores, beta=self.beta, ranks=len(self.thresholds), case=self.case, **self.scoring)


@dataclass(frozen=True, kw_only=True)
class DistributionBand(ScoreStatement):
    """A band for the whole distribution of the score.

    For every k together: a new network is better than the k-th best with probability at most ``upper[k - 1]``, and at
    least as good with probability at least ``lower[k - 1]``. True for every distribution, with ties too.

    Parameters
    ----------
    networks
        N.
    """

    kind = "distribution band"
    derived = ("level", "lower", "upper")

    networks: int

    def __post_init__(self) -> None:
        super().__post_init__()
        as_count("networks", self.networks)

    @cached_property
    def level(self) -> float:
        """The probability with which each rank alone misses, both sides together."""
        return local_level(self.networks, self.beta, two_sided=True)

    @cached_property
    def _limits(self) -> tuple[Array, Array]:
        return rank_limits(self.networks, self.level, self.networks, two_sided=True)

    @property
    def lower(self) -> tuple[float, ...]:
        """For each rank, from the best."""
        return tuple(self._limits[0].tolist())

    @property
    def upper(self) -> tuple[float, ...]:
        """For each rank, from the best."""
        return tuple(self._limits[1].tolist())

    def curves(self, scores: ArrayLike) -> tuple[Array, Array, Array]:
        """Scores from the best to the worst, with both limits for the share of networks that are better: to be drawn.

        Examples
        --------
        >>> score, lower, upper = DistributionBand.of([3.0, 1.0, 2.0], beta=0.05).curves([3.0, 1.0, 2.0])
        >>> score.tolist(), bool((lower < upper).all())
        ([3.0, 2.0, 1.0], True)
        """
        _, values = ordered(scores, self.direction)
        if len(values) != self.networks:
            raise InputError(f"{self.networks} scores are needed, one for each network, got {len(values)}")
        score = np.array([math.nan if value is None else value for value in values])
        return score, *self._limits

    @property
    def words(self) -> str:
        """The statement in plain words."""
        middle = (self.networks + 1) // 2
        said = [
            f"better than the {name} of {self.networks} with probability at most {upward(self.upper[k - 1])}"
            for name, k in (("best", 1), ("median", middle))
        ]
        return (
            f"{self.start}, for every rank together: a new network drawn and trained in the same way is {said[0]},"
            f" {said[1]}, and so on for all {self.networks} ranks, each with a lower limit as well."
        )

    @classmethod
    def of(cls, scores: ArrayLike, *, beta: float, **scoring: Unpack[Scoring]) -> DistributionBand:
        """State the band for so many scores; where it lies, `curves` says.

        Examples
        --------
        >>> band = DistributionBand.of(range(100), beta=0.05)
        >>> round(band.upper[0], 4), round(dkw_width(100, 0.05), 4)  # the best: far below a band of constant width
        (0.0659, 0.1358)
        """
        return cls(networks=len(ordered(scores, scoring.get("direction", "max"))[0]), beta=beta, **scoring)

    def again(self, *data: Any) -> DistributionBand:
        """The statement from the scores of all N networks."""
        return DistributionBand.of(*data, beta=self.beta, **self.scoring)


@dataclass(frozen=True, kw_only=True)
class SecondSet(ScoreStatement):
    """Where the picked network stands among the N on an independent second set of data.

    Its rank there is not settled beforehand but found, so the limit is that of the band over all ranks.

    Parameters
    ----------
    networks, rank, winner
        N, the rank on the second set (last among equals), and the index of the picked network.
    """

    kind = "second set"
    derived = ("epsilon",)

    networks: int
    winner: int
    rank: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (1 <= self.rank <= as_count("networks", self.networks) and 0 <= self.winner < self.networks):
            raise InputError(f"network {self.winner} of rank {self.rank} is not one of {self.networks}")

    @cached_property
    def epsilon(self) -> float:
        """The probability that a new network does better on the second set, at most."""
        level = local_level(self.networks, self.beta)
        return float(rank_limits(self.networks, level, self.networks, two_sided=False)[1][self.rank - 1])

    @property
    def words(self) -> str:
        """The statement in plain words."""
        return (
            f"On the second set of data the picked network is number {self.rank} of {self.networks}. {self.start}, a"
            f" new network drawn and trained in the same way does better there with probability at most"
            f" {upward(self.epsilon)}."
        )

    @classmethod
    def of(cls, scores: ArrayLike, winner: int, *, beta: float, **scoring: Unpack[Scoring]) -> SecondSet:
        """State it from the scores of all N networks on the second set.

        Examples
        --------
        >>> second = SecondSet.of([float(i) for i in range(100)], winner=97, beta=0.05)
        >>> second.rank, round(second.epsilon, 3)
        (3, 0.097)
        """
        values = goodness(scores, scoring.get("direction", "max"))
        if values.ndim != 1 or not 0 <= winner < len(values):
            raise InputError(f"the picked network {winner} is not one of the {values.size} that have scores")
        rank = int((values >= values[winner]).sum())
        return cls(networks=len(values), winner=winner, rank=rank, beta=beta, **scoring)

    def again(self, *data: Any) -> SecondSet:
        """The statement from the scores of all N networks on the second set."""
        (scores,) = data
        return SecondSet.of(scores, self.winner, beta=self.beta, **self.scoring)
