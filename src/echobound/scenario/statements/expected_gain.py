"""Expected gain: a limit for what further networks gain on average, where the score cannot exceed a known number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import as_count, epsilon_exact
from echobound.scenario.ordering import best_of
from echobound.scenario.search import Search
from echobound.scenario.statements.base import ScoreStatement, Scoring
from echobound.scenario.words import judged_words, upward

PERFECT = {"fit": 100.0, "robust": 100.0, "rmse": 0.0, "peak": 0.0}  # what no model can exceed
SAFE = 1 + 2.0**-40  # more than the rounding errors of a limit


@dataclass(frozen=True, kw_only=True)
class ExpectedGain(ScoreStatement):
    """A limit for the expected gain of M further networks, given the search; see `of`.

    With confidence 1 - beta a new network beats the best h with probability V of at most epsilon. M of them contain a
    better one with probability 1 - (1 - V)^M, and none exceeds the perfect score B: so the best of all is better than h
    by at most (B - h)(1 - (1 - epsilon)^M) on average. Ties and failures only make it smaller.
    """

    kind = "expected gain"
    title = "expected gain"
    derived = ("perfect", "limit", "limit_of_one")

    networks: int
    further: int  # M
    epsilon: float  # what the best of these networks certifies at beta
    threshold: float  # its score

    def __post_init__(self) -> None:
        super().__post_init__()
        as_count("networks", self.networks)
        as_count("further", self.further)
        if self.score not in PERFECT or not 0 < self.epsilon <= 1:
            raise InputError(f"what a network can gain at most is known for {', '.join(PERFECT)}, not {self.score}")

    @classmethod
    def of_search(cls, search: Search) -> ExpectedGain | None:
        """For a tenth as many networks again; None where the perfect score is not known, or all networks diverged."""
        counts = [count for _, count in search.families] or [len(search.table)]
        if search.stop is not None and search.at_will:
            epsilon = search.stop.epsilon(len(search.table))
        else:
            epsilon = epsilon_exact(min(counts), search.beta)
        if search.scores[0].name not in PERFECT or best_of(search.first, search.direction)[1] is None:
            return None
        further = max(1, len(search.table) // 10)
        return cls.of(search.first, beta=search.beta, epsilon=epsilon, further=further, **search.scoring)

    @property
    def perfect(self) -> float:
        """The score that no model exceeds."""
        return PERFECT[self.score]

    @property
    def limit(self) -> float:
        """What M further networks gain at most on average."""
        return self._limit(self.further)

    @property
    def limit_of_one(self) -> float:
        """What one further network gains at most on average."""
        return self._limit(1)

    def _limit(self, further: int) -> float:
        left = abs(self.perfect - self.threshold)
        better = 1.0 if self.epsilon == 1 else -math.expm1(further * math.log1p(-self.epsilon))
        return min(left, left * better * SAFE)

    @property
    def words(self) -> str:
        """The statement in plain words."""
        unit = " points" if self.unit == "%" else f" {self.unit}" if self.unit else ""
        left = upward(abs(self.perfect - self.threshold))
        return (
            f"{self.start}, one further {self.drawn.one} improves {judged_words(self)} by at most"
            f" {upward(self.limit_of_one)}{unit} on average, and {self.further} further {self.drawn.many} by at most"
            f" {upward(self.limit)}{unit}; {left}{unit} are left to the perfect score."
        )

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        *,
        beta: float,
        further: int,
        epsilon: float | None = None,
        **scoring: Unpack[Scoring],
    ) -> ExpectedGain:
        """State it from the scores of N networks; `epsilon` is what they certify, if not by the exact bound.

        Examples
        --------
        >>> gain = ExpectedGain.of([80.0 + i / 100 for i in range(1000)], beta=0.05, further=100, score="fit", unit="%")
        >>> gain.threshold, round(gain.limit, 4), round(gain.limit_of_one, 6)
        (89.99, 2.5912, 0.029942)
        """
        count, (_, best) = np.size(scores), best_of(scores, scoring.get("direction", "max"))
        if best is None:
            raise InputError("all networks diverged: there is no best score to gain upon")
        certified = epsilon_exact(count, beta) if epsilon is None else epsilon
        return cls(networks=count, further=further, epsilon=certified, threshold=best, beta=beta, **scoring)
