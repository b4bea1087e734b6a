"""The Wiener-Hammerstein plant: its structure, its noise, and that a linear model cannot follow it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import cheby1, cheby2, lfilter

from echobound.errors import InputError
from echobound.plants import WienerHammersteinPlant, wiener_hammerstein_experiment

PLANT = WienerHammersteinPlant()


def test_the_response_is_filter_saturation_filter():
    u = np.concatenate([np.zeros(200), np.random.default_rng(0).standard_normal(300)])
    between = lfilter(*cheby1(3, 0.5, PLANT.first), u)
    expected = lfilter(*cheby2(3, 40, PLANT.second), PLANT.saturation(between))
    # The steady state of the zero input differs from rest by what the second filter forgets within 200 samples.
    assert np.allclose(PLANT.response(u)[200:], expected[200:], atol=1e-8)


def test_it_starts_in_the_steady_state_of_the_first_sample():
    y = PLANT.response(np.full(50, 0.7))  # Chebyshev filters of odd order have the gain 1 at rest
    assert np.allclose(y, PLANT.saturation(0.7), atol=1e-9)


@given(st.floats(-50, 50))
def test_the_saturation_bends_positive_signals_only(x):
    low, here, high = PLANT.saturation([x - 0.01, x, x + 0.01])
    assert low < here < high
    assert here <= x
    if x < -1:
        assert here == pytest.approx(x, abs=1e-5)
    if x > 2:
        assert (high - here) / 0.01 == pytest.approx(PLANT.slope, abs=1e-4)


def test_noise_has_the_asked_ratio_and_records_are_independent():
    training, validation = wiener_hammerstein_experiment((20_000, 5_000), snr=40.0, seed=3)
    noise = training.y[:, 0] - PLANT.response(training.u)
    assert 20 * np.log10(PLANT.response(training.u).std() / noise.std()) == pytest.approx(40.0, abs=0.1)
    assert abs(np.corrcoef(training.u[:, 0], noise)[0, 1]) < 0.03
    assert not (training.u[:5_000] == validation.u).any()
    again = wiener_hammerstein_experiment((1_000,), snr=40.0, seed=3)[0]
    assert (again.u == training.u[:1_000]).all()
    [quiet] = wiener_hammerstein_experiment((100,), snr=np.inf)
    assert (quiet.y[:, 0] == PLANT.response(quiet.u)).all()


def test_a_linear_model_is_far_from_the_noise():
    [record] = wiener_hammerstein_experiment((5_000,))
    clean, lags = PLANT.response(record.u), 60
    rows = np.stack(
        [record.u[lags - lag : len(record) - lag, 0] for lag in range(lags)] + [np.ones(len(record) - lags)]
    )
    error = clean[lags:] - rows.T @ np.linalg.lstsq(rows.T, clean[lags:], rcond=None)[0]
    assert error.std() > 20 * (record.y[:, 0] - clean).std()


@pytest.mark.parametrize("wrong", [{"first": 0.0}, {"second": 1.5}, {"slope": -1.0}, {"sharpness": 0.0}])
def test_a_plant_that_cannot_be_is_refused(wrong):
    with pytest.raises(InputError, match=r"must be|needs"):
        WienerHammersteinPlant(**wrong)
    with pytest.raises(InputError, match="one signal"):
        PLANT.response(np.zeros((5, 2)))
