"""The same tests for every kernel: rows, failures, folds, options, independence of batches."""

import dataclasses

import numpy as np
import pytest
from gpu_at_hand import needs_gpu
from kernel_agreement import agreement

from echobound.data import Record
from echobound.kernels import Fold, Problem, Segment, Status, blocks_in_turn, get_kernel, hold_out
from echobound.kernels.training import train_network
from echobound.network import (
    Adaptation,
    Committee,
    EchoStateNetwork,
    LeastSquares,
    MixedLaw,
    ReservoirLaw,
    broad,
    dynamics,
    paper,
)
from echobound.scores import Score, get_score

GPU = pytest.param("gpu", marks=needs_gpu)
KERNELS = ["reference", "cpu", GPU]
SCORES = [get_score("fit"), get_score("rmse")]
LAWS = {
    "paper": paper(25),
    "random pattern": dataclasses.replace(paper(25), pattern="random"),
    "leak": dataclasses.replace(paper(25), leak=0.3),
    "leak spread and bias": dataclasses.replace(paper(25), leak=0.3, leak_spread=0.5, bias_scale=0.4),
    "all readout terms": dataclasses.replace(
        paper(25), input_delays=3, present_input=True, output_delays=2, constant=True
    ),
    "nothing but the state": dataclasses.replace(paper(25), input_delays=0),
    "padding": dataclasses.replace(paper(25), padding=40),
    "ridge grid": dataclasses.replace(paper(25), training=LeastSquares((1e-10, 1e-6, 1e-2))),
    "no ridge": dataclasses.replace(paper(12), training=LeastSquares((0.0,))),
    "training noise": dataclasses.replace(paper(25), training_noise=0.01),
    "standard scaling with bias": dataclasses.replace(paper(25), scaling="standard", bias_scale=0.5),
    "no scaling": dataclasses.replace(paper(25), scaling="none", input_scale=0.05, feedback_scale=0.05),
    "order 1": paper(1),
    "order 3, fewer than non-zeros": paper(3),
    "broad": broad(order=40),
    "clipped, all readout terms": dataclasses.replace(
        paper(25), input_delays=3, present_input=True, output_delays=2, constant=True, clip=True
    ),
}


@pytest.fixture(params=KERNELS)
def kernel(request):
    return get_kernel(request.param)


@pytest.fixture(params=["cpu", GPU])
def fast(request):
    return get_kernel(request.param)


@pytest.mark.parametrize("name", LAWS)
def test_rows_agree_with_the_reference(name, fast, ph_records):
    problem = hold_out(*ph_records, law=LAWS[name], scores=SCORES, washout=60)
    _, _, disagree = agreement(problem, get_kernel("reference"), fast, range(4))
    assert not disagree


@pytest.mark.parametrize("name", ["paper", "all readout terms", "broad", "random pattern", "no ridge"])
def test_mimo_and_several_records(name, fast, mimo_records):
    problem = hold_out(*mimo_records, law=LAWS[name], scores=SCORES, washout=30)
    _, _, disagree = agreement(problem, get_kernel("reference"), fast, range(3))
    assert not disagree


@pytest.mark.parametrize("horizon", [1, 2, 7, 50])
def test_prediction_instead_of_free_run(horizon, fast, ph_records):
    training, validation = ph_records[0], ph_records[1].part(0, 160)
    problem = hold_out(training, validation, law=LAWS["all readout terms"], scores=SCORES, washout=40, horizon=horizon)
    _, _, disagree = agreement(problem, get_kernel("reference"), fast, range(2))
    assert not disagree


def folds_of(record):
    half = len(record) // 2
    return (
        Fold(training=(Segment(0, 0, half, 50),), scored=(Segment(0, half, len(record), 30),)),
        Fold(training=(Segment(0, half, len(record), 50),), scored=(Segment(0, 0, half, 30),)),
    )


def test_score_of_several_folds_is_their_mean(kernel, ph_records):
    record = ph_records[0]
    folds = folds_of(record)
    both = Problem((record,), folds, paper(15), tuple(SCORES))
    single = [Problem((record,), (fold,), paper(15), tuple(SCORES)) for fold in folds]
    scores = kernel.evaluate(both, [5])["scores"][0]
    each = [kernel.evaluate(problem, [5])["scores"][0] for problem in single]
    assert np.allclose(scores, np.mean(each, axis=0), rtol=1e-12)


