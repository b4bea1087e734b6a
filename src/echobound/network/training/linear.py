"""The best linear approximation of training data, of which a cascade takes its first poles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Matrix, Signal, Vector
from echobound.network.cascade import sections_of

ROUNDS = 8  # of Steiglitz and McBride: they settle within a few, or not at all


def linear_poles(data: Sequence[tuple[Signal, Signal]], order: int) -> NDArray[np.complex128] | None:
    """Poles of a linear model of this order with one denominator for all inputs and outputs; None if there is none.

    By the iteration of Steiglitz and McBride: least squares of A y = B u, with both filtered by 1 / A of the round
    before, so that it is the error of the simulation that is minimised in the end. Of all rounds, the one with the
    least such error is taken.

    Examples
    --------
    >>> from scipy.signal import lfilter
    >>> u = np.random.default_rng(0).standard_normal((500, 1))
    >>> y = lfilter([0.0, 1.0, 0.5], [1.0, -1.5, 0.7], u, axis=0)
    >>> np.poly(linear_poles([(u, y)], 2)).round(6).tolist()
    [1.0, -1.5, 0.7]
    """
    polynomial, best, least = np.eye(1, order + 1)[0], None, np.inf
    for _ in range(ROUNDS):
        solution = _round(data, order, polynomial)
        if solution is None:
            break
        polynomial, error = solution
        if best is not None and error >= least:
            continue
        best, least = polynomial, error
    return None if best is None else np.roots(best).astype(np.complex128)


def _round(data: Sequence[tuple[Signal, Signal]], order: int, before: Vector) -> tuple[Vector, float] | None:
    """The next denominator, made stable, and the mean square error of its least squares."""
    blocks = []
    for u, y in data:
        if len(u) > 2 * order:
            blocks.append(_rows(_prefiltered(before, u), _prefiltered(before, y), order))
    if not blocks:
        return None
    outputs = data[0][1].shape[1]
    left, right = np.zeros((order, order)), np.zeros(order)
    squares, count = 0.0, 0
    for o in range(outputs):
        own = np.concatenate([past[:, :, o] for past, _, _ in blocks])
        exogenous = np.concatenate([inputs for _, inputs, _ in blocks])
        target = np.concatenate([y[:, o] for _, _, y in blocks])
        # The numerators are eliminated: what is left has the common denominator as its only unknown.
        joint = np.concatenate([own, target[:, None]], axis=1)
        basis, _ = np.linalg.qr(exogenous)
        joint = joint - basis @ (basis.T @ joint)
        left += joint[:, :-1].T @ joint[:, :-1]
        right += joint[:, :-1].T @ joint[:, -1]
        squares, count = squares + float(joint[:, -1] @ joint[:, -1]), count + len(joint)
    left += 1e-10 * np.trace(left) / order * np.eye(order)
    try:
        solution = np.linalg.solve(left, right)
    except np.linalg.LinAlgError:
        return None
    error = (squares - 2 * float(solution @ right) + float(solution @ left @ solution)) / count
    polynomial = np.concatenate([[1.0], -solution])
    if not np.isfinite(polynomial).all() or not np.isfinite(error):
        return None
    stable = np.ones(1)
    for section in sections_of(np.roots(polynomial).astype(np.complex128)):
        stable = np.convolve(stable, [1.0, *section])
    padded = np.zeros(order + 1)  # vanishing poles are dropped by np.roots
    padded[: min(len(stable), order + 1)] = stable[: order + 1]
    return padded, error


def _prefiltered(polynomial: Vector, x: Signal) -> Signal:
    from scipy.signal import lfilter  # on first use, as elsewhere

    steady = x[:1] / polynomial.sum()
    return np.asarray(lfilter([1.0], polynomial, x - x[:1], axis=0) + steady)


def _rows(u: Signal, y: Signal, order: int) -> tuple[NDArray[np.float64], Matrix, Signal]:
    """Past outputs ``(time, lag, output)``, present and past inputs with a constant, and the outputs themselves."""
    count = len(u)
    past = np.stack([y[order - lag : count - lag] for lag in range(1, order + 1)], axis=1)
    inputs = np.concatenate([u[order - lag : count - lag] for lag in range(order + 1)], axis=1)
    return past, np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1), y[order:]
