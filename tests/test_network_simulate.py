"""How a simulation starts, by hand; and what the spread of leak rates does to the stability statement."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echobound.kernels import get_kernel, hold_out
from echobound.kernels.training import train_network
from echobound.network import Reservoir, ReservoirLaw, draw_reservoir
from echobound.network.dynamics import default_dynamics
from echobound.network.stability import stability
from echobound.scores import get_score

RUNNER = default_dynamics()  # what models run by
LAW = ReservoirLaw(
    order=12, norm=0.97, leak=0.05, bias_scale=0.3, output_delays=2, input_delays=3, present_input=True, constant=True
)


@pytest.fixture(scope="module")
def trained(ph_records):
    problem = hold_out(*ph_records, law=LAW, scores=[get_score("fit")], washout=60)
    return train_network(get_kernel("reference"), problem, 0)[0]


def by_hand(model, u, before, held, given=()):
    """The model's equations written out: x held at the first sample for `held` steps, then its own y fed back."""
    reservoir, hyper = model.reservoir, model.reservoir.hyper
    u = (u - model.scaling.input_offset) / model.scaling.input_span
    before = (before - model.scaling.output_offset) / model.scaling.output_span
    fed = [(y - model.scaling.output_offset) / model.scaling.output_span for y in given]
    x = np.zeros(reservoir.order)

    def following(x, u, y):
        inside = reservoir.W_x @ x + reservoir.W_u @ u + reservoir.W_y @ y + reservoir.bias
        return (1 - reservoir.leak) * x + reservoir.leak * np.tanh(inside)

    for _ in range(held):
        x = following(x, u[0], before)
    for k in range(len(u)):
        if k >= len(fed):
            past_u = [u[max(k - delay, 0)] for delay in range(1, hyper.input_delays + 1)]
            past_y = [fed[k - delay] if k >= delay else before for delay in range(1, hyper.output_delays + 1)]
            fed.append(model.readout @ np.concatenate([x, *past_u, u[k], *past_y, [1.0]]))
        x = following(x, u[k], fed[k])
    return np.array(fed[len(given) :]) * model.scaling.output_span + model.scaling.output_offset


@pytest.mark.parametrize(("padding", "washout", "held"), [(0, 60, 60), (7, 60, 60), (90, 60, 90), (5, 0, 5), (0, 0, 0)])
def test_from_the_training_mean_the_first_sample_is_held_until_the_state_settles(
    trained, ph_records, padding, washout, held
):
    model = dataclasses.replace(trained, padding=padding, washout=washout)
    u = ph_records[1].u[:40]
    run = model.simulate(u)
    assert run.first == 0
    assert np.allclose(run.y, by_hand(model, u, model.training_mean, held), rtol=0, atol=1e-9)
    mean = model.scaling.outputs(model.training_mean[None])
    for steps in (0, 5, 7, 60, 90):
        other = RUNNER.free_run(model.reservoir, model.readout, model.scaling.inputs(u), mean, 0, steps)
        same = bool((model.scaling.outputs_back(other) == run.y).all())
        assert same == (steps == held), f"{steps} steps"


def test_a_record_without_washout_settles_likewise_at_its_first_output(trained, ph_records):
    model = dataclasses.replace(trained, padding=7)
    record = ph_records[1].part(0, 40)
    run = model.simulate(record, washout=0)
    assert run.first == 0
    assert np.allclose(run.y, by_hand(model, record.u, record.y[0], 60), rtol=0, atol=1e-9)


@pytest.mark.parametrize("padding", [0, 25, 90])
def test_with_measured_outputs_the_padding_is_the_models_own(trained, ph_records, padding):
    model = dataclasses.replace(trained, padding=padding)
    record = ph_records[1].part(0, 100)
    run = model.simulate(record)
    u, y = model.scaling.inputs(record.u), model.scaling.outputs(record.y)
    expected = RUNNER.free_run(model.reservoir, model.readout, u, y, 60, padding)
    assert (run.y == model.scaling.outputs_back(expected)).all()
    assert np.allclose(run.y, by_hand(model, record.u, record.y[0], padding, given=record.y[:60]), rtol=0, atol=1e-9)
    for steps in {0, 25, 60, 90} - {padding}:
        assert (RUNNER.free_run(model.reservoir, model.readout, u, y, 60, steps) != expected).any(), (
            "the padding matters"
        )


@pytest.mark.parametrize("count", [1, 3])
def test_with_few_given_outputs_the_padding_is_still_the_models_own(trained, ph_records, count):
    model = dataclasses.replace(trained, padding=25)
    u, y = ph_records[1].u[:40], ph_records[1].y[:count]
    run = model.simulate(u, initial=y)
    assert run.first == count
    assert np.allclose(run.y, by_hand(model, u, y[0], 25, given=y), rtol=0, atol=1e-9)


