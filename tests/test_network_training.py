"""Trainers: the contract, least squares, and a trainer written outside of the library that changes the reservoir."""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest
from kernel_agreement import agreement

from echobound.data import Record
from echobound.errors import InputError
from echobound.kernels import blocks_in_turn, get_kernel, hold_out
from echobound.kernels.base import final_fit
from echobound.kernels.gpu.batch import ridges_of
from echobound.kernels.sensitivity import model_moves
from echobound.kernels.training import train_network
from echobound.network import (
    Adaptation,
    EchoStateNetwork,
    LeastSquares,
    ReservoirLaw,
    Trained,
    Trainer,
    get_trainer,
    paper,
    register_trainer,
)
from echobound.network.training import PlainTools
from echobound.scores import get_score

SCORES = [get_score("rmse"), get_score("fit")]


@register_trainer
@dataclasses.dataclass(frozen=True)
class FreeRunTraining(Trainer):
    """Least squares, then steps down the free-run error over one factor of the feedback weights and the readout."""

    kind: ClassVar[str] = "free run in a test"

    factors: tuple[float, ...] = (0.5, 1.0)
    steps: int = 3
    ridge: float = 1e-8

    def train(self, draw, data, tools):
        return [self._descend(draw, data, tools, factor) for factor in self.factors]

    def chosen(self, alternative):
        return dataclasses.replace(self, factors=(self.factors[alternative],))

    @property
    def settings(self):
        return self.factors

    def _descend(self, draw, data, tools, factor):
        """Gauss-Newton over two numbers: a factor of W_y and one of the readout, with differences as derivatives."""

        def changed(point):
            return dataclasses.replace(draw.reservoir, W_y=point[0] * draw.reservoir.W_y), point[1] * readout

        def errors(point):
            reservoir, weights = changed(point)
            other = draw.with_reservoir(reservoir)
            runs = [tools.simulate(other, [weights], one.u, one.y, one.washout, None)[0] for one in data]
            return np.concatenate(
                [(segment.y[segment.washout :] - run).ravel() for segment, run in zip(data, runs, strict=True)]
            )

        reservoir = dataclasses.replace(draw.reservoir, W_y=factor * draw.reservoir.W_y)
        [(_, readout)] = tools.least_squares(draw.with_reservoir(reservoir), data, (self.ridge,))
        point = np.array([factor, 1.0])
        for _ in range(self.steps):
            error = errors(point)
            jacobian = np.stack([(errors(point + 1e-4 * axis) - error) / 1e-4 for axis in np.eye(2)], axis=1)
            step = np.linalg.lstsq(jacobian, -error, rcond=None)[0]
            better = [point + size * step for size in (1.0, 0.3, 0.1)]
            point = min([point, *better], key=lambda p: np.nan_to_num(np.square(errors(p)).sum(), nan=np.inf))
        reservoir, weights = changed(point)
        return Trained(factor, weights, reservoir)


