"""Error limit: an error that a new episode exceeds with small probability."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import as_count, epsilon_exact
from echobound.scenario.statements.episodes import EpisodeStatement, finite, sorted_errors
from echobound.scenario.words import upward


@dataclass(frozen=True, kw_only=True)
class ErrorLimit(EpisodeStatement):
    """An error that a new episode exceeds with probability at most epsilon: the (r + 1)-th largest of the test.

    The same theory as for networks, with episodes in their place.
    """

    kind = "error limit"
    title = "error limit"
    derived = ("total_beta", "epsilon")

    discarded: int  # r, settled beforehand
    limit: float | None  # None if that episode diverged
    error: str = "error"  # which error, for the words

    def __post_init__(self) -> None:
        super().__post_init__()
        if as_count("discarded", self.discarded, least=0) >= self.episodes:
            raise InputError(f"{self.discarded} of {self.episodes} episodes cannot be set aside: keep at least one")

    @cached_property
    def epsilon(self) -> float:
        """The largest probability."""
        # The same theory as for networks set aside: episodes are the draws, and the largest error is the "best".
        return epsilon_exact(self.episodes, self.beta, discarded=self.discarded)

    @property
    def claim(self) -> str:
        """The words without the assumption they rest on."""
        aside = f", the {self.discarded} largest set aside as settled beforehand" if self.discarded else ""
        if self.limit is None:
            error = f"{self.error}{self.ahead}".rstrip(",")
            return f"The model diverged in a test episode{aside}: there is no limit for its {error}."
        return (
            f"{self.start}, the {self.error}{self.ahead} in {self.new} is above {upward(self.limit)} with"
            f" probability at most {upward(self.epsilon)} (largest of {self.tested}{aside})."
        )

    @classmethod
    def of(
        cls,
        errors: ArrayLike,
        *,
        beta: float,
        discarded: int = 0,
        error: str = "error",
        mixing: float | None = None,
        horizon: int | None = None,
    ) -> ErrorLimit:
        """State it from one error for each episode; one that is not finite has diverged.

        Examples
        --------
        >>> limit = ErrorLimit.of(range(1, 51), beta=0.05, discarded=4)
        >>> limit.limit, round(limit.epsilon, 10)
        (46.0, 0.1737911582)
        """
        values = sorted_errors(errors)
        r = as_count("discarded", discarded, least=0)
        limit = finite(values[-1 - r]) if r < len(values) else None  # too many set aside, which is refused
        how: dict[str, Any] = {"mixing": mixing, "horizon": horizon}
        return cls(episodes=len(values), beta=beta, discarded=r, limit=limit, error=error, **how)
