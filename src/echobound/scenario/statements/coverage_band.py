"""Coverage band: a band that contains most new episodes, with a confidence for this very band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import as_count, epsilon_exact
from echobound.scenario.statements.conformal_band import bands_words, largest_errors, widths_of
from echobound.scenario.statements.episodes import EpisodeStatement
from echobound.scenario.words import upward


@dataclass(frozen=True, kw_only=True)
class CoverageBand(EpisodeStatement):
    """A band that a new episode leaves with probability at most epsilon, except with probability beta over the test.

    A `ConformalBand` is as wide as it must be on average over many test sets; this one is wider, and what it promises
    is about the band that came out. Its width is the (r + 1)-th largest of the episodes' largest errors, and the law of
    the (r + 1)-th largest of n independent numbers says the rest, as for an `ErrorLimit`.

    With a `window` it is about so many consecutive samples, also of longer runs.
    """

    kind = "coverage band"
    title = "band, for sure"
    derived = ("total_beta", "epsilon")

    names: tuple[str, ...]  # of the outputs
    widths: tuple[float | None, ...]  # half the width for each; None if the model diverged in the episode that decides
    discarded: int = 0  # r, settled beforehand
    window: int | None = None  # consecutive samples that it is about; None for whole episodes

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.names or len(self.names) != len(self.widths):
            raise InputError(f"{len(self.widths)} outputs need as many names, got {len(self.names)}")
        if as_count("discarded", self.discarded, least=0) >= self.episodes:
            raise InputError(f"{self.discarded} of {self.episodes} episodes cannot be set aside: keep at least one")
        if self.window is not None:
            as_count("window", self.window)

    @cached_property
    def epsilon(self) -> float:
        """The largest probability of leaving the band."""
        return epsilon_exact(self.episodes, self.beta, discarded=self.discarded)

    @property
    def claim(self) -> str:
        """The words without the assumption they rest on."""
        aside = f", the {self.discarded} largest set aside as settled beforehand" if self.discarded else ""
        if any(width is None for width in self.widths):
            return f"The model diverged in a test episode{aside}: there is no band for sure."
        what, seen, where = self.new, self.tested, "throughout"
        if self.window is not None:
            what = f"a run, in {self.window} consecutive samples that are chosen without a look at it,"
            seen, where = f"the last {self.window} samples of {self.tested}", "in all of them"
        return (
            f"{self.start}, the measured output of {what} stays within {bands_words(self)} {where}, but for a"
            f" probability of at most {upward(self.epsilon)} (largest error of {seen}{aside})."
        )

    @property
    def assumption(self) -> str:
        """How the words end."""
        if self.window is None:
            return super().assumption
        return f"{super().assumption} Runs must be stationary after their start: no stretch is unlike the others."

    @classmethod
    def of(
        cls,
        errors: Sequence[ArrayLike],
        *,
        beta: float,
        discarded: int = 0,
        names: Sequence[str] = (),
        scales: ArrayLike | None = None,
        mixing: float | None = None,
        horizon: int | None = None,
        window: int | None = None,
    ) -> CoverageBand:
        """State it from the errors of each episode, as `ConformalBand.of`; of a `window`, from those of its samples.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> band = CoverageBand.of([rng.normal(size=(100, 1)) for _ in range(59)], beta=0.05, names=["pH"])
        >>> round(band.epsilon, 4), round(band.widths[0], 2)
        (0.0495, 3.9)
        """
        values, scale, named = largest_errors(errors, names, scales)
        r = as_count("discarded", discarded, least=0)
        size = values[-1 - r] if r < len(values) else None  # too many set aside, which is refused
        how = {"mixing": mixing, "horizon": horizon, "discarded": r, "window": window}
        return cls(episodes=len(values), beta=beta, names=named, widths=widths_of(size, scale), **how)  # type: ignore[arg-type]
