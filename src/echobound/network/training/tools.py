"""What a trainer works with: the training data, and the routines that a kernel makes fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from echobound.arrays import Matrix, Signal
from echobound.network import dynamics
from echobound.network.readout import least_squares
from echobound.network.reservoir import ReservoirDraw

__all__ = ["PlainTools", "Tools", "TrainingData", "TrainingSegment"]


@dataclass(frozen=True, eq=False, slots=True)
class TrainingSegment:
    """A stretch of training data, in scaled units.

    Parameters
    ----------
    u, y
        Inputs and measured outputs.
    fed
        Outputs as they are fed back in training: the measured ones, with the draw's training noise.
    washout
        Samples at the start that are not trained on.
    """

    u: Signal
    y: Signal
    fed: Signal
    washout: int


@dataclass(frozen=True, eq=False, slots=True)
class TrainingData:
    """All that a draw is trained on: segments, and the steps for which the first sample of each is held before it."""

    segments: tuple[TrainingSegment, ...]
    padding: int


class Tools(Protocol):
    """The routines of a kernel for the training segments. `PlainTools` says what is right.

    They take a draw rather than a reservoir, because a fast kernel holds what was drawn in a form of its own; for a
    reservoir that was changed, give ``draw.with_reservoir(changed)``.
    """

    def regression(self, draw: ReservoirDraw, data: TrainingData) -> tuple[Matrix, Matrix]:
        """Phi ``(sample, column)`` and Y ``(sample, output)``, states forced by measured outputs."""
        ...

    def least_squares(
        self, draw: ReservoirDraw, data: TrainingData, ridges: tuple[float, ...]
    ) -> list[tuple[float, Matrix]]:
        """The ridge that was used, and the readout, for each relative ridge; see `network.readout.least_squares`."""
        ...

    def free_run(self, draw: ReservoirDraw, readout: Matrix, segment: TrainingSegment, padding: int) -> Signal:
        """Outputs of a segment after its washout, with the model's own outputs fed back."""
        ...


class PlainTools:
    """The routines in plain NumPy.

    Examples
    --------
    >>> from echobound.network import ReservoirDraw, paper
    >>> signal = np.sin(np.arange(50.0))[:, None]
    >>> data = TrainingData((TrainingSegment(signal, signal, signal, washout=10),), padding=0)
    >>> draw = ReservoirDraw(paper(5), inputs=1, outputs=1, seed=0, index=3)
    >>> phi, y = PlainTools().regression(draw, data)
    >>> phi.shape, y.shape
    ((40, 6), (40, 1))
    """

    def regression(self, draw: ReservoirDraw, data: TrainingData) -> tuple[Matrix, Matrix]:
        """Phi and Y of the paper's steps (e) to (g), over all segments."""
        rows, targets = [], []
        for segment in data.segments:
            states = dynamics.teacher_states(draw.reservoir, segment.u, segment.fed, data.padding)
            times = np.arange(segment.washout, len(segment.u))
            rows.append(dynamics.features(draw.hyper, states[times], segment.u, segment.fed, times, segment.fed[0]))
            targets.append(segment.y[times])
        return np.concatenate(rows), np.concatenate(targets)

    def least_squares(
        self, draw: ReservoirDraw, data: TrainingData, ridges: tuple[float, ...]
    ) -> list[tuple[float, Matrix]]:
        """Readouts from the whole of Phi."""
        return least_squares(*self.regression(draw, data), ridges)

    def free_run(self, draw: ReservoirDraw, readout: Matrix, segment: TrainingSegment, padding: int) -> Signal:
        """As `network.dynamics.free_run`, over a training segment."""
        return dynamics.free_run(draw.reservoir, readout, segment.u, segment.y, segment.washout, padding)
