"""The GPU kernel without a card: its Python, and the arithmetic of its CUDA sources as g++ builds them.

Races and what CuPy does are not seen here; `test_kernels_gpu.py` looks for them on a card.
"""

import dataclasses
import pickle
import shutil

import numpy as np
import pytest
from card_on_host import Card, card_on_host
from kernel_agreement import agreement

from echobound import identify
from echobound.errors import InputError
from echobound.kernels import blocks_in_turn, get_kernel, hold_out
from echobound.kernels.gpu import descents, device
from echobound.kernels.training import network_and_run
from echobound.network import FreeRun, LeastSquares, MixedLaw, broad, paper
from echobound.network.laws import small
from echobound.plants import ph_experiment
from echobound.scores import get_score

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]

PLAIN, ROBUST = [get_score("fit"), get_score("rmse")], [get_score("robust"), get_score("rmse")]
# Steps on pieces of the data, then on all of them; a network that no step helps any more has ended.
STEPS = FreeRun("network", (0, 1, 3), 1e-6, (1e-4, 1e-3), increments=0.4, samples=200, until=2)
SMALL = dataclasses.replace(small(), training=STEPS)


@pytest.fixture(scope="module", autouse=True)
def card():
    with card_on_host() as card:
        yield card


@pytest.fixture(scope="module")
def records():
    return ph_experiment(samples=(360, 200))


@pytest.mark.parametrize(
    "law",
    [paper(20), dataclasses.replace(broad(order=12), training=LeastSquares((1e-8, 1e-4)))],
    ids=["paper", "broad"],
)
def test_least_squares(law, records):
    problem = hold_out(*records, law=law, scores=PLAIN, washout=60)
    _, _, disagree = agreement(problem, get_kernel("cpu"), get_kernel("gpu"), range(3))
    assert not disagree


@pytest.mark.parametrize(
    "law",
    [
        SMALL,
        dataclasses.replace(SMALL, pattern="random", clip=False, training=dataclasses.replace(STEPS, samples=5000)),
    ],
    ids=["diagonals", "random, no limits, all of the data"],
)
def test_small_networks(law, records):
    problem = hold_out(*records, law=law, scores=PLAIN, washout=60)
    card, numbers = get_kernel("gpu"), range(8)
    card.host = None  # it must not help
    _, _, disagree = agreement(problem, get_kernel("cpu"), card, numbers)
    assert not disagree
    rows = card.evaluate(problem, numbers)
    assert len({*rows["ridge"]}) > 1, "the test needs networks that steps help"
    alone = np.concatenate([card.evaluate(problem, [index]) for index in (1, 5)])
    assert (rows["scores"][[1, 5]] == alone["scores"]).all()


def test_small_networks_of_two_channels_over_blocks(mimo_records):
    problem = blocks_in_turn(mimo_records[0], 2, law=SMALL, scores=ROBUST, washout=30)
    _, _, disagree = agreement(problem, get_kernel("cpu"), get_kernel("gpu"), range(2))
    assert not disagree


def test_the_model_that_is_kept_runs_as_it_was_scored(records):
    problem, card = hold_out(*records, law=SMALL, scores=ROBUST, washout=60), get_kernel("gpu")
    rows = card.evaluate(problem, range(4))
    for index, row in enumerate(rows):
        model, run = network_and_run(card, problem, index)
        assert run.scores(problem) == pytest.approx(row["scores"], rel=1e-12)
        [outputs] = run.outputs
        assert np.abs(model.simulate(records[1]).y[-len(outputs) :] - outputs).max() < 1e-9


def test_draws_that_have_no_readout_are_for_the_host(records, monkeypatch):
    """The equations of a start that Cholesky does not solve."""
    problem, card = hold_out(*records, law=SMALL, scores=ROBUST, washout=60), get_kernel("gpu")
    usual = descents.Descents.collect

    def failing(self, whole=False):
        result = usual(self, whole)
        for failed in result.failed:
            failed[[h.order % 2 == 0 for h in self.hypers]] = True
        return result

    monkeypatch.setattr(descents.Descents, "collect", failing)
    rows, expected = card.evaluate(problem, range(6)), get_kernel("cpu").evaluate(problem, range(6))
    even = expected["order"] % 2 == 0
    assert 0 < even.sum() < 6
    assert (rows["scores"][even] == expected["scores"][even]).all()
    assert (rows["order"] == expected["order"]).all()
    for index in (int(np.flatnonzero(even)[0]), int(np.flatnonzero(~even)[0])):
        assert network_and_run(card, problem, index)[1].scores(problem) == pytest.approx(rows["scores"][index])


@pytest.mark.parametrize("blocks", [False, True])
def test_the_whole_way(blocks, records):
    law = MixedLaw((broad(order=12), SMALL))
    found = [identify(*records[: 1 if blocks else 2], law=law, networks=4, kernel=kernel) for kernel in ("cpu", "gpu")]
    one, other = (result.scores["validation"]["rmse"] for result in found)
    assert other == pytest.approx(one, rel=1e-6)


def test_a_worker_without_a_card_refuses(records, monkeypatch):
    """What is sent to it is asked there, not where it was made."""
    problem = hold_out(*records, law=paper(5), scores=PLAIN, washout=60)
    sent = pickle.loads(pickle.dumps(get_kernel("gpu")))
    monkeypatch.setattr(device, "cupy", lambda: Card(cards=0))
    device.gpu_problem.cache_clear()
    try:
        with pytest.raises(InputError, match="no NVIDIA GPU was found"):
            sent.evaluate(problem, range(2))
    finally:
        device.gpu_problem.cache_clear()
