"""The state equation and the training steps against a direct transcription of the paper."""

import dataclasses

import numpy as np
import pytest

from echobound.network import draw_reservoir, paper
from echobound.network.dynamics import features, free_run, predictions, teacher_states


@pytest.fixture(scope="module")
def example():
    reservoir = draw_reservoir(paper(12), inputs=2, outputs=1, seed=4)
    rng = np.random.default_rng(0)
    return reservoir, rng.random((40, 2)), rng.random((40, 1)), rng.normal(size=(1, 14)) * 0.1


def test_states_are_the_papers_equation(example):
    reservoir, u, y, _ = example
    states = teacher_states(reservoir, u, y)
    x = np.zeros(12)
    for k in range(40):
        assert np.allclose(states[k], x, atol=1e-14)
        x = np.tanh(reservoir.W_x @ x + reservoir.W_u @ u[k] + reservoir.W_y @ y[k])


def test_free_run_is_the_papers_equation(example):
    reservoir, u, y, readout = example
    washout = 10
    simulated = free_run(reservoir, readout, u, y, washout)
    x, phi = np.zeros(12), u[0]  # before the record the first sample is held
    expected = []
    for k in range(40):
        output = readout[:, :12] @ x + readout[:, 12:] @ phi
        fed = y[k] if k < washout else output
        if k >= washout:
            expected.append(output)
        x = np.tanh(reservoir.W_x @ x + reservoir.W_u @ u[k] + reservoir.W_y @ fed)
        phi = u[k]
    assert np.allclose(simulated, expected, atol=1e-13)


def test_padding_is_a_longer_record_with_the_first_sample_held(example):
    reservoir, u, y, readout = example
    held_u, held_y = np.concatenate([np.repeat(u[:1], 7, 0), u]), np.concatenate([np.repeat(y[:1], 7, 0), y])
    assert np.allclose(teacher_states(reservoir, u, y, padding=7), teacher_states(reservoir, held_u, held_y)[7:])
    padded = free_run(reservoir, readout, u, y, washout=5, padding=7)
    assert np.allclose(padded, free_run(reservoir, readout, held_u, held_y, washout=12))


def test_features_in_their_documented_order():
    hyper = dataclasses.replace(
        paper(3).draw(np.array([1, 2], dtype=np.uint64)),
        input_delays=2,
        present_input=True,
        output_delays=2,
        constant=True,
    )
    u, y = np.arange(10.0)[:, None] + 100, np.arange(10.0)[:, None] + 200
    states = np.full((2, 3), 7.0)
    rows = features(hyper, states, u, y, np.array([1, 5]), before=np.array([-1.0]))
    assert rows[1].tolist() == [7, 7, 7, 104, 103, 105, 204, 203, 1]
    assert rows[0].tolist() == [7, 7, 7, 100, 100, 101, 200, -1, 1]  # before the start: first input, given output


def test_one_step_prediction_is_the_teacher_forced_output(example):
    reservoir, u, y, readout = example
    states = teacher_states(reservoir, u, y)
    rows = features(reservoir.hyper, states[5:], u, y, np.arange(5, 40), y[0])
    assert np.allclose(predictions(reservoir, readout, u, y, washout=5, horizon=1), rows @ readout.T)


def test_long_horizon_is_the_free_run(example):
    reservoir, u, y, readout = example
    # Predicted from measurements up to sample 9 alone, the last sample is that of a free run after 10 samples.
    predicted = predictions(reservoir, readout, u, y, washout=39, horizon=30)
    assert np.allclose(predicted[-1], free_run(reservoir, readout, u, y, washout=10)[-1])


def test_divergence_is_a_result(example):
    reservoir, u, y, _ = example
    hyper = dataclasses.replace(reservoir.hyper, output_delays=1)
    unstable = dataclasses.replace(reservoir, hyper=hyper)
    readout = np.zeros((1, 15))
    readout[0, -1] = 1e30
    assert not np.isfinite(free_run(unstable, readout, u, y, washout=5)).all()
