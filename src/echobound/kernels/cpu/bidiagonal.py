"""Spectral norm: the algorithm of `echobound.network.spectral_norm`, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from echobound.kernels.cpu.step import OPTIONS, dot
from echobound.network.spectral_norm import CHECK_EVERY, CONVERGED


@njit(**(OPTIONS | {"nogil": False}))  # too short to be worth releasing the interpreter's lock
def spectral_norm(values, columns):
    """Largest singular value; `columns` as in `Net`."""
    n = values.shape[1]
    right = np.full(2 * n, 1.0 / np.sqrt(n))  # twice in a row, as the state in `Net`
    left = np.zeros(n)
    product = np.zeros(2 * n)
    diagonal, beside = np.empty(64), np.empty(64)
    beta, top, biggest, k = 0.0, 0.0, 0.0, 0
    while True:
        if k == diagonal.size:
            diagonal = np.concatenate((diagonal, np.empty(k)))
            beside = np.concatenate((beside, np.empty(k)))
        for i in range(n):
            left[i] *= -beta
        _times(values, columns, right, left)
        alpha = np.sqrt(dot(left, left, n))
        diagonal[k] = alpha * alpha + beta * beta
        biggest = max(biggest, diagonal[k])
        k += 1
        exhausted = alpha * alpha <= CONVERGED * CONVERGED * biggest
        if not exhausted:
            for i in range(n):
                left[i] /= alpha
            _times_transposed(values, columns, left, product)
            for i in range(n):
                right[i] = product[i] - alpha * right[i]
            beta = np.sqrt(dot(right, right, n))
            exhausted = beta * beta <= CONVERGED * CONVERGED * biggest
        if exhausted or k % CHECK_EVERY == 0:
            before = top
            top = _largest(diagonal, beside, k, before)
            if exhausted or top - before <= CONVERGED * top:
                return np.sqrt(top)
        for i in range(n):
            right[i] /= beta
        right[n:] = right[:n]
        beside[k - 1] = alpha * beta


@njit(**OPTIONS)
def _times(values, columns, x, out):
    """out += W x."""
    slots, n = values.shape
    if columns.shape[1] == 1 and n > 1:
        for j in range(slots):
            a, at = values[j], x[columns[j, 0] :]
            for i in range(n):
                out[i] += a[i] * at[i]
    else:
        for j in range(slots):
            for i in range(n):
                out[i] += values[j, i] * x[columns[j, i]]


@njit(**OPTIONS)
def _times_transposed(values, columns, x, out):
    """out[:n] = W' x; a cyclic diagonal runs over into the second half of `out`."""
    slots, n = values.shape
    out[:] = 0.0
    if columns.shape[1] == 1 and n > 1:
        for j in range(slots):
            a, at = values[j], out[columns[j, 0] :]
            for i in range(n):
                at[i] += a[i] * x[i]
        for i in range(n):
            out[i] += out[n + i]
    else:
        for j in range(slots):
            for i in range(n):
                out[columns[j, i]] += values[j, i] * x[i]


@njit(**OPTIONS)
def _largest(diagonal, beside, k, low):
    """Largest eigenvalue of a tridiagonal matrix by bisection: above it, all pivots of T - s I are negative."""
    high = low
    for i in range(k):
        radius = (abs(beside[i - 1]) if i > 0 else 0.0) + (abs(beside[i]) if i < k - 1 else 0.0)
        high = max(high, diagonal[i] + radius)
    while high - low > 4e-16 * high:
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            break
        pivot = diagonal[0] - middle
        above = pivot < 0.0
        for i in range(1, k):
            if not above:
                break
            pivot = diagonal[i] - middle - beside[i - 1] * beside[i - 1] / pivot
            above = pivot < 0.0
        if above:
            high = middle
        else:
            low = middle
    return high
