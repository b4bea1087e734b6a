import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echobound.network import ReservoirLaw, Uniform, draw_reservoir, paper
from echobound.network.spectral_norm import spectral_norm


@pytest.mark.parametrize("pattern", ["diagonals", "random"])
def test_norm_against_svd_on_many_draws(pattern):
    # 2 x 500 draws of orders 1 to 300 and 1 to 14 non-zeros a row.
    worst = 0.0
    for index in range(500):
        order = int(np.exp(np.log(300) * ((index * 0.6180339887) % 1.0)) + 0.5)
        law = dataclasses.replace(paper(order), pattern=pattern, nonzeros=1 + index % 14)
        reservoir = draw_reservoir(law, 1, 1, seed=1, index=index)
        worst = max(worst, abs(np.linalg.norm(reservoir.W_x, 2) / 0.99 - 1))
    assert worst < 1e-10


@given(st.integers(1, 40), st.integers(1, 12), st.sampled_from(["diagonals", "random"]), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_each_row_has_its_number_of_nonzeros(order, nonzeros, pattern, index):
    law = ReservoirLaw(order=order, nonzeros=nonzeros, pattern=pattern)
    reservoir = draw_reservoir(law, 2, 1, seed=3, index=index)
    assert (np.sort(reservoir.columns, axis=0)[1:] != np.sort(reservoir.columns, axis=0)[:-1]).all()
    assert reservoir.columns.shape == (min(order, nonzeros), order)
    assert ((reservoir.columns >= 0) & (reservoir.columns < order)).all()
    assert np.linalg.norm(reservoir.W_x, 2) < 1


def test_diagonals_are_cyclic():
    reservoir = draw_reservoir(paper(30), 1, 1, seed=0)
    offsets = (reservoir.columns - np.arange(30)) % 30
    assert (offsets == offsets[:, :1]).all()


def test_columns_are_uniform():
    law = dataclasses.replace(paper(12), pattern="random", nonzeros=4)
    counts = np.zeros(12)
    for index in range(300):
        counts += np.bincount(draw_reservoir(law, 1, 1, seed=0, index=index).columns.ravel(), minlength=12)
    expected = 300 * 4
    chi2 = ((counts - expected) ** 2 / expected).sum()
    assert chi2 < 31.3  # 99.9 % of chi-square with 11 degrees of freedom


def test_a_draw_depends_on_its_four_numbers_alone():
    law = paper(20)
    one = draw_reservoir(law, 1, 1, seed=5, stream=1, family=2, index=3)
    again = draw_reservoir(law, 1, 1, seed=5, stream=1, family=2, index=3)
    assert (one.values == again.values).all()
    for change in ({"seed": 6}, {"stream": 0}, {"family": 1}, {"index": 4}):
        other = draw_reservoir(law, 1, 1, **({"seed": 5, "stream": 1, "family": 2, "index": 3} | change))
        assert (one.W_u != other.W_u).any()


def test_arrays_do_not_depend_on_the_number_of_channels():
    one, three = (draw_reservoir(paper(15), inputs, 1, seed=0) for inputs in (1, 3))
    assert (one.values == three.values).all()
    assert (one.W_y == three.W_y).all()


def test_scales_and_leaks():
    law = ReservoirLaw(order=400, input_scale=0.1, feedback_scale=0.0, bias_scale=2.0, leak=0.2, leak_spread=0.5)
    reservoir = draw_reservoir(law, 1, 1, seed=0)
    assert 0.09 < np.abs(reservoir.W_u).max() <= 0.1
    assert not reservoir.W_y.any()
    assert 1.9 < np.abs(reservoir.bias).max() <= 2.0
    assert 0.2 * 10**-0.5 <= reservoir.leak.min() < 0.07
    assert 0.6 < reservoir.leak.max() <= 0.2 * 10**0.5 + 1e-12
    clipped = draw_reservoir(dataclasses.replace(law, leak=0.9), 1, 1, seed=0)
    assert clipped.leak.max() == 1.0


def test_first_values_are_those_of_the_documented_words():
    # Computed from the contract alone: key, counter layout, (word >> 11) 2^-53, 2u - 1.
    sequence = np.random.SeedSequence(9, spawn_key=(0, 0, 4))
    key = sequence.generate_state(2, np.uint64)
    law = ReservoirLaw(order=8, norm=Uniform(0.2, 0.4), nonzeros=3)
    reservoir = draw_reservoir(law, 1, 1, seed=9, index=4)
    raw = np.random.Philox(key=key, counter=[0, 3, 0, 0]).random_raw(8)
    assert reservoir.W_u[:, 0].tolist() == [2 * (int(w) >> 11) * 2.0**-53 - 1 for w in raw]
    hyper = np.random.Philox(key=key, counter=[1, 0, 0, 0]).random_raw(1)  # the norm is field 1: block 1 of region 0
    assert reservoir.hyper.norm == pytest.approx(0.2 + 0.2 * (int(hyper[0]) >> 11) * 2.0**-53, rel=1e-15)


def test_norm_of_known_matrices():
    identity = np.arange(5)[None, :]
    assert spectral_norm(identity, np.full((1, 5), -2.0)) == pytest.approx(2.0, rel=1e-14)
    assert spectral_norm(np.zeros((1, 1), dtype=int), np.array([[0.3]])) == pytest.approx(0.3, rel=1e-15)
    # Two nearly equal singular values.
    assert spectral_norm(identity, np.array([[1.0, 1.0 - 1e-11, 0.5, 0.1, 1e-9]])) == pytest.approx(1.0, rel=1e-10)
