"""Mean loss: a limit for the mean of a loss between 0 and 1 over new episodes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import as_count
from echobound.scenario.statements.episodes import EpisodeStatement
from echobound.scenario.words import upward

__all__ = ["MeanLoss"]


@dataclass(frozen=True, kw_only=True)
class MeanLoss(EpisodeStatement):
    """Upper limit (Hoeffding) for the mean of a loss between 0 and 1 over new episodes.

    Parameters
    ----------
    mean
        Over the test episodes.
    candidates
        1 for a network chosen beforehand. With N, the limit holds for all N networks at once, and so for one that was
        chosen on these very episodes: there is no test set then, and the limit is wider.
    """

    kind = "mean loss"
    title = "mean loss"
    derived = ("total_beta", "margin", "limit")

    mean: float
    candidates: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        as_count("candidates", self.candidates)
        if not 0 <= self.mean <= 1:
            raise InputError(f"the loss must lie between 0 and 1, got a mean of {self.mean}")

    @property
    def margin(self) -> float:
        """What is added to the mean."""
        sides = 1 if self.candidates == 1 else 2 * self.candidates
        return math.sqrt(math.log(sides / self.beta) / (2 * self.episodes))

    @property
    def limit(self) -> float:
        """The limit."""
        return min(1.0, self.mean + self.margin)

    @property
    def claim(self) -> str:
        """The words without the assumption they rest on."""
        return (
            f"{self.start}, the mean loss over new episodes is at most {upward(self.limit)}; over {self.tested} it"
            f" was {self.mean:.6g}."
        )

    @classmethod
    def of(cls, losses: ArrayLike, *, beta: float, candidates: int = 1, mixing: float | None = None) -> MeanLoss:
        """State it from one loss for each episode.

        Examples
        --------
        >>> losses = [0.0] * 50
        >>> [round(MeanLoss.of(losses, beta=0.05, candidates=n).margin, 6) for n in (1, 645)]
        [0.173082, 0.318718]
        """
        values = np.asarray(losses, dtype=np.float64)
        if values.ndim != 1 or not len(values) or not ((values >= 0) & (values <= 1)).all():
            raise InputError("for each episode a loss between 0 and 1 is needed")
        return cls(episodes=len(values), beta=beta, mean=float(values.mean()), candidates=candidates, mixing=mixing)
