"""Generalisation: one network, chosen before the test data were opened, on independent test episodes.

An episode is an experiment of its own, from a fresh initial state (or after a washout), drawn as those of the later use
are, and untouched by training, selection and any other run. Several looks at the same episodes share beta.

Blocks of one long record are not independent. Treated as such, they add (B - 1) times the mixing coefficient of the gap
between them to beta (Yu 1994). That coefficient is an assumption about the plant; nothing here estimates it, so it
has to be given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echobound.errors import InputError
from echobound.scenario.bounds import Probability, as_count, as_probability, epsilon_exact
from echobound.scenario.statement import Statement
from echobound.scenario.words import confidence, upward

__all__ = [
    "ConformalBand",
    "EpisodeStatement",
    "ErrorLimit",
    "FailureRate",
    "MeanLoss",
    "blocks",
    "finite",
]


@dataclass(frozen=True, kw_only=True)
class EpisodeStatement(Statement):
    """A statement about new episodes.

    Parameters
    ----------
    episodes
        How many were tested.
    beta
        1 - confidence.
    mixing
        None for independent episodes. For blocks of one record the mixing coefficient (of absolute regularity) of the
        gap between them, as it is assumed.
    """

    episodes: int
    beta: float
    mixing: float | None = None

    def __post_init__(self) -> None:
        as_count("episodes", self.episodes)
        as_probability("beta", self.beta)
        if self.mixing is not None and not 0 <= self.mixing <= 1:
            raise InputError(f"a mixing coefficient lies between 0 and 1, got {self.mixing}")
        if self.total_beta >= 1:
            raise InputError(
                f"{self.episodes} blocks with a mixing coefficient of {self.mixing:g} leave no confidence: leave longer"
                " gaps, or test on independent episodes"
            )

    @property
    def total_beta(self) -> float:
        """1 - confidence with what dependence between blocks may add."""
        return self.beta + (self.episodes - 1) * (self.mixing or 0.0)

    @property
    def start(self) -> str:
        """How the words begin."""
        return f"With confidence 1 - {confidence(self.total_beta)}"

    @property
    def claim(self) -> str:
        """The words without the assumption they rest on."""
        raise NotImplementedError

    @property
    def words(self) -> str:
        """The statement in plain words."""
        return f"{self.claim} {self.assumption}"

    @property
    def tested(self) -> str:
        """As in "20 test episodes"."""
        return f"{self.episodes} test episode{'s' * (self.episodes != 1)}"

    @property
    def assumption(self) -> str:
        """How the words end."""
        if self.mixing is None:
            return "The episodes must be independent of each other and of everything the network was chosen by."
        return (
            "The episodes are blocks of one record. This holds under the assumption, which is not tested, that the"
            f" record is stationary and that its mixing coefficient over the gaps is at most {self.mixing:g}."
        )


@dataclass(frozen=True, kw_only=True)
class FailureRate(EpisodeStatement):
    """Upper limit (Clopper-Pearson) for the probability that a new episode fails a criterion settled beforehand.

    Parameters
    ----------
    failures
        How many of the episodes failed.
    criterion
        What they failed, for the words.
    """

    kind = "failure rate"
    derived = ("total_beta", "epsilon")

    failures: int
    criterion: str = ""

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
            f"{self.failures} of {self.tested} failed the criterion{named}. {self.start}, a new episode"
            f" fails it with probability at most {upward(self.epsilon)}."
        )

    @classmethod
    def of(cls, failed: ArrayLike, *, beta: float, criterion: str = "", mixing: float | None = None) -> FailureRate:
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
        return cls(episodes=len(outcomes), failures=failures, criterion=criterion, beta=beta, mixing=mixing)

    def again(self, *data: Any) -> FailureRate:
        """The statement from whether each episode failed."""
        return FailureRate.of(*data, beta=self.beta, criterion=self.criterion, mixing=self.mixing)


@dataclass(frozen=True, kw_only=True)
class ErrorLimit(EpisodeStatement):
    """An error that a new episode exceeds with probability epsilon at most: the (r + 1)-th largest of the test.

    The same theory as for networks, with episodes in their place.

    Parameters
    ----------
    discarded
        r, settled beforehand.
    limit
        The error; None if that episode diverged.
    error
        Which error, for the words.
    """

    kind = "error limit"
    derived = ("total_beta", "epsilon")

    discarded: int
    limit: float | None
    error: str = "error"

    def __post_init__(self) -> None:
        super().__post_init__()
        if as_count("discarded", self.discarded, least=0) >= self.episodes:
            raise InputError(f"{self.discarded} of {self.episodes} episodes cannot be set aside: keep one at least")

    @cached_property
    def epsilon(self) -> float:
        """The probability, at most."""
        return epsilon_exact(self.episodes, self.beta, discarded=self.discarded)

    @property
    def claim(self) -> str:
        """The words without the assumption they rest on."""
        aside = f", the {self.discarded} largest set aside as settled beforehand" if self.discarded else ""
        if self.limit is None:
            return f"The model diverged in a test episode{aside}: there is no limit for its {self.error}."
        return (
            f"{self.start}, the {self.error} in a new episode is above {upward(self.limit)} with probability at most"
            f" {upward(self.epsilon)} (largest of {self.tested}{aside})."
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
    ) -> ErrorLimit:
        """State it from one error for each episode; what is not finite has diverged.

        Examples
        --------
        >>> limit = ErrorLimit.of(range(1, 51), beta=0.05, discarded=4)
        >>> limit.limit, round(limit.epsilon, 10)
        (46.0, 0.1737911582)
        """
        values = _sorted_errors(errors)
        r = as_count("discarded", discarded, least=0)
        if r >= len(values):
            raise InputError(f"{r} of {len(values)} episodes cannot be set aside: keep one at least")
        limit = finite(values[-1 - r])
        return cls(episodes=len(values), beta=beta, discarded=r, limit=limit, error=error, mixing=mixing)

    def again(self, *data: Any) -> ErrorLimit:
        """The statement from one error for each episode."""
        return ErrorLimit.of(*data, beta=self.beta, discarded=self.discarded, error=self.error, mixing=self.mixing)


@dataclass(frozen=True, kw_only=True)
class ConformalBand(EpisodeStatement):
    """A band around the simulated output that contains the whole of a new episode with probability 1 - beta at least.

    Marginal: over the test episodes and the new one together. There is no further confidence.

    Parameters
    ----------
    names, widths
        Outputs, and half the width of the band for each; None if the network diverged in too many episodes, or there
        are too few.
    """

    kind = "conformal band"
    derived = ("total_beta", "rank")

    names: tuple[str, ...]
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
                f"{self.tested} give no band for a probability of {1 - self.beta:g}: too few, or the model diverged in"
                " some."
            )
        bands = ", ".join(
            f"{name} +- {upward(width or 0.0)}" for name, width in zip(self.names, self.widths, strict=True)
        )
        return (
            f"The measured output of a new episode stays within {bands} of the simulated one, all along it, with"
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
    ) -> ConformalBand:
        """State it from the errors of each episode, ``(time, output)``.

        Parameters
        ----------
        errors
            Measured minus simulated outputs, one array for each episode.
        beta, mixing
            As in the class.
        names
            Of the outputs.
        scales
            How wide the band is for one output relative to another, settled beforehand; equal if not given.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> band = ConformalBand.of([rng.normal(size=(100, 1)) for _ in range(50)], beta=0.1, names=["pH"])
        >>> band.rank, round(band.widths[0], 2)
        (46, 3.11)
        """
        arrays = [np.abs(np.asarray(error, dtype=np.float64)) for error in errors]
        if not arrays or any(a.ndim != 2 or not a.size or a.shape[1] != arrays[0].shape[1] for a in arrays):
            raise InputError("for each episode an array (time, output) of errors is needed, with the same outputs")
        outputs = arrays[0].shape[1]
        scale = np.ones(outputs) if scales is None else np.asarray(scales, dtype=np.float64)
        if scale.shape != (outputs,) or not (np.isfinite(scale) & (scale > 0)).all():
            raise InputError(f"{outputs} outputs need as many positive scales, got {scales!r}")
        values = _sorted_errors([float((a / scale).max()) for a in arrays])
        rank = _conformal_rank(len(values), beta)
        size = finite(values[rank - 1]) if rank <= len(values) else None
        return cls(
            episodes=len(values),
            beta=beta,
            mixing=mixing,
            names=tuple(names) or tuple(f"y{i}" for i in range(1, outputs + 1)),
            widths=tuple(None if size is None else float(size * one) for one in scale),
        )

    def again(self, *data: Any) -> ConformalBand:
        """The statement from the errors of each episode and, where they were given, the scales."""
        errors, *scales = data
        return ConformalBand.of(
            errors, beta=self.beta, names=self.names, scales=scales[0] if scales else None, mixing=self.mixing
        )


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

    def again(self, *data: Any) -> MeanLoss:
        """The statement from one loss for each episode."""
        return MeanLoss.of(*data, beta=self.beta, candidates=self.candidates, mixing=self.mixing)


def blocks(samples: int, length: int, gap: int, washout: int = 0) -> list[tuple[int, int]]:
    """Cut a record into blocks with gaps between them: (start, stop) of each.

    Statements on blocks need the mixing coefficient of the gap; see the module.

    Examples
    --------
    >>> blocks(1000, length=300, gap=100, washout=100)
    [(0, 300), (400, 700)]
    """
    as_count("length", length)
    if gap < washout or gap < 0:
        raise InputError(f"the gap between blocks must be at least the washout of {washout} samples, got {gap}")
    starts = range(0, as_count("samples", samples) - length + 1, length + gap)
    if not len(starts):
        raise InputError(f"a block of {length} samples does not fit into {samples}: take shorter blocks")
    return [(start, start + length) for start in starts]


def _conformal_rank(episodes: int, beta: Probability) -> int:
    """k = ceil((n + 1)(1 - beta)), in decimal arithmetic."""
    return int(((episodes + 1) * (1 - as_probability("beta", beta))).to_integral_value(ROUND_CEILING))


def _sorted_errors(errors: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(errors, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise InputError(f"one error for each episode is needed, got an array of shape {values.shape}")
    return np.sort(np.where(np.isfinite(values), values, np.inf))


def finite(value: float) -> float | None:
    """The number, or None for one that is not finite: it diverged."""
    return float(value) if math.isfinite(value) else None
