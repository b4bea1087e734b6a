"""The pH process against an independent integrator, a root finder, mass balances and the paper's own table."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from echobound.errors import DataError, InputError
from echobound.plants import PHPlant, PHState, multilevel, noise_limit, ph_experiment, ph_of


def balance(y: float, wa: float, wb: float) -> float:
    """Return the charge balance, written out from the chemistry with the numbers of the paper."""
    return wa + 10 ** (y - 14) - 10**-y + wb * (1 + 2 * 10 ** (y - 10.25)) / (1 + 10 ** (6.35 - y) + 10 ** (y - 10.25))


def steady_ph(q3: float, q2: float = 0.55) -> float:
    state = PHPlant().steady_state(q3, q2)
    return float(ph_of(state.wa4, state.wb4))


def reference_response(q3: np.ndarray, q2: np.ndarray) -> np.ndarray:
    """Solve the three differential equations (signs corrected) by SciPy, with inputs held between samples."""

    def slope(_t: float, x: np.ndarray, base: float, buffer: float) -> list[float]:
        wa, wb, h = x
        return [
            (16.6 * (3e-3 - wa) + buffer * (-0.03 - wa) + base * (-3.05e-3 - wa)) / (207 * h),
            (16.6 * (0 - wb) + buffer * (0.03 - wb) + base * (5e-5 - wb)) / (207 * h),
            (16.6 + buffer + base - 4.59 * (h + 11.5) ** 0.607) / 207,
        ]

    switches = np.flatnonzero((np.diff(q3) != 0) | (np.diff(q2) != 0)) + 1
    bounds = [0, *switches.tolist(), len(q3)]
    x = np.array([0.0, 5e-4, 14.0])
    x = solve_ivp(slope, (0, 1e5), x, rtol=1e-12, atol=1e-16, args=(15.6, 0.55), method="LSODA").y[:, -1]
    ph = []
    for first, last in itertools.pairwise(bounds):
        times = 10.0 * np.arange(last - first + 1)
        args = (q3[first], q2[first])
        held = solve_ivp(slope, (0, times[-1]), x, rtol=1e-10, atol=1e-14, t_eval=times, args=args, method="DOP853")
        ph += [brentq(balance, -2, 16, args=(wa, wb), xtol=1e-13) for wa, wb, _ in held.y.T[:-1]]
        x = held.y[:, -1]
    return np.array(ph)


def test_response_agrees_with_scipy_over_5000_samples_with_a_drifting_buffer_flow() -> None:
    q3 = multilevel(5000, seed=11)
    q2 = np.where(np.arange(5000) < 2550, 0.55, 0.65)
    clean = PHPlant().response(q3, q2)
    assert np.abs(clean - reference_response(q3, q2)).max() < 1e-7


def test_halving_the_step_changes_nothing_that_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    q3 = multilevel(1000, seed=3)
    coarse = PHPlant().response(q3)
    monkeypatch.setattr("echobound.plants.ph.LONGEST_STEP", 0.5)
    assert np.abs(coarse - PHPlant().response(q3)).max() < 1e-10


@pytest.mark.parametrize(("q3", "ph"), [(12.7, 6.0202), (16.7, 8.5099)])
def test_steady_states_of_the_notes(q3: float, ph: float) -> None:
    assert steady_ph(q3) == pytest.approx(ph, abs=5e-5)


def test_nominal_point_of_the_papers_table_within_one_per_cent() -> None:
    plant = PHPlant()
    state = plant.steady_state()
    outflow = plant.cv4 * (state.h1 + plant.z) ** plant.n
    found = (*state, outflow, float(ph_of(state.wa4, state.wb4)))
    assert found == pytest.approx((-4.32e-4, 5.28e-4, 14.0, 32.8, 7.0), rel=0.01)


def test_the_printed_sign_does_not_give_the_nominal_point() -> None:
    state = dataclasses.replace(PHPlant(), wa3=3.05e-3).steady_state()
    assert abs(float(ph_of(state.wa4, state.wb4)) - 7.0) > 0.5


@given(q3=st.floats(4, 60), q2=st.floats(0, 5))
def test_a_steady_state_stays(q3: float, q2: float) -> None:
    plant = PHPlant()
    state = plant.steady_state(q3, q2)
    ph = plant.response(np.full(50, q3), q2, initial=state)
    # Rounding of the state is all that may move, seen through the steepest part of the titration curve.
    assert np.abs(ph - ph[0]).max() < 1e-9


@pytest.mark.parametrize("end", [12.7, 16.7])
def test_steps_from_the_nominal_point_settle_in_32_to_41_samples(end: float) -> None:
    ph = PHPlant().response(np.full(200, end))
    final = steady_ph(end)
    outside = np.flatnonzero(np.abs(ph - final) > 0.02 * abs(final - ph[0]))
    assert 32 <= outside[-1] + 1 <= 41


def test_an_input_acts_on_the_next_sample_and_not_before() -> None:
    quiet, moved = np.full(20, 15.6), np.full(20, 15.6)
    moved[10] = 13.0
    difference = PHPlant().response(moved) - PHPlant().response(quiet)
    assert (difference[:11] == 0).all()
    assert difference[11] < -1e-3


def test_a_finer_sampling_time_sees_the_same_plant() -> None:
    q3 = multilevel(60, period=15, seed=5)
    fine = PHPlant().response(np.repeat(q3, 4), sampling_time=2.5)
    assert fine[::4] == pytest.approx(PHPlant().response(q3), abs=1e-12)


@given(
    wa=st.floats(-50, 50) | st.floats(-0.04, 0.01) | st.floats(-1e-9, 1e-9),
    wb=st.floats(0, 50) | st.floats(0, 0.04) | st.just(0.0),
)
def test_ph_is_the_root_that_brentq_finds(wa: float, wb: float) -> None:
    expected = brentq(balance, -2, 16, args=(wa, wb), xtol=1e-14, rtol=1e-14)
    found = float(ph_of(wa, wb))
    # Where the balance is flat its own rounding decides: no solver can do better than rounding / slope.
    slope = (balance(found + 1e-4, wa, wb) - balance(found - 1e-4, wa, wb)) / 2e-4
    floor = 8 * np.spacing(abs(wa) + 2 * wb + 10**-found + 10 ** (found - 14)) / slope
    assert abs(found - expected) <= 1e-12 + floor


def test_ph_is_accurate_to_1e12_all_over_the_mixtures_of_the_streams() -> None:
    fractions = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], size=400)
    wa = fractions @ [3e-3, -0.03, -3.05e-3]
    wb = fractions @ [0.0, 0.03, 5e-5]
    expected = [brentq(balance, -2, 16, args=pair, xtol=1e-15, rtol=1e-15) for pair in zip(wa, wb, strict=True)]
    assert np.abs(ph_of(wa, wb) - expected).max() < 1e-12


@pytest.mark.parametrize(("wa", "ph"), [(0.0, 7.0), (99.0, -np.log10(99)), (-99.0, 14 + np.log10(99)), (1e-2, 2.0)])
def test_ph_of_strong_acid_and_base(wa: float, ph: float) -> None:
    assert float(ph_of(wa, 0.0)) == pytest.approx(ph, abs=1e-9)


@given(st.lists(st.floats(-0.04, 0.01), min_size=2, max_size=20, unique=True), st.floats(0, 0.03))
def test_ph_falls_as_acid_is_added(wa: list[float], wb: float) -> None:
    assert (np.diff(ph_of(np.sort(wa), wb)) <= 0).all()


@pytest.mark.parametrize(("wa", "wb"), [(np.nan, 0.0), (0.0, np.nan), (100.0, 0.0), (0.0, -1e-6), (0.0, np.inf)])
def test_ph_of_impossible_solutions_is_refused(wa: float, wb: float) -> None:
    with pytest.raises(InputError, match="pH is computed for"):
        ph_of(wa, wb)


@pytest.mark.parametrize("bad", [-1.0, 2.9, np.nan, np.inf])
def test_flows_that_empty_the_reactor_or_are_no_numbers_are_refused_with_their_sample(bad: float) -> None:
    with pytest.raises(InputError, match="sample 3 has q3"):
        PHPlant().response([15.6, 15.6, bad])


def test_bad_shapes_and_sampling_times_are_refused() -> None:
    with pytest.raises(InputError, match="shapes"):
        PHPlant().response([15.6, 15.6], q2=[0.55, 0.55, 0.55])
    with pytest.raises(InputError, match="shapes"):
        PHPlant().response(np.ones((4, 2)))
    with pytest.raises(InputError, match="shapes"):
        PHPlant().response([])
    with pytest.raises(InputError, match="sampling time"):
        PHPlant().response([15.6], sampling_time=0.0)
    with pytest.raises(InputError, match="level"):
        PHPlant().response([15.6], initial=PHState(0.0, 0.0, 0.0))


def test_the_record_names_its_channels_and_adds_the_noise_asked_for() -> None:
    q3 = multilevel(4000, seed=2)
    clean, noisy = PHPlant().simulate(q3), PHPlant().simulate(q3, noise=0.05, seed=2)
    assert (clean.input_names, clean.output_names) == (("q3",), ("pH",))
    assert (clean.input_units, clean.output_units, clean.sampling_time) == (("mL/s",), ("pH",), 10.0)
    assert (clean.u[:, 0] == q3).all()
    assert (clean.y[:, 0] == PHPlant().response(q3)).all()
    noise = (noisy.y - clean.y)[:, 0]
    # Five standard errors of mean and deviation of 4000 samples.
    assert abs(noise.mean()) < 5 * 0.05 / np.sqrt(4000)
    assert abs(noise.std() - 0.05) < 5 * 0.05 / np.sqrt(8000)
    assert (PHPlant().simulate(q3, noise=0.05, seed=2).y == noisy.y).all()
    assert (PHPlant().simulate(q3, noise=0.05, seed=2, index=1).y != noisy.y).all()


def test_the_experiments_records_start_at_rest_and_are_independent() -> None:
    records = ph_experiment(samples=(400, 400, 400, 400), noise=0.0, seed=7)
    assert [record.name for record in records] == ["training", "validation", "test", "record 4"]
    assert len({record.digest for record in records}) == 4
    for record in records:
        assert record.y[0, 0] == steady_ph(15.6)
        assert (record.u >= 12.7).all()
        assert (record.u < 16.7).all()
    # Length, number and noise of other records change nothing in a record; nor does its own noise change its input.
    _, alone = ph_experiment(samples=(150, 200), noise=0.0, seed=7)
    assert (alone.y == records[1].y[:200]).all()
    noisy = ph_experiment(samples=(400,), noise=0.05, seed=7)[0]
    assert (noisy.u == records[0].u).all()


def test_the_experiment_takes_other_plants_and_excitations() -> None:
    (record,) = ph_experiment((300,), 0.0, period=30, low=14.0, high=15.0, levels=2, plant=PHPlant(q2=0.65), family=3)
    assert set(record.u[:, 0]) == {14.0, 15.0}
    assert record.y[0, 0] == steady_ph(15.6, 0.65)


def test_noise_limit_is_the_fit_of_the_truth() -> None:
    _, validation = ph_experiment(seed=0)
    clean = PHPlant().response(validation.u)
    y = validation.y[100:, 0]
    by_hand = 100 * (1 - np.sqrt(np.sum((y - clean[100:]) ** 2) / np.sum((y - y.mean()) ** 2)))
    assert noise_limit(validation, clean) == pytest.approx(by_hand, rel=1e-12)
    assert noise_limit(validation, validation.y) == 100.0
    # 100 (1 - sigma / std y), as the noise is independent of the output.
    assert noise_limit(validation, clean) == pytest.approx(100 * (1 - 0.05 / y.std()), abs=0.5)


def test_noise_limit_refuses_what_does_not_fit() -> None:
    (record,) = ph_experiment((50,))
    with pytest.raises(DataError, match="washout"):
        noise_limit(record, record.y)
    with pytest.raises(DataError, match="shape"):
        noise_limit(record, np.ones((50, 2)))
    with pytest.raises(DataError, match="shape"):
        noise_limit(record, np.ones(49))
