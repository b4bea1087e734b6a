"""Random words: a draw is (seed, stream, family, index), the same on every machine.

The key of a draw is ``SeedSequence(seed, spawn_key=(stream, family, index))``; its words are those of
Philox4x64-10 at a fixed counter layout: *block b of region r has the counter (b + 1, r, 0, 0)* and gives words
4b .. 4b+3. Each array of a network has a region of its own, so no array depends on the size of another, and any
word can be computed alone (as a GPU does).

Only raw words are used, since NumPy's distribution methods may change between versions: everything random in
echobound is computed from ``unit(word)``, a multiple of 2**-53 in [0, 1).
"""

from __future__ import annotations

import numpy as np
from numpy.random import Philox, SeedSequence
from numpy.typing import NDArray

from echobound.errors import InputError

__all__ = ["PLANT", "SEARCH", "VERIFICATION", "draw_key", "unit", "words"]

SEARCH = 0
"""Stream of the networks among which the best is picked."""
VERIFICATION = 1
"""Stream of the fresh networks that put a certificate to the test."""
PLANT = 2
"""Stream of excitation signals and measurement noise of simulated plants."""

Words = NDArray[np.uint64]


def draw_key(seed: int, stream: int, family: int, index: int) -> Words:
    """Return the two 64-bit words that key all randomness of one draw.

    Examples
    --------
    >>> draw_key(seed=0, stream=SEARCH, family=0, index=7).shape
    (2,)
    """
    for name, value, top in (
        ("seed", seed, 2**64),
        ("stream", stream, 2**32),
        ("family", family, 2**32),
        ("index", index, 2**32),
    ):
        if not isinstance(value, int | np.integer) or not 0 <= value < top:
            raise InputError(f"{name} must be an integer from 0 to {top - 1}, got {value}")
    sequence = SeedSequence(int(seed), spawn_key=(int(stream), int(family), int(index)))
    return np.asarray(sequence.generate_state(2, np.uint64), dtype=np.uint64)


def words(key: Words, region: int, count: int, block: int = 0) -> Words:
    """Return `count` words of one region of a draw, from the start of block `block` on.

    Examples
    --------
    >>> key = draw_key(0, SEARCH, 0, 0)
    >>> bool((words(key, 1, 12)[4:8] == words(key, 1, 4, block=1)).all())
    True
    """
    counter = np.array([block, region, 0, 0], dtype=np.uint64)
    return Philox(key=key, counter=counter).random_raw(count)


def unit(raw: Words) -> NDArray[np.float64]:
    """Map raw words to multiples of 2**-53 in [0, 1).

    Examples
    --------
    >>> unit(np.array([0, 2**63], dtype=np.uint64)).tolist()
    [0.0, 0.5]
    """
    return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53
