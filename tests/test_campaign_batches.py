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
    batches, found, times = Batches(iter(range(todo)), todo, size), [], itertools.cycle(seconds)
    while batches.left:
        batch = batches.cut(workers)
        assert 1 <= len(batch) <= (size or todo)
        batches.took(len(batch), next(times))
        found += batch
    assert found == list(range(todo))


def test_batches_take_about_a_second_and_the_last_ones_less():
    batches, sizes = Batches(iter(range(100_000)), 100_000), []
    while batches.left:
        sizes.append(len(batches.cut(workers=4)))
        batches.took(sizes[-1], 0.004 * sizes[-1])
    assert sizes[0] == 8
    assert all(size == 250 for size in sizes[1 : len(sizes) // 2])
    assert sizes[-1] == 1
    assert sizes[1:] == sorted(sizes[1:], reverse=True)


def test_many_workers_get_longer_batches():
    batches = Batches(iter(range(10**8)), 10**8)
    batches.took(draws=100, seconds=0.1)
    assert [len(batches.cut(workers)) for workers in (1, 100, 1000)] == [1000, 1000, 10_000]


def test_slow_networks_go_one_by_one():
    batches = Batches(iter(range(1000)), 1000)
    batches.took(draws=2, seconds=30.0)
    assert len(batches.cut(workers=1)) == 1


def test_a_slow_start_is_forgotten():
    """The first batches wait for compiled code to be loaded."""
    batches = Batches(iter(range(10**6)), 10**6)
    batches.took(draws=8, seconds=10.0)
    for _ in range(30):
        batches.took(len(batch := batches.cut(workers=1)), 0.01 * len(batch))
    assert len(batches.cut(workers=1)) == 100


def test_a_size_that_is_given_is_kept_whatever_is_measured():
    batches = Batches(iter(range(10_000)), 10_000, 4096)
    assert len(batches.cut(workers=8)) == 4096
    batches.took(draws=4096, seconds=1e3)
    assert [len(batches.cut(workers=8)) for _ in range(2)] == [4096, 1808]


def test_bad_size():
    with pytest.raises(InputError, match="at least 1"):
        Batches(iter(()), 0, 0)
