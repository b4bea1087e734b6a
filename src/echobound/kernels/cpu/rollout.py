"""What a network's outputs will be under planned inputs, and how they change with them, in compiled code.

All signals are scaled. From the state x(0) at the present sample, with the output y(0) that is fed back now and an
offset d that is added to each output of the network before it is fed back,

    y(j)   = clip(W_out phi(j)) + d                                           j = 1 .. H
    x(j+1) = (1 - a) x(j) + a tanh(W_x x(j) + W_u u(j) + W_y y(j) + b)        j = 0 .. H-1

and, with S = dx/dv and F = dy/dv for the planned inputs v, as in `network.derivatives`,

    F(j)   = W_out dphi(j)/dv       0 where the output is clipped
    S(j+1) = (1 - a) S(j) + a (1 - tanh^2) (W_x S(j) + W_u du(j)/dv + W_y F(j)).

Only tanh is not linear. So the second derivatives of sum_j e(j)'y(j) are, with the adjoint m(j) of x(j) and the rows g
of the bracket above, the sum over j and the units of m(j+1) a tanh'' g g': as exact as the first ones, for one pass
backwards and as many small products of matrices as there are steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from echobound.arrays import Array, Matrix, Signal, Vector
from echobound.kernels.cpu.net import clip_of, contiguous, readout_inputs_of
from echobound.kernels.cpu.step import OPTIONS, bare, tanh
from echobound.network.limits import Limits
from echobound.network.reservoir import Reservoir


@njit(**OPTIONS, inline="always")
def _combine(z, target, sources, weights, used, count):
    """z[target] = sum of weights[i] z[sources[i]], over the columns that may differ from zero by now."""
    out, size = uint64(target), uint64(count)
    i = 0
    if used >= 4:
        a, b, c, d = uint64(sources[0]), uint64(sources[1]), uint64(sources[2]), uint64(sources[3])
        v, w, x, y = weights[0], weights[1], weights[2], weights[3]
        for p in range(size):
            z[out, p] = (v * z[a, p] + w * z[b, p]) + (x * z[c, p] + y * z[d, p])
        i = 4
    else:
        for p in range(size):
            z[out, p] = 0.0
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
def _rollout(net, inputs, readout, clip, start, u, column, sensitive, kept, z, outputs, slopes, bends, free):
    values, columns, W_u, W_y, bias, leak = net
    x0, past_u, past_y, now, offset = start
    slots, n = values.shape
    last, channels, size, width = u.shape[0] - 1, u.shape[1], readout.shape[0], readout.shape[1]
    delays = inputs.output_delays
    # The rows of z are S(j), S(j+1), which change places unless all of them are kept, and a ring of F(j) .. F(j-m).
    ring = (last + 1 if kept else 2) * n
    z = bare(z)
    z[:] = 0.0
    x, ahead, tail = x0.copy(), np.zeros(n), np.zeros(width - n)
    fed = np.zeros((last + 1, size))
    fed[0] = now
    most = n + slots + (delays + 1) * size + 1
    sources, weights = np.zeros(most, np.int64), np.zeros(most)
    count, head, here, later = 0, 0, 0, n
    for j in range(last + 1):
        before = count  # columns that the state may depend on
        for c in range(channels):
            count = max(count, column[j, c] + 1)
        own = ring + head * size
        if j > 0:
            at = 0
            for delay in range(1, inputs.input_delays + 1):
                for c in range(channels):
                    tail[at] = u[j - delay, c] if j >= delay else past_u[delay - j - 1, c]
                    at += 1
            if inputs.present_input:
                for c in range(channels):
                    tail[at] = u[j, c]
                    at += 1
            from_y = at
            for delay in range(1, delays + 1):
                for o in range(size):
                    tail[at] = fed[j - delay, o] if j >= delay else past_y[delay - j - 1, o]
                    at += 1
            if inputs.constant:
                tail[at] = 1.0
            for o in range(size):
                value = 0.0
                for i in range(n):
                    value += readout[o, i] * x[i]
                for i in range(width - n):
                    value += readout[o, n + i] * tail[i]
                held = value
                if clip.any:
                    held = clip.high[o] if value > clip.high[o] else (value if value >= clip.low[o] else clip.low[o])
                fed[j, o] = held + offset[o]
                outputs[j - 1, o] = fed[j, o]
                free[j - 1, o] = held == value
                if not sensitive:
                    continue
                if held != value:
                    _combine(z, own + o, sources, weights, 0, count)
                    continue
                for i in range(n):
                    sources[i], weights[i] = here + i, readout[o, i]
                used = n
                for delay in range(1, min(delays, j - 1) + 1):  # y(0) and what was before it are given
                    for p in range(size):
                        sources[used] = ring + ((head + delay) % (delays + 1)) * size + p
                        weights[used] = readout[o, n + from_y + (delay - 1) * size + p]
                        used += 1
                _combine(z, own + o, sources, weights, used, count)
                at = n
                for delay in range(1, inputs.input_delays + 1):
                    for c in range(channels):
                        if j >= delay and column[j - delay, c] >= 0:
                            z[own + o, column[j - delay, c]] += readout[o, at]
                        at += 1
                if inputs.present_input:
                    for c in range(channels):
                        if column[j, c] >= 0:
                            z[own + o, column[j, c]] += readout[o, at]
                        at += 1
            if sensitive:
                for o in range(size):
                    for p in range(count):
                        slopes[j - 1, o, p] = z[own + o, p]
        if j == last:
            break
        for i in range(n):
            inside = bias[i]
            for s in range(slots):
                inside += values[s, i] * x[columns[s, i]]
            for c in range(channels):
                inside += W_u[i, c] * u[j, c]
            for o in range(size):
                inside += W_y[i, o] * fed[j, o]
            bent = tanh(inside)
            ahead[i] = (1.0 - leak[i]) * x[i] + leak[i] * bent
            bends[j, i] = bent
            if not sensitive:
                continue
            slope, used = leak[i] * (1.0 - bent * bent), 0
            if before > 0:
                for s in range(slots):
                    sources[s], weights[s] = here + columns[s, i], slope * values[s, i]
                used = slots
            if j > 0:
                for o in range(size):
                    sources[used], weights[used] = own + o, slope * W_y[i, o]
                    used += 1
            if leak[i] != 1.0:
                sources[used], weights[used] = here + i, 1.0 - leak[i]
                used += 1
            _combine(z, later + i, sources, weights, used, count)
            for c in range(channels):
                if column[j, c] >= 0:
                    z[later + i, column[j, c]] += slope * W_u[i, c]
        x, ahead = ahead, x
        here, later = later, later + n if kept else here
        head = (head + delays) % (delays + 1)  # one back in the ring: what was F(j) is then F(j-1)


@njit(**OPTIONS)
def _adjoints(net, inputs, readout, errors, bends, free, weights):
    """Weights of g g' for each step and unit, from the last step to the first."""
    values, columns, W_u, W_y, _, leak = net
    slots, n = values.shape
    last, size, channels = errors.shape[0], errors.shape[1], W_u.shape[1]
    first_y = n + (inputs.input_delays + (1 if inputs.present_input else 0)) * channels
    m, before, eta = np.zeros(n), np.zeros(n), np.zeros((last + 1, size))
    for j in range(last, -1, -1):
        # m is the adjoint of x(j+1): zero beyond the last output.
        before[:] = 0.0
        if j < last:
            for i in range(n):
                bent = bends[j, i]
                slope = leak[i] * (1.0 - bent * bent)
                weights[j, i] = -2.0 * bent * slope * m[i]
                before[i] += (1.0 - leak[i]) * m[i]
                pushed = slope * m[i]
                for s in range(slots):
                    before[columns[s, i]] += values[s, i] * pushed
                for o in range(size):
                    eta[j, o] += W_y[i, o] * pushed
        if j > 0:
            for o in range(size):
                eta[j, o] += errors[j - 1, o]
            for o in range(size):
                if not free[j - 1, o]:
                    eta[j, o] = 0.0
                for i in range(n):
                    before[i] += readout[o, i] * eta[j, o]
                for delay in range(1, min(inputs.output_delays, j - 1) + 1):
                    for p in range(size):
                        eta[j - delay, p] += readout[o, first_y + (delay - 1) * size + p] * eta[j, o]
        m, before = before, m


