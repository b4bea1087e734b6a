"""One draw: its hyper-parameters, its state equation (Reservoir), and all its random words decide (ReservoirDraw)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from echobound.arrays import Columns, Matrix, Signal, Vector, Words
from echobound.draws import draw_key, unit, words
from echobound.network.limits import Limits
from echobound.network.spectral_norm import spectral_norm

if TYPE_CHECKING:  # a law holds a trainer, and a trainer is handed draws
    from echobound.network.law import ReservoirLaw

# Regions of a draw's words (see echobound.draws), one for each thing that is drawn. They are part of contract 1:
# another numbering would give other networks.
HYPER, COLUMNS, VALUES, INPUT, FEEDBACK, BIAS, LEAK, NOISE, KIND, TRAINING = range(10)


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """The numbers of one draw: those that `ReservoirLaw` leaves to chance, and those that it fixes."""

    order: int
    norm: float
    input_scale: float
    feedback_scale: float
    bias_scale: float
    leak: float
    leak_spread: float
    input_delays: int
    present_input: bool
    output_delays: int
    constant: bool
    training_noise: float
    scaling: str

    def columns(self, inputs: int, outputs: int) -> int:
        """Number of columns of the least-squares problem."""
        return readout_columns(
            self.order, self.input_delays, self.present_input, self.output_delays, self.constant, inputs, outputs
        )


def readout_columns(
    order: int, input_delays: int, present_input: int, output_delays: int, constant: int, inputs: int, outputs: int
) -> int:
    """Columns that the readout is applied to: x(k), u(k-1) .. u(k-d), u(k), y(k-1) .. y(k-m), 1, in this order."""
    return order + (input_delays + present_input) * inputs + output_delays * outputs + constant


@dataclass(frozen=True, eq=False)
class Reservoir:
    """One drawn state equation: x(k+1) = (1 - a) x(k) + a tanh(W_x x(k) + W_u u(k) + W_y y(k) + b).

    W_x is stored by its non-zeros: slot j of row i holds ``values[j, i]`` in column ``columns[j, i]``.

    Examples
    --------
    >>> from echobound.network.laws import paper
    >>> reservoir = draw_reservoir(paper(order=50), inputs=1, outputs=1, seed=0)
    >>> round(float(np.linalg.norm(reservoir.W_x, 2)), 9)
    0.99
    """

    hyper: Hyperparameters
    columns: Columns  # (slot, unit)
    values: Matrix  # (slot, unit)
    W_u: Matrix  # (unit, input)
    W_y: Matrix  # (unit, output)
    bias: Vector  # (unit,)
    leak: Vector  # (unit,)

    @property
    def order(self) -> int:
        """Number of states."""
        return self.hyper.order

    def readout_columns(self, outputs: int) -> int:
        """Columns that a readout of this reservoir has."""
        return self.hyper.columns(self.W_u.shape[1], outputs)

    @cached_property
    def W_x(self) -> Matrix:  # noqa: N802 (the paper's name)
        """The state matrix, dense."""
        # Added, not assigned: rows of an imported matrix are padded with zeros that share a column.
        dense = np.zeros((self.order, self.order))
        np.add.at(dense, (np.arange(self.order)[None, :].repeat(len(self.columns), 0), self.columns), self.values)
        return dense

    def step(self, x: Matrix, drive: Matrix, y: Matrix) -> Matrix:
        """Next state; `drive` is W_u u + b. Leading axes are separate trajectories."""
        inside = (self.values * x[..., self.columns]).sum(axis=-2) + drive + y @ self.W_y.T
        return np.asarray((1.0 - self.leak) * x + self.leak * np.tanh(inside))

    def drive(self, u: Matrix) -> Matrix:
        """Contribution of the inputs and the bias to each state: ``(time, unit)``."""
        return np.asarray(u @ self.W_u.T + self.bias)


@dataclass(frozen=True, eq=False)
class ReservoirDraw:
    """Draw (seed, stream, family, index) of a law, the same on every machine; its parts are made when they are needed.

    Examples
    --------
    >>> from echobound.network.laws import paper
    >>> draw = ReservoirDraw(paper(order=20), inputs=1, outputs=1, seed=0, index=3)
    >>> draw.hyper.order, draw.reservoir.W_u.shape
    (20, (20, 1))
    """

    law: ReservoirLaw
    inputs: int
    outputs: int
    seed: int
    stream: int = 0
    family: int = 0
    index: int = 0
    limits: Limits | None = None  # of the fold that it is trained on, in scaled units; None if nothing is clipped
    changed: Reservoir | None = None  # by training; None if it is still the one that was drawn

    @cached_property
    def key(self) -> Words:
        """The key of its random words."""
        return draw_key(self.seed, self.stream, self.family, self.index)

    @cached_property
    def hyper(self) -> Hyperparameters:
        """Its hyper-parameters."""
        return self.law.draw(self.key)

    @cached_property
    def reservoir(self) -> Reservoir:
        """Its state equation."""
        if self.changed is not None:
            return self.changed
        key, hyper, n = self.key, self.hyper, self.hyper.order
        slots = min(self.law.nonzeros, n)
        columns = _columns(self.law, key, n, slots)
        values = symmetric(key, VALUES, (slots, n))
        values *= hyper.norm / spectral_norm(columns, values)  # scaled last: before that, bits are equal everywhere
        W_u = hyper.input_scale * symmetric(key, INPUT, (n, self.inputs))
        W_y = hyper.feedback_scale * symmetric(key, FEEDBACK, (n, self.outputs))
        bias = hyper.bias_scale * symmetric(key, BIAS, (n,))
        return Reservoir(hyper, columns, values, W_u, W_y, bias, leak_rates(key, hyper))

    def with_reservoir(self, reservoir: Reservoir) -> ReservoirDraw:
        """The same draw with another state equation, for a trainer that changes it."""
        return replace(self, changed=reservoir)

    def within(self, limits: Limits | None) -> ReservoirDraw:
        """The same draw with the limits of the data that it is trained on."""
        other = replace(self, limits=limits)
        # What was computed is kept: the weights do not depend on the data.
        other.__dict__.update({name: value for name, value in self.__dict__.items() if name != "limits"})
        return other

    def fed_back(self, outputs: Sequence[Signal], deviation: Vector) -> list[Signal]:
        """Outputs of the training segments as they are fed back: measured, with the draw's training noise.

        The noise is uniform; its standard deviation is relative to `deviation`, that of each output. Its words run on
        from segment to segment.
        """
        if self.hyper.training_noise == 0:
            return list(outputs)
        lengths = [len(y) for y in outputs]
        levels = unit(words(self.key, NOISE, sum(lengths) * self.outputs)).reshape(-1, self.outputs)
        noise = (np.sqrt(3.0) * self.hyper.training_noise) * deviation * (2.0 * levels - 1.0)
        ends = np.cumsum(lengths)
        return [y + noise[end - len(y) : end] for y, end in zip(outputs, ends, strict=True)]


def draw_reservoir(
    law: ReservoirLaw, inputs: int, outputs: int, seed: int, stream: int = 0, family: int = 0, index: int = 0
) -> Reservoir:
    """The reservoir of draw (seed, stream, family, index) of a law."""
    return ReservoirDraw(law, inputs, outputs, seed, stream, family, index).reservoir


def symmetric(key: Words, region: int, shape: tuple[int, ...]) -> Matrix:
    """Numbers uniform in [-1, 1), exact in double precision."""
    return 2.0 * unit(words(key, region, int(np.prod(shape)))).reshape(shape) - 1.0


def leak_rates(key: Words, hyper: Hyperparameters) -> Vector:
    """Leak rate of each unit."""
    if hyper.leak_spread == 0:
        return np.full(hyper.order, hyper.leak)
    factors = 10.0 ** (hyper.leak_spread * symmetric(key, LEAK, (hyper.order,)))
    return np.minimum(1.0, hyper.leak * factors)


def _columns(law: ReservoirLaw, key: Words, n: int, slots: int) -> Columns:
    """Columns of the non-zeros, all different within a row, by Floyd's sampling without replacement.

    Diagonals need one sample of offsets for all rows, the random pattern one for each row.
    """
    samples = 1 if law.pattern == "diagonals" else n
    levels = unit(words(key, COLUMNS, slots * samples)).reshape(slots, samples)
    chosen = np.empty((slots, samples), dtype=np.int64)
    for j in range(slots):
        last = n - slots + j
        candidate = (levels[j] * (last + 1)).astype(np.int64)
        taken = (chosen[:j] == candidate).any(axis=0)
        chosen[j] = np.where(taken, last, candidate)
    if law.pattern == "diagonals":
        return (np.arange(n)[None, :] + chosen) % n
    return chosen
