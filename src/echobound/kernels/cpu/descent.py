"""Training on the free-run error as one compiled call: steps, trials and damping without Python in between.

A network of ten states takes a few hundred free runs of a tenth of a millisecond each: between as many calls, threads
would wait for each other a third of the time. The same as `network.training.free_run.descend`, bit for bit with the
tools of this kernel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import carray, njit

from echobound.arrays import Array, Columns, Integers, Matrix, Vector
from echobound.kernels.cpu.derivatives import CHUNK, accumulate
from echobound.kernels.cpu.fortran import cholesky, inner, routines, triangle_solve
from echobound.kernels.cpu.net import clip_of, contiguous, net_of, readout_inputs_of
from echobound.kernels.cpu.philox import EXACT
from echobound.kernels.cpu.stages import free_run
from echobound.kernels.cpu.step import OPTIONS, Net, pointer
from echobound.network.derivatives import weights_of, with_weights
from echobound.network.reservoir import Reservoir, ReservoirDraw
from echobound.network.training import TrainingData
from echobound.network.training.free_run import FLAT, REJECTIONS, Course, Network, first_damping, importance_of


class Fixed(NamedTuple):
    """What no step changes."""

    columns: Columns  # (slot, unit)
    leak: Vector
    offsets: Columns  # as in `Net`: of cyclic diagonals, or the columns
    leaky: bool
    importance: Matrix  # (set of data, output)
    samples: Vector  # of each set, times outputs
    sets: Integers  # (segment, 5): set of data, address of u, of y, length, washout
    padding: int
    whole: bool
    penalty: float


class Room(NamedTuple):
    """Memory that the caller owns, since some of it goes by address alone."""

    chunk: Matrix
    total: Matrix
    matrix: Matrix
    slope: Matrix  # (1, weight): a right-hand side, and the step
    distance: Vector
    z: Matrix


def descend(draw: ReservoirDraw, readout: Matrix, data: TrainingData, course: Course) -> dict[int, Network]:
    """As `network.training.free_run.descend`."""
    reservoir, outputs = draw.reservoir, len(readout)
    net, sets = net_of(reservoir), course.sets(data)
    signals = [[(contiguous(s.u), contiguous(s.y), s.washout) for s in own] for own in sets]
    table = [
        (number, u.ctypes.data, y.ctypes.data, len(u), washout)
        for number, own in enumerate(signals)
        for u, y, washout in own
    ]
    theta, steps = weights_of(reservoir, readout, course.whole), np.array(sorted(set(course.steps)))
    count, states = theta.size, 2 * reservoir.order + (reservoir.hyper.output_delays + 1) * outputs
    fixed = Fixed(
        np.ascontiguousarray(reservoir.columns, dtype=np.int64), net.leak, net.columns, net.leaky,
        np.stack([importance_of(own) for own in sets]),
        np.array([sum((len(s.u) - s.washout) * outputs for s in own) for own in sets], dtype=np.float64),
        np.array(table), draw.law.padding, course.whole, float(course.penalty),
    )  # fmt: skip
    room = Room(
        np.empty((CHUNK, count + 1)), np.empty((count + 1, count + 1)), np.empty((count, count)),
        np.empty((1, count)), np.empty(count), np.empty((states, count)),
    )  # fmt: skip
    found = np.empty((len(steps), count))
    _descend(
        fixed, room, readout_inputs_of(reservoir.hyper), clip_of(draw.limits, outputs), _shapes(reservoir, readout),
        contiguous(theta), _drawn(reservoir), np.array([sets[1] is sets[0], sets[2] is sets[0]]), steps,
        course.until, first_damping(course.whole), routines(), found,
    )  # fmt: skip
    changed = [with_weights(reservoir, readout, one) for one in found]
    return {
        int(n): Network(own, other if course.whole else None) for n, (other, own) in zip(steps, changed, strict=True)
    }


def _drawn(reservoir: Reservoir) -> tuple[Array, ...]:
    return tuple(contiguous(getattr(reservoir, name)) for name in ("values", "W_u", "W_y", "bias"))


def _shapes(reservoir: Reservoir, readout: Matrix) -> Integers:
    """Slots, units, inputs, outputs, columns of the readout."""
    return np.array([*reservoir.values.shape, reservoir.W_u.shape[1], *readout.shape])


@njit(**OPTIONS)
def _arrays(fixed, shapes, theta, drawn):
    """W_x, W_u, W_y, bias and readout of these weights."""
    slots, n, inputs, outputs, width = shapes[0], shapes[1], shapes[2], shapes[3], shapes[4]
    readout = theta[theta.size - outputs * width :].reshape(outputs, width)
    if not fixed.whole:
        return drawn[0], drawn[1], drawn[2], drawn[3], readout
    a = slots * n
    b = a + n * inputs
    c = b + n * outputs
    return (
        theta[:a].reshape(slots, n),
        theta[a:b].reshape(n, inputs),
        theta[b:c].reshape(n, outputs),
        theta[c : c + n],
        readout,
    )


@njit(**EXACT)
def _leaf(values, start, count):
    """The sum of up to 128 numbers in NumPy's order."""
    if count < 8:
        total = 0.0
        for i in range(start, start + count):
            total += values[i]
        return total
    a, b, c, d = values[start], values[start + 1], values[start + 2], values[start + 3]
    e, f, g, h = values[start + 4], values[start + 5], values[start + 6], values[start + 7]
    i = start + 8
    while i < start + count - count % 8:
        a, b, c, d = a + values[i], b + values[i + 1], c + values[i + 2], d + values[i + 3]
        e, f, g, h = e + values[i + 4], f + values[i + 5], g + values[i + 6], h + values[i + 7]
        i += 8
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    while i < start + count:
        total += values[i]
        i += 1
    return total