def test_folds_agree_with_the_reference(fast, ph_records):
    problem = Problem((ph_records[0],), folds_of(ph_records[0]), broad(order=30), tuple(SCORES))
    _, _, disagree = agreement(problem, get_kernel("reference"), fast, range(3))
    assert not disagree


def test_rows_do_not_depend_on_batches(kernel, ph_records):
    problem = hold_out(*ph_records, law=broad(order=20), scores=SCORES, washout=60)
    whole = kernel.evaluate(problem, range(6))
    names = [name for name in whole.dtype.names if name != "seconds"]
    for cut in ([[0], [1], [2], [3], [4], [5]], [[5, 4], [3, 2, 1, 0]]):
        pieces = np.concatenate([kernel.evaluate(problem, batch) for batch in cut])
        pieces = pieces[np.argsort(pieces["index"])]
        for name in names:
            assert (pieces[name] == whole[name]).all(), name


def test_a_network_does_not_depend_on_the_orders_of_its_mates(kernel, ph_records):
    law = ReservoirLaw(order=17, name="custom")
    problem = hold_out(*ph_records, law=law, scores=SCORES, washout=60)
    alone = kernel.evaluate(problem, [3])
    kernel.evaluate(dataclasses.replace(problem, law=paper(40)), [0, 1])
    again = kernel.evaluate(problem, [3])
    assert (alone["scores"] == again["scores"]).all()


def unstable_law():
    """Past outputs in the readout, no ridge to hold them, and an integrating plant: free runs that blow up."""
    return ReservoirLaw(order=5, output_delays=2, training=LeastSquares((1e-14,)), norm=0.5)


def exploding_record(length=600):
    k = np.arange(length)
    u = np.sin(0.9 * k) * (k % 37)
    y = np.zeros(length)
    for t in range(2, length):
        y[t] = 1.9 * y[t - 1] - 0.91 * y[t - 2] + 0.1 * u[t - 1] ** 2
    return Record(u=u, y=np.exp(0.02 * k) + 1e-3 * y)


def test_divergence_is_a_row(kernel):
    record = exploding_record()
    long = Record(u=np.tile(record.u, (60, 1)), y=np.tile(record.y, (60, 1)))
    problem = hold_out(record, long, law=unstable_law(), scores=SCORES, washout=50)
    rows = kernel.evaluate(problem, range(8))
    diverged = rows["status"] == Status.DIVERGED
    assert diverged.any(), "the test needs networks that diverge"
    assert (rows["scores"][diverged] == [-np.inf, np.inf]).all()
    assert np.isfinite(rows["scores"][~diverged]).all()
    assert (rows["index"] == np.arange(8)).all()


def test_users_own_score_selects(kernel, ph_records):
    peak = Score("peak", lambda y, yhat: np.abs(y - yhat).max(), "min")
    law = dataclasses.replace(paper(20), training=LeastSquares((1e-8, 1e-1)))
    problem = hold_out(*ph_records, law=law, scores=[peak, SCORES[0]], washout=60)
    trial = kernel.trial(problem, 2)
    by_hand = [np.abs(problem.measured[0] - one).max() for one in trial.outputs[0]]
    row = kernel.evaluate(problem, [2])[0]
    assert row["scores"][0] == min(by_hand)
    assert row["ridge"] == law.training.ridges[int(np.argmin(by_hand))]


def test_fallback_is_recorded(kernel):
    k = np.arange(120.0)
    record = Record(u=np.stack([np.sin(k)] * 2, axis=1), y=np.cos(k))  # twice the same input: singular
    law = ReservoirLaw(order=2, training=LeastSquares((1e-30,)))
    rows = kernel.evaluate(hold_out(record, record, law=law, scores=SCORES, washout=10), range(3))
    assert (rows["ridge"] == 0).all()
    assert np.isfinite(rows["scores"]).all()


