"""Joint scores: the best of N in each of several scores, stated together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import any_of, as_count, as_probability, each_of
from echobound.scenario.ordering import Direction, best_of, ranking, require_member
from echobound.scenario.search import ScoreName, Search
from echobound.scenario.statements.base import Statement
from echobound.scenario.words import ahead_words, confidence, outward, score_title, upward
from echobound.typed import later


@dataclass(frozen=True, kw_only=True)
class JointScores(Statement):
    """The best of N in each of several scores, stated together; the list of scores is settled beforehand."""

    kind = "joint scores"
    title = "all scores"
    of_all_scores = True
    derived = ("epsilon_joint", "epsilon_separate")

    beta: float
    networks: int
    names: tuple[str, ...]
    directions: tuple[Direction, ...]
    # For each score the best value and the network that has it; None where all diverged.
    thresholds: tuple[float | None, ...]
    winners: tuple[int | None, ...]
    horizon: int | None = later(None)  # horizon and blocks as in `certify`
    blocks: int | None = later(None)

    def __post_init__(self) -> None:
        as_probability("beta", self.beta)
        n = as_count("networks", self.networks)
        if not self.names or not len(self.names) == len(self.directions) == len(self.thresholds) == len(self.winners):
            raise InputError("each score needs a name, a direction, a threshold and a winner")
        for winner in self.winners:
            require_member(winner, n)

    @classmethod
    def of_search(cls, search: Search) -> JointScores | None:
        """Made where it was asked for."""
        if not search.joint:
            return None
        if search.table.shape[1] != len(search.scores):
            raise InputError(f"{len(search.scores)} scores need as many columns, got {search.table.shape[1]}")
        named = {score.name: column for score, column in zip(search.scores, search.table.T, strict=True)}
        made = cls.of(named, beta=search.beta, directions=[score.direction for score in search.scores])
        return replace(made, members=search.members, horizon=search.horizon, blocks=search.blocks)

    @classmethod
    def claims(cls, search: Search) -> list[int]:
        """The best in each score."""
        # Not strict: an audit also asks about a ledger that lacks a column.
        columns = zip(search.scores, search.table.T, strict=False) if search.joint else ()
        return [best for score, column in columns for best in ranking(column, score.direction, 1)]

    @property
    def promises(self) -> int:
        """One about all scores, and one about each."""
        return 2

    def settled(self) -> Mapping[str, Any]:
        """Which scores."""
        names = zip(self.names, self.directions, strict=True)
        return {"joint": True, "scores": tuple(ScoreName(name, direction) for name, direction in names)}

    @cached_property
    def epsilon_joint(self) -> float:
        """A new network beats the best in one or more of the scores with at most this probability."""
        return any_of(len(self.names)).epsilon(self.networks, self.beta)

    @cached_property
    def epsilon_separate(self) -> float:
        """It beats the best in each of the scores with at most this probability, all these statements together."""
        return each_of(len(self.names)).epsilon(self.networks, self.beta)

    @property
    def words(self) -> str:
        """The statement in plain words."""
        limits = ", ".join(
            f"{score_title(name)} {'any' if value is None else outward(value, way)}"
            for name, value, way in zip(self.names, self.thresholds, self.directions, strict=True)
        )
        ahead = "" if self.horizon is None else f", {ahead_words(self.horizon)}"
        where = "on these validation data" if self.blocks is None else f"in mean over {self.blocks} blocks"
        start = f"With confidence 1 - {confidence(self.beta)}, {self.drawn.drawn()}"
        return (
            f"The best of {self.networks} {self.drawn.many} in each score{ahead}, {where}: {limits}. {start} beats"
            f" one or more of them with probability at most {upward(self.epsilon_joint)}. {start} beats"
            f" each of them with probability at most {upward(self.epsilon_separate)}, all"
            f" {len(self.names)} statements together."
        )

    @classmethod
    def of(
        cls, scores: Mapping[str, ArrayLike], *, beta: float, directions: Sequence[Direction], members: int = 1
    ) -> JointScores:
        """State it from the values of each score, by name, for the same networks in the same order.

        Examples
        --------
        >>> joint = JointScores.of({"fit": [80.0, 90.0], "rmse": [0.1, 0.2]}, beta=0.5, directions=["max", "min"])
        >>> joint.thresholds, joint.winners
        ((90.0, 0.1), (1, 0))
        """
        if len(directions) != len(scores):
            raise InputError(f"{len(scores)} scores need as many directions, got {len(directions)}")
        bests = [best_of(values, way) for values, way in zip(scores.values(), directions, strict=True)]
        counts = {np.size(values) for values in scores.values()}
        if len(counts) != 1:
            raise InputError(f"every score must be of the same networks, got {sorted(counts)} of them")
        names, ways, n = tuple(scores), tuple(directions), counts.pop()
        winners, thresholds = tuple(winner for winner, _ in bests), tuple(threshold for _, threshold in bests)
        seen: dict[str, Any] = {"thresholds": thresholds, "winners": winners}
        return cls(beta=beta, networks=n, names=names, directions=ways, members=members, **seen)
