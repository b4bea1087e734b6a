"""One step of the state equation, for all units at once: loops that LLVM turns into vector instructions.

Indices are unsigned and views are avoided: a signed index may be negative, which costs a test at each load, and a view
costs two atomic operations on a reference count. Together they took half of the time at 50 states.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from llvmlite import ir
from numba import carray, njit, types, uint64
from numba.extending import intrinsic

from echobound.arrays import Columns, Matrix, Vector

OPTIONS: dict[str, Any] = {
    "nogil": True,  # workers are threads
    "error_model": "numpy",  # a check for division by zero would keep LLVM from vectorising
    "fastmath": {"contract"},  # fused multiply-add, and nothing else: NaN and inf keep their meaning
}


class Net(NamedTuple):
    """The arrays of one reservoir, units along the last axis so that all loads are contiguous."""

    values: Matrix  # (slot, unit)
    columns: Columns  # (slot, unit), or (slot, 1): offsets of cyclic diagonals
    W_u: Matrix  # (input, unit)
    W_y: Matrix  # (output, unit)
    bias: Vector
    leak: Vector
    leaky: bool  # whether any leak rate differs from 1
    x: Vector  # the state twice in a row, so that a cyclic diagonal never wraps
    work: Vector


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


@intrinsic
def pointer(typingctx: Any, address: Any) -> Any:
    """An address as a pointer."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), codegen


@njit(**OPTIONS, inline="always")
def bare(array):
    """The same array without a reference count; it lives as long as the caller's."""
    return carray(pointer(array.ctypes.data), array.shape, array.dtype)


@njit(**OPTIONS, inline="always")
def bare_net(net):
    """The same reservoir, its arrays without reference counts."""
    values, columns, W_u, W_y = bare(net.values), bare(net.columns), bare(net.W_u), bare(net.W_y)
    return Net(values, columns, W_u, W_y, bare(net.bias), bare(net.leak), net.leaky, bare(net.x), bare(net.work))


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


@njit(**OPTIONS, inline="always")
def advance(net, u, y, k):
    """x <- (1 - a) x + a tanh(W_x x + W_u u(k) + W_y y(k) + b)."""
    x, work = net.x, net.work
    n = uint64(net.bias.size)
    if net.columns.shape[1] == 1 and n > 1:
        _drive_on_diagonals(net, u, y, uint64(k), n)
    else:
        _drive_scattered(net, u, y, uint64(k), n)
    if net.leaky:
        for i in range(n):
            work[i] = (1.0 - net.leak[i]) * x[i] + net.leak[i] * tanh(work[i])
    else:
        for i in range(n):
            work[i] = tanh(work[i])
    for i in range(n):
        x[i] = work[i]
    for i in range(n):
        x[n + i] = work[i]


@njit(**OPTIONS, inline="always")
def _drive_on_diagonals(net, u, y, k, n):
    """work = W_x x + W_u u(k) + W_y y(k) + b, three diagonals at a time.

    More of them would need more checks for overlapping arrays than LLVM is willing to insert, and then it does not
    vectorise at all; the first one is added with the inputs, to save one pass over `work`.
    """
    x, work, values, offsets = net.x, net.work, net.values, net.columns
    slots, one, two, three = uint64(values.shape[0]), uint64(1), uint64(2), uint64(3)
    a, value, fed = uint64(offsets[0, 0]), u[k, 0], y[k, 0]
    for i in range(n):
        work[i] = net.bias[i] + net.W_u[0, i] * value + net.W_y[0, i] * fed + values[0, i] * x[a + i]
    _add_other_channels(net, u, y, k, n)
    j = one
    while j + three <= slots:
        a, b, c = uint64(offsets[j, 0]), uint64(offsets[j + one, 0]), uint64(offsets[j + two, 0])
        for i in range(n):
            work[i] += values[j, i] * x[a + i] + values[j + one, i] * x[b + i] + values[j + two, i] * x[c + i]
        j += three
    while j < slots:
        a = uint64(offsets[j, 0])
        for i in range(n):
            work[i] += values[j, i] * x[a + i]
        j += one


@njit(**OPTIONS, inline="always")
def _drive_scattered(net, u, y, k, n):
    """work = W_x x + W_u u(k) + W_y y(k) + b for non-zeros anywhere: gathers, which vector units do slowly."""
    x, work, values, columns = net.x, net.work, net.values, net.columns
    value, fed = u[k, 0], y[k, 0]
    for i in range(n):
        total = net.bias[i] + net.W_u[0, i] * value + net.W_y[0, i] * fed
        for j in range(uint64(values.shape[0])):
            total += values[j, i] * x[uint64(columns[j, i])]
        work[i] = total
    _add_other_channels(net, u, y, k, n)


@njit(**OPTIONS, inline="always")
def _add_other_channels(net, u, y, k, n):
    """work += the second and further inputs and outputs."""
    work = net.work
    for j in range(uint64(1), uint64(u.shape[1])):
        value = u[k, j]
        for i in range(n):
            work[i] += net.W_u[j, i] * value
    for j in range(uint64(1), uint64(y.shape[1])):
        value = y[k, j]
        for i in range(n):
            work[i] += net.W_y[j, i] * value


@njit(**OPTIONS)
def rest(net, u, y, steps):
    """Start from x = 0 and hold the first sample for some steps."""
    net.x[:] = 0.0
    for _ in range(steps):
        advance(net, u, y, 0)


@njit(**(OPTIONS | {"fastmath": {"contract", "reassoc"}}))
def dot(a, b, n):
    """Inner product of the first n elements; `reassoc` allows it to be summed in vector lanes."""
    total = 0.0
    for i in range(uint64(n)):
        total += a[i] * b[i]
    return total


@njit(**(OPTIONS | {"fastmath": {"contract", "reassoc"}}))
def row_dot(matrices, number, row, b, n):
    """Inner product of `b` with a row of a matrix among several; a view of the row would cost more than the product."""
    total = 0.0
    m, r = uint64(number), uint64(row)
    for i in range(uint64(n)):
        total += matrices[m, r, i] * b[i]
    return total
