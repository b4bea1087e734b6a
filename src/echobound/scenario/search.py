"""Search: the scores of all draws and what was settled about them, from which every statement is made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Scores
from echobound.scenario.ordering import Direction
from echobound.scenario.statements.base import Scoring
from echobound.scenario.stopping.base import StoppingRule


@dataclass(frozen=True)
class ScoreName:
    """A score as sentences need it: its name, whether larger (``"max"``) or smaller is better, and its unit."""

    name: str = "score"
    direction: Direction = "max"
    unit: str = ""


# Compared by identity, since comparing tables of scores gives arrays.
@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """A finished search, as statements see it.

    Examples
    --------
    >>> from echobound.scenario import statements_of
    >>> search = Search(table=np.arange(100.0)[:, None], scores=(ScoreName("fit", "max", "%"),), beta=0.05, discarded=2)
    >>> [statement.kind for statement in statements_of(search)]
    ['removal', 'both ends', 'gain']
    """

    table: Scores  # (draw, score), family after family, each in the order of its index
    scores: tuple[ScoreName, ...]  # what the columns are; the first selects
    beta: float  # 1 - confidence of each statement
    horizon: int | None = None  # horizon and blocks as in `certify`
    blocks: int | None = None
    families: tuple[tuple[str, int], ...] = ()  # name and number of networks of each of several; empty for one law
    stop: StoppingRule | None = None  # what found the number of networks; None where it was settled beforehand
    discarded: int = 0  # how many of the best networks are set aside in a further statement
    joint: bool = False  # whether something is stated about all scores together
    members: int = 1  # networks that each draw is a committee of
    updates: int | None = None  # how many renewals were planned; None for networks that are new

    @property
    def first(self) -> Scores:
        """The scores that select, one for each draw."""
        return self.table[:, 0]

    @property
    def direction(self) -> Direction:
        """Whether larger or smaller is better in the score that selects."""
        return self.scores[0].direction

    @property
    def at_will(self) -> bool:
        """Whether the search may have stopped for any reason, so that only what the rule itself limits is certain."""
        return self.stop is not None and not self.stop.by_ranks

    @property
    def scoring(self) -> Scoring:
        """What was scored, as keywords of a statement."""
        one = self.scores[0]
        return Scoring(
            score=one.name,
            direction=one.direction,
            unit=one.unit,
            horizon=self.horizon,
            blocks=self.blocks,
            members=self.members,
        )

    @property
    def parts(self) -> list[NDArray[np.int64]]:
        """Positions of the draws of each family."""
        ends = np.cumsum([count for _, count in self.families])
        return np.split(np.arange(len(self.table)), ends[:-1])
