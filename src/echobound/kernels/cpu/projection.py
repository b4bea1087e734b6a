"""Variable projection as one compiled call: iterations, trial steps and damping without Python in between.

The same as `network.training.separable.descend`, up to rounding. The Gram matrices take two thirds of the time of a
cascade; what is between them are small matrices, for which Python takes longer than for the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import carray, njit

from echobound.arrays import Array, Integers, Matrix, Vector
from echobound.kernels.cpu.cascade import CHUNK, features_gram, jacobian_gram
from echobound.kernels.cpu.fortran import cholesky, routines, schur_complement, triangle_solve
from echobound.kernels.cpu.net import contiguous
from echobound.kernels.cpu.step import pointer
from echobound.network.cascade import RADIUS, Cascade
from echobound.network.training.cascade_tools import Stretch
from echobound.network.training.separable import (
    EASIER,
    FIRST_DAMPING,
    HARDER,
    LEAST_DAMPING,
    NEGLIGIBLE,
    PATIENCE,
    TRIES,
    Coordinates,
)

OPTIONS = {"nogil": True, "error_model": "numpy"}


class Fixed(NamedTuple):
    """What no step changes."""

    sizes: Integers  # units, signals of z, sections of the front and of the back bank, inputs, outputs
    shared: bool
    front_factors: Matrix
    back_factors: Matrix
    stretches: Integers  # (stretch, 5): address of u, of y, first, split, length
    ridge: float


class Room(NamedTuple):
    """Memory for one descent; C columns of the readout, P parameters, O outputs."""

    chunk: Matrix
    totals: Array  # (2, C + O, C + O): trained on, held out
    chunks: Array
    grams: Array  # (O, C + P + 1, C + P + 1)
    factor: Matrix  # (C, C)
    across: Matrix  # (P, C)
    curvature: Matrix  # (P, P), by the parameters


def descend(coordinates: Coordinates, stretches: Sequence[Stretch], ridge: float, iterations: int) -> Cascade | None:
    """The cascade with the least error on the samples that are held out, of those that the descent came by."""
    form, start = coordinates.form, contiguous(coordinates.start())
    outputs, columns, count = stretches[0].y.shape[1], form.columns, form.parameters.size
    signals = [(contiguous(one.u), contiguous(one.y), one) for one in stretches]
    table = [(u.ctypes.data, y.ctypes.data, one.first, one.split, len(u)) for u, y, one in signals]
    sizes = (form.units, form.weights.shape[1], len(form.front), len(form.back), form.inputs, outputs)
    factors = contiguous(form.front_factors), contiguous(form.back_factors)
    fixed = Fixed(np.array(sizes), coordinates.shared, *factors, np.array(table), float(ridge))
    width, wide = columns + outputs, columns + count + 1
    room = Room(
        np.zeros((CHUNK, width)), np.zeros((2, width, width)), np.zeros((outputs, CHUNK, wide)),
        np.zeros((outputs, wide, wide)), np.zeros((columns, columns)), np.zeros((count, columns)),
        np.zeros((count, count)),
    )  # fmt: skip
    best: Vector = start.copy()
    return coordinates.at(best)[0] if _descend(fixed, room, start, iterations, routines(), best) else None


@njit(**OPTIONS)
def _sections(free):
    """As `network.cascade.stable_sections`: sections (section, 2), and their derivatives."""
    count = free.size // 2
    sections, slopes = np.empty((count, 2)), np.zeros((count, 2, 2))
    for s in range(count):
        p, q = np.tanh(free[2 * s]), np.tanh(free[2 * s + 1])
        sections[s, 0], sections[s, 1] = RADIUS * (1 + q) * p, RADIUS**2 * q
        slopes[s, 0, 0] = RADIUS * (1 + q) * (1 - p * p)
        slopes[s, 0, 1] = RADIUS * p * (1 - q * q)
        slopes[s, 1, 1] = RADIUS**2 * (1 - q * q)
    return sections, slopes


@njit(**OPTIONS)
def _cascade(fixed, values):
    """Weights, bias, sections and their derivatives, of these values; see `Coordinates`."""
    units, signals, front = fixed.sizes[0], fixed.sizes[1], fixed.sizes[2]
    weights = np.empty((units, signals))
    for j in range(units):
        for i in range(signals):
            weights[j, i] = values[signals + j] * values[i] if fixed.shared else values[j * signals + i]
    at = signals + units if fixed.shared else units * signals
    bias = values[at : at + units].copy()
    at += units
    ahead, ahead_slopes = _sections(values[at : at + 2 * front])
    behind, behind_slopes = _sections(values[at + 2 * front :])
    return weights, bias, ahead, ahead_slopes, behind, behind_slopes


@njit(**OPTIONS)
def _factorised(gram, columns, ridge, factor, blas):
    """Cholesky factor of the leading part of a Gram matrix with a ridge; return whether there is one."""
    for i in range(columns):
        for j in range(i + 1):
            if not np.isfinite(gram[i, j]):
                return False
            factor[i, j] = gram[i, j]
        factor[i, i] += ridge
    return cholesky(blas[0], blas[1], blas[3], factor, columns)


@njit(**OPTIONS)
def _point(fixed, room, values, readout, blas):
    """Objective, error on what is held out, and whether there are such; the readout is written."""
    if not np.isfinite(values).all():
        return np.inf, np.inf, False
    weights, bias, front, _, back, _ = _cascade(fixed, values)
    inputs, outputs, columns = fixed.sizes[4], fixed.sizes[5], readout.shape[1]
    room.totals[:] = 0.0
    for s in range(len(fixed.stretches)):
        length = fixed.stretches[s, 4]
        u = carray(pointer(fixed.stretches[s, 0]), (length, inputs), np.float64)
        y = carray(pointer(fixed.stretches[s, 1]), (length, outputs), np.float64)
        features_gram(
            front, fixed.front_factors, weights, bias, back, fixed.back_factors, u, y, fixed.stretches[s, 2:],
            room.chunk, room.totals, blas[0], blas[1], blas[2], blas[3],
        )  # fmt: skip
    trained, held_out = room.totals[0], room.totals[1]
    if not _factorised(trained, columns, fixed.ridge * trained[columns - 1, columns - 1], room.factor, blas):
        return np.inf, np.inf, False
    objective = 0.0
    for o in range(outputs):
        for i in range(columns):
            readout[o, i] = trained[columns + o, i]
        objective += trained[columns + o, columns + o]
    triangle_solve(blas[0], blas[1], blas[3], room.factor, columns, readout)
    for o in range(outputs):
        for i in range(columns):
            objective -= readout[o, i] * trained[columns + o, i]
    if not (np.isfinite(readout).all() and np.isfinite(objective)):
        return np.inf, np.inf, False
    rows, error = held_out[columns - 1, columns - 1], objective  # the last feature is 1
    if rows > 0:
        error = _squared_error(held_out, readout) / rows
    return objective, error, np.isfinite(error)


@njit(**OPTIONS)
def _squared_error(total, readout):
    """Squared error of a readout over the rows of a Gram matrix of [F, Y]."""
    columns, error = readout.shape[1], 0.0
    for o in range(readout.shape[0]):
        error += total[columns + o, columns + o]
        for i in range(columns):
            row = 0.5 * total[i, i] * readout[o, i] - total[columns + o, i]
            for j in range(i):
                row += total[i, j] * readout[o, j]
            error += 2.0 * readout[o, i] * row
    return max(error, 0.0)


@njit(**OPTIONS)
def _normal_equations(fixed, room, values, readout, matrix, gradient, blas):
    """Kaufman's matrix, its lower triangle, and the gradient, by the free values."""
    weights, bias, front, front_slopes, back, back_slopes = _cascade(fixed, values)
    units, behind, inputs, outputs = fixed.sizes[0], fixed.sizes[3], fixed.sizes[4], fixed.sizes[5]
    columns, count, own = readout.shape[1], room.across.shape[0], 2 * behind + 1
    now, then = np.empty((outputs, behind, units)), np.empty((outputs, behind, units))
    direct = np.empty((outputs, units))
    for o in range(outputs):
        for j in range(units):
            for s in range(behind):
                first = fixed.back_factors[s, 0] * readout[o, j * own + 2 * s]
                second = fixed.back_factors[s, 1] * readout[o, j * own + 2 * s + 1]
                now[o, s, j], then[o, s, j] = first + second, first - second
            direct[o, j] = readout[o, j * own + 2 * behind]
    linear = readout[:, units * own : columns - 1].copy()
    room.grams[:] = 0.0
    for s in range(len(fixed.stretches)):
        length = fixed.stretches[s, 4]
        u = carray(pointer(fixed.stretches[s, 0]), (length, inputs), np.float64)
        y = carray(pointer(fixed.stretches[s, 1]), (length, outputs), np.float64)
        jacobian_gram(
            front, fixed.front_factors, weights, bias, back, fixed.back_factors, now, then, direct, linear, u, y,
            fixed.stretches[s, 2:4], room.chunks, room.grams, blas[0], blas[1], blas[2], blas[3],
        )  # fmt: skip
    room.curvature[:] = 0.0
    slope = np.zeros(count)
    for o in range(outputs):
        total = room.grams[o]
        if not _factorised(total, columns, fixed.ridge * total[columns - 1, columns - 1], room.factor, blas):
            continue
        for i in range(count):
            value = total[columns + count, columns + i]
            for c in range(columns):
                room.across[i, c] = total[columns + i, c]
                value -= total[columns + i, c] * readout[o, c]
            slope[i] += value
            for j in range(i + 1):
                room.curvature[i, j] += total[columns + i, columns + j]
        schur_complement(blas[0], blas[1], blas[2], blas[3], room.factor, room.across, room.curvature)
    for i in range(count):
        for j in range(i):
            room.curvature[j, i] = room.curvature[i, j]
    half = np.empty((values.size, count))
    for i in range(count):
        _by_values(fixed, values, front_slopes, back_slopes, room.curvature[i], half[:, i])
    for i in range(values.size):
        _by_values(fixed, values, front_slopes, back_slopes, half[i], matrix[i])
    _by_values(fixed, values, front_slopes, back_slopes, slope, gradient)


