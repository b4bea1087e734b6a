"""BLAS and LAPACK for compiled code: the routines of SciPy, called by address.

Numba's own `np.linalg` copies its arguments, forms A'A by `dgemm` (twice the work of `dsyrk`) and raises if a
factorisation fails. Here the routines get pointers and report success in `info`. Addresses are arguments of the
compiled functions rather than constants, so that compiled code can be cached on disk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import get_cython_function_address, intrinsic

ROUTINES = (("blas", "dsyrk"), ("lapack", "dpotrf"), ("lapack", "dpotrs"), ("blas", "ddot"), ("blas", "dtrsm"))
ADDRESSES = np.array([get_cython_function_address(f"scipy.linalg.cython_{a}", b) for a, b in ROUTINES], dtype=np.int64)
"""Addresses of these routines in this process."""


def _called(result: ir.Type, builder: Any, signature: Any, args: Any) -> Any:
    pointer = ir.IntType(8).as_pointer()
    routine_type = ir.FunctionType(result, [pointer] * len(signature.args[1]))
    routine = builder.inttoptr(args[0], routine_type.as_pointer())
    values = [builder.extract_value(args[1], i) for i in range(len(signature.args[1]))]
    return builder.call(routine, [builder.inttoptr(value, pointer) for value in values])


@intrinsic
def call(typingctx: Any, address: Any, pointers: Any) -> Any:
    """Call a Fortran routine: every argument is a pointer, given as an integer."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _called(ir.VoidType(), builder, signature, args)
        return context.get_dummy_value()

    return types.void(types.int64, types.UniTuple(types.int64, len(pointers))), codegen


@intrinsic
def number(typingctx: Any, address: Any, pointers: Any) -> Any:
    """Call a Fortran function, which returns a double."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _called(ir.DoubleType(), builder, signature, args)

    return types.float64(types.int64, types.UniTuple(types.int64, len(pointers))), codegen


def routines() -> tuple[Any, ...]:
    """What a compiled function needs to call them: their addresses, and work arrays of its own."""
    return ADDRESSES, np.zeros(8, np.int32), np.zeros(2), np.zeros(4, np.uint8)


# Arguments that Fortran takes by pointer are in these work arrays, which the caller owns: an array made inside would be
# freed before the call, since only its address is used.
#   ints: n, k, lda, info, ... as int32;  reals: alpha, beta;  flags: characters


@njit(nogil=True)
def gram_update(addresses, ints, reals, flags, chunk, rows, gram):
    """gram += chunk[:rows].T @ chunk[:rows], upper triangle in Fortran's order (the lower one in C's)."""
    p = chunk.shape[1]
    ints[0], ints[1], ints[2] = p, rows, p
    reals[0], reals[1] = 1.0, 1.0
    flags[0], flags[1] = ord("U"), ord("N")
    i, r, f = ints.ctypes.data, reals.ctypes.data, flags.ctypes.data
    call(addresses[0], (f, f + 1, i, i + 4, r, chunk.ctypes.data, i + 8, r + 8, gram.ctypes.data, i + 8))


@njit(nogil=True)
def cholesky(addresses, ints, flags, matrix, p):
    """Factorise the leading p x p part in place; return whether it was positive definite."""
    ints[0], ints[1], ints[2] = p, matrix.shape[1], 0
    flags[0] = ord("U")
    i, f = ints.ctypes.data, flags.ctypes.data
    call(addresses[1], (f, i, matrix.ctypes.data, i + 4, i + 8))
    return ints[2] == 0


@njit(nogil=True)
def triangle_solve(addresses, ints, flags, matrix, p, rhs):
    """Solve with the factor made by `cholesky`; each row of `rhs` is a right-hand side and becomes its solution."""
    ints[0], ints[1], ints[2], ints[3], ints[4] = p, rhs.shape[0], matrix.shape[1], rhs.shape[1], 0
    flags[0] = ord("U")
    i, f = ints.ctypes.data, flags.ctypes.data
    call(addresses[2], (f, i, i + 4, matrix.ctypes.data, i + 8, rhs.ctypes.data, i + 12, i + 16))


@njit(nogil=True)
def inner(addresses, ints, vector):
    """The squared length of a vector."""
    ints[0], ints[1] = vector.size, 1
    i, v = ints.ctypes.data, vector.ctypes.data
    return number(addresses[3], (i, v, i + 4, v, i + 4))


@njit(nogil=True)
def schur_complement(addresses, ints, reals, flags, factor, rows, matrix):
    """Subtract rows inverse(G) rows' from a matrix (its lower triangle in C), given the factor of G; rows change."""
    p, n = rows.shape[1], rows.shape[0]
    ints[0], ints[1], ints[2], ints[3] = p, n, factor.shape[1], n
    reals[0], reals[1] = 1.0, -1.0
    flags[0], flags[1], flags[2], flags[3] = ord("U"), ord("T"), ord("L"), ord("N")
    i, r, f = ints.ctypes.data, reals.ctypes.data, flags.ctypes.data
    a, b, c = factor.ctypes.data, rows.ctypes.data, matrix.ctypes.data
    call(addresses[4], (f + 2, f, f + 1, f + 3, i, i + 4, r, a, i + 8, b, i))
    call(addresses[0], (f, f + 1, i + 4, i, r + 8, b, i, r, c, i + 12))
