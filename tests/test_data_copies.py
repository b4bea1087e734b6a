"""Copies of records: shifted, rounded, resampled ones are found, and independent experiments are not accused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echobound import Record, generalise, identify, renew
from echobound.data.copies import common, require_independent_records
from echobound.data.overlap import require_untouched
from echobound.errors import DataError, InputError
from echobound.plants import ph_experiment

WHOLE = ph_experiment(samples=(800, 400), period=30)
TRAINING, VALIDATION = WHOLE


def windows(record, count, length, shift):
    return [record.part(i * shift, i * shift + length, f"window {i}") for i in range(count)]


def test_windows_shifted_by_one_sample_are_one_episode():
    """59 of them counted as 59 episodes: 0.0495 was promised where 0.44 was true."""
    with pytest.raises(DataError, match=r"records 1 .* and 2 .* 119 samples in common"):
        require_independent_records(windows(TRAINING, 59, 120, 1))


@pytest.mark.parametrize("shift", [-60, -1, 1, 37, 100])
@pytest.mark.parametrize("jitter", [0.0, 1e-9, 1e-5])
def test_shift_and_jitter_at_rounding_size(shift, jitter):
    rng = np.random.default_rng(0)
    one, two = TRAINING.part(200, 320), TRAINING.part(200 + shift, 320 + shift)
    noisy = replace(two, y=two.y + jitter * two.y.std() * rng.normal(size=two.y.shape))
    assert common(one, noisy).samples == 120 - abs(shift)
    assert common(noisy, one).samples == 120 - abs(shift)


def test_digits_rounded_anew():
    rounded = replace(TRAINING, y=np.round(TRAINING.y, 4), u=np.round(TRAINING.u, 3))
    assert common(TRAINING, rounded).samples == 800


@pytest.mark.parametrize("factor", [2, 3, 5])
def test_every_other_sample_of_the_same_record(factor):
    thin = Record(u=TRAINING.u[1::factor], y=TRAINING.y[1::factor])
    found = common(thin, TRAINING)
    assert found.factor == factor
    assert found.samples >= 800 // factor - 1
    assert "at every" in found.words


def test_less_than_a_tenth_in_common_is_not_counted():
    assert common(TRAINING.part(0, 300), TRAINING.part(290, 590)) is None


@given(st.integers(0, 10_000), st.floats(1e-3, 1))
@settings(max_examples=20, deadline=None)
def test_independent_experiments_are_not_accused(seed, noise):
    """Even with the same excitation: the noise of the outputs, a thousandth of their movement, tells them apart."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=200)
    y = np.convolve(u, 0.8 ** np.arange(30))[:200]
    one, two = (Record(u=u, y=y + noise * y.std() * rng.normal(size=200)) for _ in range(2))
    other = Record(u=rng.normal(size=200), y=y)
    assert common(one, two) is None
    assert common(one, other) is None


def test_a_plant_at_rest_is_not_a_copy_of_itself():
    rng = np.random.default_rng(0)
    still = np.concatenate([np.zeros(100), rng.normal(size=100)]), np.concatenate([np.zeros(100), rng.normal(size=100)])
    one, two = (Record(u=x, y=x) for x in still)
    assert common(one, two) is None


def test_other_channels_cannot_be_compared():
    assert common(TRAINING, Record(u=np.zeros((50, 2)), y=np.zeros(50))) is None


def test_test_data_next_to_validation_data_are_refused():
    moved = VALIDATION.part(7, 207, "moved")
    noisy = replace(moved, y=moved.y + 1e-9)
    with pytest.raises(DataError, match=r"moved and the validation data .* 200 samples in common"):
        require_untouched([noisy], [("training", TRAINING), ("validation", VALIDATION)])


SMALL = {"law": "paper", "order": 6, "networks": 12, "beta": 0.05, "washout": 40, "committee": 0}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return identify(TRAINING, VALIDATION, **SMALL, run=tmp_path_factory.mktemp("run") / "run").run


def test_generalise_refuses_near_duplicates(run):
    [later] = ph_experiment(seed=9, samples=(400,), period=30)
    with pytest.raises(DataError, match="samples in common"):
        generalise(run, windows(later, 5, 120, 1))
    assert not (run / "generalisation.json").exists()


def test_renew_refuses_old_data_in_another_guise(run, tmp_path):
    new = ph_experiment(seed=5, samples=(800, 400), period=30)
    for training, validation in (
        (TRAINING.part(0, 799), VALIDATION),  # less one sample
        (VALIDATION, TRAINING),  # roles swapped
        (new[0], replace(VALIDATION, y=VALIDATION.y + 1e-10)),
    ):
        with pytest.raises(InputError, match=r"samples in common.*not a renewal"):
            renew(run, training, validation, closed_loop=False, into=tmp_path / "renewed")
    assert not (tmp_path / "renewed").exists()
    assert renew(run, *new, closed_loop=False, into=tmp_path / "renewed").certificate.networks == 12
