"""Variable projection: Levenberg-Marquardt over the filters and units of a cascade, its readout solved in every step.

With F the features, c the readout and D the derivatives of F c by the parameters, Kaufman's approximation of the
problem that is left when c is eliminated has the matrix D'D - D'F (F'F + R)^-1 F'D and the gradient D'(y - F c). Both
come from one Gram matrix of [F, D, y].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from echobound.arrays import Array, Matrix, Vector
from echobound.network.cascade import Cascade, free_parameters, stable_sections
from echobound.network.training.cascade_tools import CascadeTools, Stretch

FIRST_DAMPING, LEAST_DAMPING = 1e-3, 1e-5
HARDER, EASIER = 6.0, 4.0  # how damping changes after a step that fails, and after one that succeeds
TRIES = 10  # steps in a row that may fail
PATIENCE = 8  # iterations without progress on the samples that are held out
NEGLIGIBLE = 1e-7  # relative progress on the samples that are trained on


@dataclass(frozen=True, eq=False)
class Point:
    """Where the descent is: a cascade with its readout, and what it is worth."""

    values: Vector  # free parameters, see `Coordinates`
    cascade: Cascade
    readout: Matrix
    objective: float  # squared error and ridge, over the rows that are trained on
    held_out: float  # mean square error over the rows that are held out; the objective if there are none


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The numbers that the descent moves freely: poles stay stable whatever they are.

    Shared, all units have the same direction w, and each has its gain: w_j = g_j w.

    Examples
    --------
    >>> from echobound.network.cascade import energy_factors
    >>> sections = np.array([[-0.5, 0.06]])
    >>> factors = energy_factors(sections)
    >>> weights = np.array([[1.0, 0.0, 0.5], [2.0, 0.0, 1.0]])
    >>> cascade = Cascade(sections, factors, weights, np.zeros(2), sections, factors)
    >>> shared = Coordinates(cascade, shared=True)
    >>> shared.start().shape, shared.at(shared.start())[0].weights.tolist()
    ((11,), [[1.0, 0.0, 0.5], [2.0, 0.0, 1.0]])
    """

    form: Cascade
    shared: bool

    def start(self) -> Vector:
        """The values of the cascade itself; if shared, its weights must be multiples of those of the first unit."""
        weights = self.form.weights
        parts = [weights.ravel()]
        if self.shared:
            first = weights[0]
            parts = [first, weights @ first / (first @ first)]
        poles = (free_parameters(one).ravel() for one in (self.form.front, self.form.back))
        return np.concatenate([*parts, self.form.bias, *poles])

    def at(self, values: Vector) -> tuple[Cascade, Matrix]:
        """The cascade of these values, and the derivatives of its parameters by them, ``(parameter, value)``."""
        form = self.form
        units, signals = form.weights.shape
        head = signals + units if self.shared else units * signals
        ends = np.cumsum([head, units, form.front.size])
        directions, bias, front, back = np.split(values, ends)
        chain = np.zeros((form.parameters.size, values.size))
        if self.shared:
            direction, gains = directions[:signals], directions[signals:]
            weights = np.outer(gains, direction)
            for j in range(units):
                rows = slice(j * signals, (j + 1) * signals)
                chain[rows, :signals] = gains[j] * np.eye(signals)
                chain[rows, signals + j] = direction
        else:
            weights = directions.reshape(units, signals)
            chain[:head, :head] = np.eye(head)
        row, column = units * signals, head
        chain[row : row + units, column : column + units] = np.eye(units)
        row, column, banks = row + units, column + units, []
        for free in (front, back):
            sections, slopes = stable_sections(free.reshape(-1, 2))
            banks.append(sections)
            for slope in slopes:
                chain[row : row + 2, column : column + 2] = slope
                row, column = row + 2, column + 2
        return replace(form, weights=weights, bias=bias, front=banks[0], back=banks[1]), chain


def solve_readout(total: Matrix, columns: int, ridge: float) -> tuple[Matrix, float] | None:
    """The readout from the Gram matrix of [F, Y], and the squared error with the ridge; None if it has none.

    The ridge is relative to the number of rows, which the last feature, 1, tells. It is not relative to the features:
    training would then make some of them large in order to be spared.

    Examples
    --------
    >>> rows = np.array([[1.0, 1.0, 3.0], [2.0, 1.0, 5.0], [3.0, 1.0, 7.0]])
    >>> readout, error = solve_readout(rows.T @ rows, 2, 0.0)
    >>> readout.round(9).tolist(), round(abs(error), 9)
    ([[2.0, 1.0]], 0.0)
    """
    gram, moment = total[:columns, :columns], total[:columns, columns:]
    factor = _factor(gram, ridge * gram[-1, -1])
    if factor is None:
        return None
    weights = _solve(factor, moment)
    error = float(np.trace(total[columns:, columns:]) - np.sum(weights * moment))
    return (weights.T.copy(), error) if np.isfinite(weights).all() and np.isfinite(error) else None


