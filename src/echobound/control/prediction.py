"""What a model says will happen: one model of a controller, its state in the open, rolled out over planned inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Array, Matrix, Signal, Vector
from echobound.kernels import compiled_rollout
from echobound.network import Committee, EchoStateNetwork
from echobound.network.assembly import equations_of


def members_of(model: Any) -> tuple[Any, ...]:
    """The single models of a model: the members of a committee, or itself."""
    return model.members if isinstance(model, Committee) else (model,)


class Predictor:
    """A single model as a controller uses it. Inputs and outputs are in the data's own units.

    To each output of the model an offset is added, the output disturbance, before it is used or fed back.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(600, 400))
    >>> predictor = Predictor(identify(training, validation, law="paper", order=20, networks=20).network)
    >>> state, now = predictor.start(validation.u[0], validation.y[0]), validation.y[0]
    >>> held, steps = np.full((11, 1), 15.0), np.zeros((11, 1), dtype=int)  # one planned input, held for ten samples
    >>> outputs, slopes = predictor.outlook(state, now, np.zeros(1), held, steps)
    >>> outputs.shape, slopes.shape
    ((10, 1), (10, 1, 1))
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.equations = equations_of(model)
        self.scaling = self.equations.scaling
        compiled = isinstance(model, EchoStateNetwork) and not model.late_readout
        self._rollout: Any = compiled_rollout(model.reservoir, model.readout, model.limits) if compiled else None

    def start(self, u: Vector, y: Vector) -> Vector:
        """The state at rest, after this input and this output were held for as long as the washout at least."""
        scaled = self.scaling.inputs(u), self.scaling.outputs(y)
        return self.equations.start(*scaled, max(self.equations.padding, self.equations.padding_without_outputs))

    def output(self, state: Vector, u: Vector) -> Vector:
        """The model's own output of this sample, without the offset."""
        return self.scaling.outputs_back(self.equations.output(state, self.scaling.inputs(u)))

    def advance(self, state: Vector, u: Vector, y: Vector) -> Vector:
        """The state of the next sample, with y fed back."""
        return self.equations.advance(state, self.scaling.inputs(u), self.scaling.outputs(y))

    def outlook(
        self, state: Vector, now: Vector, offset: Vector, u: Signal, column: NDArray[Any] | None
    ) -> tuple[Signal, Array]:
        """Outputs ``(step, output)`` at the next samples and, if asked for, their derivatives ``(step, output, v)``.

        Parameters
        ----------
        state, now, offset
            The state at this sample, the output that is fed back now, and what is added to each later one.
        u
            Inputs ``(step + 1, input)`` from this sample on, the last one included.
        column
            Which of the planned inputs each of them is, -1 if none; without it there are no derivatives.
        """
        span = self.scaling.output_span
        scaled = self.scaling.inputs(u)
        fed, shift = self.scaling.outputs(now), offset / span
        outputs, slopes = (self._compiled if self._rollout else self._stepped)(state, fed, shift, scaled, column)
        if column is not None and slopes.size:
            channel = np.zeros(slopes.shape[2], dtype=np.int64)
            for c in range(u.shape[1]):
                channel[column[column[:, c] >= 0, c]] = c
            self._spans = self.scaling.input_span[channel]
            slopes = slopes * (span[:, None] / self._spans)
        return self.scaling.outputs_back(outputs), slopes

    def curvature(self, errors: Signal) -> Matrix | None:
        """Second derivatives ``(v, v)`` of the sum of errors times outputs, at the last outlook with derivatives.

        None of a model whose outlook is not compiled.
        """
        if self._rollout is None:
            return None
        second: Matrix = self._rollout.curvature(errors * self.scaling.output_span)
        return second / np.outer(self._spans, self._spans)

    def _compiled(
        self, state: Vector, now: Vector, offset: Vector, u: Signal, column: NDArray[Any] | None
    ) -> tuple[Signal, Array]:
        hyper, inputs, outputs = self.model.reservoir.hyper, self.equations.inputs, self.equations.outputs
        x, past_u, past_y = np.split(state, [hyper.order, hyper.order + hyper.input_delays * inputs])
        start = (x, past_u.reshape(-1, inputs), past_y.reshape(-1, outputs), now, offset)
        found: tuple[Signal, Array] = self._rollout(start, u, column, column is not None)
        return found

    def _stepped(
        self, state: Vector, now: Vector, offset: Vector, u: Signal, column: NDArray[Any] | None
    ) -> tuple[Signal, Array]:
        """The same in plain NumPy, for models of any structure."""
        own, steps = self.equations, len(u) - 1
        count = 0 if column is None else int(column.max()) + 1
        outputs, slopes = np.empty((steps, own.outputs)), np.zeros((steps, own.outputs, count))
        ds, fed, dy = np.zeros((own.states, count)), now, np.zeros((own.outputs, count))
        with np.errstate(over="ignore", invalid="ignore"):
            for j in range(steps + 1):
                if j:
                    outputs[j - 1] = fed = own.output(state, u[j]) + offset
                if column is not None:
                    du = np.zeros((own.inputs, count))
                    for c, at in enumerate(column[j]):
                        if at >= 0:
                            du[c, at] = 1.0
                    if j:
                        slopes[j - 1] = dy = own.tangents(state, u[j], None, ds, du, None)[1]
                    ds = own.tangents(state, u[j], fed, ds, du, dy)[0]
                state = own.advance(state, u[j], fed)
        return outputs, slopes