@njit(**EXACT)
def pairwise(values):
    """The sum of numbers in the order in which NumPy adds them up: halves first, each by itself.

    With a stack of its own: a recursive function that Numba has kept on disk crashes when it is loaded.
    """
    starts, counts, stages, lefts = (
        np.zeros(64, np.int64), np.zeros(64, np.int64), np.zeros(64, np.int64), np.zeros(64)
    )  # fmt: skip
    counts[0], top, total = values.size, 0, 0.0
    while top >= 0:
        start, count = starts[top], counts[top]
        half = count // 2
        half -= half % 8
        if count <= 128:
            total = _leaf(values, start, count)
            top -= 1
        elif stages[top] == 0:
            stages[top] = 1
            top += 1
            starts[top], counts[top], stages[top] = start, half, 0
        elif stages[top] == 1:
            stages[top], lefts[top] = 2, total
            top += 1
            starts[top], counts[top], stages[top] = start + half, count - half, 0
        else:
            total = lefts[top] + total
            top -= 1
    return total


@njit(**EXACT)
def _squared(y, washout, run, importance):
    """Squared errors of one run, each output times its importance."""
    errors = np.empty((run.shape[1], run.shape[2]))
    for k in range(run.shape[1]):
        for o in range(run.shape[2]):
            error = (y[washout + k, o] - run[0, k, o]) * importance[o]
            errors[k, o] = error * error
    return pairwise(errors.reshape(-1))


@njit(**OPTIONS)
def _squares(fixed, readout_inputs, clip, shapes, theta, drawn, number):
    """As `network.training.free_run.squares`, over one set of data."""
    values, W_u, W_y, bias, readout = _arrays(fixed, shapes, theta, drawn)
    if not np.isfinite(readout).all():
        return np.inf
    n, inputs, outputs = shapes[1], shapes[2], shapes[3]
    across, back = np.ascontiguousarray(W_u.T), np.ascontiguousarray(W_y.T)
    net = Net(values, fixed.offsets, across, back, bias, fixed.leak, fixed.leaky, np.zeros(2 * n), np.zeros(n))
    readouts, total = readout.reshape(1, outputs, shapes[4]), 0.0
    for s in range(len(fixed.sets)):
        if fixed.sets[s, 0] == number:
            length, washout = fixed.sets[s, 3], fixed.sets[s, 4]
            u = carray(pointer(fixed.sets[s, 1]), (length, inputs), np.float64)
            y = carray(pointer(fixed.sets[s, 2]), (length, outputs), np.float64)
            run = np.empty((1, length - washout, outputs))
            free_run(net, readout_inputs, readouts, u, y, washout, fixed.padding, clip, run)
            total += _squared(y, washout, run, fixed.importance[number])
    return total if np.isfinite(total) else np.inf