@njit(**OPTIONS)
def _by_values(fixed, values, front_slopes, back_slopes, by_parameters, found):
    """Derivatives by the free values from those by the parameters."""
    units, signals = fixed.sizes[0], fixed.sizes[1]
    found[:] = 0.0
    if fixed.shared:
        for j in range(units):
            for i in range(signals):
                found[i] += values[signals + j] * by_parameters[j * signals + i]
                found[signals + j] += values[i] * by_parameters[j * signals + i]
        to = signals + units
    else:
        to = units * signals
        found[:to] = by_parameters[:to]
    at = units * signals
    found[to : to + units] = by_parameters[at : at + units]
    to, at = to + units, at + units
    for slopes in (front_slopes, back_slopes):
        for s in range(len(slopes)):
            for free in range(2):
                found[to + free] = slopes[s, 0, free] * by_parameters[at] + slopes[s, 1, free] * by_parameters[at + 1]
            to, at = to + 2, at + 2


@njit(**OPTIONS)
def _step(matrix, gradient, damping, factor, step, blas):
    """A damped step; return whether there is one."""
    size, largest = gradient.size, -np.inf
    for i in range(size):
        largest = max(largest, matrix[i, i])
    for i in range(size):
        step[0, i] = gradient[i]
    for i in range(size):
        for j in range(i + 1):
            if not np.isfinite(matrix[i, j]):
                return False
            factor[i, j] = matrix[i, j]
        factor[i, i] += damping * max(matrix[i, i], 1e-9 * largest)
    if not cholesky(blas[0], blas[1], blas[3], factor, size):
        return False
    triangle_solve(blas[0], blas[1], blas[3], factor, size, step)
    return True


