"""Random words: a draw is (seed, stream, family, index), the same on every machine.

The key of a draw is ``SeedSequence(seed, spawn_key=(stream, family, index))``. Its words are those of Philox4x64-10
with a fixed layout of the counter: *block b of region r has the counter (b + 1, r, 0, 0)* and gives the words 4b to
4b + 3. Each array of a network has its own region, so no array depends on the size of another, and any word can be
computed alone, as a GPU does.

Only raw words are used, because NumPy may change its distributions between versions: everything random in echobound is
computed from ``unit(word)``, a multiple of 2**-53 in [0, 1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Philox, SeedSequence

from echobound.arrays import Array, Words
from echobound.errors import InputError

__all__ = ["DISTURBANCE", "PLANT", "SEARCH", "VERIFICATION", "draw_key", "draw_keys", "unit", "words"]

SEARCH = 0
"""Stream of the networks from which the best is picked."""
VERIFICATION = 1
"""Stream of the fresh networks that test a certificate."""
PLANT = 2
"""Stream of the excitation and the measurement noise of simulated plants."""
DISTURBANCE = 3
"""Stream of the noise on inputs by which demanding scores see how much a model minds it."""


def draw_key(seed: int, stream: int, family: int, index: int) -> Words:
    """Return the key of a draw: two 64-bit words from which all its random words follow.

    Examples
    --------
    >>> draw_key(seed=0, stream=SEARCH, family=0, index=7).shape
    (2,)
    """
    _require_draw(seed, stream, family, index)
    sequence = SeedSequence(int(seed), spawn_key=(int(stream), int(family), int(index)))
    return np.asarray(sequence.generate_state(2, np.uint64), dtype=np.uint64)


def draw_keys(seed: int, stream: int, family: int, indices: Sequence[int]) -> Words:
    """Return the keys of many draws at once, ``(draw, 2)``: the same as `draw_key`, in a hundredth of the time.

    NumPy mixes the index into its pool last, so the pool before that is common to all draws: it is taken from
    ``SeedSequence(seed, spawn_key=(stream, family))``. The last step, and the key that follows from the pool, are done
    here for all indices together.

    Examples
    --------
    >>> bool((draw_keys(0, SEARCH, 0, [5, 7])[1] == draw_key(0, SEARCH, 0, 7)).all())
    True
    """
    for index in (min(indices, default=0), max(indices, default=0)):
        _require_draw(seed, stream, family, index)
    last = np.asarray(indices, dtype=np.uint32)
    pool = SeedSequence(int(seed), spawn_key=(int(stream), int(family))).pool
    # The hash constant changes with each word hashed: 16 to fill and stir the pool, then 4 each for stream and family.
    mixer = _INIT_A * pow(_MULT_A, 24, 2**32) & _WORD
    mixed = []
    for word in pool:
        hashed = last ^ np.uint32(mixer)
        mixer = mixer * _MULT_A & _WORD
        hashed *= np.uint32(mixer)
        hashed ^= hashed >> np.uint32(16)
        value = np.uint32(int(word) * _MIX_L & _WORD) - hashed * np.uint32(_MIX_R)
        mixed.append(value ^ (value >> np.uint32(16)))
    state, mixer = np.empty((len(last), 4), dtype=np.uint32), _INIT_B
    for position, value in enumerate(mixed):
        value = value ^ np.uint32(mixer)
        mixer = mixer * _MULT_B & _WORD
        value = value * np.uint32(mixer)
        state[:, position] = value ^ (value >> np.uint32(16))
    return state.astype("<u4").view("<u8").astype(np.uint64)


# Constants of NumPy's SeedSequence. NumPy promises never to change its stream, and a test compares the two.
_INIT_A, _MULT_A, _INIT_B, _MULT_B = 0x43B0D7E5, 0x931E8875, 0x8B51F9DD, 0x58F38DED
_MIX_L, _MIX_R, _WORD = 0xCA01F9DD, 0x4973F715, 2**32 - 1


def _require_draw(seed: int, stream: int, family: int, index: int) -> None:
    for name, value, bits in (("seed", seed, 64), ("stream", stream, 32), ("family", family, 32), ("index", index, 32)):
        if not isinstance(value, int | np.integer) or not 0 <= value < 2**bits:
            raise InputError(f"{name} must be an integer from 0 to {2**bits - 1}, got {value}")


def words(key: Words, region: int, count: int, block: int = 0) -> Words:
    """Return `count` words of one region of a draw, starting with block `block`.

    Examples
    --------
    >>> key = draw_key(0, SEARCH, 0, 0)
    >>> bool((words(key, 1, 12)[4:8] == words(key, 1, 4, block=1)).all())
    True
    """
    counter = np.array([block, region, 0, 0], dtype=np.uint64)  # NumPy increments it before each block
    return Philox(key=key, counter=counter).random_raw(count)


def unit(raw: Words) -> Array:
    """Map raw words to multiples of 2**-53 in [0, 1).

    Examples
    --------
    >>> unit(np.array([0, 2**63], dtype=np.uint64)).tolist()
    [0.0, 0.5]
    """
    return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53