def tank(length=260, seed=0):
    """A tank with a square-root outflow."""
    u = np.repeat(np.random.default_rng(seed).uniform(0.5, 1.5, length // 10), 10)
    y = np.ones(length)
    for k in range(1, length):
        y[k] = y[k - 1] + 0.2 * (u[k - 1] - np.sqrt(y[k - 1]))
    return Record(u=u, y=y)


LAW = ReservoirLaw(order=6, bias_scale=0.3, constant=True, padding=5, training=FreeRunTraining(), name="trained")


@pytest.fixture(params=["reference", "cpu"])
def kernel(request):
    return get_kernel(request.param)


@pytest.fixture
def problem():
    return hold_out(tank(), tank(seed=1), law=LAW, scores=SCORES, washout=20)


# ---------------------------------------------------------------- a trainer from elsewhere


def test_another_trainer_is_drawn_trained_and_scored(kernel, problem):
    rows = kernel.evaluate(problem, range(3))
    assert set(rows["ridge"]) <= {0.5, 1.0}
    assert np.isfinite(rows["scores"]).all()
    for row in rows:
        trial = kernel.trial(problem, int(row["index"]))
        assert trial.settings == [0.5, 1.0]
        assert all(one.reservoir is not None for one in trial.trained[0])


def test_it_trains_on_what_it_says(kernel, problem):
    """The free-run error on the training data is smaller than that of least squares with the same reservoir."""
    on_training = hold_out(tank(), tank(), law=LAW, scores=SCORES, washout=20)
    plain = dataclasses.replace(on_training, law=dataclasses.replace(LAW, training=FreeRunTraining(steps=0)))
    trained, untrained = (kernel.evaluate(one, range(4))["scores"][:, 0] for one in (on_training, plain))
    assert (trained <= untrained).all()
    assert (trained < 0.999 * untrained).any()


def test_kernels_agree_on_it(problem):
    _, _, disagree = agreement(problem, get_kernel("reference"), get_kernel("cpu"), range(3))
    assert not disagree


def test_rows_of_other_draws_or_trainers_differ(problem):
    other = dataclasses.replace(problem, law=dataclasses.replace(LAW, training=FreeRunTraining(ridge=1e-3)))
    kernel = get_kernel("cpu")
    assert not (kernel.evaluate(problem, [0])["scores"] == kernel.evaluate(other, [0])["scores"]).any()


def test_the_model_holds_the_reservoir_that_was_trained(kernel, problem, tmp_path):
    model, [simulated] = train_network(kernel, problem, 2)
    drawn = problem.draw(2).reservoir
    assert not np.allclose(model.reservoir.W_y, drawn.W_y)
    assert (model.reservoir.W_u == drawn.W_u).all()
    assert model.origin["law"]["training"] == {
        "kind": "free run in a test",
        "factors": [0.5, 1.0],
        "steps": 3,
        "ridge": 1e-8,
    }
    assert model.origin["ridge"] in (0.5, 1.0)
    assert np.allclose(model.simulate(tank(seed=1)).y, simulated, atol=1e-9)
    model.save(tmp_path / "model.npz")
    assert EchoStateNetwork.load(tmp_path / "model.npz").digest == model.digest
    assert ReservoirLaw.from_dict(model.origin["law"]) == LAW


def test_blocks_choose_an_alternative_and_the_model_is_trained_with_it(kernel):
    problem = blocks_in_turn(tank(), 2, law=LAW, scores=SCORES, washout=20)
    best, _ = kernel.trial(problem, 1).pick(problem)
    model, simulated = train_network(kernel, problem, 1)
    assert model.origin["ridge"] == LAW.training.factors[best]
    assert [len(part) for part in simulated] == [110, 110]
    [fold] = final_fit(problem, best).folds
    assert [(s.start, s.stop) for s in fold.training] == [(0, 260)]


def test_rounding_of_what_it_trains_is_imitated(problem):
    moved = model_moves(problem, get_kernel("reference"), 0, tries=2)
    assert 0 < moved["readout"] < 1e-3
    assert moved["columns"] == moved["training_mean"] == 0  # what nobody trains


def test_adaptation_refuses_it_in_one_sentence(problem):
    model, _ = train_network(get_kernel("cpu"), problem, 0)
    with pytest.raises(InputError, match=r"continues training by least squares.*trained by free run in a test"):
        Adaptation(model, tank())


def test_the_gpu_refuses_it_in_one_sentence(problem):
    with pytest.raises(InputError, match="does not train by free run in a test: use --device cpu"):
        ridges_of(problem)
    assert ridges_of(dataclasses.replace(problem, law=paper(5))) == (1e-8,)


# ---------------------------------------------------------------- the contract


@dataclasses.dataclass(frozen=True)
class Wrong(Trainer):
    """Returns whatever it is told."""

    kind: ClassVar[str] = "wrong"

    what: object = None

    def train(self, draw, data, tools):
        return self.what(draw, len(data[0].u))


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        (lambda draw, length: [], "as many alternatives on every fold, one or more, got \\[0\\]"),
        (lambda draw, length: [Trained(0.0, np.zeros((1, 8)))] * (length - 99), "got \\[1, 2\\]"),
        (lambda draw, length: [Trained(0.0, np.zeros((1, 7)))], "readout of shape \\(1, 8\\).* got shape \\(1, 7\\)"),
    ],
)
def test_what_a_trainer_must_not_return(kernel, what, sentence):
    law = dataclasses.replace(LAW, training=Wrong(what))
    problem = blocks_in_turn(tank().part(0, 201), 2, law=law, scores=SCORES, washout=20)
    with pytest.raises(InputError, match=sentence):
        kernel.evaluate(problem, [0])