def _factor(gram: Matrix, ridge: float) -> Matrix | None:
    """Cholesky factor of a Gram matrix with a ridge."""
    if not np.isfinite(gram).all():
        return None
    try:
        return np.asarray(np.linalg.cholesky(gram + ridge * np.eye(len(gram))), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None


def _solve(factor: Matrix, right: Matrix) -> Matrix:
    from scipy.linalg import cho_solve  # on first use, as elsewhere

    return np.asarray(cho_solve((factor, True), right, check_finite=False))


def descend(
    tools: CascadeTools,
    coordinates: Coordinates,
    stretches: Sequence[Stretch],
    ridge: float,
    iterations: int,
) -> Point | None:
    """The point with the least error on the samples that are held out, of those that the descent came by."""
    here = _point(tools, coordinates, coordinates.start(), stretches, ridge)
    best, damping, waited = here, FIRST_DAMPING, 0
    for _ in range(iterations):
        if here is None or waited > PATIENCE:
            break
        matrix, gradient = _normal_equations(tools, coordinates, here, stretches, ridge)
        there = None
        for _ in range(TRIES):
            there = _step(tools, coordinates, here, matrix, gradient, damping, stretches, ridge)
            if there is not None:
                break
            damping *= HARDER
        if there is None:
            break
        damping = max(damping / EASIER, LEAST_DAMPING)
        settled = here.objective - there.objective < NEGLIGIBLE * here.objective
        here = there
        if best is None or here.held_out < best.held_out:
            best, waited = here, 0
        else:
            waited += 1
        if settled:
            break
    return best


def descended(
    tools: CascadeTools, coordinates: Coordinates, stretches: Sequence[Stretch], ridge: float, iterations: int
) -> Cascade | None:
    """The cascade at that point."""
    point = descend(tools, coordinates, stretches, ridge, iterations)
    return None if point is None else point.cascade


def _point(
    tools: CascadeTools, coordinates: Coordinates, values: Vector, stretches: Sequence[Stretch], ridge: float
) -> Point | None:
    """What these values are worth; None if that is no number."""
    if not np.isfinite(values).all():
        return None
    cascade, _ = coordinates.at(values)
    trained, held_out = tools.features_gram(cascade, stretches)
    solution = solve_readout(trained, cascade.columns, ridge)
    if solution is None:
        return None
    readout, objective = solution
    rows = held_out[cascade.columns - 1, cascade.columns - 1]  # the last feature is 1
    error = squared_error(held_out, readout) / rows if rows else objective
    return Point(values, cascade, readout, objective, error) if np.isfinite(error) else None


def squared_error(total: Matrix, readout: Matrix) -> float:
    """Squared error of a readout over the rows of a Gram matrix of [F, Y]."""
    both = np.concatenate([-readout, np.eye(len(readout))], axis=1)
    return max(float(np.sum((both @ total) * both)), 0.0)


def _normal_equations(
    tools: CascadeTools, coordinates: Coordinates, here: Point, stretches: Sequence[Stretch], ridge: float
) -> tuple[Matrix, Vector]:
    """Kaufman's matrix and the gradient, by the free values."""
    columns = here.cascade.columns
    _, chain = coordinates.at(here.values)
    size = len(chain)
    matrix, gradient = np.zeros((size, size)), np.zeros(size)
    for total, readout in zip(_grams(tools, here, stretches), here.readout, strict=True):
        factor = _factor(total[:columns, :columns], ridge * total[columns - 1, columns - 1])
        if factor is None:
            continue
        across = total[:columns, columns:-1]
        matrix += total[columns:-1, columns:-1] - across.T @ _solve(factor, across)
        gradient += total[columns:-1, -1] - across.T @ readout
    return chain.T @ matrix @ chain, chain.T @ gradient


def _grams(tools: CascadeTools, here: Point, stretches: Sequence[Stretch]) -> Array:
    return tools.jacobian_gram(here.cascade, here.readout, stretches)


def _step(
    tools: CascadeTools,
    coordinates: Coordinates,
    here: Point,
    matrix: Matrix,
    gradient: Vector,
    damping: float,
    stretches: Sequence[Stretch],
    ridge: float,
) -> Point | None:
    """The point after a damped step; None if it is no better."""
    diagonal = np.maximum(np.diag(matrix), 1e-9 * np.max(np.diag(matrix)))
    factor = _factor(matrix + damping * np.diag(diagonal), 0.0)
    if factor is None:
        return None
    there = _point(tools, coordinates, here.values + _solve(factor, gradient), stretches, ridge)
    return there if there is not None and there.objective < here.objective else None
