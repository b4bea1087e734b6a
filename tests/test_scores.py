"""Scores: compared with plain sums; invariances, divergence, overflow, and the registry."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from echobound.errors import InputError
from echobound.scores import Score, fit, fit_per_output, get_score, register_score, rmse, rmse_per_output, summary

SHAPE = st.tuples(st.integers(2, 20), st.integers(1, 3))
SIGNALS = SHAPE.flatmap(lambda shape: st.tuples(*[arrays(np.float64, shape, elements=st.floats(-1e3, 1e3))] * 2))


@pytest.fixture
def signals() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    measured = generator.normal(5.0, [1.0, 30.0], (50, 2))
    return measured, measured + generator.normal(0.0, [0.1, 2.0], (50, 2))


@given(SIGNALS)
def test_rmse_is_the_root_of_the_mean_square(pair: tuple[np.ndarray, np.ndarray]) -> None:
    measured, simulated = pair
    per_output = [
        math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(one, other, strict=True)) / len(one))
        for one, other in zip(measured.T.tolist(), simulated.T.tolist(), strict=True)
    ]
    assert rmse_per_output(measured, simulated) == pytest.approx(per_output, rel=1e-12, abs=1e-150)
    pooled = math.sqrt(math.fsum(value**2 for value in per_output) / len(per_output))
    assert float(rmse(measured, simulated)) == pytest.approx(pooled, rel=1e-12, abs=1e-150)


def test_fit_is_the_papers_formula(signals: tuple[np.ndarray, np.ndarray]) -> None:
    measured, simulated = signals
    expected = [
        100 * (1 - np.linalg.norm(y - yhat) / np.linalg.norm(y - y.mean()))
        for y, yhat in zip(measured.T, simulated.T, strict=True)
    ]
    assert fit_per_output(measured, simulated) == pytest.approx(expected, rel=1e-12)
    assert float(fit(measured, simulated)) == pytest.approx(np.mean(expected), rel=1e-12)


def test_fit_does_not_depend_on_units_and_rmse_is_in_them(signals: tuple[np.ndarray, np.ndarray]) -> None:
    measured, simulated = signals
    scale, shift = np.array([1e-3, 60.0]), np.array([273.15, -4.0])
    moved = (measured * scale + shift, simulated * scale + shift)
    assert fit_per_output(*moved) == pytest.approx(fit_per_output(measured, simulated), rel=1e-9)
    assert rmse_per_output(*moved) == pytest.approx(rmse_per_output(measured, simulated) * scale, rel=1e-9)


def test_fit_of_the_truth_is_100_and_of_the_mean_0(signals: tuple[np.ndarray, np.ndarray]) -> None:
    measured, _ = signals
    mean = np.broadcast_to(measured.mean(axis=0), measured.shape)
    assert fit_per_output(measured, measured).tolist() == [100.0, 100.0]
    assert fit_per_output(measured, mean) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("function", [fit, rmse, fit_per_output, rmse_per_output])
def test_several_networks_at_once_score_as_one_by_one(function, signals: tuple[np.ndarray, np.ndarray]) -> None:  # type: ignore[no-untyped-def]
    measured, simulated = signals
    several = simulated + np.linspace(0, 3, 6).reshape(2, 3, 1, 1)
    together = function(measured, several)
    assert together.shape[:2] == (2, 3)
    for index in np.ndindex(2, 3):
        assert (together[index] == function(measured, several[index])).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_diverged_simulation_scores_worst_and_its_neighbours_do_not_notice(
    value: float, signals: tuple[np.ndarray, np.ndarray]
) -> None:
    measured, simulated = signals
    several = np.stack([simulated, simulated])
    several[1, 7, 0] = value
    assert rmse(measured, several)[1] == np.inf
    assert fit(measured, several)[1] == -np.inf
    assert rmse(measured, several)[0] == rmse(measured, simulated)
    assert rmse_per_output(measured, several)[1].tolist() == [np.inf, rmse_per_output(measured, simulated)[1]]
    assert fit_per_output(measured, several)[1, 0] == -np.inf
    assert get_score("fit")(measured, several[1]) == -np.inf
    assert get_score("rmse")(measured, several[1]) == np.inf


@pytest.mark.parametrize("size", [1e-200, 1e-160, 1e160, 1e300])
def test_finite_signals_score_what_they_score_however_large(size: float) -> None:
    measured = size * np.array([[0.0], [1.0], [0.0], [-1.0]])
    simulated = measured + size * np.array([[1.0], [-1.0], [1.0], [1.0]])
    assert float(rmse(measured, simulated)) == pytest.approx(size, rel=1e-12)
    assert float(fit(measured, simulated)) == pytest.approx(100 * (1 - math.sqrt(2)), rel=1e-12)


def test_a_free_run_near_the_largest_double_raises_nothing() -> None:
    measured = np.array([[0.0, 0.0], [1e-3, 1e-3]])
    simulated = np.full((2, 2), 1.7e308)
    assert float(fit(measured, simulated)) == -np.inf
    assert float(rmse(measured, simulated)) == pytest.approx(1.7e308)


def test_signals_of_different_shape_are_not_broadcast(signals: tuple[np.ndarray, np.ndarray]) -> None:
    measured, simulated = signals
    for wrong in (simulated[:, 0], simulated[:, :1], simulated[:-1], simulated.T):
        with pytest.raises(InputError, match="must have the same shape"):
            rmse(measured, wrong)
        with pytest.raises(InputError, match="must have the same shape"):
            fit(measured, wrong)
    with pytest.raises(InputError, match="must have the same shape"):
        fit(measured[:, 0], simulated[:, 0])


def test_the_summary_has_each_output_by_name(signals: tuple[np.ndarray, np.ndarray]) -> None:
    found = summary(*signals, ["T", "pH"])
    assert (found["fit"], found["rmse"]) == (float(fit(*signals)), float(rmse(*signals)))
    assert [value["fit"] for value in found["per_output"].values()] == fit_per_output(*signals).tolist()
    assert found["per_output"]["pH"]["rmse"] == rmse_per_output(*signals)[1]


def test_direction_is_part_of_a_score() -> None:
    assert (get_score("fit").direction, get_score("fit").worst) == ("max", -np.inf)
    assert (get_score("rmse").direction, get_score("rmse").worst) == ("min", np.inf)
    with pytest.raises(InputError, match="must be 'max' or 'min', got 'up'"):
        Score("x", rmse, "up")  # type: ignore[arg-type]


def test_a_score_that_is_nan_is_the_worst() -> None:
    y = np.ones((3, 1))
    for direction, worst in (("max", -np.inf), ("min", np.inf)):
        assert Score("odd", lambda *_: float("nan"), direction)(y, y) == worst  # type: ignore[arg-type]


def test_a_users_score_is_not_asked_about_a_diverged_network() -> None:
    asked = []
    score = Score("mine", lambda y, yhat: asked.append(1) or 3.0, "max")
    assert score(np.ones((2, 1)), np.array([[1.0], [np.nan]])) == -np.inf
    assert not asked
    assert score(np.ones((2, 1)), np.ones((2, 1))) == 3.0


@pytest.mark.parametrize("name", ["fit", "rmse"])
def test_from_the_root_mean_squares_alone(name: str) -> None:
    """A kernel that returns no outputs must compute the score that the outputs would have had."""
    score, generator = get_score(name), np.random.default_rng(1)
    measured = generator.normal(size=(50, 2))
    simulated = measured + generator.normal(size=(4, 50, 2))
    simulated[2, 7, 1], simulated[3] = np.nan, 1e300
    assert score.of_rms is not None
    values = score.of_rms(measured, rmse_per_output(measured, simulated))
    assert values.shape == (4,)
    assert values.tolist() == [score(measured, one) for one in simulated]


def test_the_registry_finds_refuses_and_keeps() -> None:
    own = Score("test only: largest error", lambda y, yhat: np.abs(y - yhat).max(), "min")
    assert register_score(own) is own
    assert register_score(own) is own
    assert get_score(own.name) is own
    assert get_score(own) is own
    with pytest.raises(InputError, match="a score named 'fit' is registered already"):
        register_score(Score("fit", rmse, "min"))
    with pytest.raises(InputError, match=r"unknown score 'r2': known are .*fit.*rmse"):
        get_score("r2")


# ---------------------------------------------------------------- robust

WAVE = np.stack([np.sin(0.3 * np.arange(60.0)), 5.0 + 2.0 * np.cos(0.1 * np.arange(60.0))], axis=1)


@given(st.floats(-50, 100), st.floats(0, 3), st.floats(0, 3))
def test_robust_is_the_lesser_fit_less_the_change_by_noise(value, error, change):
    signs = np.where(np.arange(60) % 2, 1.0, -1.0)[:, None]
    simulated = WAVE + error * signs
    found = get_score("robust").demanded(value, WAVE, simulated, simulated + change * WAVE.std(axis=0) * signs)
    over = np.mean(100 * (1 - error / WAVE.std(axis=0)))
    assert found == pytest.approx(min(value, over) - 100 * change, abs=1e-6)
    assert found <= value + 1e-9


def test_robust_without_demands_is_fit():
    robust = get_score("robust")
    assert robust(WAVE, WAVE + 0.1) == get_score("fit")(WAVE, WAVE + 0.1)
    assert (robust.direction, robust.unit, robust.worst) == ("max", "%", -np.inf)


def test_a_run_over_the_training_data_that_is_not_finite_scores_worst():
    broken = WAVE.copy()
    broken[7, 0] = np.nan
    robust = get_score("robust")
    assert robust.demanded(90.0, WAVE, broken, WAVE) == robust.demanded(90.0, WAVE, WAVE, broken)
    assert robust.demanded(90.0, WAVE, WAVE, np.where(np.isnan(broken), np.inf, WAVE)) == -np.inf
    huge = np.full_like(WAVE, 1e308)
    assert robust.demanded(90.0, WAVE, huge, -huge) == -np.inf


def test_a_score_without_demands_keeps_its_value():
    assert get_score("rmse").demanded(0.25, WAVE, WAVE * np.nan, WAVE) == 0.25


def test_outputs_that_do_not_move_over_the_training_data_are_left_out():
    still = np.concatenate([WAVE[:, :1], np.full((60, 1), 3.0)], axis=1)
    robust = get_score("robust")
    moved = still + np.array([0.1, 0.7])
    assert robust.demanded(95.0, still, moved, moved) == robust.demanded(95.0, WAVE[:, :1], moved[:, :1], moved[:, :1])
    nothing = np.full((60, 1), 3.0)
    assert robust.demanded(95.0, nothing, nothing, nothing) == 95.0
