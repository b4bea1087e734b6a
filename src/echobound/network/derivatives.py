"""Derivatives of a free run: how its errors change with the weights, by forward sensitivities in plain NumPy.

The weights theta are, in this order, W_x (its non-zeros, slot by slot), W_u, W_y and the bias, row by row, and the
readout, row by row; or the readout alone. With S(k) = dx(k)/dtheta and F(k) = dy(k)/dtheta of the model's own outputs

    F(k)   = W_out dphi(k)/dtheta + [phi(k) where theta is the readout]      0 where the output is clipped or measured
    S(k+1) = (1 - a) S(k) + a (1 - tanh^2) (W_x S(k) + W_y F(k) + [x(k), u(k), y(k), 1 where theta is theirs])

so that a Gauss-Newton step over all weights costs little more than as many free runs as there are weights.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from echobound.arrays import Matrix, Signal, Vector
from echobound.network.dynamics import features
from echobound.network.limits import Limits
from echobound.network.reservoir import Reservoir

WEIGHTS = ("values", "W_u", "W_y", "bias")  # of a reservoir, in the order of theta


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """The squared errors of a free run, and what Gauss-Newton needs to reduce them."""

    squares: float  # e'e
    gradient: Vector  # J'e, with J the derivative of the outputs
    curvature: Matrix  # J'J


def weights_of(reservoir: Reservoir, readout: Matrix, whole: bool) -> Vector:
    """The weights as one vector; without `whole`, the readout alone."""
    parts = [getattr(reservoir, name).ravel() for name in WEIGHTS] if whole else []
    return np.concatenate([*parts, readout.ravel()])


def with_weights(reservoir: Reservoir, readout: Matrix, theta: Vector) -> tuple[Reservoir, Matrix]:
    """Inverse of `weights_of`; the reservoir is the same object if the vector holds the readout alone."""
    own = theta[len(theta) - readout.size :].reshape(readout.shape)
    if len(theta) == readout.size:
        return reservoir, own
    arrays: dict[str, Any] = {}
    at = 0
    for name in WEIGHTS:
        array = getattr(reservoir, name)
        arrays[name] = theta[at : at + array.size].reshape(array.shape)
        at += array.size
    return replace(reservoir, **arrays), own


def free_run_derivatives(
    reservoir: Reservoir,
    readout: Matrix,
    u: Signal,
    y: Signal,
    washout: int,
    padding: int = 0,
    limits: Limits | None = None,
    whole: bool = True,
) -> tuple[Signal, Matrix]:
    """Outputs of a free run at k = washout .. K-1, and their derivatives ``(time, output, weight)``."""
    hyper, n, outputs = reservoir.hyper, reservoir.order, len(readout)
    count = weights_of(reservoir, readout, whole).size
    own = count - readout.size + np.arange(readout.size).reshape(readout.shape)  # where the readout is in theta
    x, S = np.zeros(n), np.zeros((n, count))
    fed = y.copy()
    tail = n + (hyper.input_delays + hyper.present_input) * u.shape[1]  # columns of the readout before y(k-1)
    past = deque([np.zeros((outputs, count))] * hyper.output_delays, maxlen=hyper.output_delays)
    rows = np.zeros((len(u) - washout, outputs, count))
    for k in range(-padding, len(u)):
        F = np.zeros((outputs, count))
        if k >= washout:
            phi = features(hyper, x[None], u, fed, np.array([k]), y[0])[0]
            value = readout @ phi
            fed[k] = value if limits is None else limits.clip(value)
            F = readout[:, :n] @ S
            for delay, before in enumerate(past):
                F += readout[:, tail + delay * outputs : tail + (delay + 1) * outputs] @ before
            F[np.arange(outputs)[:, None], own] += phi
            F[fed[k] != value] = 0.0
            rows[k - washout] = F
        u_now, y_now = u[max(k, 0)], fed[max(k, 0)]  # before the start, the first sample is held
        inside = (reservoir.values * x[reservoir.columns]).sum(axis=0) + reservoir.drive(u_now) + reservoir.W_y @ y_now
        bent = np.tanh(inside)
        driven = np.einsum("ji,jip->ip", reservoir.values, S[reservoir.columns]) + reservoir.W_y @ F
        if whole:
            _add_direct(reservoir, driven, x, u_now, y_now)
        S = (1.0 - reservoir.leak)[:, None] * S + (reservoir.leak * (1.0 - bent**2))[:, None] * driven
        x = (1.0 - reservoir.leak) * x + reservoir.leak * bent
        if k >= 0:
            past.appendleft(F)
    return fed[washout:], rows


def _add_direct(reservoir: Reservoir, driven: Matrix, x: Vector, u: Vector, y: Vector) -> None:
    """Add how the weights of each unit enter it: its row of W_x by x, of W_u by u, of W_y by y, its bias by 1."""
    slots, n = reservoir.values.shape
    units, at = np.arange(n), 0
    for slot in range(slots):
        driven[units, at + units] += x[reservoir.columns[slot]]
        at += n
    for signal in (u, y):
        for channel, level in enumerate(signal):
            driven[units, at + units * len(signal) + channel] += level
        at += n * len(signal)
    driven[units, at + units] += 1.0


def normal_equations(
    reservoir: Reservoir,
    readout: Matrix,
    segments: Sequence[tuple[Signal, Signal, int]],
    importance: Vector,
    padding: int,
    limits: Limits | None,
    whole: bool,
) -> NormalEquations:
    """Gauss-Newton's equations over segments (u, y, washout), errors of each output times its importance."""
    count = weights_of(reservoir, readout, whole).size
    squares, gradient, curvature = 0.0, np.zeros(count), np.zeros((count, count))
    with np.errstate(over="ignore", invalid="ignore"):  # sensitivities of an unstable run overflow: the trainer stops
        for u, y, washout in segments:
            outputs, rows = free_run_derivatives(reservoir, readout, u, y, washout, padding, limits, whole)
            e = ((y[washout:] - outputs) * importance).ravel()
            J = (rows * importance[:, None]).reshape(-1, count)
            squares, gradient, curvature = squares + float(e @ e), gradient + J.T @ e, curvature + J.T @ J
    return NormalEquations(squares, gradient, curvature)
