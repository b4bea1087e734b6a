"""Output error: a linear model refined on the error of its free run, by Levenberg and Marquardt's method.

Least squares makes the best predictor one sample ahead, which noise on the outputs spoils for a free run. Each output
has an equation of its own, so that derivatives are filtered signals: d y / d a_i is y(k-i), and d y / d b_i is u(k-i),
both through 1 / A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from echobound.arrays import Matrix, Vector
from echobound.diagnostics.arx import LinearModel, Pair, delayed

STEPS = 12
MOST = 8000  # samples of the training data are enough for so few coefficients
GAIN = 1e-4  # relative: an error that falls by less has settled
FAR = 1e3  # spreads of an output: a free run beyond that has run off


def refined(model: LinearModel, pieces: Sequence[Pair]) -> LinearModel:
    """An uncoupled model whose free run over the pieces has a smaller error, or the same one if none was found.

    Examples
    --------
    >>> from echobound.diagnostics.arx import Regression, Structure
    >>> noise = np.random.default_rng(0)
    >>> u, y = noise.standard_normal((2000, 1)), np.zeros((2000, 1))
    >>> for k in range(1, 2000):
    ...     y[k] = 0.9 * y[k - 1] + u[k - 1]
    >>> data = [(u, y + noise.standard_normal(y.shape))]
    >>> arx = Regression(data, most=2).model(Structure(1, 1))
    >>> abs(arx.a.item() - 0.9) > 0.05, abs(refined(arx, data).a.item() - 0.9) < 0.01
    (True, True)
    """
    scaled = _shortened([model.scaled(*pair) for pair in pieces], model.structure.past)
    if not scaled or model.structure.own == 0:
        return model
    a, b, c = model.a.copy(), model.b.copy(), model.c.copy()
    for j in range(len(c)):
        start = np.concatenate([a[:, j, j], b[:, j].ravel(), c[j : j + 1]])
        found = _minimised(start, model, scaled, j)
        own = len(a)
        a[:, j, j], c[j] = found[:own], found[-1]
        b[:, j] = found[own:-1].reshape(b[:, j].shape)
    return replace(model, a=a, b=b, c=c)


def _shortened(pieces: Sequence[Pair], past: int) -> list[Pair]:
    """The end of each piece, so that no more than `MOST` samples are run over."""
    long = [(u, y) for u, y in pieces if len(u) > 2 * past + 2]
    each = max(MOST // max(len(long), 1), 2 * past + 2)
    return [(u[-each:], y[-each:]) for u, y in long]


def _minimised(theta: Vector, model: LinearModel, pieces: Sequence[Pair], j: int) -> Vector:
    """Coefficients of output `j` by damped Gauss-Newton steps; a step that makes the error larger is not taken."""
    damping, (error, jacobian) = 1e-3, _linearised(theta, model, pieces, j)
    cost = _cost(error)
    for _ in range(STEPS):
        if not np.isfinite(cost):
            return theta
        normal, gradient = jacobian.T @ jacobian, jacobian.T @ error
        diagonal = np.diag(normal) + 1e-12 * np.trace(normal)
        better = False
        for _ in range(6):
            step = np.linalg.lstsq(normal + damping * np.diag(diagonal), gradient, rcond=None)[0]
            trial = _linearised(theta + step, model, pieces, j)
            if _cost(trial[0]) < cost:
                better = True
                break
            damping *= 10.0
        if not better:
            return theta
        settled = _cost(trial[0]) > (1.0 - GAIN) * cost
        theta, (error, jacobian), cost, damping = theta + step, trial, _cost(trial[0]), damping / 10.0
        if settled:
            return theta
    return theta


def _cost(error: Vector) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        cost = float(np.mean(np.square(error)))
    return cost if np.isfinite(cost) and cost < FAR**2 else np.inf


def _linearised(theta: Vector, model: LinearModel, pieces: Sequence[Pair], j: int) -> tuple[Vector, Matrix]:
    """Error of the free run over all pieces, and its derivatives."""
    from scipy.signal import lfilter, lfiltic

    own, structure = model.structure.own, model.structure
    polynomial, gains = np.r_[1.0, -theta[:own]], theta[own:-1].reshape(structure.inputs, -1)
    errors, slopes = [], []
    with np.errstate(over="ignore", invalid="ignore"):
        for u, y in pieces:
            first = structure.past
            lags = [delayed(u, lag)[first:] for lag in range(structure.delay, structure.delay + structure.inputs)]
            drive = theta[-1] + sum(lag @ gain for lag, gain in zip(lags, gains, strict=True))
            state = lfiltic([1.0], polynomial, y[:first, j][::-1][:own])
            free = lfilter([1.0], polynomial, drive, zi=state)[0]
            errors.append(y[first:, j] - free)
            past = np.concatenate([y[first - own : first, j], free])
            outputs = [past[own - lag : own - lag + len(free), None] for lag in range(1, own + 1)]
            raw = np.concatenate([*outputs, *lags, np.ones((len(free), 1))], axis=1)
            slopes.append(lfilter([1.0], polynomial, raw, axis=0))
    return np.concatenate(errors), np.concatenate(slopes)
