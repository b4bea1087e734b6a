"""Philox4x64-10 and the arrays of a draw, bit for bit as `echobound.draws` and `echobound.network.reservoir`.

These take microseconds, so they keep the interpreter's lock: releasing and acquiring it would take longer.
"""

from __future__ import annotations

import numpy as np
from numba import njit

M0, M1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
W0, W1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
DROP = np.uint64(11)
EXACT = {"fastmath": False}  # said, since otherwise the options of whoever calls it first would hold


@njit(**EXACT, inline="always")
def _high(a, b):
    """Upper 64 bits of the product of two 64-bit words."""
    a0, a1, b0, b1 = a & LOW, a >> HALF, b & LOW, b >> HALF
    middle = a1 * b0 + ((a0 * b0) >> HALF)
    return a1 * b1 + (middle >> HALF) + (((middle & LOW) + a0 * b1) >> HALF)


@njit(**EXACT)
def symmetric(key, region, scale, out):
    """Fill `out` with scale times numbers uniform in [-1, 1), from one region of a draw."""
    units(key, region, out)
    for i in range(out.size):
        out[i] = scale * (2.0 * out[i] - 1.0)


@njit(**EXACT)
def units(key, region, out):
    """Fill `out` with numbers in [0, 1), from the words of one region of a draw."""
    for group in range((out.size + 3) // 4):
        c0, c1, c2, c3 = np.uint64(group + 1), np.uint64(region), np.uint64(0), np.uint64(0)
        k0, k1 = key[0], key[1]
        for _ in range(10):
            h0, l0, h1, l1 = _high(M0, c0), M0 * c0, _high(M1, c2), M1 * c2
            c0, c1, c2, c3 = h1 ^ c1 ^ k0, l1, h0 ^ c3 ^ k1, l0
            k0, k1 = k0 + W0, k1 + W1
        at = 4 * group
        out[at] = (c0 >> DROP) * 2.0**-53
        if at + 1 < out.size:
            out[at + 1] = (c1 >> DROP) * 2.0**-53
        if at + 2 < out.size:
            out[at + 2] = (c2 >> DROP) * 2.0**-53
        if at + 3 < out.size:
            out[at + 3] = (c3 >> DROP) * 2.0**-53


@njit(**EXACT)
def floyd(levels, n, chosen):
    """Columns (slot, sample) from levels in [0, 1), different within each sample."""
    slots, samples = chosen.shape
    for s in range(samples):
        for j in range(slots):
            last = n - slots + j
            candidate = int(levels[j, s] * (last + 1))
            for earlier in range(j):
                if chosen[earlier, s] == candidate:
                    candidate = last
                    break
            chosen[j, s] = candidate
