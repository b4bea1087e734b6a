"""Free run and prediction in compiled code: of one network as in `network.dynamics`, or of many readouts."""

from __future__ import annotations

import numpy as np

from echobound.arrays import Array, Matrix, Signal
from echobound.kernels.cpu import stages
from echobound.kernels.cpu.net import clip_of, contiguous, net_of, readout_inputs_of
from echobound.kernels.cpu.step import Net
from echobound.network.limits import Limits
from echobound.network.reservoir import Hyperparameters, Reservoir


def run(
    net: Net,
    hyper: Hyperparameters,
    readouts: Array,
    u: Signal,
    y: Signal,
    washout: int,
    padding: int,
    horizon: int | None,
    limits: Limits | None,
) -> Array:
    """Outputs ``(readout, time, output)`` after the washout, which all readouts share; NaN once a run has diverged."""
    readouts, u, y = contiguous(readouts), contiguous(u), contiguous(y)
    out = np.empty((len(readouts), len(u) - washout, readouts.shape[1]))
    clip = clip_of(limits, readouts.shape[1])
    if horizon is None:
        stages.free_run(net, readout_inputs_of(hyper), readouts, u, y, washout, padding, clip, out)
    else:
        stages.predict(net, readout_inputs_of(hyper), readouts, u, y, washout, horizon, padding, clip, out)
    return out


def free_run(
    reservoir: Reservoir,
    readout: Matrix,
    u: Signal,
    y: Signal,
    washout: int,
    padding: int = 0,
    limits: Limits | None = None,
) -> Signal:
    """As `network.dynamics.free_run`; after a diverged run the rest is NaN."""
    fed = np.zeros((len(u), len(readout)))
    fed[: max(washout, 1)] = y[: max(washout, 1)]  # the first row stands for the time before the start
    return np.asarray(run(net_of(reservoir), reservoir.hyper, readout[None], u, fed, washout, padding, None, limits)[0])


def predictions(
    reservoir: Reservoir,
    readout: Matrix,
    u: Signal,
    y: Signal,
    washout: int,
    horizon: int,
    padding: int = 0,
    limits: Limits | None = None,
) -> Signal:
    """As `network.dynamics.predictions`."""
    rest = (washout, padding, horizon, limits)
    return np.asarray(run(net_of(reservoir), reservoir.hyper, readout[None], u, y, *rest)[0])
