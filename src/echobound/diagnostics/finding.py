"""Finding: one thing that a diagnostic found, in a plain sentence, and with what rate it would be a false alarm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from echobound.arrays import Array, Signal

RATE = 0.01  # of false alarms: tests are made at this level


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive samples that a model ran over: inputs, measured and simulated outputs, after the washout."""

    u: Signal
    y: Signal
    simulated: Signal

    @property
    def error(self) -> Signal:
        """What is left over."""
        return self.y - self.simulated


@dataclass(frozen=True)
class Finding:
    """What a diagnostic says.

    Parameters
    ----------
    name
        What was looked at.
    alarm
        Whether something is to be done about it.
    words
        One plain sentence.
    advice
        What to do; empty where nothing is to be done.
    rate
        The share of false alarms at which it is set off where all is well; None for what is no test.
    values
        The numbers behind the sentence, by name.

    Examples
    --------
    >>> Finding("drift", False, "No drift between the blocks.", rate=0.01).mark
    'ok'
    """

    name: str
    alarm: bool
    words: str
    advice: str = ""
    rate: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)

    @property
    def mark(self) -> str:
        """``"ok"`` or ``"look"``."""
        return "look" if self.alarm else "ok"


def usable(pieces: list[Piece], shortest: int) -> list[Piece]:
    """Pieces that are finite and long enough for a test."""
    return [one for one in pieces if len(one.y) >= shortest and np.isfinite(one.simulated).all()]


def per_cent(share: float) -> str:
    """A share for a sentence.

    Examples
    --------
    >>> per_cent(0.1234), per_cent(0.004), per_cent(1.0)
    ('12 %', '0.4 %', '100 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1g} %"


def listed(names: list[str], most: int = 3) -> str:
    """Names for a sentence, the first few of them.

    Examples
    --------
    >>> listed(["u1", "u2"]), listed(["a", "b", "c", "d", "e"])
    ('u1 and u2', 'a, b, c and 2 others')
    """
    if len(names) > most:
        rest = len(names) - most
        return f"{', '.join(names[:most])} and {rest} other{'s' * (rest > 1)}"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def standardised(signal: Array) -> Array:
    """A signal with mean 0 and standard deviation 1; a constant is 0."""
    spread = signal.std(axis=0)
    return np.asarray((signal - signal.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