def test_scaling_is_fitted_on_training_data_alone(kernel, ph_records):
    training, validation = ph_records
    moved = dataclasses.replace(validation, y=validation.y + 5.0, name="moved")
    problem = hold_out(training, moved, law=paper(10), scores=SCORES, washout=60)
    assert problem.scaled(0, "minmax").scaling.output_span[0] == np.ptp(training.y)
    assert kernel.evaluate(problem, [0])["scores"][0, 1] > 1.0


def test_washout_of_validation_is_not_scored(kernel, ph_records):
    training, validation = ph_records
    for washout in (30, 200):
        problem = hold_out(training, validation, law=paper(10), scores=SCORES, washout=washout)
        trial = kernel.trial(problem, 0)
        assert trial.outputs[0].shape == (1, len(validation) - washout, 1)


# ---------------------------------------------------------------- limits

UNSTABLE = dataclasses.replace(unstable_law(), clip=True)
EXCITED = {
    "nothing": lambda u: 0.0 * u,
    "as it is": lambda u: u,
    "3 times": lambda u: 3.0 * u,
    "1000 times": lambda u: 1000.0 * u,
    "white noise": lambda u: 50.0 * np.random.default_rng(0).normal(size=u.shape),
    "nearly infinite": lambda u: 1e300 * np.sign(u),
}


def longer(record, times=5):
    return dataclasses.replace(record, u=np.tile(record.u, (times, 1)), y=np.tile(record.y, (times, 1)), name="longer")


@pytest.mark.parametrize("scores", [SCORES, [get_score("peak")]], ids=["rms", "outputs"])
def test_with_limits_nothing_diverges_and_what_is_held_is_said(kernel, scores):
    record = exploding_record()
    problem = hold_out(record, longer(record), law=UNSTABLE, scores=scores, washout=50)
    rows = kernel.evaluate(problem, range(8))
    assert np.isfinite(rows["scores"]).all()
    assert set(rows["status"].tolist()) <= {Status.OK, Status.HELD}
    assert (rows["status"] == Status.HELD).any(), "the test needs networks that are held"
    for row, run in zip(rows, kernel.runs(problem, range(8)), strict=True):
        [y], [limits] = run.outputs, problem.limits
        at_limit = ((y <= limits.low + 1e-6) | (y >= limits.high - 1e-6)).mean(axis=0)
        assert (row["status"] == Status.HELD) == bool((at_limit > 0.05 + limits.share).any())


@pytest.mark.parametrize("horizon", [None, 1, 9])
@pytest.mark.parametrize("name", ["clipped, all readout terms", "broad"])
def test_clipped_rows_agree_with_the_reference(name, horizon, fast, mimo_records):
    (training, _), (validation, _) = mimo_records
    moved = dataclasses.replace(validation.part(0, 120), u=4.0 * validation.u[:120], name="beyond the training data")
    problem = hold_out(training, moved, law=LAWS[name], scores=SCORES, washout=30, horizon=horizon)
    _, _, disagree = agreement(problem, get_kernel("reference"), fast, range(4))
    assert not disagree


def within(model, y):
    """Whether no output is beyond the bound, exactly, in the data's own units."""
    low, high = model.bound.T
    return bool(((y >= low) & (y <= high)).all())


@pytest.mark.parametrize("scaling", ["minmax", "standard", "none"])
@pytest.mark.parametrize("case", ["exploding", "two outputs"])
def test_no_output_of_a_model_is_ever_beyond_its_bound(case, scaling, kernel, mimo_records, tmp_path):
    training = exploding_record() if case == "exploding" else mimo_records[0][0]
    law = dataclasses.replace(UNSTABLE, scaling=scaling, feedback_scale=0.5, input_scale=0.1)
    problem = hold_out(training, longer(training, 2), law=law, scores=SCORES, washout=30)
    members = []
    for index in range(2):
        model, [outputs] = train_network(kernel, problem, index)
        assert within(model, outputs)
        model.save(tmp_path / "model.npz")
        loaded = EchoStateNetwork.load(tmp_path / "model.npz")
        assert loaded.digest == model.digest
        assert (loaded.bound == model.bound).all()
        late = dataclasses.replace(model, late_readout=True)
        for excited in EXCITED.values():
            record = dataclasses.replace(training.part(0, 90), u=excited(training.u[:90]))
            for how in ({}, {"dynamics": dynamics}):
                with np.errstate(over="ignore", invalid="ignore"):  # inputs near the largest double
                    runs = [m.simulate(record, **how) for m in (model, loaded, late)]
                    runs += [model.simulate(record.u, **how), model.simulate(record.u, initial=record.y[:3], **how)]
                    runs += [m.predict(record, ahead, **how) for m in (model, late) for ahead in (1, 4)]
                assert all(within(model, run.y) for run in runs)
        members.append(model)
    committee = Committee(tuple(members))
    low, high = (np.median([one.bound[:, end] for one in members], axis=0) for end in (0, 1))
    wild = committee.simulate(1000.0 * training.u[:250]).y
    assert ((wild >= low) & (wild <= high)).all()


