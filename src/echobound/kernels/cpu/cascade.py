"""Gram matrices of a cascade's features and derivatives, compiled: sample by sample, a chunk of rows at a time.

The arithmetic is that of `network.training.cascade_tools`; the order of some sums is not.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from echobound.kernels.cpu.fortran import gram_update

CHUNK = 128  # rows in hand, as for reservoirs
OPTIONS = {"nogil": True, "error_model": "numpy"}


@njit(**OPTIONS)
def _steady_front(front, u, v):
    """v(-1) = v(-2) of each section and channel, as if the first sample had been held before."""
    for c in range(u.shape[1]):
        for s in range(front.shape[0]):
            level = u[0, c] / (1.0 + front[s, 0] + front[s, 1])
            v[c, s, 1] = level
            v[c, s, 2] = level


@njit(**OPTIONS)
def _front_step(front, factors, u, k, v, z):
    """Shift the states v of the front bank by one sample, and put its signals into z."""
    sections = front.shape[0]
    width = 2 * sections + 1
    for c in range(u.shape[1]):
        for s in range(sections):
            new = u[k, c] - front[s, 0] * v[c, s, 1] - front[s, 1] * v[c, s, 2]
            v[c, s, 0] = new
            z[c * width + 2 * s] = factors[s, 0] * (new + v[c, s, 1])
            z[c * width + 2 * s + 1] = factors[s, 1] * (new - v[c, s, 1])
        z[c * width + 2 * sections] = u[k, c]


@njit(**OPTIONS)
def _units(weights, bias, z, h):
    for j in range(bias.size):
        value = bias[j]
        for i in range(z.size):
            value += weights[j, i] * z[i]
        h[j] = np.tanh(value)


@njit(**OPTIONS)
def _feature_row(factors, z, h, b, row):
    """One row of F, from z, h and the states b of the back bank, of which place 0 is the present one."""
    sections, at = factors.shape[0], 0
    for j in range(h.size):
        for s in range(sections):
            row[at] = factors[s, 0] * (b[j, s, 0] + b[j, s, 1])
            row[at + 1] = factors[s, 1] * (b[j, s, 0] - b[j, s, 1])
            at += 2
        row[at] = h[j]
        at += 1
    for i in range(z.size):
        row[at + i] = z[i]
    row[at + z.size] = 1.0
    return at + z.size + 1


@njit(**OPTIONS)
def _back_step(back, h, b, k):
    for j in range(h.size):
        for s in range(back.shape[0]):
            if k == 0:
                level = h[j] / (1.0 + back[s, 0] + back[s, 1])
                b[j, s, 1] = level
                b[j, s, 2] = level
            b[j, s, 0] = h[j] - back[s, 0] * b[j, s, 1] - back[s, 1] * b[j, s, 2]


@njit(**OPTIONS)
def _shift(states):
    """One sample on: place 0 becomes place 1."""
    for i in range(states.shape[0]):
        for s in range(states.shape[1]):
            for place in range(states.shape[2] - 1, 0, -1):
                states[i, s, place] = states[i, s, place - 1]


@njit(**OPTIONS)
def features_gram(
    front, front_factors, weights, bias, back, back_factors, u, y, bounds, chunk, totals, addresses, ints, reals, flags
):
    """totals[0] += [F, Y]'[F, Y] over the rows from bounds[0] to bounds[1], totals[1] over those to bounds[2]."""
    v = np.zeros((u.shape[1], front.shape[0], 3))
    b = np.zeros((bias.size, back.shape[0], 3))
    z, h = np.empty(weights.shape[1]), np.empty(bias.size)
    _steady_front(front, u, v)
    part, rows = 0, 0
    for k in range(bounds[2]):
        _front_step(front, front_factors, u, k, v, z)
        _units(weights, bias, z, h)
        _back_step(back, h, b, k)
        if k == bounds[1]:
            if rows > 0:
                gram_update(addresses, ints, reals, flags, chunk, rows, totals[0])
            part, rows = 1, 0
        if k >= bounds[0]:
            at = _feature_row(back_factors, z, h, b, chunk[rows])
            for o in range(y.shape[1]):
                chunk[rows, at + o] = y[k, o]
            rows += 1
            if rows == chunk.shape[0]:
                gram_update(addresses, ints, reals, flags, chunk, rows, totals[part])
                rows = 0
        _shift(v)
        _shift(b)
    if rows > 0:
        gram_update(addresses, ints, reals, flags, chunk, rows, totals[part])


