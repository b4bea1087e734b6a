"""Constraint removal: the threshold after the r best (or worst) networks were set aside, r settled beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import as_count, epsilon_exact
from echobound.scenario.ordering import Case, ordered, ranking
from echobound.scenario.search import Search
from echobound.scenario.statements.base import ScoreStatement, Scoring
from echobound.scenario.words import data_words, outcome_words, upward


@dataclass(frozen=True, kw_only=True)
class Removal(ScoreStatement):
    """At most a fraction epsilon of all networks lies beyond the (r + 1)-th best (or worst) of N; see `of`.

    Exact for a continuous score, an upper bound with ties; r must be settled before the scores are seen. To choose r
    after a look, use `RankBand`.
    """

    kind = "removal"
    title = "set aside"
    derived = ("epsilon",)

    networks: int
    discarded: int
    case: Case
    # The (r + 1)-th network from that end and its score; None if it diverged.
    index: int
    threshold: float | None

    def __post_init__(self) -> None:
        super().__post_init__()
        n, r = as_count("networks", self.networks), as_count("discarded", self.discarded, least=0)
        if r >= n or not 0 <= self.index < n:
            raise InputError(f"{r} of {n} networks cannot be discarded, leaving number {self.index} as the next")

    @classmethod
    def of_search(cls, search: Search) -> Removal | None:
        """Made where networks are to be set aside."""
        if not search.discarded:
            return None
        return cls.of(search.first, discarded=search.discarded, beta=search.beta, **search.scoring)

    @classmethod
    def claims(cls, search: Search) -> list[int]:
        """Those set aside and the next one."""
        return ranking(search.first, search.direction, search.discarded + 1) if search.discarded else []

    @property
    def promises(self) -> int:
        """One about the threshold."""
        return 1

    def settled(self) -> Mapping[str, Any]:
        """How many are set aside."""
        return {"discarded": self.discarded}

    @cached_property
    def epsilon(self) -> float:
        """What is certified."""
        return epsilon_exact(self.networks, self.beta, discarded=self.discarded)

    @property
    def words(self) -> str:
        """The statement in plain words."""
        best, r = self.case == "best", self.discarded
        were = f"the {self.case} was" if r == 1 else f"the {r} {self.case} were"
        aside = f" after {were} set aside, as settled beforehand" if r else ""
        limit = f"{data_words(self)} with probability at most {upward(self.epsilon)}."
        # Nothing is worse than divergence, so at that end a diverged threshold limits nothing.
        if self.threshold is None and not best:
            said = (
                f"The threshold is a diverged {self.drawn.one}, and nothing is worse: nothing is promised at this end."
            )
        else:
            new = f"{self.start}, {self.drawn.drawn()}"
            diverges = "" if best else ", or diverges,"
            said = f"{new} {outcome_words(self, self.threshold, best=best)}{diverges} {limit}"
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
        """
        order, values = ordered(scores, scoring.get("direction", "max"), case)
        r = as_count("discarded", discarded, least=0)
        if r >= len(order):
            raise InputError(f"{r} of {len(order)} networks cannot be discarded: keep at least one")
        index, threshold = order[r], values[r]
        return cls(networks=len(order), discarded=r, case=case, index=index, threshold=threshold, beta=beta, **scoring)