def test_an_adapted_model_keeps_its_limits(kernel):
    record = exploding_record()
    model, _ = train_network(kernel, hold_out(record, longer(record, 2), law=UNSTABLE, scores=SCORES, washout=50), 0)
    for forgetting in (1.0, 0.999):
        adaptation = Adaptation(model, record, forgetting=forgetting)
        adaptation.update(3.0 * record.u, 10.0 * record.y)  # a plant that has left its range altogether
        adapted = adaptation.model
        assert (adapted.readout != model.readout).any()
        assert (adapted.bound == model.bound).all()
        for excited in EXCITED.values():
            with np.errstate(over="ignore", invalid="ignore"):
                assert within(model, adapted.simulate(excited(record.u)).y)


def test_each_fold_has_the_limits_of_its_own_training_data(kernel):
    level = np.r_[np.linspace(0.0, 1.0, 150), np.linspace(10.0, 12.0, 150)]
    record = Record(u=np.sin(0.3 * np.arange(300)), y=level)
    problem = blocks_in_turn(record, 2, law=dataclasses.replace(UNSTABLE, norm=0.9), scores=SCORES, washout=10)
    assert [limits.high[0] for limits in problem.limits] == pytest.approx([12.5, 1.25])
    for run in kernel.runs(problem, range(3)):
        for limits, outputs in zip(problem.limits, run.outputs, strict=True):
            assert outputs.min() >= limits.low[0] - 1e-9
            assert outputs.max() <= limits.high[0] + 1e-9


def test_limits_that_are_not_reached_change_no_bit(kernel, ph_records):
    never = 0
    for horizon in (None, 3):
        laws = (paper(12), dataclasses.replace(paper(12), clip=True))
        problems = [hold_out(*ph_records, law=law, scores=SCORES, washout=60, horizon=horizon) for law in laws]
        [limits] = problems[0].limits
        for plain, clipped in zip(*(kernel.runs(problem, range(8)) for problem in problems), strict=True):
            same = (plain.outputs[0] == clipped.outputs[0]).all()
            inside = ((plain.outputs[0] > limits.low) & (plain.outputs[0] < limits.high)).all()
            assert same == inside
            never += int(inside)
    assert 0 < never < 16, "the test needs both"


# ---------------------------------------------------------------- demanding scores


@pytest.mark.parametrize("blocks", [False, True])
def test_demanding_rows_agree_with_the_reference_and_with_what_is_made(blocks, kernel, ph_records):
    from echobound.candidates import Networks

    scores = [get_score("robust"), *SCORES]
    law = MixedLaw((broad(order=15), dataclasses.replace(paper(12), training=LeastSquares((1e-8, 1e-3)))))
    in_turn = blocks_in_turn(ph_records[0], 3, law=law, scores=scores, washout=40)
    problem = in_turn if blocks else hold_out(*ph_records, law=law, scores=scores, washout=60)
    _, _, disagree = agreement(problem, get_kernel("reference"), kernel, range(4))
    assert not disagree
    rows = kernel.evaluate(problem, range(4))
    plain = kernel.evaluate(dataclasses.replace(problem, scores=tuple(SCORES)), range(4))
    assert (rows["scores"][:, 1:] == plain["scores"]).all(), "the other scores are as ever"
    assert (rows["scores"][:, 0] <= rows["scores"][:, 1]).all()
    for row in rows:
        assert (Networks(kernel, problem).make(int(row["index"])).scores == row["scores"]).all()
