"""A second set of data: where the picked network stands there among all N."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Unpack

from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bands import local_level, rank_limits
from echobound.scenario.bounds import as_count
from echobound.scenario.ordering import goodness
from echobound.scenario.statements.base import ScoreStatement, Scoring
from echobound.scenario.words import upward

__all__ = ["SecondSet"]


@dataclass(frozen=True, kw_only=True)
class SecondSet(ScoreStatement):
    """Where the picked network stands among the N on an independent second set of data.

    Its rank there is found, not settled beforehand, so the limit is that of the band over all ranks.

    Parameters
    ----------
    networks, rank, winner
        N, the rank on the second set (last among equals), and the index of the picked network.
    """

    kind = "second set"
    title = "second set"
    derived = ("epsilon",)

    networks: int
    winner: int
    rank: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (1 <= self.rank <= as_count("networks", self.networks) and 0 <= self.winner < self.networks):
            raise InputError(f"network {self.winner} of rank {self.rank} is not one of {self.networks}")

    @cached_property
    def epsilon(self) -> float:
        """The largest probability that a new network does better on the second set."""
        level = local_level(self.networks, self.beta)
        return float(rank_limits(self.networks, level, self.networks, two_sided=False)[1][self.rank - 1])

    @property
    def words(self) -> str:
        """The statement in plain words."""
        return (
            f"On the second set of data the picked network is number {self.rank} of {self.networks}. {self.start}, a"
            f" new network drawn and trained in the same way does better there with probability at most"
            f" {upward(self.epsilon)}."
        )

    @classmethod
    def of(cls, scores: ArrayLike, winner: int, *, beta: float, **scoring: Unpack[Scoring]) -> SecondSet:
        """State it from the scores of all N networks on the second set.

        Examples
        --------
        >>> second = SecondSet.of([float(i) for i in range(100)], winner=97, beta=0.05)
        >>> second.rank, round(second.epsilon, 3)
        (3, 0.097)
        """
        values = goodness(scores, scoring.get("direction", "max"))
        if values.ndim != 1 or not 0 <= winner < len(values):
            raise InputError(f"the picked network {winner} is not one of the {values.size} that have scores")
        rank = int((values >= values[winner]).sum())  # last among equals: a tie must not flatter the picked network
        return cls(networks=len(values), winner=winner, rank=rank, beta=beta, **scoring)
