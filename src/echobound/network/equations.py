"""Equations: any single model as one step of the same form, from which it is stepped, linearised and exported.

In scaled units, with the state s, the inputs u, the outputs y and the units h side by side in w = [s, u, y, h]:

    h = tanh(A w + b)        the units
    y = clip(C w + c)        the outputs, within the limits of the model if it has any
    s <- N w                 the state of the next sample

An echo state network reads y(k) off the state before u(k) has entered: y comes first, and h uses it (or what was
measured instead). Networks with a late readout and cascades read the units of the same sample: h comes first. The state
holds whatever the past leaves: x(k), and the earlier inputs and outputs that the readout is applied to.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from echobound.arrays import Matrix, Vector
from echobound.data.scaling import Scaling
from echobound.network.limits import Limits

Sparse = Any
"""A `scipy.sparse.csr_array` in double precision, with sorted columns and no stored zeros."""


@dataclass(frozen=True, eq=False)
class Equations:
    """One step of a single model, in its own scaled units.

    Parameters
    ----------
    states, inputs, outputs, units
        How long the parts of w are.
    activation, bias
        A ``(unit, w)`` and b.
    readout, constant
        C ``(output, w)`` and c.
    next_state
        N ``(state, w)``.
    units_first
        Whether the outputs read the units of the same sample.
    limits
        To what range the outputs are clipped; None if they are not.
    scaling
        From the data's units to those of w, and back.
    at_rest, settled
        How a run starts if u and y are held: s = at_rest [u, y], and settled h is added, with the units h at this s.
    padding, padding_without_outputs
        For how many steps they are then held, if y was measured and if it is the training mean.
    mean
        The training mean of the outputs, scaled, from which a run without measured outputs starts.
    starts_from_mean
        Whether it does so even if there are measured outputs.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> from echobound.network.assembly import equations_of
    >>> network = identify(*ph_experiment(samples=(400, 300)), law="paper", order=20, networks=20).network
    >>> equations = equations_of(network)
    >>> equations.states, equations.units, equations.activation.shape, equations.units_first
    (21, 20, (20, 43), False)
    """

    states: int
    inputs: int
    outputs: int
    units: int
    activation: Sparse
    bias: Vector
    readout: Sparse
    constant: Vector
    next_state: Sparse
    units_first: bool
    limits: Limits | None
    scaling: Scaling
    at_rest: Sparse
    settled: Sparse
    padding: int
    padding_without_outputs: int
    mean: Vector
    starts_from_mean: bool = False

    @property
    def width(self) -> int:
        """Length of w."""
        return self.states + self.inputs + self.outputs + self.units

    @property
    def parts(self) -> tuple[slice, slice, slice, slice]:
        """Where s, u, y and h are in w."""
        ends = np.cumsum([0, self.states, self.inputs, self.outputs, self.units]).tolist()
        s, u, y, h = (slice(first, last) for first, last in itertools.pairwise(ends))
        return s, u, y, h

    def start(self, u: Vector, y: Vector | None, padding: int | None = None) -> Vector:
        """The state before the first sample, with the scaled u and y of it; without y, the training mean."""
        steps = self.padding if y is not None else self.padding_without_outputs
        y = self.mean if y is None or self.starts_from_mean else y
        state = np.asarray(self.at_rest @ np.concatenate([u, y]))
        if self.settled.nnz:
            state = state + self.settled @ self._units(self._vector(state, u, y))
        for _ in range(steps if padding is None else padding):
            state = self.advance(state, u, y)
        return state

    def output(self, state: Vector, u: Vector) -> Vector:
        """The scaled output of this sample, clipped."""
        return self._clipped(self._value(self._vector(state, u)))

    def advance(self, state: Vector, u: Vector, y: Vector | None = None) -> Vector:
        """The next state, with y fed back; without it, the model's own output."""
        return self.step(state, u, y)[0]

    def step(self, state: Vector, u: Vector, y: Vector | None = None) -> tuple[Vector, Vector]:
        """The next state, and the scaled output of this sample; fed back is y, if it is given."""
        w = self._vector(state, u)
        own = self._clipped(self._value(w))
        *_, outputs, units = self.parts
        w[outputs] = own if y is None else y
        if not self.units_first:
            w[units] = self._units(w)
        return np.asarray(self.next_state @ w), own

    def tangents(
        self, state: Vector, u: Vector, y: Vector | None, ds: Matrix, du: Matrix, dy: Matrix | None
    ) -> tuple[Matrix, Matrix]:
        """How the next state and the output change with the state, u and y, in given directions ``(..., direction)``.

        Without y and dy, the model's own output is fed back. An output at its limit does not change.
        """
        w = self._vector(state, u)
        value = self._value(w)
        own = self._clipped(value)
        *_, outputs, units = self.parts
        dw = np.zeros((self.width, ds.shape[1]))
        dw[: self.states + self.inputs] = np.concatenate([ds, du])
        if self.units_first:
            dw[units] = (1.0 - w[units] ** 2)[:, None] * (self.activation @ dw)
        d_own = (own == value)[:, None] * (self.readout @ dw)
        w[outputs], dw[outputs] = (own, d_own) if y is None or dy is None else (y, dy)
        if not self.units_first:
            dw[units] = (1.0 - self._units(w) ** 2)[:, None] * (self.activation @ dw)
        return np.asarray(self.next_state @ dw), d_own

    def _vector(self, state: Vector, u: Vector, y: Vector | None = None) -> Vector:
        """W with the outputs and units that are not known yet left at zero."""
        w = np.zeros(self.width)
        w[: self.states], w[self.states : self.states + self.inputs] = state, u
        if y is not None:
            w[self.parts[2]] = y
        return w

    def _value(self, w: Vector) -> Vector:
        """The outputs before they are clipped; the units are set in w if they come first."""
        if self.units_first:
            w[self.parts[3]] = self._units(w)
        return np.asarray(self.readout @ w + self.constant)

    def _units(self, w: Vector) -> Vector:
        return np.asarray(np.tanh(self.activation @ w + self.bias))

    def _clipped(self, y: Vector) -> Vector:
        return y if self.limits is None else self.limits.clip(y)