class Rollout:
    """A network, made ready to be rolled out many times."""

    def __init__(self, reservoir: Reservoir, readout: Matrix, limits: Limits | None) -> None:
        arrays = (contiguous(getattr(reservoir, name)) for name in ("values", "W_u", "W_y", "bias", "leak"))
        values, *rest = arrays
        columns = np.ascontiguousarray(reservoir.columns, dtype=np.int64)
        self._net = (values, columns, *rest)
        self._inputs, self._clip = readout_inputs_of(reservoir.hyper), clip_of(limits, len(readout))
        self._readout = contiguous(readout)
        self._ring = (reservoir.hyper.output_delays + 1) * len(readout)
        self._work = np.zeros((0, 0))

    def __call__(
        self,
        start: tuple[Vector, Matrix, Matrix, Vector, Vector],
        u: Signal,
        column: NDArray[Any] | None,
        kept: bool = False,
    ) -> tuple[Signal, Array]:
        """Outputs ``(step, output)`` at j = 1 .. H, and their derivatives ``(step, output, column)``.

        Parameters
        ----------
        start
            x(0); the inputs before it and the outputs before it, the latest first; y(0); and the offset d.
        u
            Inputs at j = 0 .. H.
        column
            For each of them the planned input that it is, or -1 if it is given; without it, no derivatives.
        kept
            Whether what `curvature` needs is kept.
        """
        steps, size, order = len(u) - 1, len(self._readout), self._net[0].shape[1]
        sensitive = column is not None
        numbers = np.full(u.shape, -1, np.int64) if column is None else np.ascontiguousarray(column, dtype=np.int64)
        count = int(numbers.max()) + 1
        rows = (steps + 1 if kept else 2) * order + self._ring if sensitive else 0
        if self._work.shape != (rows, count):
            self._work = np.zeros((rows, count))
        outputs, slopes = np.empty((steps, size)), np.zeros((steps, size, count))
        self._bends, self._free = np.empty((steps, order)), np.empty((steps, size), dtype=np.bool_)
        begin = tuple(contiguous(one) for one in start)
        rest = (begin, contiguous(u), numbers, sensitive, kept, self._work, outputs, slopes, self._bends, self._free)
        _rollout(self._net, self._inputs, self._readout, self._clip, *rest)
        self._reached = np.maximum.accumulate(numbers.max(axis=1)) + 1  # columns that differ from zero by then
        return outputs, slopes

    def curvature(self, errors: Signal) -> Matrix:
        """Second derivatives ``(column, column)`` of the sum of errors times outputs, of the last run that was kept."""
        steps, order = self._bends.shape
        weights = np.zeros((steps, order))
        _adjoints(self._net, self._inputs, self._readout, contiguous(errors), self._bends, self._free, weights)
        leak, count = self._net[5], self._work.shape[1]
        S: Array = self._work[: (steps + 1) * order].reshape(steps + 1, order, count)
        total = np.zeros((count, count))
        slope = leak * (1.0 - self._bends**2)
        # The rows hold slope g; a unit that is saturated bends no more.
        factor = np.where(slope > 1e-9, weights / np.maximum(slope, 1e-9) ** 2, 0.0)
        for j in range(steps):
            used = int(self._reached[j])
            G: Any = S[j + 1, :, :used]
            if (leak != 1.0).any():
                G = G - (1.0 - leak)[:, None] * S[j, :, :used]
            total[:used, :used] += G.T @ (factor[j][:, None] * G)
        return total
