"""Variable projection: derivatives, the linear start, the descent, and what happens to hopeless data."""

import dataclasses

import numpy as np
import pytest
from scipy.signal import lfilter

from echobound.data import Record
from echobound.errors import InputError
from echobound.kernels import get_kernel, hold_out
from echobound.network import CascadeLaw, VariableProjection, get_trainer
from echobound.network.cascade import Cascade, energy_factors
from echobound.network.training import Trainer, TrainingSegment
from echobound.network.training.cascade_tools import CascadeTools, Stretch, derivatives
from echobound.network.training.linear import linear_poles
from echobound.network.training.projection import _stretches
from echobound.network.training.separable import (
    Coordinates,
    _normal_equations,
    _point,
    descend,
    solve_readout,
    squared_error,
)
from echobound.plants import WienerHammersteinPlant, wiener_hammerstein_experiment
from echobound.scores import get_score

FRONT, BACK = np.array([[-1.5, 0.6], [-0.3, -0.2]]), np.array([[-1.2, 0.5], [0.1, 0.3]])


@pytest.fixture
def case():
    rng = np.random.default_rng(3)
    weights, bias = 0.5 * rng.standard_normal((3, 10)), rng.standard_normal(3)
    cascade = Cascade(FRONT, energy_factors(FRONT), weights, bias, BACK, energy_factors(BACK))
    u = rng.standard_normal((80, 2))
    y = np.tanh(lfilter([0.3], [1.0, -0.7], u @ np.array([[1.0, 0.5], [-0.5, 1.0]]), axis=0))
    return cascade, [Stretch(u, y, 10, 60), Stretch(u[:40] ** 2, y[:40], 5, 40)]


def test_derivatives_by_complex_steps(case):
    cascade, [first, _] = case
    readout = np.random.default_rng(4).standard_normal((2, cascade.columns))
    slopes = derivatives(cascade, readout, first.u)
    for number in range(cascade.parameters.size):
        moved = cascade.parameters.astype(complex)
        moved[number] += 1e-30j
        expected = (cascade.with_parameters(moved).features(first.u) @ readout.T).imag / 1e-30
        assert np.allclose(slopes[:, :, number], expected.T, atol=1e-10)


def test_gram_matrices_are_those_of_the_rows(case):
    cascade, stretches = case
    rows = [np.concatenate([cascade.features(one.u), one.y], axis=1) for one in stretches]
    trained, held_out = CascadeTools().features_gram(cascade, stretches)
    kept = np.concatenate([part[one.first : one.split] for part, one in zip(rows, stretches, strict=True)])
    assert np.allclose(trained, kept.T @ kept)
    assert np.allclose(held_out, rows[0][60:].T @ rows[0][60:])
    readout, objective = solve_readout(trained, cascade.columns, 1e-3)
    features, y = kept[:, :-2], kept[:, -2:]
    ridge = 1e-3 * len(kept)
    expected = np.linalg.solve(features.T @ features + ridge * np.eye(cascade.columns), features.T @ y).T
    assert np.allclose(readout, expected)
    assert objective == pytest.approx(((y - features @ expected.T) ** 2).sum() + ridge * (expected**2).sum())
    assert squared_error(trained, readout) == pytest.approx(((y - features @ expected.T) ** 2).sum())


@pytest.mark.parametrize("shared", [False, True])
def test_the_gradient_is_that_of_the_objective(shared, case):
    cascade, stretches = case
    if shared:
        weights = np.outer([1.0, -0.5, 2.0], cascade.weights[0])
        cascade = dataclasses.replace(cascade, weights=weights)
    coordinates, tools, ridge = Coordinates(cascade, shared), CascadeTools(), 1e-3
    here = _point(tools, coordinates, coordinates.start(), stretches, ridge)
    assert np.allclose(here.cascade.parameters, cascade.parameters, atol=1e-12)
    matrix, gradient = _normal_equations(tools, coordinates, here, stretches, ridge)
    for number in range(len(gradient)):
        step = np.zeros(len(gradient))
        step[number] = 1e-5
        ahead, behind = (_point(tools, coordinates, here.values + sign * step, stretches, ridge) for sign in (1, -1))
        slope = (ahead.objective - behind.objective) / 2e-5
        assert slope == pytest.approx(-2 * gradient[number], rel=1e-3, abs=1e-4 * np.abs(gradient).max())
    assert np.linalg.eigvalsh(matrix).min() > -1e-9 * np.abs(matrix).max()


