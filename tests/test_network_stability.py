from dataclasses import replace

import numpy as np
import pytest

from echobound.network import ReservoirLaw, draw_reservoir, without_feedback
from echobound.network.dynamics import free_run, teacher_states
from echobound.network.stability import stability

ROUNDING = 1e-13


@pytest.mark.parametrize(
    "law",
    [
        ReservoirLaw(order=40, norm=0.9),
        ReservoirLaw(order=40, norm=0.5, leak=0.4),
        ReservoirLaw(order=40, norm=0.8, leak=0.3, leak_spread=0.5, bias_scale=0.2),
    ],
    ids=["no leak", "leak", "spread leak"],
)
def test_two_initial_states_converge_at_the_stated_rate(law):
    reservoir = draw_reservoir(law, 1, 1, seed=0)
    claim = stability(reservoir)
    assert claim.contracts
    assert claim.norm == pytest.approx(law.norm, rel=1e-10)
    rng = np.random.default_rng(1)
    u, y = rng.normal(size=(60, 1)), rng.normal(size=(60, 1))
    drive = reservoir.drive(u)
    one, other = rng.normal(size=40) * 3, rng.normal(size=40) * 3
    weight = 1.0 / np.sqrt(reservoir.leak)  # the norm in which the rate holds: x' A^-1 x
    first = np.linalg.norm(one - other)
    for k in range(60):
        before = np.linalg.norm(weight * (one - other))
        one, other = reservoir.step(one, drive[k], y[k]), reservoir.step(other, drive[k], y[k])
        assert np.linalg.norm(weight * (one - other)) <= claim.rate * before + ROUNDING
        assert np.linalg.norm(one - other) <= claim.overshoot * claim.rate ** (k + 1) * first + ROUNDING
    assert "the reservoir, driven by measured inputs and outputs, is incrementally" in claim.statement
    assert "nothing about a free run, in which the model's own outputs are fed back" in claim.statement


@pytest.mark.parametrize("norm", [0.6, 1.2])
def test_where_nothing_is_fed_back_the_statement_covers_the_free_run(norm):
    law = without_feedback(order=12)
    reservoir = draw_reservoir(law, 2, 2, seed=1)
    scaled = replace(reservoir, values=reservoir.values * norm / np.linalg.norm(reservoir.W_x, 2))
    claim = stability(scaled)
    assert not claim.feedback
    assert not claim.to_dict()["feedback"]
    assert claim.contracts is (norm < 1)
    said = "the model, in free run too, is incrementally input-to-state stable"
    assert said in claim.statement
    assert ("not established" in claim.statement) is (norm > 1)
    assert claim.statement.endswith("No output is fed back.")
    assert "says nothing" not in claim.statement
    # Feedback into the states, and into the readout alone.
    for other in (
        replace(scaled, W_y=np.eye(12, 2)),
        replace(scaled, hyper=replace(scaled.hyper, output_delays=1)),
    ):
        assert stability(other).feedback
        assert "says nothing about a free run" in stability(other).statement


def test_without_feedback_a_free_run_does_not_depend_on_measured_outputs():
    reservoir = draw_reservoir(without_feedback(order=12), 1, 1, seed=2)
    claim = stability(reservoir)
    readout = np.random.default_rng(1).normal(size=(1, reservoir.readout_columns(1)))
    u = np.random.default_rng(2).normal(size=(80, 1))
    [one, other] = (free_run(reservoir, readout, u, np.full((80, 1), start), 20) for start in (0.0, 5.0))
    assert not claim.feedback
    assert (one == other).all()


def test_without_leak_the_rate_is_the_norm():
    claim = stability(draw_reservoir(ReservoirLaw(order=20, norm=0.7), 1, 1, seed=0))
    assert claim.rate == pytest.approx(0.7, rel=1e-10)
    assert claim.overshoot == 1.0


def test_a_norm_of_one_is_not_called_stable():
    reservoir = draw_reservoir(ReservoirLaw(order=10, norm=0.9), 1, 1, seed=0)
    object.__setattr__(reservoir, "values", reservoir.values / 0.8)
    claim = stability(reservoir)
    assert not claim.contracts
    assert "not established" in claim.statement


def test_states_forget_where_they_started():
    reservoir = draw_reservoir(ReservoirLaw(order=30, norm=0.8), 1, 1, seed=0)
    rng = np.random.default_rng(0)
    u, y = rng.normal(size=(200, 1)), rng.normal(size=(200, 1))
    cold = teacher_states(reservoir, u, y)
    warm = teacher_states(reservoir, u, y, padding=50)
    assert np.abs(cold[-1] - warm[-1]).max() < 1e-12
