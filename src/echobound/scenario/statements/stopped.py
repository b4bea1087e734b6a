"""Stopped: what the best says when a stopping rule found the number of networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import as_count
from echobound.scenario.ordering import best_of, goodness, require_member
from echobound.scenario.search import Search
from echobound.scenario.statements.base import ScoreStatement, Scoring
from echobound.scenario.stopping.base import StoppingRule
from echobound.scenario.words import data_words, outcome_words, upward


@dataclass(frozen=True, kw_only=True)
class Stopped(ScoreStatement):
    """What the best says when a rule, named before the first draw, was used to stop."""

    kind = "stopped"
    title = "stopped"
    derived = ("epsilon",)

    rule: StoppingRule  # its beta is the statement's
    networks: int  # n, at which it was stopped
    winner: int | None  # the best of the first n, None if all diverged
    threshold: float | None

    def __post_init__(self) -> None:
        super().__post_init__()
        n = as_count("networks", self.networks)
        if self.beta != self.rule.beta:
            raise InputError(f"the rule is for beta = {self.rule.beta:g}, not {self.beta:g}")
        require_member(self.winner, n)

    @classmethod
    def of_search(cls, search: Search) -> Stopped | None:
        """Made where a rule found the number of networks."""
        return None if search.stop is None else cls.of(search.first, search.stop, **search.scoring)

    def settled(self) -> Mapping[str, Any]:
        """The rule."""
        return {"stop": self.rule}

    @property
    def epsilon(self) -> float:
        """What is certified."""
        return self.rule.epsilon(self.networks)

    @property
    def words(self) -> str:
        """The statement in plain words."""
        return (
            f"Stopped at {self.networks} {self.drawn.many} by the rule {self.rule.kind!r}, named before the first draw."
            f" {self.start}, {self.drawn.drawn()} {outcome_words(self, self.threshold)}"
            f" {data_words(self)} with probability at most {upward(self.epsilon)}."
        )

    @classmethod
    def of(
        cls, scores: ArrayLike, rule: StoppingRule, networks: int | None = None, **scoring: Unpack[Scoring]
    ) -> Stopped:
        """State it from the scores in the order of their index; those after the rule stopped are not used.

        `networks` is where the search stopped: a rule that looks at ranks says so itself; all scores if not given.

        Examples
        --------
        >>> from echobound.scenario import Patience
        >>> stopped = Stopped.of([1.0, 5.0, 2.0, 3.0, 4.0, 9.0], Patience(beta=0.05, draws=3))
        >>> stopped.networks, stopped.threshold, round(stopped.epsilon, 6)
        (5, 5.0, 0.45072)
        """
        direction = scoring.get("direction", "max")
        given, n = len(goodness(scores, direction)), rule.stops_at(scores, direction)
        if rule.by_ranks and n is None:
            raise InputError(f"the rule has not stopped after {given} networks: draw more")
        if networks is not None and (as_count("networks", networks) > given or n not in (None, networks)):
            raise InputError(f"the rule stops at {n or f'up to {given}'} networks, not at {networks}")
        n = n or networks or given
        winner, threshold = best_of(np.asarray(scores, dtype=np.float64)[:n], direction)
        return cls(rule=rule, networks=n, winner=winner, threshold=threshold, beta=rule.beta, **scoring)