def test_several_alternatives_must_come_down_to_one(kernel):
    law = dataclasses.replace(LAW, training=Wrong(lambda draw, _: [Trained(0.0, np.zeros((1, 8)))] * 2))
    with pytest.raises(InputError, match="`chosen` must leave one"):
        train_network(kernel, blocks_in_turn(tank(), 2, law=law, scores=SCORES, washout=20), 0)


def test_tools_of_the_cpu_are_those_of_numpy(mimo_records):
    law = ReservoirLaw(order=9, input_delays=2, output_delays=1, constant=True, training_noise=0.01, padding=3)
    problem = hold_out(*mimo_records, law=law, scores=SCORES, washout=15)
    draw = problem.draw(3)
    data, plain, compiled = problem.training_data(0, draw), PlainTools(), get_kernel("cpu").tools(draw)
    slower = draw.with_reservoir(dataclasses.replace(draw.reservoir, leak=0.5 * draw.reservoir.leak))
    for one in (draw, slower):
        for ours, theirs in zip(compiled.regression(one, data), plain.regression(one, data), strict=True):
            assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-11)
        [(_, readout)] = plain.least_squares(one, data, (1e-6,))
        assert np.allclose(compiled.least_squares(one, data, (1e-6,))[0][1], readout, rtol=1e-5, atol=1e-7)
        signals = (data[1].u, data[1].y, data[1].washout)
        runs = [tools.simulate(one, [readout], *signals, None) for tools in (plain, compiled)]
        assert np.allclose(*runs, rtol=1e-7)


# ---------------------------------------------------------------- names and JSON


def test_looked_up_by_name():
    assert get_trainer("least squares") == LeastSquares() == paper().training
    assert ReservoirLaw(order=5, training="least squares") == ReservoirLaw(order=5)
    assert get_trainer("free run in a test") == FreeRunTraining()
    mine = LeastSquares((1e-3,))
    assert get_trainer(mine) is mine


@pytest.mark.parametrize("trainer", [LeastSquares(), LeastSquares((0.0, 1e-4)), FreeRunTraining(steps=7)])
def test_json_round_trip(trainer):
    assert Trainer.from_dict(trainer.to_dict()) == trainer
    law = dataclasses.replace(paper(5), training=trainer)
    assert ReservoirLaw.from_dict(law.to_dict()) == law
    assert law.to_dict()["training"]["kind"] == trainer.kind


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("least squares", "an object with a kind"),
        ({"ridges": [1e-8]}, "an object with a kind"),
        ({"kind": "guessing"}, "unknown training 'guessing': known are .*least squares"),
        ({"kind": "least squares"}, "has the fields ridges, got"),
        ({"kind": "least squares", "ridges": [1e-8], "steps": 3}, "has the fields ridges, got ridges, steps"),
        ({"kind": "least squares", "ridges": ["many"]}, "ridges"),
        ({"kind": "least squares", "ridges": [-1.0]}, "ridges must be"),
    ],
)
def test_what_is_not_a_trainer(content, sentence):
    with pytest.raises(InputError, match=sentence):
        Trainer.from_dict(content)


@pytest.mark.parametrize("ridges", [(), (-1e-8,), (float("nan"),), (float("inf"),)])
def test_ridges_that_cannot_be(ridges):
    with pytest.raises(InputError, match="ridges"):
        LeastSquares(ridges)


def test_one_ridge_needs_no_tuple():
    assert LeastSquares(1e-4) == LeastSquares((1e-4,))


def test_two_trainers_of_one_kind_are_refused():
    @dataclasses.dataclass(frozen=True)
    class Other(Wrong):
        kind: ClassVar[str] = "least squares"

    with pytest.raises(InputError, match="registered already"):
        register_trainer(Other)
    assert get_trainer("least squares") == LeastSquares()