@njit(**OPTIONS)
def _equations(fixed, room, readout_inputs, clip, shapes, theta, drawn, number, blas):
    """room.total = [J, e]'[J, e] over one set of data, both triangles."""
    values, W_u, W_y, bias, readout = _arrays(fixed, shapes, theta, drawn)
    net, total = (values, fixed.columns, W_u, W_y, bias, fixed.leak), room.total
    total[:] = 0.0
    for s in range(len(fixed.sets)):
        if fixed.sets[s, 0] == number:
            u = carray(pointer(fixed.sets[s, 1]), (fixed.sets[s, 3], shapes[2]), np.float64)
            y = carray(pointer(fixed.sets[s, 2]), (fixed.sets[s, 3], shapes[3]), np.float64)
            accumulate(
                net, readout_inputs, readout, u, y, fixed.sets[s, 4], fixed.padding, clip, fixed.whole,
                fixed.importance[number], room.z, room.chunk, total, blas,
            )  # fmt: skip
    for i in range(total.shape[0]):
        for j in range(i):
            total[j, i] = total[i, j]


@njit(**EXACT)
def _damped(total, theta, anchor, pull, damping, matrix, slope):
    """The equations of a damped step; return whether they are finite."""
    count = theta.size
    largest = -np.inf
    for i in range(count):
        for j in range(count):
            matrix[i, j] = total[i, j]
        matrix[i, i] += pull
        slope[0, i] = total[count, i] - pull * (theta[i] - anchor[i])
        largest = max(largest, matrix[i, i])
    for i in range(count):
        matrix[i, i] += damping * max(matrix[i, i], 1e-12 * largest)
    return np.isfinite(matrix).all() and np.isfinite(slope).all()


@njit(**EXACT)
def _with_penalty(squares, pull, distance, blas):
    return squares + pull * inner(blas[0], blas[1], distance)


@njit(**OPTIONS)
def _descend(
    fixed, room, readout_inputs, clip, shapes, start, drawn, same, steps, until, damping, blas, found
):  # fmt: skip
    """Weights after each number of steps, which are in ascending order; see `network.training.free_run.Descent`."""
    theta, number, taken, ended = start.copy(), 0, 0, False
    pull = fixed.penalty * fixed.samples[0]
    room.distance[:] = 0.0
    at_start = _squares(fixed, readout_inputs, clip, shapes, theta, drawn, 0)
    cost = _with_penalty(at_start, pull, room.distance, blas)
    before = np.inf if same[1] else _squares(fixed, readout_inputs, clip, shapes, theta, drawn, 2)
    for one in range(len(steps)):
        for phase in range(2):
            wanted = min(steps[one], until) if phase == 0 else steps[one]
            if phase == 1 and steps[one] > until and number == 0 and not same[0]:
                number, ended = 1, False
                pull = fixed.penalty * fixed.samples[1]
                room.distance[:] = theta - start
                squares = _squares(fixed, readout_inputs, clip, shapes, theta, drawn, 1)
                cost = _with_penalty(squares, pull, room.distance, blas)
            while taken < wanted and not ended:
                _equations(fixed, room, readout_inputs, clip, shapes, theta, drawn, number, blas)
                ended = True
                for _ in range(REJECTIONS):
                    finite = _damped(room.total, theta, start, pull, damping, room.matrix, room.slope)
                    if finite and cholesky(blas[0], blas[1], blas[3], room.matrix, theta.size):
                        triangle_solve(blas[0], blas[1], blas[3], room.matrix, theta.size, room.slope)
                        there = theta + room.slope[0]
                        room.distance[:] = there - start
                        squares = _squares(fixed, readout_inputs, clip, shapes, there, drawn, number)
                        less = _with_penalty(squares, pull, room.distance, blas)
                        if less < cost:
                            ended = less > (1.0 - FLAT) * cost
                            theta, cost = there, less
                            damping /= 4.0
                            break
                    damping *= 6.0
                taken += 1
        kept = same[1] or _squares(fixed, readout_inputs, clip, shapes, theta, drawn, 2) <= before
        found[one] = theta if kept else start
