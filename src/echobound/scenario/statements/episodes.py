"""Episodes: one network, chosen before the test data were opened, on independent test episodes.

An episode is an experiment of its own, from a fresh initial state (or after a washout), drawn in the same way as those
of the later use, and untouched by training, selection and any other run. Several looks at the same episodes share beta.

Blocks of one long record are not independent. Treated as such, they add (B - 1) times the mixing coefficient of the gap
between them to beta (Yu 1994). That coefficient is an assumption about the plant; nothing here estimates it, so it
has to be given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Vector
from echobound.errors import InputError
from echobound.scenario.bounds import as_count, as_probability
from echobound.scenario.statements.base import Statement
from echobound.scenario.words import ahead_words, confidence, upward
from echobound.typed import later


@dataclass(frozen=True, kw_only=True)
class EpisodeStatement(Statement):
    """A statement about new episodes."""

    episodes: int  # how many were tested
    beta: float
    # None for independent episodes; for blocks of one record the coefficient of absolute regularity that is assumed.
    mixing: float | None = None
    # None for free runs; k where outputs were predicted k samples ahead from measured ones.
    horizon: int | None = later(None)
    # Scored samples of the shortest and the longest of them, where known: a longer episode has more room for errors.
    samples: tuple[int, int] | None = later(None)

    def __post_init__(self) -> None:
        as_count("episodes", self.episodes)
        as_probability("beta", self.beta)
        if self.mixing is not None and not 0 <= self.mixing <= 1:
            raise InputError(f"a mixing coefficient lies between 0 and 1, got {self.mixing}")
        if self.horizon is not None:
            as_count("horizon", self.horizon)
        if self.samples is not None and not 1 <= self.samples[0] <= self.samples[1]:
            raise InputError(f"the shortest and the longest episode were expected in samples, got {self.samples}")
        if self.total_beta >= 1:
            raise InputError(
                f"{self.episodes} blocks with a mixing coefficient of {self.mixing:g} leave no confidence: leave longer"
                " gaps, or test on independent episodes"
            )

    @property
    def total_beta(self) -> float:
        """1 - confidence with what dependence between blocks may add."""
        # Yu (1994): B dependent blocks are as good as independent ones but for (B - 1) mixing coefficients.
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
    def new(self) -> str:
        """As in "a new episode of 120 samples": nothing is said about others, longer ones above all."""
        if self.samples is None:
            return "a new episode as long as the tested ones"
        low, high = self.samples
        length = f"{high} sample{'s' * (high != 1)}" if low == high else f"{low} to {high} samples, as the tested ones,"
        return f"a new episode of {length}"

    @property
    def ahead(self) -> str:
        """As in ", predicted 3 samples ahead,"; nothing of free runs."""
        return "" if self.horizon is None else f", {ahead_words(self.horizon)},"

    @property
    def assumption(self) -> str:
        """How the words end."""
        chosen = f"of everything the {self.drawn.one} was chosen by"
        if self.mixing is None:
            return f"The episodes must be independent of each other and {chosen}."
        return (
            "The episodes are blocks of one record. This holds under the assumptions, which are not tested, that the"
            f" record is independent {chosen} (validation data that precede it in the same experiment are not), that"
            f" it is stationary, and that its mixing coefficient over the gaps is at most {upward(self.mixing)}."
        )


def cut_blocks(samples: int, length: int, gap: int, washout: int = 0) -> list[tuple[int, int]]:
    """Cut a record into blocks with gaps between them: (start, stop) of each.

    Statements on blocks need the mixing coefficient of the gap; see the module.

    Examples
    --------
    >>> cut_blocks(1000, length=300, gap=100, washout=100)
    [(0, 300), (400, 700)]
    """
    as_count("length", length)
    if gap < washout or gap < 0:
        raise InputError(f"the gap between blocks must be at least the washout of {washout} samples, got {gap}")
    starts = range(0, as_count("samples", samples) - length + 1, length + gap)
    if not len(starts):
        raise InputError(f"a block of {length} samples does not fit into {samples}: take shorter blocks")
    return [(start, start + length) for start in starts]


def sorted_errors(errors: ArrayLike) -> Vector:
    """One error for each episode, the smallest first; what is not finite is the largest."""
    values = np.asarray(errors, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise InputError(f"one error for each episode is needed, got an array of shape {values.shape}")
    return np.sort(np.where(np.isfinite(values), values, np.inf))


def finite(value: float) -> float | None:
    """The number, or None for one that is not finite: it diverged."""
    return float(value) if math.isfinite(value) else None
