"""Assembly: the equations of networks and cascades from their weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Matrix, Vector
from echobound.errors import InputError
from echobound.network.cascade import taps
from echobound.network.cascade_model import CascadeModel
from echobound.network.equations import Equations, Sparse
from echobound.network.model import EchoStateNetwork


class _Entries:
    """Entries of a sparse matrix, block by block; those at one place are added up."""

    def __init__(self, rows: int, columns: int) -> None:
        self.shape = (rows, columns)
        self.parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []

    def block(self, row: int, column: int, values: Matrix) -> None:
        """Add a dense block whose upper left corner is at (row, column)."""
        rows, columns = np.indices(values.shape)
        self.parts.append(((rows + row).ravel(), (columns + column).ravel(), values.ravel()))

    def diagonal(self, row: int, column: int, values: Vector) -> None:
        """Add a diagonal that starts at (row, column)."""
        steps = np.arange(len(values))
        self.parts.append((row + steps, column + steps, values))

    def at(self, rows: NDArray[Any], columns: NDArray[Any], values: NDArray[Any]) -> None:
        """Add single entries."""
        self.parts.append((rows.ravel(), columns.ravel(), values.ravel()))

    def matrix(self) -> Sparse:
        """The matrix, rows compressed."""
        from scipy.sparse import coo_array, csr_array  # on first use: only those who step a model need it

        if not self.parts:
            return csr_array(self.shape, dtype=np.float64)
        rows, columns, values = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        result = coo_array((values.astype(np.float64), (rows, columns)), shape=self.shape).tocsr()
        result.sum_duplicates()
        result.eliminate_zeros()
        result.sort_indices()
        return result


@singledispatch
def equations_of(model: Any) -> Equations:
    """One step of a single model; a class of another structure registers its own.

    Examples
    --------
    >>> equations_of("no model")
    Traceback (most recent call last):
        ...
    echobound.errors.InputError: a network or a cascade was expected, got a str: its step is not known
    """
    raise InputError(f"a network or a cascade was expected, got a {type(model).__name__}: its step is not known")


@equations_of.register
def _of_network(model: EchoStateNetwork) -> Equations:
    reservoir, hyper, late = model.reservoir, model.reservoir.hyper, model.late_readout
    n, inputs, outputs = reservoir.order, reservoir.W_u.shape[1], len(model.readout)
    if late and hyper.present_input:
        raise InputError(
            "a late readout that is applied to the present input needs the input of the next sample: such a model"
            " cannot be run sample by sample"
        )
    # With a late readout the present input is the first delayed one, and the last output is fed back a sample later.
    past_u = max(hyper.input_delays - 1, 0) if late else hyper.input_delays
    past_y = max(hyper.output_delays, 1) if late else hyper.output_delays
    first_u, first_y, states = n, n + past_u * inputs, n + past_u * inputs + past_y * outputs
    u, y, h = states, states + inputs, states + inputs + outputs
    width, fed = h + n, first_y if late else y

    activation = _Entries(n, width)
    activation.at(np.broadcast_to(np.arange(n), reservoir.columns.shape), reservoir.columns, reservoir.values)
    activation.block(0, u, reservoir.W_u)
    activation.block(0, fed, reservoir.W_y)

    next_state = _Entries(states, width)
    next_state.diagonal(0, 0, 1.0 - reservoir.leak)
    next_state.diagonal(0, h, reservoir.leak)
    for first, count, source, size in ((first_u, past_u, u, inputs), (first_y, past_y, y, outputs)):
        if count:
            next_state.diagonal(first, source, np.ones(size))
            next_state.diagonal(first + size, first, np.ones((count - 1) * size))

    weights = _columns(model.readout, n, hyper.input_delays, hyper.present_input, hyper.output_delays, inputs, outputs)
    readout = _Entries(outputs, width)
    if late:
        readout.block(0, 0, weights.state * (1.0 - reservoir.leak))
        readout.block(0, h, weights.state * reservoir.leak)
        readout.block(0, u, weights.inputs[:, :inputs])
        readout.block(0, first_u, weights.inputs[:, inputs:])
    else:
        readout.block(0, 0, weights.state)
        readout.block(0, first_u, weights.inputs)
        readout.block(0, u, weights.present)
    readout.block(0, first_y, weights.outputs)

    at_rest = _Entries(states, inputs + outputs)
    for first, count, source, size in ((first_u, past_u, 0, inputs), (first_y, past_y, inputs, outputs)):
        for delay in range(count):
            at_rest.diagonal(first + delay * size, source, np.ones(size))
    return Equations(
        states=states,
        inputs=inputs,
        outputs=outputs,
        units=n,
        activation=activation.matrix(),
        bias=np.array(reservoir.bias, dtype=np.float64),
        readout=readout.matrix(),
        constant=weights.constant,
        next_state=next_state.matrix(),
        units_first=late,
        limits=model.limits,
        scaling=model.scaling,
        at_rest=at_rest.matrix(),
        settled=_Entries(states, n).matrix(),
        padding=model.padding,
        padding_without_outputs=max(model.padding, model.washout),
        mean=model.scaling.outputs(model.training_mean),
        starts_from_mean=late,
    )


@dataclass(frozen=True)
class _Weights:
    """The readout of a network, by what it is applied to."""

    state: Matrix
    inputs: Matrix  # u(k-1) .. u(k-d)
    present: Matrix
    outputs: Matrix  # y(k-1) .. y(k-m)
    constant: Vector


def _columns(
    readout: Matrix, n: int, input_delays: int, present: bool, output_delays: int, inputs: int, outputs: int
) -> _Weights:
    sizes: Sequence[int] = (n, input_delays * inputs, present * inputs, output_delays * outputs)
    state, past, now, fed, constant = np.split(readout, np.cumsum(sizes), axis=1)
    return _Weights(state, past, now, fed, np.array(constant.sum(axis=1)))  # there may be no constant


@equations_of.register
def _of_cascade(model: CascadeModel) -> Equations:
    """The front bank holds v(k-1) and v(k-2); the back bank is applied to what the readout makes of the units.

    With q = now h(k) + then h(k-1), a section of it is v(k) = now h(k) + p(k), p(k+1) = then h(k) - c1 v(k) + r(k),
    r(k+1) = -c2 v(k): two states for each output and section, however many units there are.
    """
    cascade, outputs = model.cascade, len(model.readout)
    inputs, units, fronts, backs = cascade.inputs, cascade.units, len(cascade.front), len(cascade.back)
    first_back = 2 * inputs * fronts
    states = first_back + 2 * outputs * backs
    u, h = states, states + inputs + outputs
    width = h + units
    own, linear, constant = cascade.split(model.readout)

    # z = Z w: the signals of the front bank and the inputs.
    z, next_state = np.zeros((inputs * cascade.signals, width)), _Entries(states, width)
    rest = _Entries(states, inputs + outputs)
    for channel in range(inputs):
        for s, ((c1, c2), (a, b)) in enumerate(zip(cascade.front, cascade.front_factors, strict=True)):
            at = 2 * (channel * fronts + s)  # v(k-1) and v(k-2)
            row = channel * cascade.signals + 2 * s
            z[row, [at, at + 1, u + channel]] = a * (1.0 - c1), -a * c2, a
            z[row + 1, [at, at + 1, u + channel]] = -b * (1.0 + c1), -b * c2, b
            next_state.block(at, at, np.array([[-c1, -c2], [1.0, 0.0]]))
            next_state.block(at, u + channel, np.ones((1, 1)))
            rest.block(at, channel, np.full((2, 1), 1.0 / (1.0 + c1 + c2)))
        z[channel * cascade.signals + cascade.signals - 1, u + channel] = 1.0
    activation, readout, settled = _Entries(units, width), _Entries(outputs, width), _Entries(states, units)
    activation.block(0, 0, cascade.weights @ z)
    readout.block(0, 0, linear @ z)
    readout.block(0, h, own[:, :, -1])
    for s, ((c1, c2), factors) in enumerate(zip(cascade.back, cascade.back_factors, strict=True)):
        now, then = taps(factors, own[:, :, 2 * s : 2 * s + 2])
        readout.block(0, h, now)
        for output in range(outputs):
            at = first_back + 2 * (output * backs + s)  # p and r
            readout.block(output, at, np.ones((1, 1)))
            next_state.block(at, at, np.array([[-c1, 1.0], [-c2, 0.0]]))
            next_state.block(at, h, np.stack([then[output] - c1 * now[output], -c2 * now[output]]))
            steady = (now[output] + then[output]) / (1.0 + c1 + c2)
            settled.block(at, 0, np.stack([then[output] - (c1 + c2) * steady, -c2 * steady]))
    return Equations(
        states=states,
        inputs=inputs,
        outputs=outputs,
        units=units,
        activation=activation.matrix(),
        bias=np.array(cascade.bias, dtype=np.float64),
        readout=readout.matrix(),
        constant=np.array(constant, dtype=np.float64),
        next_state=next_state.matrix(),
        units_first=True,
        limits=model.limits,
        scaling=model.scaling,
        at_rest=rest.matrix(),
        settled=settled.matrix(),
        padding=0,
        padding_without_outputs=0,
        mean=model.scaling.outputs(model.training_mean),
    )