@njit(**OPTIONS)
def _descend(fixed, room, start, iterations, blas, best):
    """Write the best values; return whether there are any. See `network.training.separable.descend`."""
    size, outputs, columns = start.size, fixed.sizes[5], room.factor.shape[0]
    matrix, factor, gradient = np.empty((size, size)), np.empty((size, size)), np.empty(size)
    step, readout, other = np.empty((1, size)), np.empty((outputs, columns)), np.empty((outputs, columns))
    values = start.copy()
    objective, least, valid = _point(fixed, room, values, readout, blas)
    best[:] = values
    damping, waited = FIRST_DAMPING, 0
    if not valid:
        return False
    for _ in range(iterations):
        if waited > PATIENCE:
            break
        _normal_equations(fixed, room, values, readout, matrix, gradient, blas)
        found, before, error = False, objective, np.inf
        for _ in range(TRIES):
            if _step(matrix, gradient, damping, factor, step, blas):
                there = values + step[0]
                less, error, valid = _point(fixed, room, there, other, blas)
                if valid and less < objective:
                    found = True
                    values, objective = there, less
                    readout, other = other, readout
                    break
            damping *= HARDER
        if not found:
            break
        damping = max(damping / EASIER, LEAST_DAMPING)
        if error < least:
            best[:] = values
            least, waited = error, 0
        else:
            waited += 1
        if before - objective < NEGLIGIBLE * before:
            break
    return True
