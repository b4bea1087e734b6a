"""Free run and prediction of one network in compiled code: the signatures are those of `network.dynamics`."""

from __future__ import annotations

import numpy as np

from echobound.arrays import Matrix, Signal
from echobound.kernels.cpu import stages
from echobound.kernels.cpu.net import contiguous, net_of, readout_inputs_of
from echobound.network.reservoir import Reservoir

__all__ = ["free_run", "predictions"]


def free_run(reservoir: Reservoir, readout: Matrix, u: Signal, y: Signal, washout: int, padding: int = 0) -> Signal:
    """As `network.dynamics.free_run`; after a diverged run the rest is NaN."""
    net, readout_inputs = net_of(reservoir), readout_inputs_of(reservoir.hyper)
    fed = np.zeros((len(u), readout.shape[0]))
    fed[: max(washout, 1)] = y[: max(washout, 1)]  # the first row stands for the time before the start
    out = np.empty((1, len(u) - washout, readout.shape[0]))
    stages.free_run(net, readout_inputs, contiguous(readout)[None], contiguous(u), fed, washout, padding, out)
    return np.asarray(out[0])


def predictions(
    reservoir: Reservoir, readout: Matrix, u: Signal, y: Signal, washout: int, horizon: int, padding: int = 0
) -> Signal:
    """As `network.dynamics.predictions`."""
    net, readout_inputs = net_of(reservoir), readout_inputs_of(reservoir.hyper)
    out = np.empty((1, len(u) - washout, readout.shape[0]))
    readouts, u, y = contiguous(readout)[None], contiguous(u), contiguous(y)
    stages.predict(net, readout_inputs, readouts, u, y, washout, horizon, padding, out)
    return np.asarray(out[0])
