"""Both ends at once: the best and the worst of N jointly, and intervals for quantiles of the score.

V_best = P(S > best), V_worst = P(S < worst): for a continuous score (V_best, V_worst, rest) has the law
Dirichlet(k, m, N - k - m + 1) for the k-th best and the m-th worst. With ties both are smaller in probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import (
    Probability,
    as_count,
    as_probability,
    digits_for,
    epsilon_exact,
    least_float,
)
from echobound.scenario.ordering import ordered
from echobound.scenario.statement import ScoreStatement, Scoring
from echobound.scenario.words import beyond, downward, scored, upward

__all__ = ["BothEnds", "QuantileInterval", "epsilon_both", "miss_both", "networks_both"]


def miss_both(
    networks: int, epsilon_best: Probability, epsilon_worst: Probability, best_rank: int = 1, worst_rank: int = 1
) -> float:
    """P(V_best > epsilon_best or V_worst > epsilon_worst), exactly.

    Examples
    --------
    >>> round(miss_both(645, 0.01, 0.01), 14)
    0.00305787211963
    """
    n, k, m = _ranks(networks, best_rank, worst_rank)
    a, b = as_probability("epsilon", epsilon_best), as_probability("epsilon", epsilon_worst)
    with localcontext(digits_for(min(a, b), count=n)):
        value = _miss(n, a, b, k, m)
        return least_float(value, lambda p: p >= value)


def networks_both(epsilon: Probability, beta: Probability, best_rank: int = 1, worst_rank: int = 1) -> int:
    """Smallest number of networks for V_best <= epsilon and V_worst <= epsilon together at confidence 1 - beta.

    Examples
    --------
    >>> networks_both(0.05, 1e-7)
    328
    """
    e, b = as_probability("epsilon", epsilon), as_probability("beta", beta)
    few = best_rank + worst_rank - 1
    _, k, m = _ranks(few + 1, best_rank, worst_rank)
    enough = few + 1
    with localcontext(digits_for(e, b)):
        while _miss(enough, e, e, k, m) > b:
            few, enough = enough, 2 * enough
        while enough - few > 1:
            middle = (few + enough) // 2
            few, enough = (few, middle) if _miss(middle, e, e, k, m) <= b else (middle, enough)
    return enough


def epsilon_both(networks: int, beta: Probability, best_rank: int = 1, worst_rank: int = 1) -> float:
    """Smallest epsilon that holds at both ends together; 1.0 if there is none.

    Examples
    --------
    >>> round(epsilon_both(328, 1e-7), 6)
    0.049962
    """
    n, k, m = _ranks(networks, best_rank, worst_rank)
    b = as_probability("beta", beta)
    with localcontext(digits_for(b=b, count=n)):
        low, high = 0.0, 1.0
        while math.nextafter(low, 1.0) < high:
            middle = 0.5 * (low + high)
            e = Decimal(repr(middle))
            low, high = (low, middle) if _miss(n, e, e, k, m) <= b else (middle, high)
    return high


def _ranks(networks: int, best_rank: int, worst_rank: int) -> tuple[int, int, int]:
    n, k, m = as_count("networks", networks), as_count("best_rank", best_rank), as_count("worst_rank", worst_rank)
    if k + m > n:
        raise InputError(f"the {k}-th best and the {m}-th worst must be two of the networks, got {n}: draw more")
    return n, k, m


def _miss(n: int, a: Decimal, b: Decimal, k: int, m: int) -> Decimal:
    """P(A < k or B < m) where A and B count the scores in the upper tail a and in the lower tail b."""
    middle = max(1 - a - b, Decimal(0))
    few_best = sum((_cell(n, i, 0, a, b, 1 - a) for i in range(k)), Decimal(0))
    few_worst = sum((_cell(n, 0, j, a, b, 1 - b) for j in range(m)), Decimal(0))
    neither = sum((_cell(n, i, j, a, b, middle) for i in range(k) for j in range(m)), Decimal(0))
    return few_best + few_worst - neither


def _cell(n: int, i: int, j: int, a: Decimal, b: Decimal, rest: Decimal) -> Decimal:
    """Multinomial probability of i, j and the remaining n - i - j."""
    return math.comb(n, i) * math.comb(n - i, j) * _power(a, i) * _power(b, j) * _power(rest, n - i - j)


def _power(base: Decimal, exponent: int) -> Decimal:
    return base**exponent if exponent else Decimal(1)  # Decimal refuses 0 ** 0


@dataclass(frozen=True, kw_only=True)
class BothEnds(ScoreStatement):
    """Best and worst of N together; see `of`.

    Parameters
    ----------
    networks
        N.
    best, worst
        Their scores; None where a network diverged. If the worst diverged nothing is worse, and the statement is about
        the best alone.
    """

    kind = "both ends"
    derived = ("epsilon", "epsilon_outside")

    networks: int
    best: float | None
    worst: float | None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ranks(self.networks, 1, 1)

    @cached_property
    def epsilon(self) -> float:
        """Holds at both ends together."""
        return epsilon_both(self.networks, self.beta)

    @cached_property
    def epsilon_outside(self) -> float:
        """Holds for the probability to fall outside the range of the N scores, at either end."""
        return epsilon_exact(self.networks, self.beta, d=2)

    @property
    def words(self) -> str:
        """The statement in plain words."""
        if self.best is None or self.worst is None:
            return (
                "A network of the search diverged, and nothing is worse: there is no range of scores to state."
                if self.best is not None
                else f"All {self.networks} networks diverged: there is no range of scores to state."
            )
        return (
            f"{self.start}, both hold together: a new network drawn and trained in the same way scores {scored(self)}"
            f" {beyond(self, self.best, best=True)} with probability at most {upward(self.epsilon)}, and"
            f" {beyond(self, self.worst, best=False)}, or diverges, with probability at most {upward(self.epsilon)}."
            f" With the same confidence it falls outside this range, at whichever end, with probability at most"
            f" {upward(self.epsilon_outside)}."
        )

    @classmethod
    def of(cls, scores: ArrayLike, *, beta: float, **scoring: Unpack[Scoring]) -> BothEnds:
        """State what best and worst say together.

        Examples
        --------
        >>> statement = BothEnds.of([80.0 + i / 100 for i in range(328)], beta=1e-7)
        >>> statement.best, statement.worst, round(statement.epsilon, 6), round(statement.epsilon_outside, 6)
        (83.27, 80.0, 0.049962, 0.05671)
        """
        _, values = ordered(scores, scoring.get("direction", "max"))
        return cls(networks=len(values), best=values[0], worst=values[-1], beta=beta, **scoring)

    def again(self, *data: Any) -> BothEnds:
        """The statement from the scores of all N networks."""
        return BothEnds.of(*data, beta=self.beta, **self.scoring)


@dataclass(frozen=True, kw_only=True)
class QuantileInterval(ScoreStatement):
    """Two of the N scores between which a quantile of the score's distribution lies; see `of`.

    Valid for every distribution, with ties too.

    Parameters
    ----------
    networks, level
        N and the level of the quantile of the scores as they are (0.5: the median).
    lower, upper
        The scores of ranks `ranks`, counted from the smallest; None where there is no limit, or a diverged network.
    """

    kind = "quantile interval"
    derived = ("ranks", "coverage")

    networks: int
    level: float
    lower: float | None
    upper: float | None

    def __post_init__(self) -> None:
        super().__post_init__()
        as_count("networks", self.networks)
        as_probability("level", self.level)

    @cached_property
    def ranks(self) -> tuple[int, int]:
        """Ranks of the two scores, from the smallest: 0 is -infinity, N + 1 infinity."""
        ranks = np.arange(self.networks + 2)
        below, above = self._misses(ranks)
        return int(ranks[below <= self.beta / 2].max()), int(ranks[above <= self.beta / 2].min())

    @cached_property
    def coverage(self) -> float:
        """Probability with which the interval holds, at least; exact for a continuous score."""
        lower, upper = self.ranks
        return float(1.0 - self._misses(np.array([lower]))[0][0] - self._misses(np.array([upper]))[1][0])

    def _misses(self, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P(fewer than `rank` of N lie below the quantile), P(at least `rank` do)."""
        from scipy.special import betainc

        n, inside = self.networks, np.clip(ranks, 1, self.networks)
        above = np.where(ranks < 1, 1.0, np.where(ranks > n, 0.0, betainc(inside, n - inside + 1, self.level)))
        # The same tail from its own side, so that small probabilities keep their digits.
        below = np.where(ranks < 1, 0.0, np.where(ranks > n, 1.0, betainc(n - inside + 1, inside, 1 - self.level)))
        return below, above

    @property
    def words(self) -> str:
        """The statement in plain words."""
        unit = f" {self.unit}" if self.unit else ""
        limits = [f"at least {downward(self.lower)}{unit}"] if self.lower is not None else []
        limits += [f"at most {upward(self.upper)}{unit}"] if self.upper is not None else []
        name = "median" if self.level == 0.5 else f"{100 * self.level:g} % quantile"
        return (
            f"{self.start}, the {name} of the score over all networks that could be drawn is"
            f" {' and '.join(limits) or 'anything'}: {self.networks} networks say no more."
        )

    @classmethod
    def of(cls, scores: ArrayLike, *, level: float, beta: float, **scoring: Unpack[Scoring]) -> QuantileInterval:
        """State between which two scores a quantile of the score's distribution lies.

        Examples
        --------
        >>> statement = QuantileInterval.of(range(1, 646), level=0.9, beta=0.05)
        >>> statement.ranks, (statement.lower, statement.upper), round(statement.coverage, 12)
        ((565, 596), (565.0, 596.0), 0.958276579095)
        """
        direction = scoring.get("direction", "max")
        _, values = ordered(scores, direction, "worst" if direction == "max" else "best")  # from the smallest
        draft = cls(networks=len(values), level=level, lower=None, upper=None, beta=beta, **scoring)
        limited = [None, *values, None]
        lower, upper = draft.ranks
        return replace(draft, lower=limited[lower], upper=limited[upper])

    def again(self, *data: Any) -> QuantileInterval:
        """The statement from the scores of all N networks."""
        return QuantileInterval.of(*data, level=self.level, beta=self.beta, **self.scoring)
