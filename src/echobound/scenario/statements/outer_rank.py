"""Outer rank: where the delivered pick stands among fresh draws on data that nothing was chosen by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import as_count
from echobound.scenario.ordering import count_violations
from echobound.scenario.sequences import sequential_limit
from echobound.scenario.statements.base import ScoreStatement, Scoring
from echobound.scenario.words import judged_words, outcome_words, upward


@dataclass(frozen=True, kw_only=True)
class OuterRank(ScoreStatement):
    """Where the picked network, as it is delivered, stands among fresh ones on an outer block of data.

    What blocks in turn score is each network trained on the others, so nothing is known of the one that was trained
    again on all of them. Fresh networks, drawn and trained as it was, are independent of it and of the outer data.
    Given both, each beats it there with the same probability V, and the limit of a number of trials holds, at every
    number of them together.
    """

    kind = "outer rank"
    title = "rank on outer data"
    derived = ("rank", "epsilon")

    fresh: int
    violations: int  # fresh ones that score strictly better than the pick
    threshold: float | None  # what the pick scores on the outer data; None: it diverged there

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.violations <= as_count("fresh", self.fresh):
            raise InputError(f"{self.violations} of {self.fresh} fresh networks cannot be better")

    @property
    def rank(self) -> int:
        """Of the pick among itself and the fresh ones."""
        return self.violations + 1

    @cached_property
    def epsilon(self) -> float:
        """The largest probability that a new network does better on the outer data."""
        return sequential_limit(self.violations, self.fresh, self.beta)

    @property
    def words(self) -> str:
        """The statement in plain words."""
        on_outer = replace(self, blocks=None)  # these are scored as a whole
        picked = "" if self.blocks is None else f" It was picked by {judged_words(self)}, and trained again on all."
        return (
            f"{self.start}, {self.drawn.drawn(how='drawn and trained in the same way on all training data')}"
            f" {outcome_words(on_outer, self.threshold)} on these outer data with probability at most"
            f" {upward(self.epsilon)}. That is what the picked {self.drawn.one} scores there, as it is delivered: among"
            f" {self.fresh} fresh ones it has rank {self.rank}, and more may be drawn until content.{picked}"
        )

    @classmethod
    def of(cls, fresh: ArrayLike, picked: float, *, beta: float, **scoring: Unpack[Scoring]) -> OuterRank:
        """State it from what fresh networks, and the picked one, score on the outer data.

        Examples
        --------
        >>> rank = OuterRank.of([80.0 - i / 10 for i in range(60)], 79.95, beta=0.05, score="fit", unit="%")
        >>> rank.rank, round(rank.epsilon, 4)
        (2, 0.1323)
        """
        threshold = float(picked) if np.isfinite(picked) else None
        found, _ = count_violations(np.asarray(fresh, float), threshold, scoring.get("direction", "max"), "best")
        return cls(fresh=int(np.size(fresh)), violations=found, threshold=threshold, beta=beta, **scoring)
