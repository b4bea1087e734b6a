"""A reservoir in the layout of the compiled code: drawn here, or taken over from NumPy."""

from __future__ import annotations

import numpy as np

from echobound.arrays import Array
from echobound.kernels.cpu.bidiagonal import spectral_norm
from echobound.kernels.cpu.philox import floyd, symmetric, units
from echobound.kernels.cpu.stages import ReadoutInputs
from echobound.kernels.cpu.step import Net
from echobound.network.hyperparameters import BIAS, COLUMNS, FEEDBACK, INPUT, VALUES, Hyperparameters
from echobound.network.reservoir import Reservoir, ReservoirDraw, leak_rates


def drawn_net(draw: ReservoirDraw) -> Net:
    """Draw the arrays by compiled code: those of `draw.reservoir`, in a fraction of the time."""
    law, key, hyper, n = draw.law, draw.key, draw.hyper, draw.hyper.order
    slots = min(law.nonzeros, n)
    levels = np.empty((slots, 1 if law.pattern == "diagonals" else n))
    units(key, COLUMNS, levels.reshape(-1))
    columns = np.empty(levels.shape, dtype=np.int64)
    floyd(levels, n, columns)
    values = np.empty((slots, n))
    symmetric(key, VALUES, 1.0, values.reshape(-1))
    values *= hyper.norm / spectral_norm(values, columns)
    # Words are numbered unit by unit; the loops want all units of one input side by side.
    W_u, W_y, bias = np.empty((n, draw.inputs)), np.empty((n, draw.outputs)), np.empty(n)
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


def net_of(reservoir: Reservoir) -> Net:
    """The arrays of any reservoir: of a model, or one that training has changed."""
    n = reservoir.order
    # Diagonals are told by the columns themselves: a model does not say by what pattern it was drawn.
    offsets = (reservoir.columns - np.arange(n)) % n
    diagonals = bool((offsets == offsets[:, :1]).all())
    return Net(
        values=contiguous(reservoir.values),
        columns=np.ascontiguousarray(offsets[:, :1] if diagonals else reservoir.columns, dtype=np.int64),
        W_u=contiguous(reservoir.W_u.T),
        W_y=contiguous(reservoir.W_y.T),
        bias=contiguous(reservoir.bias),
        leak=contiguous(reservoir.leak),
        leaky=bool((reservoir.leak != 1.0).any()),
        x=np.zeros(2 * n),
        work=np.zeros(n),
    )


def readout_inputs_of(hyper: Hyperparameters) -> ReadoutInputs:
    """What the readout of such a network is applied to besides the state."""
    return ReadoutInputs(hyper.input_delays, hyper.present_input, hyper.output_delays, hyper.constant)


def contiguous(array: Array) -> Array:
    """The array as compiled code needs it: it goes by address, and would misread strides and other types."""
    return np.ascontiguousarray(array, dtype=np.float64)
