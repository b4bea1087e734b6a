"""Networks of reservoirpy, taken over: the same outputs, and everything that our networks can do."""

import numpy as np
import pytest
import scipy.sparse
from reservoirpy import ESN
from reservoirpy.nodes import Input, Reservoir, Ridge

from echobound import EchoStateNetwork, compare, from_reservoirpy, identify
from echobound.data import Record, Scaling
from echobound.errors import InputError


def signals(inputs=1, outputs=1, rows=300):
    k = np.arange(float(rows))
    u = np.stack([np.sin(0.05 * (i + 1) * k) + 0.3 * np.sin(0.31 * k + i) for i in range(inputs)], axis=1)
    y = np.zeros((rows, outputs))
    for t in range(1, rows):
        y[t] = 0.8 * y[t - 1] + 0.2 * np.tanh(u[t].sum() * np.arange(1, outputs + 1))
    return u, y


VARIANTS = {
    "plain": {},
    "leak": {"lr": 0.3},
    "leak for each unit": {"lr": np.linspace(0.1, 1.0, 25)},
    "bias": {"bias": 0.2},
    "feedback": {"feedback": True},
    "input to readout": {"input_to_readout": True},
    "both": {"feedback": True, "input_to_readout": True, "lr": 0.5},
    "activity": {"return_reservoir_activity": True},
    "no bias in the readout": {"fit_bias": False},
}


@pytest.mark.parametrize("channels", [(1, 1), (2, 3)], ids=str)
@pytest.mark.parametrize("name", VARIANTS)
def test_outputs_are_theirs(name, channels):
    u, y = signals(*channels)
    theirs = ESN(units=25, sr=0.9, ridge=1e-4, seed=3, **VARIANTS[name]).fit(u[:200], y[:200], warmup=20)
    theirs.reset()
    expected = theirs.run(u)
    expected = expected["readout"] if isinstance(expected, dict) else expected
    ours = from_reservoirpy(theirs)
    assert np.abs(expected).max() > 0.1, "the comparison means something"
    assert np.abs(ours.simulate(u).y - expected).max() < 1e-10


def test_nodes_linked_by_hand():
    u, y = signals(2)
    reservoir, readout = Reservoir(20, W=scipy.sparse.random(20, 20, 0.2, rng=0).tocsr(), seed=1), Ridge(1e-3)
    theirs = (reservoir >> readout).fit(u, y)
    theirs.reset()
    assert np.abs(from_reservoirpy(theirs).simulate(u).y - theirs.run(u)).max() < 1e-10
    source, reservoir, readout = Input(), Reservoir(20, seed=1), Ridge(1e-3)
    theirs = (source >> reservoir >> readout & source >> readout).fit(u, y)
    theirs.reset()
    assert np.abs(from_reservoirpy(theirs).simulate(u).y - theirs.run(u)).max() < 1e-10


@pytest.mark.parametrize("horizon", [None, 1, 4])
def test_measured_outputs_are_fed_back_in_the_washout_and_in_predictions(horizon):
    """Against their equations written out: s(k) from u(k) and y(k-1), then the readout."""
    u, y = signals()
    theirs = ESN(units=15, feedback=True, ridge=1e-4, seed=2, lr=0.7).fit(u, y, warmup=20)
    ours, washout = from_reservoirpy(theirs, washout=30), 30
    node, readout = theirs.reservoir, theirs.readout

    def step(state, k, fed):
        inside = node.W @ state + node.Win @ np.concatenate([u[k], fed]) + node.bias
        state = (1 - node.lr) * state + node.lr * np.tanh(inside)
        return state, state @ readout.Wout + readout.bias

    def run(stop, teacher):
        state, fed = np.zeros(15), np.zeros(1)
        for k in range(stop):
            state, output = step(state, k, fed)
            fed = y[k] if k < teacher else output
        return output

    record = Record(u, y)
    if horizon is None:
        simulated = ours.simulate(record).y
        expected = np.array([run(k + 1, washout) for k in range(washout, 60)])
    else:
        simulated = ours.predict(record, horizon).y
        expected = np.array([run(k + 1, k + 1 - horizon) for k in range(washout, 60)])
    assert len(simulated) == 270
    assert np.abs(simulated[:30] - expected).max() < 1e-10


def test_it_is_scored_beside_ours_and_saved(tmp_path, ph_records):
    training, validation = ph_records
    scaling = Scaling.fit("minmax", training)
    u, y = scaling.inputs(training.u), scaling.outputs(training.y)
    theirs = ESN(units=30, ridge=1e-6, seed=1).fit(u, y, warmup=50)
    names = {"input_names": training.input_names, "output_names": training.output_names}
    ours = from_reservoirpy(theirs, scaling=scaling, sampling_time=10.0, washout=50, **names)
    theirs.reset()
    run = theirs.run(scaling.inputs(validation.u))[100:]
    picked = identify(training, validation, law="paper", order=10, networks=10, beta=0.5)
    scores = compare(validation, {"theirs": ours, "ours": picked.network})
    by_hand = scaling.outputs_back(run)
    measured = validation.y[100:]
    fit = 100 * (1 - np.linalg.norm(measured - by_hand) / np.linalg.norm(measured - measured.mean()))
    assert scores["theirs"]["fit"] == pytest.approx(fit, abs=1e-8)
    assert scores["ours"]["fit"] == pytest.approx(picked.certificate.threshold, abs=1e-8)

    ours.save(tmp_path / "theirs.npz")
    again = EchoStateNetwork.load(tmp_path / "theirs.npz")
    assert again.digest == ours.digest
    assert (again.simulate(validation).y == ours.simulate(validation).y).all()
    assert again.late_readout


def test_what_cannot_be_taken_over_is_refused():
    u, y = signals()
    with pytest.raises(InputError, match="one Reservoir node was expected, got a dict with 0"):
        from_reservoirpy({})
    with pytest.raises(InputError, match="no weights yet: fit the model first"):
        from_reservoirpy(ESN(units=10))
    with pytest.raises(InputError, match="must have the activation tanh"):
        from_reservoirpy(ESN(units=10, activation="relu", ridge=1e-3, seed=0).fit(u, y))
    with pytest.raises(InputError, match="one Reservoir node was expected, got a Model with 2"):
        from_reservoirpy((Reservoir(5, seed=0) >> Reservoir(5, seed=1) >> Ridge(1e-3)).fit(u, y))
