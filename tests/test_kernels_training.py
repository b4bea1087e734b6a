"""The network that is kept: the refit is guarded, so that none is delivered that does worse than the blocks did."""

import dataclasses

import numpy as np
import pytest

from echobound.data import Record
from echobound.kernels import Status, blocks_in_turn, get_kernel, hold_out
from echobound.kernels.training import network_and_run, train_network
from echobound.network import LeastSquares, ReservoirLaw, Trained, paper, register_trainer
from echobound.scores import get_score

SCORES = [get_score("fit"), get_score("rmse")]


def plant(length=240):
    k = np.arange(length)
    u = np.sin(0.13 * k) + 0.4 * np.sin(0.031 * k**1.2)
    y = np.zeros(length)
    for t in range(1, length):
        y[t] = 0.7 * y[t - 1] + 0.3 * np.tanh(u[t - 1])
    return Record(u=u, y=y)


@register_trainer
@dataclasses.dataclass(frozen=True)
class Fickle(LeastSquares):
    """Least squares whose readout goes wrong for some of its ridges when there are many samples: on all data."""

    kind = "fickle"
    ridges: tuple[float, ...] = (1e-8, 1e-6, 1e-4)
    bad: tuple[float, ...] = ()
    many: int = 200

    def train(self, draw, data, tools):
        trained = super().train(draw, data, tools)
        if sum(len(segment.u) for segment in data) < self.many:
            return trained
        return [Trained(one.setting, one.readout * (50.0 if one.setting in self.bad else 1.0)) for one in trained]

    def chosen(self, alternative):
        return dataclasses.replace(self, ridges=(self.ridges[alternative],))


def problem_of(bad, scores=SCORES):
    law = dataclasses.replace(paper(8), training=Fickle(bad=tuple(bad)))
    return blocks_in_turn(plant(), 3, law=law, scores=scores, washout=10, seed=2)


@pytest.fixture(params=["reference", "cpu"])
def kernel(request):
    return get_kernel(request.param)


def error(model, record):
    run = model.simulate(record)
    return float(np.sqrt(np.mean((record.y[run.first :] - run.y) ** 2)))


def by_score(kernel, problem, index):
    """The ridges of a draw, the best over the blocks first."""
    scores = kernel.trial(problem, index).table(problem)[:, 0]
    return [problem.law.training.ridges[i] for i in np.argsort(-scores, kind="stable")]


def refit_by_hand(kernel, ridge, index, factor=1.0):
    """A draw trained on all data with one ridge, as a hold-out."""
    law = dataclasses.replace(paper(8), training=LeastSquares((ridge,)))
    model, _ = train_network(kernel, hold_out(plant(), plant(), law=law, scores=SCORES, washout=10, seed=2), index)
    return dataclasses.replace(model, readout=model.readout * factor)


@pytest.mark.parametrize("scores", [SCORES, [get_score("robust"), *SCORES]], ids=["plain", "demanding"])
def test_a_refit_that_does_worse_than_the_blocks_is_made_with_the_next_alternative(kernel, scores):
    taken = []
    for index in range(6):
        order = by_score(kernel, problem_of((), scores), index)
        for wrong in range(3):
            problem = problem_of(order[:wrong], scores)
            model, outputs = train_network(kernel, problem, index)
            blocks = np.sqrt(np.mean((np.concatenate(problem.measured) - np.concatenate(outputs)) ** 2))
            refits = [refit_by_hand(kernel, r, index, 50.0 if i < wrong else 1.0) for i, r in enumerate(order)]
            held = [i for i, refit in enumerate(refits) if error(refit, plant()) <= blocks]
            if held:
                assert model.origin["ridge"] == order[held[0]]
                assert (model.readout == refits[held[0]].readout).all(), "it is trained on all data"
                assert "fold" not in model.origin
                assert error(model, plant()) <= blocks
                taken.append(held[0])
    assert {0, 1, 2} == set(taken), "the test needs all of them"


def test_if_no_refit_holds_the_fold_model_nearest_to_the_data_is_kept(kernel):
    problem = problem_of((1e-8, 1e-6, 1e-4))
    trial = kernel.trial(problem, 1)
    best, _ = trial.pick(problem)
    model, _ = train_network(kernel, problem, 1)
    fold = model.origin["fold"]
    assert (model.readout == trial.trained[fold][best].readout).all()
    assert (model.scaling.output_span == problem.scaled(fold, "minmax").scaling.output_span).all()
    others = [dataclasses.replace(model, readout=one[best].readout, scaling=problem.scaled(i, "minmax").scaling)
              for i, one in enumerate(trial.trained)]  # fmt: skip
    assert error(model, plant()) == min(error(other, plant()) for other in others)
    assert model.origin["law"] == problem.law.to_dict()


def test_the_scores_of_a_row_are_those_of_the_best_alternative_whatever_is_kept(kernel):
    for scores in (SCORES, [get_score("robust"), *SCORES]):
        best, *_ = by_score(kernel, problem_of((), scores), 0)
        problem = problem_of((best,), scores)
        [row] = kernel.evaluate(problem, [0])
        model, run = network_and_run(kernel, problem, 0)
        assert (run.scores(problem) == row["scores"]).all()
        assert (row["ridge"], run.setting, run.status(problem)) == (best, best, Status.OK)
        assert model.origin["ridge"] != best


def test_a_fold_model_is_kept_with_the_limits_of_its_fold(kernel):
    law = dataclasses.replace(problem_of((1e-8, 1e-6, 1e-4)).law, clip=True)
    record = plant()
    record = dataclasses.replace(record, y=record.y + np.linspace(0, 1, len(record))[:, None])
    problem = blocks_in_turn(record, 3, law=law, scores=SCORES, washout=10, seed=2)
    model, _ = train_network(kernel, problem, 1)
    limits = problem.limits[model.origin["fold"]]
    assert model.bound[:, 0] == pytest.approx(limits.low)
    assert model.bound[:, 1] == pytest.approx(limits.high)


def test_blocks_that_diverged_do_not_excuse_a_refit_that_diverges(kernel):
    """Without limits: a finite alternative is preferred to one that runs off to infinity."""
    law = ReservoirLaw(order=4, output_delays=1, training=Fickle(ridges=(1e-8, 1e-4), bad=(1e-8,), many=0))
    wild = dataclasses.replace(law, training=dataclasses.replace(law.training, bad=(1e-8, 1e-4)))
    for one, finite in ((law, True), (wild, False)):
        problem = blocks_in_turn(longer(), 2, law=one, scores=SCORES, washout=10)
        model, _ = train_network(kernel, problem, 0)
        assert np.isfinite(model.simulate(longer()).y).all() == finite


def longer():
    record = plant()
    return dataclasses.replace(record, u=np.tile(record.u, (4, 1)), y=np.tile(record.y, (4, 1)))


def test_a_hold_out_is_not_refitted(kernel):
    law = problem_of(()).law
    problem = hold_out(plant(), plant(), law=law, scores=SCORES, washout=10, seed=2)
    trial = kernel.trial(problem, 0)
    best, _ = trial.pick(problem)
    assert (train_network(kernel, problem, 0)[0].readout == trial.trained[0][best].readout).all()
