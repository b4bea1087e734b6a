"""Adaptation: recursive least squares against batch least squares, and a readout that follows a drifting plant."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echobound.data import Record
from echobound.errors import DataError, InputError
from echobound.kernels import get_kernel, hold_out
from echobound.kernels.training import train_network
from echobound.network import LeastSquares, MixedLaw, ReservoirLaw, paper, register_trainer, respond
from echobound.network.adaptation import SHARE, WINDOW, Adaptation
from echobound.network.dynamics import features, teacher_states
from echobound.network.readout import least_squares
from echobound.network.recursive import RecursiveLeastSquares
from echobound.plants import PHPlant, ph_experiment
from echobound.plants.excitation import multilevel
from echobound.scores import fit, get_score


def batch(phi, y, ridge=0.0, weights=None):
    """Ridge regression with weighted rows by one orthogonal factorisation."""
    root = np.ones(len(phi)) if weights is None else np.sqrt(weights)
    phi, y, p = phi * root[:, None], y * root[:, None], phi.shape[1]
    below = np.sqrt(ridge * np.square(phi).sum() / p) * np.eye(p)
    stacked = np.concatenate([phi, below]), np.concatenate([y, np.zeros((p, y.shape[1]))])
    return np.linalg.lstsq(*stacked, rcond=1e-15)[0].T


def distance(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


def data(rows, columns, outputs, decades=4.0, seed=0):
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(columns, columns)) * 10.0 ** -np.linspace(0, decades, columns)[:, None]
    phi = rng.normal(size=(rows, columns)) @ mixed
    return phi, phi @ rng.normal(size=(columns, outputs)) + rng.normal(size=(rows, outputs))


def added(solver, phi, y, pieces):
    for rows, targets in zip(np.split(phi, pieces), np.split(y, pieces), strict=True):
        solver.update(rows, targets)
    return solver


@pytest.mark.parametrize("ridge", [0.0, 1e-8, 1e-3])
@pytest.mark.parametrize("size", [1, 7, WINDOW, 1000])
def test_recursive_is_batch(ridge, size):
    phi, y = data(500, 30, 2)
    solver = added(RecursiveLeastSquares(30, 2), phi, y, range(size, 500, size))
    assert distance(solver.readout(ridge), batch(phi, y, ridge)) < 1e-8


@given(st.lists(st.integers(0, 300), max_size=8), st.floats(0.9, 1.0))
@settings(max_examples=30, deadline=None)
def test_however_it_is_cut(cuts, forgetting):
    phi, y = data(300, 8, 1)
    solver = added(RecursiveLeastSquares(8, 1, forgetting), phi, y, sorted(cuts))
    weights = forgetting ** np.arange(299, -1, -1)
    assert distance(solver.readout(1e-8), batch(phi, y, 1e-8, weights)) < 1e-8


def test_readout_in_between_changes_nothing():
    phi, y = data(200, 8, 1)
    quiet, asked = RecursiveLeastSquares(8, 1, 0.99), RecursiveLeastSquares(8, 1, 0.99)
    for row, target in zip(phi, y, strict=True):
        quiet.update(row, target)
        asked.update(row, target)
        asked.readout(1e-6)
    assert distance(asked.readout(1e-6), quiet.readout(1e-6)) < 1e-9


def test_half_of_the_digits():
    """With a condition number of 1e7 the Gram matrix has lost everything; its square root has not."""
    phi, _ = data(400, 20, 1, decades=7.0)
    true = np.random.default_rng(1).normal(size=(20, 1))
    solver = RecursiveLeastSquares(20, 1)
    solver.update(phi, phi @ true)
    assert distance(solver.readout().T, true) < 1e-7
    gram = np.linalg.solve(phi.T @ phi, phi.T @ (phi @ true))
    assert distance(gram, true) > 1e-5


def test_as_the_kernels_solve_it():
    phi, y = data(400, 12, 2, decades=1.0)
    solver = RecursiveLeastSquares(12, 2)
    solver.update(phi, y)
    [(_, weights)] = least_squares(phi, y, (1e-8,))
    assert distance(solver.readout(1e-8), weights) < 1e-8
    twice = np.concatenate([phi, phi], axis=1)  # no full rank: the minimum norm
    solver = RecursiveLeastSquares(24, 2)
    solver.update(twice, y)
    [(_, weights)] = least_squares(twice, y, (0.0,))
    assert distance(solver.readout(), weights) < 1e-8


def pulled(phi, y, weights, square, readout, ridge):
    """Rows with a pull towards a readout appended, each of weight ridge * square / columns."""
    p = phi.shape[1]
    pull = np.full(p, ridge * square / p)
    return np.concatenate([phi, np.eye(p)]), np.concatenate([y, readout.T]), np.concatenate([weights, pull])


def test_an_anchor_does_not_fade():
    phi, y = data(600, 10, 2)
    towards = np.random.default_rng(1).normal(size=(2, 10))
    solver = RecursiveLeastSquares(10, 2)
    solver.update(phi[:200], y[:200])
    solver.anchor(towards, ridge=1e-3, share=0.05)
    solver.forget(0.98)
    added(solver, phi[200:], y[200:], range(3, 400, 3))
    weights = np.concatenate([np.full(200, 0.05 + 0.95 * 0.98**400), 0.98 ** np.arange(399, -1, -1)])
    phi, y, weights = pulled(phi, y, weights, np.square(phi[:200]).sum(), towards, 1e-3)
    assert distance(solver.readout(1e-8), batch(phi, y, 1e-8, weights)) < 1e-8


@pytest.mark.parametrize("forgetting", [1.0, 0.99])
def test_what_was_known_at_the_mark_is_discounted(forgetting):
    phi, y = data(400, 10, 1)
    solver = RecursiveLeastSquares(10, 1, forgetting)
    added(solver, phi[:200], y[:200], [7, 90])
    solver.mark()
    added(solver, phi[200:330], y[200:330], [100])
    solver.discount(20.0)
    weights = forgetting ** np.arange(329, -1, -1.0)
    weights[:200] *= 20.0 / weights[:200].sum()
    assert distance(solver.readout(1e-8), batch(phi[:330], y[:330], 1e-8, weights)) < 1e-8
    solver.discount(1e9)  # no more than is known
    solver.update(phi[330:], y[330:])
    weights = np.concatenate([weights * forgetting**70, forgetting ** np.arange(69, -1, -1.0)])
    assert distance(solver.readout(1e-8), batch(phi, y, 1e-8, weights)) < 1e-8


def test_before_the_first_row():
    assert RecursiveLeastSquares(3, 2).readout(1e-8).tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("forgetting", [0.0, -1.0, 1.01, np.nan])
def test_bad_forgetting(forgetting):
    with pytest.raises(InputError, match="forgetting"):
        RecursiveLeastSquares(3, 1, forgetting)


def test_bad_rows():
    for phi, y in (([1.0, 2.0], [1.0]), ([1.0, 2.0, np.nan], [1.0]), ([1.0, 2.0, 3.0], [np.inf])):
        with pytest.raises(InputError, match="rows of 3 columns"):
            RecursiveLeastSquares(3, 1).update(phi, y)


# ---------------------------------------------------------------- with a network

LAWS = {
    "paper": paper(15),
    "delays": ReservoirLaw(
        order=12, leak=0.4, bias_scale=0.5, input_delays=3, output_delays=2, present_input=True, constant=True,
        padding=20, scaling="standard",
    ),
}  # fmt: skip


def trained(training, law, washout=40):
    problem = hold_out(training, training, law=law, scores=[get_score("fit")], washout=washout)
    return train_network(get_kernel("reference"), problem, 0)[0]


def regression(model, records):
    """Phi and Y of several records as the kernels have them."""
    rows, targets = [], []
    for record in records:
        u, y = model.scaling.inputs(record.u), model.scaling.outputs(record.y)
        states, times = teacher_states(model.reservoir, u, y, model.padding), np.arange(model.washout, len(u))
        rows.append(features(model.reservoir.hyper, states[times], u, y, times, y[0]))
        targets.append(y[times])
    return np.concatenate(rows), np.concatenate(targets)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("size", [1, 13, 1000])
def test_nothing_forgotten_is_batch_least_squares_on_all_data(mimo_records, law, size):
    training, [later, latest] = mimo_records
    model = trained(training, LAWS[law])
    adaptation = Adaptation(model, training)
    for record in (later, latest):
        adaptation.restart()
        for start in range(0, len(record), size):
            adaptation.update(record.u[start : start + size], record.y[start : start + size])
    adapted = adaptation.model
    phi, y = regression(model, [*training, later, latest])
    assert distance(adapted.readout, batch(phi, y, model.origin["ridge"])) < 1e-8
    assert adaptation.samples == len(later) + len(latest) - 2 * model.washout == adapted.origin["adapted"]


def test_before_the_first_sample_it_is_the_network(ph_records):
    training, validation = ph_records
    model = trained(training, paper(15))
    adapted = Adaptation(model, training, forgetting=0.99).model
    np.testing.assert_allclose(adapted.simulate(validation).y, model.simulate(validation).y, rtol=1e-4)


def test_forgetting_weighs_by_age(ph_records):
    training, later = ph_records
    model = trained(training, paper(10))
    adaptation = Adaptation(model, training, forgetting=0.99)
    start = adaptation.model.readout
    adaptation.update(later.u, later.y)
    assert adaptation.changes == []
    phi, y = regression(model, [training, later])
    old, ridge = len(training) - model.washout, model.origin["ridge"]
    weights = 0.99 ** np.arange(len(phi) - 1, -1, -1.0)
    weights[:old] = SHARE + (1 - SHARE) * 0.99 ** (len(phi) - old)
    phi, y, weights = pulled(phi, y, weights, np.square(phi[:old]).sum(), start, ridge)
    assert distance(adaptation.model.readout, batch(phi, y, ridge, weights)) < 1e-7


@pytest.fixture(scope="module")
def drifting():
    """A trained network, its training data, and a record in which q2 moves from 0.55 to 0.65 at sample 1500."""
    training, _ = ph_experiment(samples=(1500, 100), noise=0.02)
    q2 = np.repeat([0.55, 0.65], 1500)
    record = PHPlant().simulate(multilevel(3000, period=50, seed=5), q2=q2, noise=0.02, seed=5)
    return trained(training, paper(30), washout=100), training, record


def test_a_drifting_plant_is_followed(drifting):
    """Scored by free run on the last 700 samples."""
    model, training, record = drifting
    adaptation = Adaptation(model, training, forgetting=0.999)
    adaptation.update(record.u[:2300], record.y[:2300])
    adapted, last = adaptation.model, record.part(2200, 3000)
    retrained = trained(record.part(1500, 2300), paper(30), washout=100)
    before, after, again = (float(fit(*respond(one, [last])[0])) for one in (model, adapted, retrained))
    assert after > before + 5
    assert after > again - 1


def test_the_change_is_seen_however_the_samples_come(drifting):
    model, training, record = drifting
    found = []
    for size in (1, 50, 2300):
        adaptation = Adaptation(model, training, forgetting=0.999)
        for start in range(0, 2300, size):
            adaptation.update(record.u[start : start + size], record.y[start : start + size])
            if size == 50:
                _ = adaptation.model  # a look changes nothing
        found.append((adaptation.changes, adaptation.model.readout))
    [change] = found[0][0]
    assert 1500 - model.washout < change <= 1500 - model.washout + 6 * WINDOW
    for changes, readout in found[1:]:
        assert changes == [change]
        assert distance(readout, found[0][1]) < 1e-6


def test_the_past_is_discounted_and_what_showed_the_change_is_not(drifting):
    """The weights of an adapted readout, derived again from the moment of the alarm."""
    model, training, record = drifting
    adaptation = Adaptation(model, training, forgetting=0.999, kept=25.0)
    start = adaptation.model.readout
    while not adaptation.changes:
        now = adaptation.samples + model.washout if adaptation.samples else 0
        stop = now + (WINDOW if now else model.washout + WINDOW)
        adaptation.update(record.u[now:stop], record.y[now:stop])
    phi, y = regression(model, [training, record.part(0, stop)])
    old, ridge = len(training) - model.washout, model.origin["ridge"]
    fits = []
    for recent in range(WINDOW, 9 * WINDOW, WINDOW):  # where the sum began to rise
        weights = 0.999 ** np.arange(len(phi) - 1, -1, -1.0)
        weights[:old] = (1 - SHARE) * 0.999 ** (len(phi) - old)
        weights[:-recent] *= 25.0 / weights[:-recent].sum()
        weights[:old] += SHARE
        rows = pulled(phi, y, weights, np.square(phi[:old]).sum(), start, ridge)
        fits.append(distance(adaptation.model.readout, batch(*rows[:2], ridge, rows[2])))
    assert min(fits) < 1e-6
    assert np.argmin(fits) >= 3  # no fewer than four bad windows


def test_the_same_plant_raises_no_alarm(drifting):
    model, training, _ = drifting
    for seed in range(6):
        record = PHPlant().simulate(multilevel(2000, period=50, seed=20 + seed), noise=0.02, seed=20 + seed)
        adaptation = Adaptation(model, training, forgetting=0.999)
        adaptation.update(record.u, record.y)
        assert adaptation.changes == []


def test_a_plant_that_rests_does_not_wear_the_readout_out(ph_records, monkeypatch):
    """A thousand equal samples with a short memory: what was learnt in training is kept where they say nothing."""
    training, validation = ph_records
    model = trained(training, paper(15), washout=100)
    rest = PHPlant().simulate(np.full(1000, 15.6), noise=0.01)
    adapted = {}
    for share in (0.0, SHARE):
        monkeypatch.setattr("echobound.network.adaptation.SHARE", share)
        adaptation = Adaptation(model, training, forgetting=0.98)
        adaptation.update(rest.u, rest.y)
        adapted[share] = float(fit(*respond(adaptation.model, [validation])[0]))
    assert adapted[SHARE] > float(fit(*respond(model, [validation])[0])) - 10
    assert adapted[SHARE] > adapted[0.0] + 10


@pytest.mark.parametrize("kept", [-0.1, np.nan])
def test_bad_number_of_samples_to_keep(mimo_records, kept):
    training, _ = mimo_records
    with pytest.raises(InputError, match="kept"):
        Adaptation(trained(training, paper(5)), training, 0.99, kept)


def test_bad_samples(mimo_records):
    training, _ = mimo_records
    adaptation = Adaptation(trained(training, paper(5)), training)
    with pytest.raises(DataError, match="as many inputs as outputs"):
        adaptation.update(np.zeros((3, 2)), np.zeros((2, 2)))
    with pytest.raises(DataError, match="2 inputs"):
        adaptation.update(np.zeros((3, 1)), np.zeros((3, 2)))
    with pytest.raises(DataError, match="numbers everywhere"):
        adaptation.update([0.0, 1.0], [np.nan, 0.0])
    before = adaptation.model.readout
    assert adaptation.samples == 0
    with pytest.raises(DataError):
        Adaptation(replace(adaptation.model, origin={}), [Record(u=[1.0, 2.0], y=[1.0, 2.0])])
    np.testing.assert_array_equal(adaptation.model.readout, before)


def test_of_a_mixed_law_the_training_of_the_draws_own_kind_counts(ph_records):
    @register_trainer
    @dataclass(frozen=True)
    class Elsewhere(LeastSquares):
        kind = "trained elsewhere"

    law = MixedLaw((paper(6), replace(paper(8), training=Elsewhere())))
    problem = hold_out(*ph_records, law=law, scores=[get_score("fit")], washout=60)
    seen = set()
    for index in range(8):
        model, _ = train_network(get_kernel("reference"), problem, index)
        if model.order == 6:
            assert Adaptation(model, ph_records[0]).model.readout == pytest.approx(model.readout, rel=1e-3, abs=1e-3)
        else:
            with pytest.raises(InputError, match="this network was trained by trained elsewhere"):
                Adaptation(model, ph_records[0])
        seen.add(model.order)
    assert seen == {6, 8}