def test_only_the_washout_of_a_records_outputs_is_seen(trained, ph_records):
    record = ph_records[1].part(0, 100)
    changed = dataclasses.replace(record, y=np.r_[record.y[:60], np.full((40, 1), 3.0)])
    assert (trained.simulate(changed).y == trained.simulate(record).y).all()
    other = dataclasses.replace(record, y=np.r_[record.y[:59], np.full((41, 1), 3.0)])
    assert (trained.simulate(other).y != trained.simulate(record).y).any()


def test_predictions_use_the_models_padding(trained, ph_records):
    model = dataclasses.replace(trained, padding=25)
    record = ph_records[1].part(0, 80)
    u, y = model.scaling.inputs(record.u), model.scaling.outputs(record.y)
    results = {p: RUNNER.predictions(model.reservoir, model.readout, u, y, 5, 3, p) for p in (0, 25, 60)}
    run = model.predict(record, horizon=3, washout=5)
    for padding, expected in results.items():
        assert bool((model.scaling.outputs_back(expected) == run.y).all()) == (padding == 25)


# ---------------------------------------------------------------- leak rates of different units


def reservoir_of(W_x, leak):
    n = len(leak)
    hyper = draw_reservoir(ReservoirLaw(order=n), 1, 1, seed=0).hyper
    columns = np.tile(np.arange(n)[:, None], (1, n))  # slot j holds column j
    zeros = np.zeros((n, 1))
    return Reservoir(hyper, columns, np.asarray(W_x, dtype=float).T, zeros, zeros, np.zeros(n), np.asarray(leak))


def differences(reservoir, difference, steps):
    """Distances of two states `difference` apart, around 0 where tanh is steepest."""
    one, other = np.asarray(difference) / 2, -np.asarray(difference) / 2
    distances = [np.linalg.norm(one - other)]
    for _ in range(steps):
        one, other = (reservoir.step(x, np.zeros(len(x)), np.zeros(1)) for x in (one, other))
        distances.append(np.linalg.norm(one - other))
    return np.array(distances)


def test_the_overshoot_is_the_root_of_the_ratio_of_leak_rates():
    for seed in range(5):
        reservoir = draw_reservoir(ReservoirLaw(order=30, leak=0.2, leak_spread=0.5), 1, 1, seed=seed)
        claim = stability(reservoir)
        assert claim.overshoot == pytest.approx(np.sqrt(reservoir.leak.max() / reservoir.leak.min()), rel=1e-14)
        assert 1.5 < claim.overshoot <= np.sqrt(10) * (1 + 1e-12)
        assert claim.to_dict()["overshoot"] == claim.overshoot
    assert stability(draw_reservoir(ReservoirLaw(order=30, leak=0.2), 1, 1, seed=0)).overshoot == 1.0


def test_two_states_can_first_go_apart_but_never_beyond_the_overshoot():
    # A slow unit drives a fast one: what the slow one keeps, the fast one gets on top.
    reservoir = reservoir_of([[0.0, 0.95], [0.0, 0.0]], leak=[1.0, 0.01])
    claim = stability(reservoir)
    assert claim.norm == pytest.approx(0.95)
    assert claim.overshoot == pytest.approx(10.0)
    distances = differences(reservoir, [0.0, 1e-3], steps=2000)
    assert distances[1] > 1.3 * distances[0], "an overshoot of 1 would be wrong"
    powers = claim.rate ** np.arange(len(distances))
    assert (distances <= claim.overshoot * powers * distances[0] * (1 + 1e-12)).all()


def test_a_reservoir_made_by_hand_has_the_matrix_asked_for():
    W_x = np.array([[0.1, 0.2, 0.3], [0.0, -0.5, 0.1], [0.4, 0.0, 0.0]])
    assert (reservoir_of(W_x, leak=[1.0, 0.5, 0.1]).W_x == W_x).all()


@settings(deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6),
    st.floats(0.05, 0.999),
    st.floats(1e-4, 10.0),
)
def test_differences_stay_below_the_claim_whatever_the_leak_rates(seed, leak, norm, size):
    rng = np.random.default_rng(seed)
    W_x = rng.normal(size=(len(leak), len(leak)))
    reservoir = reservoir_of(norm * W_x / np.linalg.norm(W_x, 2), leak)
    claim = stability(reservoir)
    distances = differences(reservoir, size * rng.normal(size=len(leak)), steps=60)
    assert (distances <= claim.overshoot * claim.rate ** np.arange(61) * distances[0] * (1 + 1e-9) + 1e-15).all()
