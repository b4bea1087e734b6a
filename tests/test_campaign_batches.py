"""Batches of about a second, cut without losing or doubling an index."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echobound.campaign.batches import Batches
from echobound.errors import InputError


@given(
    todo=st.integers(0, 3000),
    workers=st.integers(1, 64),
    seconds=st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=20),
    size=st.none() | st.integers(1, 500),
)
def test_every_index_is_handed_out_once_whatever_is_measured(todo, workers, seconds, size):
    blocks, found, times = Batches(iter(range(todo)), todo, size), [], itertools.cycle(seconds)
    while blocks.left:
        block = blocks.cut(workers)
        assert 1 <= len(block) <= (size or todo)
        blocks.took(len(block), next(times))
        found += block
    assert found == list(range(todo))


def test_blocks_take_about_a_second_and_the_last_ones_less():
    blocks, sizes = Batches(iter(range(100_000)), 100_000), []
    while blocks.left:
        sizes.append(len(blocks.cut(workers=4)))
        blocks.took(sizes[-1], 0.004 * sizes[-1])
    assert sizes[0] == 8
    assert all(size == 250 for size in sizes[1 : len(sizes) // 2])
    assert sizes[-1] == 1
    assert sizes[1:] == sorted(sizes[1:], reverse=True)


def test_many_workers_get_longer_blocks():
    blocks = Batches(iter(range(10**8)), 10**8)
    blocks.took(networks=100, seconds=0.1)
    assert [len(blocks.cut(workers)) for workers in (1, 100, 1000)] == [1000, 1000, 10_000]


def test_slow_networks_go_one_by_one():
    blocks = Batches(iter(range(1000)), 1000)
    blocks.took(networks=2, seconds=30.0)
    assert len(blocks.cut(workers=1)) == 1


def test_a_slow_start_is_forgotten():
    """The first blocks wait for compiled code to be loaded."""
    blocks = Batches(iter(range(10**6)), 10**6)
    blocks.took(networks=8, seconds=10.0)
    for _ in range(30):
        blocks.took(len(block := blocks.cut(workers=1)), 0.01 * len(block))
    assert len(blocks.cut(workers=1)) == 100


def test_a_kernel_has_its_own_size_and_the_caller_the_last_word():
    class Device:
        name, batch = "device", 4096

    assert len(Batches(iter(range(10_000)), 10_000, kernel=Device()).cut(workers=8)) == 4096
    assert len(Batches(iter(range(10_000)), 10_000, 7, Device()).cut(workers=8)) == 7


def test_bad_size():
    with pytest.raises(InputError, match="at least 1"):
        Batches(iter(()), 0, 0)
