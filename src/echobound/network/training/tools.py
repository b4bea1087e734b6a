"""What a trainer works with: the training data, and the routines that a kernel makes fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from echobound.arrays import Array, Matrix, Signal, Vector
from echobound.network import derivatives, dynamics
from echobound.network.derivatives import NormalEquations
from echobound.network.readout import Readouts, least_squares
from echobound.network.reservoir import ReservoirDraw


@dataclass(frozen=True, eq=False, slots=True)
class TrainingSegment:
    """A stretch of training data, in scaled units."""

    u: Signal
    y: Signal
    fed: Signal  # outputs as they are fed back in training: the measured ones, with the draw's training noise
    washout: int  # samples at the start that are not trained on


TrainingData: TypeAlias = Sequence[TrainingSegment]
"""All that a draw is trained on; the first sample of each segment is held for ``draw.law.padding`` steps before it."""


class Tools(Protocol):
    """The routines with which a kernel trains and simulates. `PlainTools` says what is right.

    They take a draw rather than a reservoir, because a fast kernel holds what was drawn in a form of its own; for a
    reservoir that was changed, give ``draw.with_reservoir(changed)``.
    """

    def regression(self, draw: ReservoirDraw, data: TrainingData) -> tuple[Matrix, Matrix]:
        """Phi ``(sample, column)`` and Y ``(sample, output)``, states forced by measured outputs."""

    def least_squares(self, draw: ReservoirDraw, data: TrainingData, ridges: tuple[float, ...]) -> Readouts:
        """The ridge that was used, and the readout, for each relative ridge; see `network.readout.least_squares`."""

    def simulate(
        self, draw: ReservoirDraw, readouts: Sequence[Matrix], u: Signal, y: Signal, washout: int, horizon: int | None
    ) -> Array:
        """Scaled outputs ``(readout, time, output)`` after the washout: free runs, or predictions of a horizon.

        They are clipped to ``draw.limits``.
        """

    def normal_equations(
        self, draw: ReservoirDraw, readout: Matrix, data: TrainingData, importance: Vector, whole: bool
    ) -> NormalEquations:
        """Errors of the free run over the data, each output times its importance, and their Gauss-Newton equations.

        They are over all weights, or without `whole` over the readout; see `network.derivatives`.
        """


class PlainTools:
    """The routines in plain NumPy.

    Examples
    --------
    >>> from echobound.network import ReservoirDraw, paper
    >>> signal = np.sin(np.arange(50.0))[:, None]
    >>> data = [TrainingSegment(signal, signal, signal, washout=10)]
    >>> draw = ReservoirDraw(paper(5), inputs=1, outputs=1, seed=0, index=3)
    >>> phi, y = PlainTools().regression(draw, data)
    >>> phi.shape, y.shape
    ((40, 6), (40, 1))
    """

    def regression(self, draw: ReservoirDraw, data: TrainingData) -> tuple[Matrix, Matrix]:
        """Phi and Y of the paper's steps (e) to (g), over all segments."""
        rows, targets = [], []
        for segment in data:
            states = dynamics.teacher_states(draw.reservoir, segment.u, segment.fed, draw.law.padding)
            times = np.arange(segment.washout, len(segment.u))
            rows.append(dynamics.features(draw.hyper, states[times], segment.u, segment.fed, times, segment.fed[0]))
            targets.append(segment.y[times])
        return np.concatenate(rows), np.concatenate(targets)

    def least_squares(self, draw: ReservoirDraw, data: TrainingData, ridges: tuple[float, ...]) -> Readouts:
        """Readouts from the whole of Phi."""
        return least_squares(*self.regression(draw, data), ridges)

    def simulate(
        self, draw: ReservoirDraw, readouts: Sequence[Matrix], u: Signal, y: Signal, washout: int, horizon: int | None
    ) -> Array:
        """One readout after the other."""
        reservoir, rest = draw.reservoir, (draw.law.padding, draw.limits)
        if horizon is None:
            return np.array([dynamics.free_run(reservoir, one, u, y, washout, *rest) for one in readouts])
        return np.array([dynamics.predictions(reservoir, one, u, y, washout, horizon, *rest) for one in readouts])

    def normal_equations(
        self, draw: ReservoirDraw, readout: Matrix, data: TrainingData, importance: Vector, whole: bool
    ) -> NormalEquations:
        """All derivatives of a segment at once."""
        rest = (importance, draw.law.padding, draw.limits, whole)
        return derivatives.normal_equations(draw.reservoir, readout, [(s.u, s.y, s.washout) for s in data], *rest)
