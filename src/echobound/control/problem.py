"""What one sample's optimisation is about: planned inputs, their cost and bounds; condensed to a quadratic program.

The planned inputs v ``(block * input,)`` are those that may be moved, each from 0 at its lower to 1 at its upper bound.
Of each model i they determine the outputs y_i(1) .. y_i(H), and

    cost(v) = mean over the models of  sum_j |y_i(j) - r(j)|^2_Q  +  sum_b |v(b) - v(b-1)|^2_R
              + prices of inputs and outputs  +  sum_j (linear s(j) + square s(j)^2)

with s(j) the furthest that any model is outside the output bounds at j. A step of Gauss-Newton replaces y_i by its
linearisation: a quadratic program in dv and s, whose solution decreases the cost along a short enough step. Where that
is slow, Newton's method takes the second derivatives of the outputs, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Array, Mask, Matrix, Signal, Vector
from echobound.control.quadratic import Minimum, Quadratic

Outlook = Callable[[Vector, bool], tuple[Array, Array]]
"""Outputs ``(model, step, output)`` for planned inputs and, if asked for, derivatives ``(model, step, output, v)``."""
Curvature = Callable[[Array], Matrix | None]
"""Second derivatives ``(v, v)`` of the sum of errors ``(model, step, output)`` times outputs, at the last outlook."""
LEAST = 1e-6  # of the largest curvature: what the least one is raised to
CURVED = 1e-9  # added to the curvature of each planned input, so that the minimum of a quadratic program is unique


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The planned inputs, what they lead to, and what that costs."""

    v: Vector
    outputs: Array  # (model, step, output)
    slopes: Array  # (model, step, output, v); empty if they were not asked for
    slack: Signal  # (step, output): the furthest that any model is outside the output bounds, in scales
    outside: Array  # (model, step, output): how far each one is
    cost: float


class BoundRows(NamedTuple):
    """Whose output bound each of the last rows of a quadratic program is; `sign` is 1 for an upper one."""

    owner: NDArray[np.int64]
    step: NDArray[np.int64]
    output: NDArray[np.int64]
    sign: NDArray[np.int64]


NO_ROWS = BoundRows(*np.zeros((4, 0), dtype=np.int64))


