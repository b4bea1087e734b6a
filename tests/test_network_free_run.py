"""Training on the free-run error: never worse than least squares on the training data, the same on both kernels."""

import dataclasses

import numpy as np
import pytest
from kernel_agreement import agreement

from echobound.data import Record
from echobound.errors import InputError
from echobound.kernels import blocks_in_turn, get_kernel, hold_out
from echobound.kernels.training import train_network
from echobound.network import FreeRun, ReservoirLaw, Trainer, paper
from echobound.network.training import TrainingSegment
from echobound.network.training.free_run import Network, pieces, squares
from echobound.scores import get_score

SCORES = [get_score("fit")]
SMALL = ReservoirLaw(
    order=4,
    norm=0.7,
    bias_scale=0.3,
    output_delays=1,
    present_input=True,
    constant=True,
    scaling="standard",
    padding=20,
    clip=True,
    training=FreeRun("network", (0, 3, 6), ridge=1e-6, penalty=(1e-4, 1e-3), increments=0.5),
)
LAWS = {
    "readout": dataclasses.replace(paper(12), training=FreeRun(steps=(0, 4))),
    "small networks": SMALL,
    "on a part": dataclasses.replace(
        SMALL, training=dataclasses.replace(SMALL.training, samples=200, until=3, penalty=(1e-5, 1e-5))
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_kernels_agree(name, ph_records):
    problem = hold_out(*ph_records, law=LAWS[name], scores=SCORES, washout=60)
    _, _, disagree = agreement(problem, get_kernel("reference"), get_kernel("cpu"), range(3))
    assert not disagree


def test_kernels_agree_on_several_inputs_and_outputs(mimo_records):
    problem = hold_out(*mimo_records, law=SMALL, scores=SCORES, washout=30)
    _, _, disagree = agreement(problem, get_kernel("reference"), get_kernel("cpu"), range(2))
    assert not disagree


@pytest.mark.parametrize("name", LAWS)
def test_no_draw_ends_worse_than_least_squares_on_its_training_data(name, ph_records):
    problem, kernel = hold_out(*ph_records, law=LAWS[name], scores=SCORES, washout=60), get_kernel("cpu")
    better = 0
    for index in range(8):
        draw = problem.on_fold(0, problem.draw(index))
        data, tools = problem.training_data(0, draw), kernel.tools(draw)
        found = draw.law.training.train(draw, data, tools)
        errors = [squares(draw, Network(one.readout, one.reservoir), data, tools) for one in found]
        assert all(error <= errors[0] for error in errors[1:])
        better += errors[-1] < 0.99 * errors[0]
    assert better >= 4, "and it is of use"


def test_a_part_that_misleads_is_not_followed():
    # The sample pieces see a plant of one sign, the rest of the record one of the other.
    k = np.arange(3000)
    u = np.sin(0.3 * k + 2 * np.sin(0.05 * k))
    sign = np.where((k < 100) | (k >= 2900), 1.0, -1.0)
    record = Record(u=u, y=sign * np.concatenate([[0], u[:-1]]) + 0.01 * np.cos(k))
    law = dataclasses.replace(paper(5), training=FreeRun("network", (0, 10), ridge=1e-2, samples=150, until=10))
    problem, kernel = hold_out(record, record, law=law, scores=SCORES, washout=10), get_kernel("cpu")
    followed = 0
    for index in range(6):
        draw = problem.on_fold(0, problem.draw(index))
        data, tools = problem.training_data(0, draw), kernel.tools(draw)
        start, end = (Network(one.readout, one.reservoir) for one in law.training.train(draw, data, tools))
        assert squares(draw, end, data, tools) <= squares(draw, start, data, tools)
        followed += end is not start and not np.array_equal(start.readout, end.readout)
    assert followed < 6


def test_it_is_a_trainer_of_the_papers_law_by_name(ph_records):
    law = ReservoirLaw(order=10, training="free run")
    assert law.training == FreeRun()
    assert ReservoirLaw.from_dict(law.to_dict()) == law
    least, free = (
        get_kernel("cpu").evaluate(hold_out(*ph_records, law=one, scores=SCORES, washout=60), range(12))["scores"]
        for one in (paper(10), law)
    )
    assert np.median(free - least) > 0


def test_the_alternative_is_the_number_of_steps(ph_records):
    problem = blocks_in_turn(ph_records[0], 2, law=SMALL, scores=SCORES, washout=60)
    kernel = get_kernel("cpu")
    row = kernel.evaluate(problem, [1])[0]
    assert row["ridge"] in (0, 3, 6)
    model, _ = train_network(kernel, problem, 1)
    assert model.origin["ridge"] in (0, 3, 6)
    assert model.limits is not None
    assert np.isfinite(model.simulate(ph_records[1]).y).all()


def test_steps_alone_are_the_first_steps_of_more(ph_records):
    problem, kernel = hold_out(*ph_records, law=SMALL, scores=SCORES, washout=60), get_kernel("cpu")
    draw = problem.on_fold(0, problem.draw(2))
    data, tools = problem.training_data(0, draw), kernel.tools(draw)
    together = SMALL.training.train(draw, data, tools)
    for number, one in enumerate(together):
        [alone] = SMALL.training.chosen(number).train(draw, data, tools)
        assert alone.setting == one.setting
        assert np.array_equal(alone.readout, one.readout)
        assert np.array_equal(alone.reservoir.values, one.reservoir.values)


def test_increments_start_from_an_integrator():
    random = np.random.default_rng(3)
    u = random.normal(size=600)
    record = Record(u=u, y=np.cumsum(0.1 * u + 0.002 * u**2))
    training = FreeRun("network", (0,), ridge=1e-4, increments=1.0)
    problem = hold_out(record, record, law=dataclasses.replace(SMALL, training=training), scores=SCORES, washout=20)
    draw = problem.on_fold(0, problem.draw(0))
    data, tools = problem.training_data(0, draw), get_kernel("cpu").tools(draw)
    [one] = training.train(draw, data, tools)
    column = draw.hyper.order + 2  # after the state, u(k-1) and u(k)
    assert one.readout[0, column] == pytest.approx(1.0, abs=0.05)
    [plain] = dataclasses.replace(training, increments=0.0).train(draw, data, tools)
    assert not np.array_equal(plain.readout, one.readout)


@pytest.mark.parametrize(("length", "most"), [(5000, 1500), (20_000, 3000), (1200, 900)])
def test_pieces_are_few_samples_from_all_over(length, most):
    u = np.arange(float(length))[:, None]
    data = [TrainingSegment(u, u, u, 50), TrainingSegment(u[: length // 2], u, u, 50)]
    found = pieces(data, most)
    assert most / 2 <= sum(len(piece.u) - piece.washout for piece in found) <= most
    assert found[0].u[0, 0] == 0
    assert max(piece.u[-1, 0] for piece in found) == length - 1
    assert pieces(data, 3 * length) is data


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"trained": "everything"}, "'readout' or the 'network'"),
        ({"steps": ()}, "numbers of steps"),
        ({"steps": (-1,)}, "numbers of steps"),
        ({"ridge": 0.0}, "ridge must be positive"),
        ({"penalty": (1.0, 0.1)}, "penalty at least 0"),
        ({"increments": 1.5}, "share from 0 to 1"),
        ({"samples": 5}, "samples at least 100"),
    ],
)
def test_what_cannot_be(fields, sentence):
    with pytest.raises(InputError, match=sentence):
        FreeRun(**fields)


def test_json_round_trip():
    trainer = SMALL.training
    assert Trainer.from_dict(trainer.to_dict()) == trainer
