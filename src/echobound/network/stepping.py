"""Stepping: any model one sample at a time, with its state in the open, and how the step changes with it.

`simulate` runs over a whole record. What controls, observes or exports a model needs a single step of it: the output of
this sample from the state and the input, and the next state with the measured output fed back (to follow the plant) or
the model's own (to run freely).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Matrix, Signal, Vector
from echobound.errors import DataError
from echobound.network.assembly import equations_of
from echobound.network.committee import Committee, median_of
from echobound.network.equations import Equations


@dataclass(frozen=True, eq=False)
class Jacobians:
    """How a step changes: the next state and the output, with the state, the input and the output that is fed back.

    The state is in the model's own scaled units, u and y are in those of the data. In a free run the own output is fed
    back, so that `A` and `B` contain it and `E` is zero.
    """

    A: Matrix  # (state, state)
    B: Matrix  # (state, input)
    E: Matrix  # (state, output): by the measured output that is fed back
    C: Matrix  # (output, state)
    D: Matrix  # (output, input)


class Stepper:
    """A model one sample at a time: a network, a cascade, or a committee of them.

    The state of a committee is that of its members, one after the other; in a free run each feeds back its own output,
    and the output is the median of theirs, as in `Committee.simulate`. Inputs and outputs are vectors in the data's own
    units.

    Parameters
    ----------
    model
        Any delivered model.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(600, 400))
    >>> model = identify(training, validation, law="paper", order=20, networks=20, washout=100).model
    >>> stepper = Stepper(model)
    >>> state = stepper.start(validation.u[0], validation.y[0])
    >>> for u, y in zip(validation.u[:100], validation.y[:100]):  # follow the plant
    ...     state = stepper.advance(state, u, y)
    >>> state, y = stepper.step(state, validation.u[100])  # and run freely
    >>> bool(abs(y - model.simulate(validation).y[0]).max() < 1e-12)
    True
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        members = model.members if isinstance(model, Committee) else (model,)
        self.equations: tuple[Equations, ...] = tuple(equations_of(member) for member in members)

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return self.equations[0].inputs

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.equations[0].outputs

    @property
    def states(self) -> int:
        """Length of the state."""
        return sum(one.states for one in self.equations)

    @cached_property
    def parts(self) -> tuple[slice, ...]:
        """Where the state of each member is."""
        ends = np.cumsum([0, *(one.states for one in self.equations)]).tolist()
        return tuple(slice(first, last) for first, last in itertools.pairwise(ends))

    def start(self, u: ArrayLike, y: ArrayLike | None = None, *, padding: int | None = None) -> Vector:
        """The state before the first sample, as if its input and output had been held before.

        Parameters
        ----------
        u
            The first input.
        y
            The first measured output; without it the run starts from the training mean, and is held for longer.
        padding
            For how many steps they are held; as `simulate` does it if not given.
        """
        now, measured = self._input(u), None if y is None else self._output(y)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.concatenate(
                [one.start(one.scaling.inputs(now), _scaled(one, measured), padding) for one in self.equations]
            )

    def output(self, state: Vector, u: ArrayLike) -> Vector:
        """The output of this sample."""
        now = self._input(u)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._median([one.output(part, one.scaling.inputs(now)) for one, part in self._members(state)])

    def advance(self, state: Vector, u: ArrayLike, y: ArrayLike | None = None) -> Vector:
        """The next state, with the measured output y fed back; without it, each member's own."""
        return self.step(state, u, y)[0]

    def step(self, state: Vector, u: ArrayLike, y: ArrayLike | None = None) -> tuple[Vector, Vector]:
        """The next state, and the model's output of this sample; fed back is the measured y, if it is given."""
        now, measured = self._input(u), None if y is None else self._output(y)
        # A diverging run overflows to inf and then to NaN; that is its result, not an error.
        with np.errstate(over="ignore", invalid="ignore"):
            steps = [
                one.step(part, one.scaling.inputs(now), _scaled(one, measured)) for one, part in self._members(state)
            ]
            return np.concatenate([after for after, _ in steps]), self._median([own for _, own in steps])

    def tangents(
        self,
        state: Vector,
        u: ArrayLike,
        y: ArrayLike | None = None,
        *,
        ds: Matrix,
        du: Matrix,
        dy: Matrix | None = None,
    ) -> tuple[Matrix, Matrix]:
        """How the next state and the output change in given directions, which are columns: ``(..., direction)``.

        With the measured y, `dy` is how it changes (not at all if it is not given); without, the own output is fed
        back. An output at its limit does not change; a committee's changes as the member in the middle does.
        """
        weights, members = self._tangents(state, u, y, ds, du, dy)
        slopes = np.stack([slope for _, slope in members])
        return np.concatenate([after for after, _ in members]), np.asarray(np.einsum("mo,mop->op", weights, slopes))

    def jacobians(self, state: Vector, u: ArrayLike, y: ArrayLike | None = None) -> Jacobians:
        """All derivatives of the step, with the measured y fed back, or without it the own output."""
        total, inputs, outputs = self.states, self.inputs, self.outputs
        # The members do not see each other, so that they can share directions: far fewer columns than states.
        most = max(one.states for one in self.equations)
        count = most + inputs + outputs
        ds = np.concatenate([np.eye(one.states, count) for one in self.equations])
        du, dy = np.eye(inputs, count, most), np.eye(outputs, count, most + inputs)
        A, B, E = np.zeros((total, total)), np.zeros((total, inputs)), np.zeros((total, outputs))
        C, D = np.zeros((outputs, total)), np.zeros((outputs, inputs))
        weights, members = self._tangents(state, u, y, ds, du, dy)
        for place, weight, (after, slope) in zip(self.parts, weights, members, strict=True):
            size = place.stop - place.start
            A[place, place], B[place], E[place] = after[:, :size], after[:, most : most + inputs], after[:, -outputs:]
            C[:, place] = weight[:, None] * slope[:, :size]
            D += weight[:, None] * slope[:, most : most + inputs]
        return Jacobians(A, B, E, C, D)

    def run(self, u: ArrayLike, initial: ArrayLike | None = None) -> Signal:
        """A free run over inputs ``(time, input)``, as `simulate` does it: from sample ``len(initial)`` on.

        `initial` are measured outputs of the first samples; without them the run starts from the training mean.
        """
        inputs = np.asarray(u, dtype=np.float64).reshape(-1, self.inputs)
        given = np.zeros((0, self.outputs)) if initial is None else np.asarray(initial, dtype=np.float64)
        given = given.reshape(-1, self.outputs)
        state = self.start(inputs[0], given[0] if len(given) else None)
        outputs = np.empty((len(inputs), self.outputs))
        for k, now in enumerate(inputs):
            state, outputs[k] = self.step(state, now, given[k] if k < len(given) else None)
        return outputs[len(given) :]

    def _tangents(
        self, state: Vector, u: ArrayLike, y: ArrayLike | None, ds: Matrix, du: Matrix, dy: Matrix | None
    ) -> tuple[Matrix, list[tuple[Matrix, Matrix]]]:
        """How much each member counts for each output, and how its state and its output change."""
        now, measured = self._input(u), None if y is None else self._output(y)
        if measured is not None and dy is None:
            dy = np.zeros((self.outputs, ds.shape[1]))
        values, members = [], []
        with np.errstate(over="ignore", invalid="ignore"):
            for (one, part), place in zip(self._members(state), self.parts, strict=True):
                scaling, scaled = one.scaling, one.scaling.inputs(now)
                span = scaling.output_span[:, None]
                changes = ds[place], du / scaling.input_span[:, None], None if dy is None else dy / span
                after, own = one.tangents(part, scaled, _scaled(one, measured), *changes)
                values.append(scaling.outputs_back(one.output(part, scaled)))
                members.append((after, own * span))
        return middle_of(np.stack(values)), members

    def _members(self, state: Vector) -> Iterator[tuple[Equations, Vector]]:
        return ((one, state[part]) for one, part in zip(self.equations, self.parts, strict=True))

    def _median(self, outputs: list[Vector]) -> Vector:
        own = [one.scaling.outputs_back(y) for one, y in zip(self.equations, outputs, strict=True)]
        return median_of(own) if isinstance(self.model, Committee) else own[0]

    def _input(self, u: ArrayLike) -> Vector:
        return _vector(u, self.inputs, "input")

    def _output(self, y: ArrayLike) -> Vector:
        return _vector(y, self.outputs, "output")


def middle_of(values: Matrix) -> Matrix:
    """How much each member ``(member, output)`` counts in the median: 1 in the middle, or twice a half.

    Examples
    --------
    >>> middle_of(np.array([[3.0], [1.0], [2.0], [np.nan]])).ravel().tolist()
    [0.0, 0.0, 1.0, 0.0]
    >>> middle_of(np.array([[3.0], [1.0]])).ravel().tolist()
    [0.5, 0.5]
    """
    order = np.argsort(np.where(np.isfinite(values), values, np.inf), axis=0, kind="stable")
    finite = np.isfinite(values).sum(axis=0)
    weights, every = np.zeros(values.shape), np.arange(values.shape[1])
    for middle in ((finite - 1) // 2, finite // 2):
        weights[order[np.clip(middle, 0, len(values) - 1), every], every] += 0.5
    return weights


def _scaled(one: Equations, y: Vector | None) -> Vector | None:
    return None if y is None else one.scaling.outputs(y)


def _vector(values: ArrayLike, size: int, side: str) -> Vector:
    vector = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if vector.shape != (size,):
        raise DataError(
            f"the model has {size} {side}{'s' * (size > 1)}: a vector of {size} was expected for one sample, got shape"
            f" {vector.shape}"
        )
    return vector
