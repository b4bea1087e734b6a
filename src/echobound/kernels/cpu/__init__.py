"""The CPU kernel: compiled by Numba, one network a call, as many networks at once as there are workers.

Python arranges the stages of a trial; each stage is one compiled call that holds no lock, so that threads run side by
side. The arithmetic is that of the reference kernel.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Matrix, Rows, Signal
from echobound.kernels.base import Trial, TrialKernel
from echobound.kernels.blas import one_blas_thread
from echobound.kernels.cpu.cache import cached_beside_sources
from echobound.kernels.problem import Fold, FoldData, Problem
from echobound.network.law import BIAS, COLUMNS, FEEDBACK, INPUT, VALUES, Hyperparameters
from echobound.network.readout import minimum_norm
from echobound.network.reservoir import leak_rates

with cached_beside_sources():
    from echobound.kernels.cpu.bidiagonal import spectral_norm
    from echobound.kernels.cpu.fortran import ADDRESSES
    from echobound.kernels.cpu.philox import floyd, symmetric, units
    from echobound.kernels.cpu.stages import ReadoutInputs, free_run, gram, predict, regression_rows, ridge_readout
    from echobound.kernels.cpu.step import Net, rest

__all__ = ["CPUKernel"]


BLOCK = 128  # rows of the regression in hand: long enough for dsyrk's full speed, short enough for the cache


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


_workspace = _Workspace()


class CPUKernel(TrialKernel):
    """Evaluate draws by compiled code.

    Examples
    --------
    >>> CPUKernel().name
    'cpu'
    """

    name = "cpu"

    def evaluate(self, problem: Problem, indices: Iterable[int]) -> Rows:
        """Draw, train and score the given draws of a problem."""
        with one_blas_thread():
            return super().evaluate(problem, indices)

    def trial(self, problem: Problem, index: int) -> Trial:
        """Draw and train one network, and simulate it."""
        with one_blas_thread():
            key = problem.key(index)
            hyper = problem.law.settle(key)
            net = _draw(problem, key, hyper)
            sees = ReadoutInputs(hyper.input_delays, hyper.present_input, hyper.output_delays, hyper.constant)
            used = list(problem.law.ridges)
            readouts, outputs = [], []
            for number, fold in enumerate(problem.folds):
                data = problem.scaled(number, hyper.scaling)
                fed = problem.fed_back(index, hyper, data)
                solved, weights = _train(problem, hyper, net, sees, fold, data, fed)
                used = [min(before, ridge) for before, ridge in zip(used, solved, strict=True)]
                readouts.append(weights)
                outputs.append(_simulate(problem, net, sees, weights, fold, data))
            return Trial(hyper, used, readouts, outputs)


def _draw(problem: Problem, key: NDArray[np.uint64], hyper: Hyperparameters) -> Net:
    """The arrays of one draw."""
    law, n = problem.law, hyper.order
    slots = min(law.nonzeros, n)
    levels = np.empty((slots, 1 if law.pattern == "diagonals" else n))
    units(key, COLUMNS, levels.reshape(-1))
    columns = np.empty(levels.shape, dtype=np.int64)
    floyd(levels, n, columns)
    values = np.empty((slots, n))
    symmetric(key, VALUES, 1.0, values.reshape(-1))
    values *= hyper.norm / spectral_norm(values, columns)
    W_u, W_y, bias = np.empty((n, problem.inputs)), np.empty((n, problem.outputs)), np.empty(n)
    symmetric(key, INPUT, hyper.input_scale, W_u.reshape(-1))
    symmetric(key, FEEDBACK, hyper.feedback_scale, W_y.reshape(-1))
    symmetric(key, BIAS, hyper.bias_scale, bias)
    leak = leak_rates(key, hyper)
    return Net(
        values=values,
        columns=columns,
        W_u=np.ascontiguousarray(W_u.T),
        W_y=np.ascontiguousarray(W_y.T),
        bias=bias,
        leak=leak,
        leaky=bool((leak != 1.0).any()),
        x=np.zeros(2 * n),
        work=np.zeros(n),
    )


def _train(
    problem: Problem,
    hyper: Hyperparameters,
    net: Net,
    sees: ReadoutInputs,
    fold: Fold,
    data: FoldData,
    fed: Sequence[Signal],
) -> tuple[list[float], Matrix]:
    """Readouts for each ridge from one Gram matrix of [Phi, Y]; the minimum norm where Cholesky cannot be used."""
    p, outputs = hyper.columns(problem.inputs, problem.outputs), problem.outputs
    ridges = problem.law.ridges
    weights = np.empty((len(ridges), outputs, p))
    total = _workspace.array("total", p + outputs, p + outputs)
    factor = _workspace.array("factor", p + outputs, p + outputs)
    block = _workspace.array("block", BLOCK, p + outputs)
    total[:] = 0.0
    blas = (ADDRESSES, np.zeros(8, np.int32), np.zeros(2), np.zeros(2, np.uint8))
    if any(ridges):
        for segment, (u, y), y_fed in zip(fold.training, data.training, fed, strict=True):
            gram(net, sees, u, y_fed, y, segment.washout, problem.law.padding, block, total, blas)
    used, fallback = list(ridges), None
    for i, ridge in enumerate(ridges):
        if ridge == 0 or not ridge_readout(total, factor, ridge, weights[i], blas):
            if fallback is None:
                fallback = minimum_norm(_triangle(problem, net, sees, fold, data, fed, p), outputs)
            used[i], weights[i] = 0.0, fallback
    return used, weights


def _triangle(
    problem: Problem, net: Net, sees: ReadoutInputs, fold: Fold, data: FoldData, fed: Sequence[Signal], p: int
) -> Matrix:
    """Triangle R of the QR factorisation of [Phi, Y], block after block."""
    width = p + problem.outputs
    triangle = np.zeros((0, width))
    block = np.empty((max(BLOCK, 2 * width), width))
    for segment, (u, y), y_fed in zip(fold.training, data.training, fed, strict=True):
        rest(net, u, y_fed, problem.law.padding)
        k = 0
        while k < len(u):
            k, rows = regression_rows(net, sees, u, y_fed, y, segment.washout, k, block)
            stacked = np.concatenate([triangle, block[:rows]])
            triangle = np.asarray(np.linalg.qr(stacked, mode="r"))
    return triangle


def _simulate(problem: Problem, net: Net, sees: ReadoutInputs, readouts: Matrix, fold: Fold, data: FoldData) -> Matrix:
    """Outputs (ridge, time, output) on the scored segments of a fold, in the data's own units."""
    parts = []
    for segment, (u, y) in zip(fold.scored, data.scored, strict=True):
        out = np.empty((len(readouts), segment.counted, problem.outputs))
        if problem.horizon is None:
            free_run(net, sees, readouts, u, y, segment.washout, problem.law.padding, out)
        else:
            predict(net, sees, readouts, u, y, segment.washout, problem.horizon, problem.law.padding, out)
        parts.append(out)
    return data.scaling.outputs_back(np.concatenate(parts, axis=1))
