"""Quantiles: an interval for a quantile of the score over all networks that could be drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from echobound.scenario.bounds import as_count, as_probability
from echobound.scenario.ordering import ordered
from echobound.scenario.statements.base import ScoreStatement, Scoring
from echobound.scenario.words import downward, upward


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

    def __post_init__(self) -> None:
        super().__post_init__()
        as_count("networks", self.networks)
        as_probability("level", self.level)

    @cached_property
    def ranks(self) -> tuple[int, int]:
        """Ranks of the two scores, from the smallest: 0 is -infinity, N + 1 infinity."""
        ranks = np.arange(self.networks + 2)
        below, above = self._misses(ranks)
        # Half of beta at each side, and the innermost ranks that keep to it.
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
            f"{self.start}, the {name} of the score over all {self.drawn.many} that could be drawn is"
            f" {' and '.join(limits) or 'anything'}: {self.networks} {self.drawn.many} say no more."
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
