"""Quantiles: an interval for a quantile of the score over all networks that could be drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from echobound.scenario.bands import local_level, rank_limits
from echobound.scenario.bounds import as_count, as_probability
from echobound.scenario.ordering import ordered
from echobound.scenario.statements.base import ScoreStatement, Scoring
from echobound.scenario.words import downward, judged_words, upward
from echobound.typed import later

MOST_IN_BAND = 2000  # networks up to which limits for all ranks are worked out exactly


@dataclass(frozen=True, kw_only=True)
class QuantileInterval(ScoreStatement):
    """Two of the N scores between which a quantile of the score's distribution lies; see `of`.

    Valid for every distribution, with ties too.
    """

    kind = "quantile interval"
    title = "quantile"
    derived = ("ranks", "coverage")

    networks: int
    level: float  # of the quantile of the scores as they are; 0.5 is the median
    # The scores of ranks `ranks`, counted from the smallest; None where there is no limit, or a diverged network.
    lower: float | None
    upper: float | None
    simultaneous: bool = later(False)  # whether it holds for all levels together, so that one may look first

    def __post_init__(self) -> None:
        super().__post_init__()
        as_count("networks", self.networks)
        as_probability("level", self.level)

    @cached_property
    def ranks(self) -> tuple[int, int]:
        """Ranks of the two scores, from the smallest: 0 is -infinity, N + 1 infinity."""
        if self.simultaneous:
            return self._ranks_of_all()
        ranks = np.arange(self.networks + 2)
        below, above = self._misses(ranks)
        # Half of beta at each side, and the innermost ranks that keep to it.
        return int(ranks[below <= self.beta / 2].max()), int(ranks[above <= self.beta / 2].min())

    def _ranks_of_all(self) -> tuple[int, int]:
        """The same from a band for the ranks of all networks together.

        In a continuous score's own uniform numbers U_(k) <= upper_k for all k together: a score of rank k with
        upper_k <= level is at most the quantile, and one with lower_k >= level at least; ties do no harm.
        """
        n = self.networks
        if n <= MOST_IN_BAND:
            lower, upper = rank_limits(n, local_level(n, self.beta, two_sided=True), n, two_sided=True)
        else:  # Massart's inequality, wider and without a recursion
            k, width = np.arange(1, n + 1), float(np.sqrt(np.log(2 / self.beta) / (2 * n)))
            lower, upper = (k - 1) / n - width, k / n + width
        at_most, at_least = np.nonzero(upper <= self.level)[0], np.nonzero(lower >= self.level)[0]
        return int(at_most[-1]) + 1 if len(at_most) else 0, int(at_least[0]) + 1 if len(at_least) else n + 1

    @cached_property
    def coverage(self) -> float:
        """Probability with which the interval holds, at least; exact for a continuous score and one level."""
        if self.simultaneous:
            return 1.0 - self.beta
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
        looked = " It holds for all quantiles together, so that one may be chosen after a look." * self.simultaneous
        name = "median" if self.level == 0.5 else f"{100 * self.level:g} % quantile"
        return (
            f"{self.start}, the {name} of {judged_words(self)}, over all"
            f" {self.drawn.many} that could be drawn is"
            f" {' and '.join(limits) or 'anything'}: {self.networks} {self.drawn.many} say no more.{looked}"
        )

    @classmethod
    def of(
        cls, scores: ArrayLike, *, level: float, beta: float, simultaneous: bool = False, **scoring: Unpack[Scoring]
    ) -> QuantileInterval:
        """State between which two scores a quantile of the score's distribution lies.

        The level is settled beforehand; one that is chosen after a look needs `simultaneous`: of 19 levels, the most
        pleasing is wrong 27 % of the time instead of 5 %.

        Examples
        --------
        >>> statement = QuantileInterval.of(range(1, 646), level=0.9, beta=0.05)
        >>> statement.ranks, (statement.lower, statement.upper), round(statement.coverage, 12)
        ((565, 596), (565.0, 596.0), 0.958276579095)
        """
        direction = scoring.get("direction", "max")
        _, values = ordered(scores, direction, "worst" if direction == "max" else "best")  # from the smallest
        held: dict[str, Any] = {"networks": len(values), "level": level, "simultaneous": simultaneous}
        draft = cls(**held, lower=None, upper=None, beta=beta, **scoring)
        limited = [None, *values, None]
        lower, upper = draft.ranks
        return replace(draft, lower=limited[lower], upper=limited[upper])
