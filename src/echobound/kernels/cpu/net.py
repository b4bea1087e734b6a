"""A reservoir in the layout of the compiled code: drawn here, or taken over from NumPy."""

from __future__ import annotations

import numpy as np

from echobound.arrays import Array, Columns, Matrix, Vector
from echobound.kernels.cpu.bidiagonal import spectral_norm
from echobound.kernels.cpu.philox import floyd, symmetric, units
from echobound.kernels.cpu.stages import Clip, ReadoutInputs
from echobound.kernels.cpu.step import Net
from echobound.network import reservoir as regions
from echobound.network.limits import Limits
from echobound.network.reservoir import Hyperparameters, Reservoir, ReservoirDraw, leak_rates


def drawn_net(draw: ReservoirDraw) -> Net:
    """Draw the arrays by compiled code: those of `draw.reservoir`, in a fraction of the time."""
    law, key, hyper, n = draw.law, draw.key, draw.hyper, draw.hyper.order
    slots = min(law.nonzeros, n)
    levels = np.empty((slots, 1 if law.pattern == "diagonals" else n))
    units(key, regions.COLUMNS, levels.reshape(-1))
    columns = np.empty(levels.shape, dtype=np.int64)
    floyd(levels, n, columns)
    values = np.empty((slots, n))
    symmetric(key, regions.VALUES, 1.0, values.reshape(-1))
    values *= hyper.norm / spectral_norm(values, columns)
    W_u, W_y, bias = np.empty((n, draw.inputs)), np.empty((n, draw.outputs)), np.empty(n)
    symmetric(key, regions.INPUT, hyper.input_scale, W_u.reshape(-1))
    symmetric(key, regions.FEEDBACK, hyper.feedback_scale, W_y.reshape(-1))
    symmetric(key, regions.BIAS, hyper.bias_scale, bias)
    return _net(values, columns, W_u, W_y, bias, leak_rates(key, hyper))


def net_of(reservoir: Reservoir) -> Net:
    """The arrays of any reservoir: of a model, or one that training has changed."""
    n = reservoir.order
    # Diagonals are told by the columns themselves: a model does not say by what pattern it was drawn.
    offsets = (reservoir.columns - np.arange(n)) % n
    diagonals = bool((offsets == offsets[:, :1]).all())
    columns = np.ascontiguousarray(offsets[:, :1] if diagonals else reservoir.columns, dtype=np.int64)
    return _net(reservoir.values, columns, reservoir.W_u, reservoir.W_y, reservoir.bias, reservoir.leak)


def _net(values: Matrix, columns: Columns, W_u: Matrix, W_y: Matrix, bias: Vector, leak: Vector) -> Net:
    # Words are numbered unit by unit; the loops want all units of one input side by side.
    values, W_u, W_y, bias, leak = (contiguous(array) for array in (values, W_u.T, W_y.T, bias, leak))
    leaky, n = bool((leak != 1.0).any()), len(bias)
    return Net(values, columns, W_u, W_y, bias, leak, leaky, x=np.zeros(2 * n), work=np.zeros(n))


def readout_inputs_of(hyper: Hyperparameters) -> ReadoutInputs:
    """What the readout of such a network is applied to besides the state."""
    return ReadoutInputs(hyper.input_delays, hyper.present_input, hyper.output_delays, hyper.constant)


def clip_of(limits: Limits | None, outputs: int) -> Clip:
    """The limits of each output, and whether there are any."""
    if limits is None:
        return Clip(False, np.zeros(outputs), np.zeros(outputs))
    return Clip(True, contiguous(limits.low), contiguous(limits.high))


def contiguous(array: Array) -> Array:
    """The array as compiled code needs it: it goes by address, and would misread strides and other types."""
    return np.ascontiguousarray(array, dtype=np.float64)
