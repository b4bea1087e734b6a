"""Failure rate: how probable it is that a new episode fails a criterion."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import as_count, epsilon_exact
from echobound.scenario.statements.episodes import EpisodeStatement
from echobound.scenario.words import upward


@dataclass(frozen=True, kw_only=True)
class FailureRate(EpisodeStatement):
    """Upper limit (Clopper-Pearson) for the probability that a new episode fails a criterion settled beforehand."""

    kind = "failure rate"
    title = "failure rate"
    derived = ("total_beta", "epsilon")

    failures: int  # how many of the episodes failed
    criterion: str = ""  # for the words

    def __post_init__(self) -> None:
        super().__post_init__()
        if as_count("failures", self.failures, least=0) > self.episodes:
            raise InputError(f"{self.failures} of {self.episodes} episodes cannot have failed")

    @cached_property
    def epsilon(self) -> float:
        """The limit."""
        return epsilon_exact(self.episodes, self.beta, d=self.failures + 1) if self.failures < self.episodes else 1.0

    @property
    def claim(self) -> str:
        """The words without the assumption they rest on."""
        named = f" {self.criterion}" if self.criterion else ""
        return (
            f"{self.failures} of {self.tested} failed the criterion{named}{self.ahead.rstrip(',')}. {self.start},"
            f" {self.new} fails it with probability at most {upward(self.epsilon)}."
        )

    @classmethod
    def of(
        cls,
        failed: ArrayLike,
        *,
        beta: float,
        criterion: str = "",
        mixing: float | None = None,
        horizon: int | None = None,
    ) -> FailureRate:
        """State it from whether each episode failed.

        Examples
        --------
        >>> round(FailureRate.of([False] * 98 + [True] * 2, beta=0.05).epsilon, 10)
        0.0616192004
        """
        outcomes = np.asarray(failed)
        if outcomes.dtype != bool or outcomes.ndim != 1:
            raise InputError("for each episode, true or false is needed: whether it failed")
        failures = int(outcomes.sum())
        how: dict[str, Any] = {"mixing": mixing, "horizon": horizon}
        return cls(episodes=len(outcomes), failures=failures, criterion=criterion, beta=beta, **how)
