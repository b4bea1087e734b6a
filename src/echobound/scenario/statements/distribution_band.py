"""The whole distribution of the score: limits for all ranks together, on both sides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Unpack

from numpy.typing import ArrayLike

from echobound.arrays import Array
from echobound.scenario.bands import local_level, rank_limits
from echobound.scenario.bounds import as_count
from echobound.scenario.ordering import ordered
from echobound.scenario.statements.base import ScoreStatement, Scoring
from echobound.scenario.words import judged_words, upward


@dataclass(frozen=True, kw_only=True)
class DistributionBand(ScoreStatement):
    """A band for the whole distribution of the score.

    For every k together: a new network is better than the k-th best with probability at most ``upper[k - 1]``, and at
    least as good with probability at least ``lower[k - 1]``. True for every distribution, with ties too.
    """

    kind = "distribution band"
    title = "distribution"
    derived = ("level", "lower", "upper")

    networks: int

    def __post_init__(self) -> None:
        super().__post_init__()
        as_count("networks", self.networks)

    @cached_property
    def level(self) -> float:
        """The probability with which each rank alone misses, both sides together."""
        return local_level(self.networks, self.beta, two_sided=True)

    @cached_property
    def _limits(self) -> tuple[Array, Array]:
        return rank_limits(self.networks, self.level, self.networks, two_sided=True)

    @property
    def lower(self) -> tuple[float, ...]:
        """For each rank, from the best."""
        return tuple(self._limits[0].tolist())

    @property
    def upper(self) -> tuple[float, ...]:
        """For each rank, from the best."""
        return tuple(self._limits[1].tolist())

    @property
    def words(self) -> str:
        """The statement in plain words."""
        best, median = (upward(self.upper[k]) for k in (0, (self.networks + 1) // 2 - 1))
        return (
            f"{self.start}, for every rank together, by {judged_words(self)}:"
            f" {self.drawn.drawn()} is better than the"
            f" best of {self.networks} with probability at most {best}, better than the median of {self.networks} with"
            f" probability at most {median}, and so on for all {self.networks} ranks, each with a lower limit as well."
        )

    @classmethod
    def of(cls, scores: ArrayLike, *, beta: float, **scoring: Unpack[Scoring]) -> DistributionBand:
        """State the band for so many scores.

        Examples
        --------
        >>> band = DistributionBand.of(range(100), beta=0.05)
        >>> round(band.upper[0], 4)  # the best: half of what a band of constant width (DKW) says, 0.1358
        0.0659
        """
        return cls(networks=len(ordered(scores, scoring.get("direction", "max"))[0]), beta=beta, **scoring)
