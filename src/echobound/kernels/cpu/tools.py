"""The tools for one draw: Python arranges them, and each is one compiled call that holds no lock."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence

import numpy as np

from echobound.arrays import Array, Matrix, Signal, Vector
from echobound.kernels.cpu import derivatives, descent, stages
from echobound.kernels.cpu.fortran import routines
from echobound.kernels.cpu.net import contiguous, drawn_net, net_of, readout_inputs_of
from echobound.kernels.cpu.simulation import run
from echobound.kernels.cpu.step import Net, rest
from echobound.network.derivatives import NormalEquations
from echobound.network.readout import Readouts, minimum_norm
from echobound.network.reservoir import ReservoirDraw
from echobound.network.training import TrainingData, TrainingSegment
from echobound.network.training.free_run import Course, Network

CHUNK = 128  # rows of the regression in hand: long enough for dsyrk's full speed, short enough for the cache


class _Workspace(threading.local):
    """Memory that each worker keeps from network to network: fresh pages cost a tenth of the time at 500 states."""

    def __init__(self) -> None:
        self._flat: dict[str, Matrix] = {}

    def array(self, name: str, *shape: int) -> Matrix:
        """An array of this shape with any content; the same name gives the same memory."""
        size = math.prod(shape)
        if name not in self._flat or self._flat[name].size < size:
            self._flat[name] = np.empty(size)
        return self._flat[name][:size].reshape(shape)


workspace = _Workspace()


class CompiledTools:
    """Training and simulation of one draw by compiled code."""

    def __init__(self, draw: ReservoirDraw) -> None:
        self.draw, self.net = draw, drawn_net(draw)

    def _net(self, draw: ReservoirDraw) -> Net:
        return self.net if draw.changed is None else net_of(draw.changed)

    def regression(self, draw: ReservoirDraw, data: TrainingData) -> tuple[Matrix, Matrix]:
        """As `PlainTools.regression`."""
        rows = sum(len(segment.u) - segment.washout for segment in data)
        p = draw.hyper.columns(draw.inputs, draw.outputs)
        whole = np.concatenate([chunk.copy() for chunk in self._chunks(draw, data, max(rows, 1))])
        return whole[:, :p], whole[:, p:]

    def _chunks(self, draw: ReservoirDraw, data: TrainingData, size: int) -> Iterator[Matrix]:
        """Rows [phi(k), y(k)] of all segments, so many at a time; the next overwrite them."""
        net, readout_inputs = self._net(draw), readout_inputs_of(draw.hyper)
        chunk = np.empty((size, draw.hyper.columns(draw.inputs, draw.outputs) + draw.outputs))
        for segment in data:
            u, fed, y = _signals(segment)
            rest(net, u, fed, draw.law.padding)
            k = 0
            while k < len(u):
                k, rows = stages.regression_rows(net, readout_inputs, u, fed, y, segment.washout, k, chunk)
                yield chunk[:rows]

    def least_squares(self, draw: ReservoirDraw, data: TrainingData, ridges: tuple[float, ...]) -> Readouts:
        """Readouts for each ridge from one Gram matrix of [Phi, Y]; the minimum norm where Cholesky cannot be used."""
        p, outputs = draw.hyper.columns(draw.inputs, draw.outputs), draw.outputs
        total = workspace.array("total", p + outputs, p + outputs)
        factor = workspace.array("factor", p + outputs, p + outputs)
        chunk = workspace.array("chunk", CHUNK, p + outputs)
        blas = routines()
        total[:] = 0.0
        if any(ridges):  # the minimum norm does not come from the Gram matrix, which has half of the digits only
            net, readout_inputs = self._net(draw), readout_inputs_of(draw.hyper)
            for segment in data:
                u, fed, y = _signals(segment)
                stages.gram(net, readout_inputs, u, fed, y, segment.washout, draw.law.padding, chunk, total, blas)
        solutions, fallback = [], None
        for ridge in ridges:
            weights = np.empty((outputs, p))
            if ridge == 0 or not stages.ridge_readout(total, factor, ridge, weights, blas):
                if fallback is None:
                    fallback = minimum_norm(self._triangle(draw, data, p + outputs), outputs)
                ridge, weights = 0.0, fallback
            solutions.append((ridge, weights))
        return solutions

    def _triangle(self, draw: ReservoirDraw, data: TrainingData, width: int) -> Matrix:
        """Triangle R of the QR factorisation of [Phi, Y], chunk after chunk."""
        triangle = np.zeros((0, width))
        for rows in self._chunks(draw, data, max(CHUNK, 2 * width)):
            triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, rows]), mode="r"))
        return triangle

    def simulate(
        self, draw: ReservoirDraw, readouts: Sequence[Matrix], u: Signal, y: Signal, washout: int, horizon: int | None
    ) -> Array:
        """All readouts in one call, so that they share the washout; after a diverged run the rest is NaN."""
        rest = (washout, draw.law.padding, horizon, draw.limits)
        return run(self._net(draw), draw.hyper, np.stack(readouts), u, y, *rest)

    def normal_equations(
        self, draw: ReservoirDraw, readout: Matrix, data: TrainingData, importance: Vector, whole: bool
    ) -> NormalEquations:
        """As `PlainTools.normal_equations`."""
        rest = (importance, draw.law.padding, draw.limits, whole)
        return derivatives.normal_equations(draw.reservoir, readout, [(s.u, s.y, s.washout) for s in data], *rest)

    def descend(self, draw: ReservoirDraw, readout: Matrix, data: TrainingData, course: Course) -> dict[int, Network]:
        """As `network.training.free_run.descend`, in one call."""
        return descent.descend(draw, readout, data, course)


def _signals(segment: TrainingSegment) -> tuple[Signal, Signal, Signal]:
    return contiguous(segment.u), contiguous(segment.fed), contiguous(segment.y)