@njit(**OPTIONS)
def jacobian_gram(
    front, front_factors, weights, bias, back, back_factors, now, then, direct, linear, u, y, bounds, chunks, totals,
    addresses, ints, reals, flags,
):  # fmt: skip
    """totals[o] += [F, D, y]'[F, D, y] of each output over the rows from bounds[0] to bounds[1]."""
    channels, sections, behind = u.shape[1], front.shape[0], back.shape[0]
    units, count, outputs = bias.size, weights.shape[1], y.shape[1]
    width, lines = 2 * sections + 1, count + 1 + 2 * sections
    v, p = np.zeros((channels, sections, 3)), np.zeros((channels, sections, 4))  # p: dv by c1; by c2 one sample later
    b, q = np.zeros((units, behind, 3)), np.zeros((units, behind, 4))
    z, h, slope = np.empty(count), np.empty(units), np.empty(units)
    r = np.empty((units, lines))  # what enters the back bank, for each weight, the bias and the front sections
    f0, f1, f2 = np.zeros((behind, units, lines)), np.zeros((behind, units, lines)), np.zeros((behind, units, lines))
    d = np.empty(lines)
    _steady_front(front, u, v)
    for c in range(channels):
        for s in range(sections):
            level = -v[c, s, 1] / (1.0 + front[s, 0] + front[s, 1])
            p[c, s, 1], p[c, s, 2], p[c, s, 3] = level, level, level
    rows = 0
    for k in range(bounds[1]):
        _front_step(front, front_factors, u, k, v, z)
        _units(weights, bias, z, h)
        _back_step(back, h, b, k)
        for c in range(channels):
            for s in range(sections):
                p[c, s, 0] = -v[c, s, 1] - front[s, 0] * p[c, s, 1] - front[s, 1] * p[c, s, 2]
        for j in range(units):
            slope[j] = 1.0 - h[j] * h[j]
            for i in range(count):
                r[j, i] = slope[j] * z[i]
            r[j, count] = slope[j]
            for s in range(sections):
                for i in range(2):  # by c1 and by c2
                    through = 0.0
                    for c in range(channels):
                        at = c * width + 2 * s
                        through += weights[j, at] * front_factors[s, 0] * (p[c, s, i] + p[c, s, i + 1])
                        through += weights[j, at + 1] * front_factors[s, 1] * (p[c, s, i] - p[c, s, i + 1])
                    r[j, count + 1 + 2 * s + i] = slope[j] * through
            for s in range(behind):
                c1, c2 = back[s, 0], back[s, 1]
                if k == 0:
                    for i in range(lines):
                        f1[s, j, i] = r[j, i] / (1.0 + c1 + c2)
                        f2[s, j, i] = f1[s, j, i]
                    level = -b[j, s, 1] / (1.0 + c1 + c2)
                    q[j, s, 1], q[j, s, 2], q[j, s, 3] = level, level, level
                for i in range(lines):
                    f0[s, j, i] = r[j, i] - c1 * f1[s, j, i] - c2 * f2[s, j, i]
                q[j, s, 0] = -b[j, s, 1] - c1 * q[j, s, 1] - c2 * q[j, s, 2]
        if k >= bounds[0]:
            for o in range(outputs):
                row = chunks[o, rows]
                at = _feature_row(back_factors, z, h, b, row)
                at_bias = at + units * count
                at_front = at_bias + units
                at_back = at_front + 2 * sections
                for s in range(sections):
                    for i in range(2):
                        value = 0.0
                        for c in range(channels):
                            place = c * width + 2 * s
                            value += linear[o, place] * front_factors[s, 0] * (p[c, s, i] + p[c, s, i + 1])
                            value += linear[o, place + 1] * front_factors[s, 1] * (p[c, s, i] - p[c, s, i + 1])
                        row[at_front + 2 * s + i] = value
                for j in range(units):
                    for i in range(lines):
                        d[i] = direct[o, j] * r[j, i]
                    for s in range(behind):
                        one, other = now[o, s, j], then[o, s, j]
                        for i in range(lines):
                            d[i] += one * f0[s, j, i] + other * f1[s, j, i]
                    for i in range(count):
                        row[at + j * count + i] = d[i]
                    row[at_bias + j] = d[count]
                    for i in range(2 * sections):
                        row[at_front + i] += d[count + 1 + i]
                for s in range(behind):
                    for i in range(2):
                        value = 0.0
                        for j in range(units):
                            value += now[o, s, j] * q[j, s, i] + then[o, s, j] * q[j, s, i + 1]
                        row[at_back + 2 * s + i] = value
                row[at_back + 2 * behind] = y[k, o]
            rows += 1
            if rows == chunks.shape[1]:
                for o in range(outputs):
                    gram_update(addresses, ints, reals, flags, chunks[o], rows, totals[o])
                rows = 0
        _shift(v)
        _shift(p)
        _shift(b)
        _shift(q)
        f0, f1, f2 = f2, f0, f1
    if rows > 0:
        for o in range(outputs):
            gram_update(addresses, ints, reals, flags, chunks[o], rows, totals[o])
