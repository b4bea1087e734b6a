"""Constraint removal: the threshold after the r best (or worst) networks were set aside, r settled beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import Probability, as_count, epsilon_exact, networks_exact
from echobound.scenario.ordering import Case, ordered
from echobound.scenario.statement import ScoreStatement, Scoring
from echobound.scenario.words import beyond, scored, upward, where

__all__ = ["Removal", "most_discarded"]


@dataclass(frozen=True, kw_only=True)
class Removal(ScoreStatement):
    """At most a fraction epsilon of all networks lies beyond the (r + 1)-th best (or worst) of N; see `of`.

    Exact for a continuous score, an upper bound with ties; r must be settled before the scores are seen. For an r
    that is chosen after a look see `RankBand`.

    Parameters
    ----------
    networks, discarded
        N and r.
    case
        Which end.
    index, threshold
        The (r + 1)-th network from that end and its score; the threshold is None if it diverged.
    """

    kind = "removal"
    derived = ("epsilon",)

    networks: int
    discarded: int
    case: Case
    index: int
    threshold: float | None

    def __post_init__(self) -> None:
        super().__post_init__()
        n, r = as_count("networks", self.networks), as_count("discarded", self.discarded, least=0)
        if r >= n or not 0 <= self.index < n:
            raise InputError(f"of {n} networks {r} cannot be discarded and number {self.index} be the next")

    @cached_property
    def epsilon(self) -> float:
        """What is certified."""
        return epsilon_exact(self.networks, self.beta, discarded=self.discarded)

    @property
    def words(self) -> str:
        """The statement in plain words."""
        best, aside = self.case == "best", _aside(self.discarded, self.case)
        new = f"{self.start}, a new network drawn and trained in the same way"
        limit = f"{where(self)} with probability at most {upward(self.epsilon)}."
        if self.threshold is not None:
            limits = beyond(self, self.threshold, best=best)
            else_ = "" if best else ", or diverges,"
            said = f"{new} scores {scored(self)} {limits}{else_} {limit}"
        elif best:
            said = f"{new} gives a finite score {limit}"
        else:
            said = "The threshold is a diverged network, and nothing is worse: nothing is promised at this end."
        return f"{said} The threshold is the {self.case} of {self.networks}{aside}."

    @classmethod
    def of(
        cls, scores: ArrayLike, *, discarded: int, beta: float, case: Case = "best", **scoring: Unpack[Scoring]
    ) -> Removal:
        """State what the best (or worst) network says after `discarded` others were set aside.

        Examples
        --------
        >>> scores = [90.0 - i / 10 for i in range(645)]
        >>> statement = Removal.of(scores, discarded=5, beta=1e-7, score="fit", unit="%")
        >>> statement.threshold, round(statement.epsilon, 7)
        (89.5, 0.0429676)
        >>> print(statement.words)
        With confidence 1 - 1e-07, a new network drawn and trained in the same way scores a FIT above 89.5 % on these
        validation data with probability at most 0.0429676. The threshold is the best of 645 after the 5 best were set
        aside, as settled beforehand.
        """
        order, values = ordered(scores, scoring.get("direction", "max"), case)
        r = as_count("discarded", discarded, least=0)
        if r >= len(order):
            raise InputError(f"{r} networks cannot be discarded of {len(order)}: keep at least one")
        return cls(
            networks=len(order),
            discarded=r,
            case=case,
            index=order[r],
            threshold=values[r],
            beta=beta,
            **scoring,
        )

    def again(self, *data: Any) -> Removal:
        """The statement from the scores of all N networks."""
        (scores,) = data
        return Removal.of(scores, discarded=self.discarded, beta=self.beta, case=self.case, **self.scoring)


def most_discarded(networks: int, epsilon: Probability, beta: Probability) -> int | None:
    """Largest number that may be discarded with this many networks; None if not even 0.

    Examples
    --------
    >>> most_discarded(645, 0.05, 1e-7), most_discarded(300, 0.05, 1e-7)
    (7, None)
    """
    n = as_count("networks", networks)
    if networks_exact(epsilon, beta) > n:
        return None
    enough, many = 0, n
    while many - enough > 1:
        middle = (enough + many) // 2
        if networks_exact(epsilon, beta, discarded=middle) > n:
            many = middle
        else:
            enough = middle
    return enough


def _aside(discarded: int, case: Case) -> str:
    if not discarded:
        return ""
    what = f"the {case} was" if discarded == 1 else f"the {discarded} {case} were"
    return f" after {what} set aside, as settled beforehand"