def test_descent_lowers_the_error_and_ends_at_the_best_point(case):
    cascade, stretches = case
    tools, coordinates = CascadeTools(), Coordinates(cascade, False)
    start = _point(tools, coordinates, coordinates.start(), stretches, 1e-3)
    end = descend(tools, coordinates, stretches, 1e-3, 8)
    assert end.held_out <= start.held_out
    everything = [dataclasses.replace(one, split=len(one.u)) for one in stretches]  # nothing held out
    begun = _point(tools, coordinates, coordinates.start(), everything, 1e-3)
    assert descend(tools, coordinates, everything, 1e-3, 8).objective < 0.9 * begun.objective


def test_linear_poles_with_a_common_denominator():
    rng = np.random.default_rng(0)
    polynomial = np.poly([0.9, 0.4, 0.6 + 0.3j, 0.6 - 0.3j]).real
    data = []
    for samples in (300, 200):
        u = rng.standard_normal((samples, 2))
        u[0] = 0
        one = lfilter([0, 1, 0.2], polynomial, u[:, 0]) + lfilter([0, 0, 1], polynomial, u[:, 1])
        other = lfilter([0, 0.5], polynomial, u[:, 1])
        data.append((u, np.stack([one, other], axis=1)))
    assert np.allclose(np.poly(linear_poles(data, 4)), polynomial, atol=1e-3)
    assert linear_poles([(np.zeros((5, 1)), np.zeros((5, 1)))], 4) is None


def test_parts_of_long_records_are_spread_and_hold_out_their_ends():
    u = np.arange(10_000.0)[:, None]
    data = [TrainingSegment(u, u, u, 50)]
    parts = _stretches(data, 1_200)
    assert sum(len(one.u) - one.first for one in parts) == 1_200
    assert parts[0].u[0, 0] == 0
    assert parts[-1].u[-1, 0] == 9_999
    assert all(one.split - one.first == 160 for one in parts)
    [whole] = _stretches(data, 60_000)
    assert len(whole.u) == 10_000
    assert whole.split == 50 + 9_950 - 1_990


def test_the_trainer_is_registered_and_refuses_nonsense():
    trainer = VariableProjection((1e-8, 1e-4), shared=3)
    assert Trainer.from_dict(trainer.to_dict()) == trainer
    assert get_trainer("variable projection") == VariableProjection()
    assert trainer.chosen(1) == dataclasses.replace(trainer, ridges=(1e-4,))
    assert trainer.settings == (1e-8, 1e-4)
    for wrong in ({"shared": -1}, {"part": 3}, {"ridges": ()}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            VariableProjection(**wrong)


def test_it_finds_a_wiener_hammerstein_system():
    training, validation = wiener_hammerstein_experiment((3_000, 1_000))
    law = CascadeLaw(units=6, sections=2)
    problem = hold_out(training, validation, law=law, scores=[get_score("rmse")], washout=50)
    clean = WienerHammersteinPlant().response(validation.u)
    noise = (validation.y[:, 0] - clean).std()
    best = min(get_kernel("cpu").evaluate(problem, range(3))["scores"][:, 0])
    assert best < 4 * noise  # a linear model: more than 20, see the test of the plant


@pytest.mark.parametrize("kind", ["constant input", "constant output", "huge", "short", "twice the same input"])
def test_hopeless_data_end_as_rows(kind):
    rng = np.random.default_rng(0)
    u, y = rng.standard_normal((120, 2)), rng.standard_normal((120, 1))
    if kind == "constant input":
        u[:] = 3.0
    if kind == "constant output":
        y[:60] = 2.0
    if kind == "huge":
        u, y = 1e150 * u, 1e150 * y
    if kind == "short":
        u, y = u[:26], y[:26]
    if kind == "twice the same input":
        u[:, 1] = u[:, 0]
    training, scored = Record(u=u[: len(u) // 2], y=y[: len(u) // 2]), Record(u=u[len(u) // 2 :], y=y[len(u) // 2 :])
    law = CascadeLaw(training=VariableProjection((1e-8, 1e-4), shared=4, free=4))
    for kernel in ("reference", "cpu"):
        rows = get_kernel(kernel).evaluate(
            hold_out(training, scored, law=law, scores=[get_score("rmse")], washout=5), [0, 1]
        )
        assert np.isfinite(rows["scores"]).all()
