"""The stages of one trial: rows of the regression, Gram matrix, free run, prediction."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, uint64

from echobound.arrays import Vector
from echobound.kernels.cpu.fortran import cholesky, gram_update, triangle_solve
from echobound.kernels.cpu.step import OPTIONS, advance, bare, bare_net, rest, row_dot


class ReadoutInputs(NamedTuple):
    """What the readout is applied to besides the state."""

    input_delays: int
    present_input: bool
    output_delays: int
    constant: bool


class Clip(NamedTuple):
    """To what range outputs are clipped; `any` is False if they are not."""

    any: bool
    low: Vector
    high: Vector


@njit(**OPTIONS, inline="always")
def fill_tail(readout_inputs, u, y, y_before, k, out, row, start):
    """phi(k) without the state, to out[row, start:]: u(k-1) .. u(k-d), u(k), y(k-1) .. y(k-m), 1."""
    at = start
    for delay in range(1, readout_inputs.input_delays + 1):
        for j in range(u.shape[1]):
            out[row, at] = u[max(k - delay, 0), j]
            at += 1
    if readout_inputs.present_input:
        for j in range(u.shape[1]):
            out[row, at] = u[k, j]
            at += 1
    for delay in range(1, readout_inputs.output_delays + 1):
        for j in range(y.shape[1]):
            out[row, at] = y[k - delay, j] if k >= delay else y_before[0, j]
            at += 1
    if readout_inputs.constant:
        out[row, at] = 1.0


@njit(**OPTIONS)
def regression_rows(net, readout_inputs, u, fed, y, washout, start, chunk):
    """Continue from time `start`, with a row [phi(k), y(k)] for each k >= washout, until `chunk` is full.

    Returns the time reached and the number of rows.
    """
    net, u, fed, y, chunk = bare_net(net), bare(u), bare(fed), bare(y), bare(chunk)
    n, columns, x = net.bias.size, chunk.shape[1] - y.shape[1], net.x
    k, row = start, 0
    while k < u.shape[0] and row < chunk.shape[0]:
        if k >= washout:
            line = uint64(row)
            for i in range(uint64(n)):
                chunk[line, i] = x[i]
            fill_tail(readout_inputs, u, fed, fed, k, chunk, row, n)
            for j in range(y.shape[1]):
                chunk[row, columns + j] = y[k, j]
            row += 1
        advance(net, u, fed, k)
        k += 1
    return k, row


@njit(**OPTIONS)
def gram(net, readout_inputs, u, fed, y, washout, padding, chunk, total, blas):
    """total += [Phi, Y]'[Phi, Y] of a segment, accumulated over chunks of rows: Phi is never held as a whole."""
    addresses, ints, reals, flags = blas
    rest(net, u, fed, padding)
    k = 0
    while k < u.shape[0]:
        k, rows = regression_rows(net, readout_inputs, u, fed, y, washout, k, chunk)
        if rows > 0:
            gram_update(addresses, ints, reals, flags, chunk, rows, total)


@njit(**OPTIONS)
def ridge_readout(total, factor, ridge, weights, blas):
    """Solve (Phi'Phi + ridge trace/p I) W' = Phi'Y from the Gram matrix of [Phi, Y]; return whether it was possible."""
    addresses, ints, _, flags = blas
    p = weights.shape[1]
    trace = 0.0
    for i in range(p):
        trace += total[i, i]
    factor[:] = total  # Cholesky overwrites it, and the next ridge needs the Gram matrix
    for i in range(p):
        factor[i, i] += ridge * trace / p
    if not cholesky(addresses, ints, flags, factor, p):
        return False
    weights[:] = total[p:, :p]
    triangle_solve(addresses, ints, flags, factor, p, weights)
    return True


@njit(**OPTIONS, inline="always")
def output(net, readout_inputs, readouts, r, u, fed, y, k, clip, tail):
    """fed(k) = W_out phi(k), clipped, for readout r; return whether it is finite. y(0) stands for outputs before."""
    n = net.bias.size
    fill_tail(readout_inputs, u, fed, y, k, tail, 0, 0)
    finite = True
    for o in range(readouts.shape[1]):
        value = row_dot(readouts, r, o, net.x, n)
        for i in range(tail.shape[1]):
            value += readouts[r, o, n + i] * tail[0, i]
        if clip.any:  # what is not a number is at the lower limit
            value = clip.high[o] if value > clip.high[o] else (value if value >= clip.low[o] else clip.low[o])
        fed[k, o] = value
        finite = finite and np.isfinite(value)
    return finite


@njit(**OPTIONS)
def free_run(net, readout_inputs, readouts, u, y, washout, padding, clip, out):
    """Outputs at k >= washout for each readout, the model's own output fed back."""
    net, readouts, u, y = bare_net(net), bare(readouts), bare(u), bare(y)
    rest(net, u, y, padding)
    for k in range(washout):
        advance(net, u, y, k)
    start = net.x.copy()  # all readouts share the washout
    history, beside = np.empty(y.shape), np.empty((1, readouts.shape[2] - net.bias.size))
    fed, tail = bare(history), bare(beside)
    fed[:washout] = y[:washout]
    for r in range(readouts.shape[0]):
        net.x[:] = start
        fed[washout:] = np.nan
        for k in range(washout, u.shape[0]):
            if not output(net, readout_inputs, readouts, r, u, fed, y, k, clip, tail):
                break  # diverged: the rest stays NaN
            advance(net, u, fed, k)
        out[r] = history[washout:]


@njit(**OPTIONS)
def predict(net, readout_inputs, readouts, u, y, washout, horizon, padding, clip, out):
    """Outputs at k >= washout for each readout, predicted from the measured outputs up to k - horizon."""
    tail = np.empty((1, readouts.shape[2] - net.bias.size))
    measured = net.x.copy()
    for r in range(readouts.shape[0]):
        fed = y.copy()
        rest(net, u, y, padding)
        reached = 0
        for end in range(washout, u.shape[0]):
            first = max(end - horizon + 1, 0)
            while reached < first:
                advance(net, u, y, reached)
                reached += 1
            measured[:] = net.x  # from here each prediction branches off
            for k in range(first, end + 1):
                output(net, readout_inputs, readouts, r, u, fed, y, k, clip, tail)
                if k < end:
                    advance(net, u, fed, k)
            out[r, end - washout] = fed[end]
            fed[first : end + 1] = y[first : end + 1]
            net.x[:] = measured
