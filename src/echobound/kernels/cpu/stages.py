"""The stages of one trial: rows of the regression, Gram matrix, free run, prediction."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from echobound.kernels.cpu.fortran import gram_update
from echobound.kernels.cpu.step import OPTIONS, advance, dot, rest

__all__ = ["Sees", "free_run", "gram", "predict", "regression_rows"]


class Sees(NamedTuple):
    """What the readout sees besides the state."""

    input_delays: int
    present_input: bool
    output_delays: int
    constant: bool


@njit(**OPTIONS)
def fill_features(net, sees, u, y, before, k, out):
    """phi(k) = [x(k), u(k-1) .. u(k-d), u(k), y(k-1) .. y(k-m), 1]; `before` is y before the start."""
    n, x = net.bias.size, net.x
    for i in range(n):
        out[i] = x[i]
    fill_tail(sees, u, y, before, k, out[n:])


@njit(**OPTIONS)
def fill_tail(sees, u, y, before, k, out):
    """phi(k) without the state."""
    at = 0
    for delay in range(1, sees.input_delays + 1):
        for j in range(u.shape[1]):
            out[at] = u[max(k - delay, 0), j]
            at += 1
    if sees.present_input:
        for j in range(u.shape[1]):
            out[at] = u[k, j]
            at += 1
    for delay in range(1, sees.output_delays + 1):
        for j in range(y.shape[1]):
            out[at] = y[k - delay, j] if k >= delay else before[j]
            at += 1
    if sees.constant:
        out[at] = 1.0


@njit(**OPTIONS)
def regression_rows(net, sees, u, fed, y, washout, start, block):
    """Run on from time `start`, one row [phi(k), y(k)] for each k >= washout, until `block` is full.

    Returns the time reached and the number of rows.
    """
    columns = block.shape[1] - y.shape[1]
    k, row = start, 0
    while k < u.shape[0] and row < block.shape[0]:
        if k >= washout:
            fill_features(net, sees, u, fed, fed[0], k, block[row])
            block[row, columns:] = y[k]
            row += 1
        advance(net, u[k], fed[k])
        k += 1
    return k, row


@njit(**OPTIONS)
def gram(net, sees, u, fed, y, washout, padding, block, total, blas):
    """total += [Phi, Y]'[Phi, Y] of a segment, accumulated over blocks of rows: Phi itself is never whole."""
    addresses, ints, reals, flags = blas
    rest(net, u[0], fed[0], padding)
    k = 0
    while k < u.shape[0]:
        k, rows = regression_rows(net, sees, u, fed, y, washout, k, block)
        if rows > 0:
            gram_update(addresses, ints, reals, flags, block, rows, total)


@njit(**OPTIONS)
def _output(net, sees, readout, u, fed, before, k, tail):
    """fed[k] = W_out phi(k); return whether it is finite."""
    n = net.bias.size
    fill_tail(sees, u, fed, before, k, tail)
    finite = True
    for o in range(readout.shape[0]):
        value = dot(readout[o], net.x, n) + dot(readout[o, n:], tail, tail.size)
        fed[k, o] = value
        finite = finite and np.isfinite(value)
    return finite


@njit(**OPTIONS)
def free_run(net, sees, readouts, u, y, washout, padding, out):
    """Outputs at k >= washout for each readout, the model's own output fed back."""
    rest(net, u[0], y[0], padding)
    for k in range(washout):
        advance(net, u[k], y[k])
    start = net.x.copy()
    fed = np.empty(y.shape)
    fed[:washout] = y[:washout]
    tail = np.empty(readouts.shape[2] - net.bias.size)
    for r in range(readouts.shape[0]):
        net.x[:] = start
        fed[washout:] = np.nan
        for k in range(washout, u.shape[0]):
            if not _output(net, sees, readouts[r], u, fed, y[0], k, tail):
                break  # diverged: the rest stays NaN
            advance(net, u[k], fed[k])
        out[r] = fed[washout:]


@njit(**OPTIONS)
def predict(net, sees, readouts, u, y, washout, horizon, padding, out):
    """Outputs at k >= washout for each readout, predicted from the measured outputs up to k - horizon."""
    tail = np.empty(readouts.shape[2] - net.bias.size)
    measured = net.x.copy()
    for r in range(readouts.shape[0]):
        fed = y.copy()
        rest(net, u[0], y[0], padding)
        reached = 0
        for end in range(washout, u.shape[0]):
            first = max(end - horizon + 1, 0)
            while reached < first:
                advance(net, u[reached], y[reached])
                reached += 1
            measured[:] = net.x
            for k in range(first, end + 1):
                _output(net, sees, readouts[r], u, fed, y[0], k, tail)
                if k < end:
                    advance(net, u[k], fed[k])
            out[r, end - washout] = fed[end]
            fed[first : end + 1] = y[first : end + 1]
            net.x[:] = measured