@dataclass(eq=False)
class Problem:
    """One sample's optimisation, in the units of the outputs and with inputs from 0 to 1."""

    outlook: Outlook
    curvature: Curvature
    reference: Signal  # (step, output)
    previous: Vector  # (input,): v before the first block
    rate: Vector  # (input,): the largest change of v from block to block; infinite if there is none
    low: Vector  # (output,): soft bounds, infinite where there is none
    high: Vector
    weight: Vector  # (output,): Q, by the square of the output's scale
    move_weight: Vector  # (input,): R
    scale: Vector  # (output,)
    slack_linear: float
    slack_square: float
    output_price: Vector  # (output,): of one unit for one sample
    input_price: Vector  # (input,): of v = 1 for one sample
    samples: Vector  # (block,): for how many samples each block of planned inputs is held
    costed: int  # of how many of the models, the first ones, the cost is about; all of them are bounded
    supports: set[int] = field(default_factory=set)  # models that had any influence on the outcome, so far
    _rows: BoundRows = NO_ROWS  # of the last quadratic program
    _plain: Matrix = field(default_factory=lambda: np.zeros((0, 0)))  # Gauss-Newton's curvature of it

    @property
    def count(self) -> int:
        """Number of planned inputs."""
        return len(self.samples) * len(self.previous)

    @property
    def bounded(self) -> bool:
        """Whether any output has a bound."""
        return bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())

    def evaluate(self, v: Vector, sensitive: bool) -> Evaluation:
        """What planned inputs lead to and cost; infinite if a model leads to something that is not a number."""
        outputs, slopes = self.outlook(v, sensitive)
        outside = np.maximum(np.maximum(outputs - self.high, self.low - outputs), 0.0) / self.scale
        slack = outside.max(axis=0)
        error = outputs[: self.costed] - self.reference
        moves = self._moves(v)
        blocks = v.reshape(-1, len(self.previous))
        cost = float(
            (error**2 @ self.weight).sum() / self.costed
            + (moves**2 @ self.move_weight).sum()
            + (outputs[: self.costed] @ self.output_price).sum() / self.costed
            + self.samples @ (blocks @ self.input_price)
            + (self.slack_linear * slack + self.slack_square * slack**2).sum()
        )
        if slack.any():
            self.supports.update(np.unique(outside.argmax(axis=0)[slack > 0]).tolist())
        return Evaluation(v, outputs, slopes, slack, outside, cost if np.isfinite(cost) else np.inf)

    def condensed(self, at: Evaluation, second: Matrix | None = None) -> tuple[Quadratic, Mask]:
        """The quadratic program in [dv, s] around an evaluation, and which slacks s it has.

        `second` is what is added to Gauss-Newton's curvature.
        """
        _, steps, _, count = at.slopes.shape
        J = at.slopes[: self.costed].reshape(-1, count)
        weight = np.tile(self.weight, self.costed * steps) / self.costed
        error = (at.outputs[: self.costed] - self.reference).reshape(-1)
        D, moves = self._differences(), self._moves(at.v).reshape(-1)
        R = np.tile(self.move_weight, len(self.samples))
        H = 2.0 * (J.T @ (weight[:, None] * J) + D.T @ (R[:, None] * D)) + CURVED * np.eye(count)
        self._plain = H
        if second is not None:
            H = H + second
        g = 2.0 * (J.T @ (weight * error) + D.T @ (R * moves))
        g += J.T @ np.tile(self.output_price, self.costed * steps) / self.costed
        g += np.outer(self.samples, self.input_price).reshape(-1)
        A, low, high, used = self._bound_rows(at)
        slacks = int(used.sum())
        whole = np.zeros((count + slacks, count + slacks))
        whole[:count, :count] = H
        whole[count:, count:] = 2.0 * self.slack_square * np.eye(slacks)
        bounds_low = np.concatenate([-at.v, np.zeros(slacks), low])
        bounds_high = np.concatenate([1.0 - at.v, np.full(slacks, np.inf), high])
        gradient = np.concatenate([g, np.full(slacks, self.slack_linear)])
        return Quadratic(whole, gradient, A, bounds_low, bounds_high), used

    def second(self, at: Evaluation, found: Minimum) -> Matrix | None:
        """What Gauss-Newton leaves out of the curvature: the outputs' own, by their part in cost and multipliers.

        None if it is not known. The sum is positive definite.
        """
        errors = np.zeros(at.outputs.shape)
        gap = at.outputs[: self.costed] - self.reference
        errors[: self.costed] = (2.0 * self.weight * gap + self.output_price) / self.costed
        if len(self._rows.owner):
            pressed = found.multipliers[-len(self._rows.owner) :]
            bound = self._rows
            np.add.at(errors, (bound.owner, bound.step, bound.output), bound.sign * pressed / self.scale[bound.output])
        own = self.curvature(errors)
        if own is None or not np.isfinite(own).all():
            return None
        # Where the cost curves downwards, the step goes the other way: with the size of the curvature in place of it.
        values, vectors = np.linalg.eigh(self._plain + own)
        if values[0] <= LEAST * values[-1]:
            bent = np.maximum(np.abs(values), LEAST * values[-1])
            own = own + (vectors * (bent - values)) @ vectors.T
        return own

    def predicted(self, at: Evaluation, program: Quadratic, used: Mask, found: Minimum) -> float:
        """By how much the quadratic program lowers the cost."""
        count, x = self.count, found.x
        slack = at.slack[used]
        before = float((self.slack_linear * slack + self.slack_square * slack**2).sum())
        s = x[count:]
        after = float((self.slack_linear * s + self.slack_square * s**2).sum())
        dv = x[:count]
        return before - after - float(program.g[:count] @ dv + 0.5 * dv @ program.H[:count, :count] @ dv)

    def residual(self, at: Evaluation, program: Quadratic, used: Mask, found: Minimum) -> float:
        """How far an evaluation is from satisfying the conditions of Karush, Kuhn and Tucker, with these multipliers.

        The quadratic program satisfies its own conditions. Its gradient differs from that of the problem by H dx, and
        its constraints are off by what dx moves them; both vanish with dx.
        """
        dx = found.x.copy()
        dx[self.count :] -= at.slack[used]
        moved = np.concatenate([dx, program.A @ dx])
        stationarity = np.abs(program.H @ dx).max(initial=0.0)
        return float(max(stationarity, np.abs(found.multipliers * moved).max(initial=0.0)))

    def note_supports(self, found: Minimum) -> None:
        """Note the models whose bounds held the solution back."""
        owner = self._rows.owner
        if len(owner):
            self.supports.update(owner[found.multipliers[-len(owner) :] != 0].tolist())

    def _moves(self, v: Vector) -> Signal:
        blocks = v.reshape(-1, len(self.previous))
        return np.diff(blocks, axis=0, prepend=self.previous[None])

    def _differences(self) -> Matrix:
        """D with moves = D v - [previous, 0 ..]."""
        inputs = len(self.previous)
        return np.eye(self.count) - np.eye(self.count, k=-inputs)

    def _bound_rows(self, at: Evaluation) -> tuple[Matrix, Vector, Vector, Mask]:
        """Rows for the changes of inputs and for the output bounds of all models, and the slacks that these need.

        Rows that no planned inputs within their bounds can violate, by the linearisation, are left out.
        """
        count = self.count
        D, moves = self._differences(), self._moves(at.v)
        limited = np.tile(np.isfinite(self.rate), len(self.samples))
        allowed = np.tile(self.rate, len(self.samples))[limited]
        done = moves.reshape(-1)[limited]
        rows, low, high = [D[limited]], [-allowed - done], [allowed - done]
        used = np.zeros(self.reference.shape, dtype=bool)
        found: list[tuple[Matrix, Vector, Mask]] = []
        places = []
        if self.bounded:
            up = np.maximum(at.slopes * (1.0 - at.v), -at.slopes * at.v).sum(axis=3)
            down = np.minimum(at.slopes * (1.0 - at.v), -at.slopes * at.v).sum(axis=3)
            for sign, bound, reach in ((1, self.high, at.outputs + up), (-1, self.low, at.outputs + down)):
                for model, near in enumerate(sign * reach > sign * bound):
                    used |= near
                    step, output = np.nonzero(near)
                    scale = self.scale[output]
                    room = sign * (bound[output] - at.outputs[model][near]) / scale
                    found.append((sign * at.slopes[model][near] / scale[:, None], room, near))
                    places.append([np.full(len(step), model), step, output, np.full(len(step), sign)])
        number = np.cumsum(used.reshape(-1)).reshape(used.shape) - 1
        slacks = int(used.sum())
        rows[0] = np.concatenate([rows[0], np.zeros((len(rows[0]), slacks))], axis=1)
        for J, room, near in found:
            wide = np.zeros((len(room), count + slacks))
            wide[:, :count] = J
            wide[np.arange(len(room)), count + number[near]] = -1.0
            rows.append(wide)
            low.append(np.full(len(room), -np.inf))
            high.append(room)
        self._rows = BoundRows(*np.concatenate(places, axis=1)) if places else NO_ROWS
        return np.concatenate(rows), np.concatenate(low), np.concatenate(high), used
