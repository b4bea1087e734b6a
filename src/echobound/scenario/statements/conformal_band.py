"""Conformal band: a band around the simulated (or predicted) output that contains the whole of a new episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Vector
from echobound.errors import InputError
from echobound.scenario.bounds import Probability, as_probability
from echobound.scenario.statements.episodes import EpisodeStatement, finite, sorted_errors
from echobound.scenario.words import ahead_words, confidence, upward


@dataclass(frozen=True, kw_only=True)
class ConformalBand(EpisodeStatement):
    """A band around the model's output that contains the whole of a new episode with probability at least 1 - beta.

    Marginal: over the test episodes and the new one together. There is no further confidence.
    """

    kind = "conformal band"
    title = "band"
    derived = ("total_beta", "rank")

    names: tuple[str, ...]  # of the outputs
    # Half the width of the band for each; None if the model diverged in too many episodes, or there are too few.
    widths: tuple[float | None, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.names or len(self.names) != len(self.widths):
            raise InputError(f"{len(self.widths)} outputs need as many names, got {len(self.names)}")

    @property
    def rank(self) -> int:
        """Which of the errors, from the smallest; above the number of episodes there is no band."""
        return _conformal_rank(self.episodes, self.beta)

    @property
    def claim(self) -> str:
        """The words without the assumption they rest on."""
        if any(width is None for width in self.widths):
            return (
                f"{self.tested} give no band for a probability of 1 - {confidence(self.beta)}: there are too few, or"
                " the model diverged in some."
            )
        return (
            f"The measured output of {self.new} stays within {bands_words(self)} throughout, with"
            f" probability at least 1 - {confidence(self.total_beta)} (over the test episodes and the new one"
            " together)."
        )

    @classmethod
    def of(
        cls,
        errors: Sequence[ArrayLike],
        *,
        beta: float,
        names: Sequence[str] = (),
        scales: ArrayLike | None = None,
        mixing: float | None = None,
        horizon: int | None = None,
    ) -> ConformalBand:
        """State it from the errors of each episode, measured minus simulated outputs as ``(time, output)``.

        `scales` say how wide the band is for one output relative to another, settled beforehand; equal if not given.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> band = ConformalBand.of([rng.normal(size=(100, 1)) for _ in range(50)], beta=0.1, names=["pH"])
        >>> band.rank, round(band.widths[0], 2)
        (46, 3.11)
        """
        values, scale, named = largest_errors(errors, names, scales)
        rank = _conformal_rank(len(values), beta)
        widths = widths_of(values[rank - 1] if rank <= len(values) else None, scale)
        return cls(episodes=len(values), beta=beta, mixing=mixing, horizon=horizon, names=named, widths=widths)


def largest_errors(
    errors: Sequence[ArrayLike], names: Sequence[str] = (), scales: ArrayLike | None = None
) -> tuple[Vector, Vector, tuple[str, ...]]:
    """For each episode its largest scaled error, the smallest first; the scales and the names of the outputs."""
    arrays = [np.abs(np.asarray(error, dtype=np.float64)) for error in errors]
    if not arrays or any(a.ndim != 2 or not a.size or a.shape[1] != arrays[0].shape[1] for a in arrays):
        raise InputError("for each episode an array (time, output) of errors is needed, with the same outputs")
    outputs = arrays[0].shape[1]
    scale = np.ones(outputs) if scales is None else np.asarray(scales, dtype=np.float64)
    if scale.shape != (outputs,) or not (np.isfinite(scale) & (scale > 0)).all():
        raise InputError(f"{outputs} outputs need as many positive scales, got {scales!r}")
    # One number for an episode, its largest scaled error, makes a band hold for all samples and outputs at once.
    values = sorted_errors([float((a / scale).max()) for a in arrays])
    return values, scale, tuple(names) or tuple(f"y{i}" for i in range(1, outputs + 1))


def widths_of(size: float | None, scale: Vector) -> tuple[float | None, ...]:
    """Half the width of a band for each output; None where there is none."""
    held = None if size is None else finite(size)
    return tuple(None if held is None else float(held * one) for one in scale)


def bands_words(band: EpisodeStatement) -> str:
    """As in "pH +- 0.4 of the simulated one"."""
    around = "the simulated one" if band.horizon is None else f"the one {ahead_words(band.horizon)}"
    names, widths = (getattr(band, name) for name in ("names", "widths"))
    each = ", ".join(f"{name} +- {upward(width or 0.0)}" for name, width in zip(names, widths, strict=True))
    return f"{each} of {around}"


def _conformal_rank(episodes: int, beta: Probability) -> int:
    """k = ceil((n + 1)(1 - beta)), in decimal arithmetic."""
    return int(((episodes + 1) * (1 - as_probability("beta", beta))).to_integral_value(ROUND_CEILING))
