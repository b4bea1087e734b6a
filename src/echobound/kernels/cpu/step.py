"""One step of the state equation, for all units at once: loops that LLVM turns into vector instructions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

__all__ = ["OPTIONS", "Net", "advance", "dot", "rest", "tanh"]

OPTIONS: dict[str, Any] = {
    "cache": True,  # compiled once on a machine, not once a process
    "nogil": True,  # workers are threads
    "error_model": "numpy",  # a check for division by zero would keep LLVM from vectorising
    "fastmath": {"contract"},  # fused multiply-add, and nothing else: NaN and inf keep their meaning
}


class Net(NamedTuple):
    """The arrays of one reservoir, units along the last axis so that all loads are contiguous."""

    values: NDArray[np.float64]  # (slot, unit)
    columns: NDArray[np.int64]  # (slot, unit), or (slot, 1): offsets of cyclic diagonals
    W_u: NDArray[np.float64]  # (input, unit)
    W_y: NDArray[np.float64]  # (output, unit)
    bias: NDArray[np.float64]
    leak: NDArray[np.float64]
    x: NDArray[np.float64]  # the state twice in a row, so that a cyclic diagonal never wraps
    work: NDArray[np.float64]


@intrinsic
def _bits(typingctx: Any, number: Any) -> Any:
    """The bits of a double as an integer."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def _double(typingctx: Any, bits: Any) -> Any:
    """The double with the given bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


LOG2E = 1.4426950408889634
LN2_HIGH, LN2_LOW = (
    6.93147180369123816490e-01,
    1.90821492927058770002e-10,
)  # their sum is ln 2, the first has spare bits
ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it leaves the nearest integer in the lowest bits
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1.0 / math.factorial(i) for i in range(2, 14))


@njit(**OPTIONS)
def tanh(x):
    """Hyperbolic tangent without branches, within 4e-16 relative: (e - 1)/(e + 1) with e = exp(2 |x|).

    exp(2|x|) - 1 = 2^k expm1(r) + (2^k - 1) with |r| <= ln(2)/2 keeps full relative accuracy near 0.
    """
    size = abs(x)
    z = 2.0 * (20.0 if size > 20.0 else size)  # NaN passes through; tanh(20) is 1 in double precision
    shifted = z * LOG2E + ROUND
    k = shifted - ROUND
    r = z - k * LN2_HIGH - k * LN2_LOW
    power = _double((_bits(shifted) + 1023) << 52)
    r2 = r * r
    r4 = r2 * r2
    tail = r4 * ((C10 + C11 * r) + r2 * (C12 + C13 * r))
    middle = r4 * ((C6 + C7 * r) + r2 * (C8 + C9 * r) + tail)
    small = r + r2 * ((C2 + C3 * r) + r2 * (C4 + C5 * r) + middle)
    e = power * small + (power - 1.0)
    return math.copysign(e / (e + 2.0), x)


@njit(**OPTIONS)
def advance(net, u, y):
    """x <- (1 - a) x + a tanh(W_x x + W_u u + W_y y + b)."""
    n = net.bias.size
    x, work = net.x, net.work
    first_u, first_y, from_u, from_y = u[0], y[0], net.W_u[0], net.W_y[0]
    for i in range(n):
        work[i] = net.bias[i] + from_u[i] * first_u + from_y[i] * first_y
    for j in range(1, u.size):
        weights, value = net.W_u[j], u[j]
        for i in range(n):
            work[i] += weights[i] * value
    for j in range(1, y.size):
        weights, value = net.W_y[j], y[j]
        for i in range(n):
            work[i] += weights[i] * value
    if net.columns.shape[1] == 1 and n > 1:
        _add_diagonals(net, n)
    else:
        _add_scattered(net, n)
    for i in range(n):
        work[i] = (1.0 - net.leak[i]) * x[i] + net.leak[i] * tanh(work[i])
    for i in range(n):
        x[i] = work[i]
    for i in range(n):
        x[n + i] = work[i]


@njit(**OPTIONS)
def _add_diagonals(net, n):
    """work += W_x x, three diagonals at a time: more would need more checks for overlap than LLVM makes."""
    x, work, values, offsets = net.x, net.work, net.values, net.columns[:, 0]
    slots = values.shape[0]
    j = 0
    while j + 3 <= slots:
        a, b, c = values[j], values[j + 1], values[j + 2]
        at_a, at_b, at_c = x[offsets[j] :], x[offsets[j + 1] :], x[offsets[j + 2] :]
        for i in range(n):
            work[i] += a[i] * at_a[i] + b[i] * at_b[i] + c[i] * at_c[i]
        j += 3
    while j < slots:
        a, at_a = values[j], x[offsets[j] :]
        for i in range(n):
            work[i] += a[i] * at_a[i]
        j += 1


@njit(**OPTIONS)
def _add_scattered(net, n):
    """work += W_x x for non-zeros anywhere."""
    x, work, values, columns = net.x, net.work, net.values, net.columns
    for i in range(n):
        total = 0.0
        for j in range(values.shape[0]):
            total += values[j, i] * x[columns[j, i]]
        work[i] += total


@njit(**OPTIONS)
def rest(net, u, y, steps):
    """Start from x = 0 and hold one sample for some steps."""
    net.x[:] = 0.0
    for _ in range(steps):
        advance(net, u, y)


@njit(**(OPTIONS | {"fastmath": {"contract", "reassoc"}}))
def dot(a, b, n):
    """Inner product of the first n elements; `reassoc` lets it be summed in lanes."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total
