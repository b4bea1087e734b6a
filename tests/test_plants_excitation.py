"""Excitation and noise: shape, levels, laws, and independence of what should be independent."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from echobound.draws import PLANT, draw_key, unit, words
from echobound.errors import InputError
from echobound.plants import gaussian, multilevel


@given(
    samples=st.integers(1, 300), period=st.integers(1, 50), levels=st.none() | st.integers(2, 9), seed=st.integers(0)
)
def test_levels_are_held_for_a_period_and_stay_in_range(
    samples: int, period: int, levels: int | None, seed: int
) -> None:
    signal = multilevel(samples, period, -1.0, 3.0, levels, seed=seed % 2**64)
    assert signal.shape == (samples,)
    assert ((signal >= -1.0) & (signal <= 3.0)).all()
    for start in range(0, samples, period):
        assert len(set(signal[start : start + period])) == 1
    if levels is not None:
        steps = (signal + 1.0) / 4.0 * (levels - 1)
        assert steps == pytest.approx(np.round(steps), abs=1e-12)


@given(st.integers(1, 200), st.integers(1, 200))
def test_a_longer_signal_begins_like_a_shorter_one(one: int, other: int) -> None:
    shared = min(one, other)
    assert (multilevel(one, 7)[:shared] == multilevel(other, 7)[:shared]).all()
    assert (gaussian(one)[:shared] == gaussian(other)[:shared]).all()


def test_continuous_levels_are_uniform_and_discrete_ones_equally_likely() -> None:
    uniform = multilevel(20_000, period=1, low=2.0, high=5.0, seed=1)
    assert kstest((uniform - 2.0) / 3.0, "uniform").pvalue > 1e-4
    counts = np.unique_counts(multilevel(30_000, period=1, low=0.0, high=1.0, levels=6, seed=1))
    assert counts.values == pytest.approx(np.linspace(0, 1, 6))
    assert np.abs(counts.counts - 5000).max() < 5 * np.sqrt(30_000 / 6 * 5 / 6)


def test_noise_is_gaussian_and_white() -> None:
    noise = gaussian(20_000, 2.5, seed=9)
    assert kstest(noise / 2.5, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 5 / np.sqrt(20_000)


def test_the_smallest_and_largest_word_give_finite_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echobound.plants.excitation.words", lambda *_: np.array([0, 2**64 - 1], dtype=np.uint64))
    low, high = gaussian(2)
    assert -9 < low < -8 < 8 < high < 9


def test_seed_family_index_and_region_each_make_an_independent_draw() -> None:
    keys = [{"seed": 0}, {"seed": 1}, {"family": 1}, {"index": 1}]
    signals = [multilevel(2000, 1, 0.0, 1.0, **key) for key in keys] + [gaussian(2000, **key) for key in keys]
    correlation = np.corrcoef(signals) - np.eye(len(signals))
    assert np.abs(correlation).max() < 5 / np.sqrt(2000)
    assert all((one != other).all() for one, other in pairwise(signals))


def test_the_signal_is_the_documented_function_of_the_words() -> None:
    position = unit(words(draw_key(5, PLANT, 2, 1), 0, 3))
    expected = np.repeat(12.7 + 4.0 * position, 10)[:25]
    assert multilevel(25, 10, seed=5, family=2, index=1) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"samples": 0}, "samples must be a whole number, 1 or more, got 0"),
        ({"samples": 2.5}, "samples must be"),
        ({"samples": True}, "samples must be"),
        ({"samples": 5, "period": 0}, "period must be"),
        ({"samples": 5, "levels": 1}, "levels must be a whole number, 2 or more"),
        ({"samples": 5, "low": 3.0, "high": 3.0}, "amplitude range"),
        ({"samples": 5, "low": float("nan")}, "amplitude range"),
        ({"samples": 5, "seed": -1}, "seed must be"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        multilevel(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("deviation", [-0.1, float("nan"), float("inf")])
def test_bad_deviation_is_refused(deviation: float) -> None:
    with pytest.raises(InputError, match="standard deviation"):
        gaussian(3, deviation)
