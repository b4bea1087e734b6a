"""Derivatives of a free run in compiled code: as `network.derivatives`, summed up chunk by chunk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit, uint64

from echobound.arrays import Matrix, Signal, Vector
from echobound.kernels.cpu.fortran import gram_update, routines
from echobound.kernels.cpu.net import clip_of, contiguous, readout_inputs_of
from echobound.kernels.cpu.stages import fill_tail
from echobound.kernels.cpu.step import OPTIONS, bare, tanh
from echobound.network.derivatives import NormalEquations, weights_of
from echobound.network.limits import Limits
from echobound.network.reservoir import Reservoir

CHUNK = 128  # rows of [J, e] in hand


@njit(**OPTIONS, inline="always")
def _combine(z, target, sources, weights, used, count):
    """z[target] = sum of weights[i] z[sources[i]], four at a time, to load and store a row less often."""
    out, size = uint64(target), uint64(count)
    for p in range(size):
        z[out, p] = 0.0
    i = 0
    while i + 4 <= used:
        a, b, c, d = uint64(sources[i]), uint64(sources[i + 1]), uint64(sources[i + 2]), uint64(sources[i + 3])
        v, w, x, y = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        for p in range(size):
            z[out, p] += (v * z[a, p] + w * z[b, p]) + (x * z[c, p] + y * z[d, p])
        i += 4
    while i < used:
        a, v = uint64(sources[i]), weights[i]
        for p in range(size):
            z[out, p] += v * z[a, p]
        i += 1


@njit(**OPTIONS)
def accumulate(net, readout_inputs, readout, u, y, washout, padding, clip, whole, importance, z, chunk, total, blas):
    """total += [J, e]'[J, e] over one segment; see `network.derivatives` for the recursion.

    The rows of z are S(k), S(k+1), which change places, and a ring of F(k), F(k-1) .. F(k-m).
    """
    values, columns, W_u, W_y, bias, leak = net
    addresses, ints, reals, flags = blas
    slots, n = values.shape
    inputs, outputs, width = u.shape[1], readout.shape[0], readout.shape[1]
    count, delays = chunk.shape[1] - 1, readout_inputs.output_delays
    first, ring = count - outputs * width, 2 * n  # where the readout is in theta, and where F is in z
    at_y = n + (readout_inputs.input_delays + (1 if readout_inputs.present_input else 0)) * inputs
    z = bare(z)
    z[:] = 0.0
    x, ahead = np.zeros(n), np.zeros(n)
    most = n + slots + (delays + 1) * outputs
    sources, weights = np.zeros(most, np.int64), np.zeros(most)
    fed, tail = y.copy(), np.zeros((1, width - n))
    row, head, now, later = 0, 0, 0, n
    for k in range(-padding, u.shape[0]):
        at = max(k, 0)
        own = ring + head * outputs
        if k >= washout:
            fill_tail(readout_inputs, u, fed, y, k, tail, 0, 0)
            for i in range(n):
                sources[i] = now + i
            for delay in range(1, delays + 1):
                for j in range(outputs):
                    place = (delay - 1) * outputs + j
                    sources[n + place] = ring + ((head + delay) % (delays + 1)) * outputs + j
            for o in range(outputs):
                value = 0.0
                for i in range(n):
                    value += readout[o, i] * x[i]
                    weights[i] = readout[o, i]
                for i in range(width - n):
                    value += readout[o, n + i] * tail[0, i]
                for i in range(delays * outputs):
                    weights[n + i] = readout[o, at_y + i]
                clipped = value
                if clip.any:
                    clipped = clip.high[o] if value > clip.high[o] else (value if value >= clip.low[o] else clip.low[o])
                fed[k, o] = clipped
                if clipped == value:
                    _combine(z, own + o, sources, weights, n + delays * outputs, count)
                    start = first + o * width
                    for i in range(n):
                        z[own + o, start + i] += x[i]
                    for i in range(width - n):
                        z[own + o, start + n + i] += tail[0, i]
                else:
                    _combine(z, own + o, sources, weights, 0, count)
            for o in range(outputs):
                for p in range(count):
                    chunk[row, p] = importance[o] * z[own + o, p]
                chunk[row, count] = importance[o] * (y[k, o] - fed[k, o])
                row += 1
                if row == chunk.shape[0]:
                    gram_update(addresses, ints, reals, flags, chunk, row, total)
                    row = 0
        else:
            for o in range(outputs):
                _combine(z, own + o, sources, weights, 0, count)
        for i in range(n):
            inside = bias[i]
            for j in range(slots):
                sources[j], weights[j] = now + columns[j, i], values[j, i]
                inside += values[j, i] * x[columns[j, i]]
            for j in range(inputs):
                inside += W_u[i, j] * u[at, j]
            for o in range(outputs):
                inside += W_y[i, o] * fed[at, o]
                sources[slots + o], weights[slots + o] = own + o, W_y[i, o]
            bent = tanh(inside)
            keep, slope = 1.0 - leak[i], leak[i] * (1.0 - bent * bent)
            ahead[i] = keep * x[i] + leak[i] * bent
            used = slots + outputs if k >= washout else slots
            for j in range(used):
                weights[j] *= slope
            sources[used], weights[used] = now + i, keep
            _combine(z, later + i, sources, weights, used + 1, count)
            if whole:
                column = 0
                for j in range(slots):
                    z[later + i, column + i] += slope * x[columns[j, i]]
                    column += n
                for j in range(inputs):
                    z[later + i, column + i * inputs + j] += slope * u[at, j]
                column += n * inputs
                for o in range(outputs):
                    z[later + i, column + i * outputs + o] += slope * fed[at, o]
                z[later + i, column + n * outputs + i] += slope
        x, ahead = ahead, x
        now, later = later, now
        if k >= 0:
            head = (head + delays) % (delays + 1)  # one back in the ring: what was F(k) is then F(k-1)
    if row > 0:
        gram_update(addresses, ints, reals, flags, chunk, row, total)


def normal_equations(
    reservoir: Reservoir,
    readout: Matrix,
    segments: Sequence[tuple[Signal, Signal, int]],
    importance: Vector,
    padding: int,
    limits: Limits | None,
    whole: bool,
) -> NormalEquations:
    """As `network.derivatives.normal_equations`."""
    count = weights_of(reservoir, readout, whole).size
    chunk, total = np.empty((CHUNK, count + 1)), np.zeros((count + 1, count + 1))
    z = np.empty((2 * reservoir.order + (reservoir.hyper.output_delays + 1) * len(readout), count))
    blas = routines()
    columns = np.ascontiguousarray(reservoir.columns, dtype=np.int64)
    values, W_u, W_y, bias, leak = (
        contiguous(getattr(reservoir, name)) for name in ("values", "W_u", "W_y", "bias", "leak")
    )
    net, readout_inputs = (values, columns, W_u, W_y, bias, leak), readout_inputs_of(reservoir.hyper)
    rest = (padding, clip_of(limits, len(readout)), whole, contiguous(importance), z, chunk, total, blas)
    for u, y, washout in segments:
        accumulate(net, readout_inputs, contiguous(readout), contiguous(u), contiguous(y), washout, *rest)
    total = np.tril(total) + np.tril(total, -1).T  # Fortran's upper triangle is the lower one here
    return NormalEquations(float(total[-1, -1]), total[:-1, -1].copy(), total[:-1, :-1].copy())
