"""Both ends at once: what the best and the worst of N say together.

V_best = P(S > best), V_worst = P(S < worst): for a continuous score (V_best, V_worst, rest) has the law
Dirichlet(1, 1, N - 1). With ties both are smaller in probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property
from typing import Unpack

from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import Probability, as_count, as_probability, digits_for, epsilon_exact
from echobound.scenario.ordering import ordered
from echobound.scenario.search import Search
from echobound.scenario.statements.base import ScoreStatement, Scoring
from echobound.scenario.words import data_words, outcome_words, threshold_words, upward


def epsilon_both(networks: int, beta: Probability) -> float:
    """Smallest epsilon for V_best <= epsilon and V_worst <= epsilon together at confidence 1 - beta; 1.0 if none."""
    n, b = as_count("networks", networks), as_probability("beta", beta)
    with localcontext(digits_for(b=b, count=n)):
        low, high = 0.0, 1.0
        # By bisection down to neighbouring floats, so that the result is rounded up and by no more than one of them.
        while math.nextafter(low, 1.0) < high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if _miss(n, Decimal(repr(middle))) <= b else (middle, high)
    return high


def _miss(n: int, e: Decimal) -> Decimal:
    """P(V_best > e or V_worst > e): no score in the upper tail e, or none in the lower, less none in both."""
    return 2 * (1 - e) ** n - max(1 - 2 * e, Decimal(0)) ** n


@dataclass(frozen=True, kw_only=True)
class BothEnds(ScoreStatement):
    """Best and worst of N together; see `of`."""

    kind = "both ends"
    title = "both ends"
    derived = ("epsilon", "epsilon_outside")

    networks: int
    # Their scores; None where a network diverged. If the worst diverged nothing is worse, and there is no range.
    best: float | None
    worst: float | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if as_count("networks", self.networks) < 2:
            raise InputError(f"best and worst must be two networks, got {self.networks}: draw more")

    @classmethod
    def of_search(cls, search: Search) -> BothEnds | None:
        """Made where the number of networks does not depend on the scores, or on their ranks alone."""
        if search.at_will or search.families or len(search.table) < 2:
            return None
        return cls.of(search.first, beta=search.beta, **search.scoring)

    @cached_property
    def epsilon(self) -> float:
        """Holds at both ends together."""
        return epsilon_both(self.networks, self.beta)

    @cached_property
    def epsilon_outside(self) -> float:
        """Holds for the probability to fall outside the range of the N scores, at either end."""
        # V_best + V_worst has the law Beta(2, N - 1): the bound for two decisions.
        return epsilon_exact(self.networks, self.beta, d=2)

    @property
    def promises(self) -> int:
        """One about both ends, one about the range between them; none where a network diverged."""
        return 0 if self.best is None or self.worst is None else 2

    @property
    def words(self) -> str:
        """The statement in plain words."""
        if self.best is None or self.worst is None:
            one_did = f"A {self.drawn.one} of the search diverged, and nothing is worse"
            diverged = one_did if self.best is not None else f"All {self.networks} {self.drawn.many} diverged"
            return f"{diverged}: there is no range of scores to state."
        return (
            f"{self.start}, both hold together: {self.drawn.drawn()}"
            f" {outcome_words(self, self.best)} {data_words(self)} with probability at most {upward(self.epsilon)}, and"
            f" {threshold_words(self, self.worst, best=False)}, or diverges, with probability at most"
            f" {upward(self.epsilon)}. With the same confidence it falls outside this range, at either end, with"
            f" probability at most {upward(self.epsilon_outside)}."
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
