"""Draws: Philox against its definition and its published test vectors, the documented layout, independence of keys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from echobound.draws import PLANT, SEARCH, VERIFICATION, draw_key, draw_keys, unit, words
from echobound.errors import InputError

WORD = st.integers(0, 2**64 - 1)


def philox(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """Philox4x64-10 from its definition (Salmon et al. 2011), in integers of any size."""
    mask = 2**64 - 1
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        one, two = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
        c0, c1, c2, c3 = (two >> 64) ^ c1 ^ k0, two & mask, (one >> 64) ^ c3 ^ k1, one & mask
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & mask, (k1 + 0xBB67AE8584CAA73B) & mask
    return c0, c1, c2, c3


def test_the_definition_gives_the_published_test_vectors() -> None:
    """Known answers of Random123 for philox4x64-10."""
    zeros = philox((0, 0, 0, 0), (0, 0))
    assert zeros == (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B)
    ones = philox((2**64 - 1,) * 4, (2**64 - 1,) * 2)
    assert ones == (0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0)


@given(key=st.tuples(WORD, WORD), region=st.integers(0, 50), block=st.integers(0, 2**40), count=st.integers(0, 23))
def test_words_have_the_documented_layout(key: tuple[int, int], region: int, block: int, count: int) -> None:
    expected = [word for b in range(block, block + 6) for word in philox((b + 1, region, 0, 0), key)][:count]
    found = words(np.array(key, dtype=np.uint64), region, count, block)
    assert found.dtype == np.uint64
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("draw", "key", "first"),
    [
        ((0, 0, 0, 0), [4189226428916626942, 16221908415387690009], 446338316694987018),
        ((12345, 1, 3, 644), [15178951059689045465, 16151221982469382151], 3204411828855650688),
        ((2**64 - 1, 2, 2**32 - 1, 2**32 - 1), [12640402510403782916, 10422461781478732258], 8443887913661117131),
    ],
)
def test_draws_never_change(draw: tuple[int, int, int, int], key: list[int], first: int) -> None:
    """Pinned: a certificate names its winner by these four numbers, and must still find it years later."""
    assert draw_key(*draw).tolist() == key
    assert words(draw_key(*draw), 1, 1).tolist() == [first]


@given(
    st.sets(
        st.tuples(
            st.integers(0, 5), st.sampled_from([SEARCH, VERIFICATION, PLANT]), st.integers(0, 30), st.integers(0, 700)
        ),
        min_size=2,
    )
)
def test_different_draws_have_different_keys(draws: set[tuple[int, int, int, int]]) -> None:
    assert len({tuple(draw_key(*draw).tolist()) for draw in draws}) == len(draws)


@given(WORD, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.lists(st.integers(0, 2**32 - 1), max_size=5))
def test_many_keys_at_once_are_the_same_keys(seed: int, stream: int, family: int, indices: list[int]) -> None:
    keys = draw_keys(seed, stream, family, indices)
    assert keys.dtype == np.uint64
    assert keys.tolist() == [draw_key(seed, stream, family, index).tolist() for index in indices]


def test_many_keys_at_once_refuse_what_one_refuses() -> None:
    with pytest.raises(InputError, match="index must be an integer from 0 to"):
        draw_keys(0, 0, 0, [3, 2**32])
    with pytest.raises(InputError, match="seed must be an integer from 0 to"):
        draw_keys(-1, 0, 0, [3])


def test_the_streams_are_distinct() -> None:
    assert len({SEARCH, VERIFICATION, PLANT}) == 3


def test_regions_blocks_and_draws_are_uncorrelated_and_uniform() -> None:
    keys = [draw_key(0, SEARCH, 0, 0), draw_key(0, SEARCH, 0, 1), draw_key(0, VERIFICATION, 0, 0), draw_key(1, 0, 0, 0)]
    samples = np.array([unit(words(key, region, 5000)) for key in keys for region in (0, 1, 2)])
    assert np.abs(np.corrcoef(samples) - np.eye(len(samples))).max() < 5 / np.sqrt(5000)
    assert kstest(samples.ravel(), "uniform").pvalue > 1e-4


@given(WORD)
def test_unit_is_the_top_53_bits(word: int) -> None:
    value = unit(np.array([word], dtype=np.uint64))[0]
    assert value == (word >> 11) / 2**53
    assert 0.0 <= value < 1.0


def test_numpy_integers_are_as_good_as_pythons() -> None:
    assert (draw_key(np.int64(3), np.int32(1), np.uint8(2), np.int64(9)) == draw_key(3, 1, 2, 9)).all()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", -1),
        ("seed", 2**64),
        ("seed", 0.5),
        ("seed", None),
        ("seed", "7"),
        ("stream", 2**32),
        ("family", -1),
        ("index", 2**32),
        ("index", 3.0),
        ("index", np.int64(-1)),
    ],
)
def test_what_is_no_draw_is_refused(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"{name} must be an integer from 0 to"):
        draw_key(**{"seed": 0, "stream": 0, "family": 0, "index": 0, name: value})  # type: ignore[arg-type]
