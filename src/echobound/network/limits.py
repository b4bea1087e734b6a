"""Limits: between what values the output of a model stays, whatever its inputs are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from echobound.arrays import Array, Mask, Signal, Vector

MARGIN = 0.25  # of the range: test data leave the range of the training data by as much in several public sets
STICKING = 0.01  # share of samples at an extreme from which on it is taken for the end of the sensor's range
FEWEST = 5  # samples: in a short record, 1 % may be the one sample that is the largest
WITHIN = 1e-6  # of the range: nearer to the extreme counts as being at it
EPSILON = float(np.finfo(float).eps)
HELD = 0.05  # share of a record: a model that is at its limits for longer, beyond what the data were, does not follow


@dataclass(frozen=True, eq=False)
class Limits:
    """The range to which each output is clipped before it is fed back.

    A model holds them in scaled units, as its state equation is; a problem has them in the data's own units, too.

    Examples
    --------
    >>> saturated = np.minimum(np.arange(100.0), 80.0)[:, None]
    >>> limits = Limits.of([saturated])
    >>> limits.low.tolist(), limits.high.tolist()
    ([-20.0], [80.0])
    >>> limits.clip(np.array([[-50.0], [3.0], [np.nan], [np.inf]])).tolist()
    [[-20.0], [3.0], [-20.0], [80.0]]
    """

    low: Vector
    high: Vector
    share: Vector  # of the training samples that are at a limit themselves, for each output

    @classmethod
    def of(cls, outputs: Sequence[Signal]) -> Limits:
        """The range of the training outputs, widened by a quarter on each side.

        It is not widened where at least 1 % of the samples are at the extreme: there the sensor saturates. In a short
        record there must be five of them, too.
        """
        y = np.concatenate(list(outputs))
        low, high = y.min(axis=0), y.max(axis=0)
        span = high - low
        # An output that never moved may do so later: it gets the range of its own size.
        span = np.where(span > 0, span, np.maximum(np.abs(high), 1.0))
        at_low, at_high = (y <= low + WITHIN * span).mean(axis=0), (y >= high - WITHIN * span).mean(axis=0)
        enough = max(STICKING, FEWEST / len(y))
        sticks_low, sticks_high = ((share >= enough) & (high > low) for share in (at_low, at_high))
        share = np.where(sticks_low, at_low, 0.0) + np.where(sticks_high, at_high, 0.0)
        return cls(
            np.where(sticks_low, low, low - MARGIN * span), np.where(sticks_high, high, high + MARGIN * span), share
        )

    def clip(self, y: Array) -> Array:
        """The outputs within the limits. What is not a number is at the lower one, as in compiled code."""
        return np.where(y > self.high, self.high, np.where(y >= self.low, y, self.low))

    def held(self, y: Signal) -> Vector:
        """Share of the samples at which each output is at a limit; leading axes are separate signals.

        Examples
        --------
        >>> Limits.of([np.array([[0.0], [1.0], [2.0], [4.0]])]).held(np.array([[5.0], [2.0]])).tolist()
        [0.5]
        """
        low, high = self.ends
        return np.asarray(((y <= low) | (y >= high)).mean(axis=-2))

    @property
    def ends(self) -> tuple[Vector, Vector]:
        """Up to where and from where on an output counts as being at a limit."""
        # A little within: on the way to scaled units and back, a limit may move by a few last bits.
        width = self.high - self.low
        near = 1e-9 * width + 4 * EPSILON * np.maximum(np.abs(self.low), np.abs(self.high))
        near = np.minimum(near, 0.01 * width)
        return self.low + near, self.high - near

    def holds(self, held: Array) -> Mask:
        """Whether one of the outputs is at its limits for too long: the shares ``(..., output)`` are those of `held`.

        That is more than 5 % of the samples, beyond what the training data were.

        Examples
        --------
        >>> limits = Limits.of([np.minimum(np.arange(100.0), 80.0)[:, None]])
        >>> limits.share.tolist(), limits.holds(np.array([[0.2], [0.3]])).tolist()
        ([0.2], [False, True])
        """
        return np.asarray((held > HELD + self.share).any(axis=-1))
