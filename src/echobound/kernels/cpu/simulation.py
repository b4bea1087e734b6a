"""Free run and prediction of one network in compiled code: the signatures are those of `network.dynamics`."""

from __future__ import annotations

import numpy as np

from echobound.arrays import Matrix, Signal
from echobound.kernels.cpu.cache import cached_beside_sources
from echobound.network.reservoir import Reservoir

with cached_beside_sources():
    from echobound.kernels.cpu import stages
    from echobound.kernels.cpu.step import Net

__all__ = ["free_run", "predictions"]


def free_run(reservoir: Reservoir, readout: Matrix, u: Signal, y: Signal, washout: int, padding: int = 0) -> Signal:
    """As `network.dynamics.free_run`; after a diverged run the rest is NaN."""
    net, sees = _net(reservoir), _sees(reservoir)
    fed = np.zeros((len(u), readout.shape[0]))
    fed[: max(washout, 1)] = y[: max(washout, 1)]  # the first row stands for the time before the start
    out = np.empty((1, len(u) - washout, readout.shape[0]))
    stages.free_run(net, sees, _contiguous(readout)[None], _contiguous(u), fed, washout, padding, out)
    return np.asarray(out[0])


def predictions(
    reservoir: Reservoir, readout: Matrix, u: Signal, y: Signal, washout: int, horizon: int, padding: int = 0
) -> Signal:
    """As `network.dynamics.predictions`."""
    out = np.empty((1, len(u) - washout, readout.shape[0]))
    stages.predict(
        _net(reservoir),
        _sees(reservoir),
        _contiguous(readout)[None],
        _contiguous(u),
        _contiguous(y),
        washout,
        horizon,
        padding,
        out,
    )
    return np.asarray(out[0])


def _sees(reservoir: Reservoir) -> stages.ReadoutInputs:
    hyper = reservoir.hyper
    return stages.ReadoutInputs(hyper.input_delays, hyper.present_input, hyper.output_delays, hyper.constant)


def _net(reservoir: Reservoir) -> Net:
    n = reservoir.order
    offsets = (reservoir.columns - np.arange(n)) % n
    diagonals = bool((offsets == offsets[:, :1]).all())
    return Net(
        values=_contiguous(reservoir.values),
        columns=np.ascontiguousarray(offsets[:, :1] if diagonals else reservoir.columns, dtype=np.int64),
        W_u=_contiguous(reservoir.W_u.T),
        W_y=_contiguous(reservoir.W_y.T),
        bias=_contiguous(reservoir.bias),
        leak=_contiguous(reservoir.leak),
        leaky=bool((reservoir.leak != 1.0).any()),
        x=np.zeros(2 * n),
        work=np.zeros(n),
    )


def _contiguous(array: Matrix) -> Matrix:
    return np.ascontiguousarray(array, dtype=np.float64)
