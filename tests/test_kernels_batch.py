"""Many networks in one compiled call, against the same kernel draw by draw: equal in every bit."""

import dataclasses
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echobound.data import Record
from echobound.kernels import Status, blocks_in_turn, get_kernel, hold_out
from echobound.kernels.base import TrialKernel
from echobound.kernels.blas import one_blas_thread
from echobound.kernels.cpu import batch
from echobound.network import Choice, FreeRun, LeastSquares, MixedLaw, ReservoirLaw, broad, paper
from echobound.network.reservoir import ReservoirDraw
from echobound.scores import get_score, rmse_per_output

CPU = get_kernel("cpu")
SCORES = [get_score("fit"), get_score("rmse")]
LAWS = {
    "paper": paper(25),
    "random pattern": dataclasses.replace(paper(25), pattern="random"),
    "one state": paper(1),
    "broad": broad(order=14),
    "noise": dataclasses.replace(broad(order=9), training_noise=Choice((0.01, 0.05))),
    "wild": ReservoirLaw(order=12, feedback_scale=30.0, norm=0.99, output_delays=2, training=LeastSquares((1e-13,))),
    "held": dataclasses.replace(broad(order=10), feedback_scale=20.0, output_delays=2),
}


def draw_by_draw(problem, indices):
    with one_blas_thread():
        return TrialKernel.evaluate(CPU, problem, indices)


def equal(ours, theirs):
    return all((ours[name] == theirs[name]).all() for name in ours.dtype.names if name != "seconds")


def problems(records, law):
    training, validation = records
    yield hold_out(training, validation, law=law, scores=SCORES, washout=30)
    together = [*training, *validation] if isinstance(training, list) else [training, validation]
    yield blocks_in_turn(together, 3, law=law, scores=SCORES[::-1], washout=20)
    yield blocks_in_turn(together, 9, law=law, scores=SCORES, washout=10)  # means over more than eight are paired
    demanding = [get_score("robust"), get_score("peak"), *SCORES]  # the second needs more than root mean squares
    yield hold_out(training, validation, law=law, scores=demanding, washout=30)
    yield blocks_in_turn(together, 3, law=law, scores=demanding, washout=20)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("plant", ["ph_records", "mimo_records"])
def test_rows_are_those_of_draw_by_draw(law, plant, request):
    for problem in problems(request.getfixturevalue(plant), law):
        assert batch.suits(problem)
        rows = draw_by_draw(problem, range(12))
        assert equal(CPU.evaluate(problem, range(12)), rows)
        for row, run in zip(rows, CPU.runs(problem, range(12)), strict=True):
            assert (run.scores(problem) == row["scores"]).all()
            assert (run.order, run.setting, run.status(problem)) == (row["order"], row["ridge"], row["status"])


def test_of_a_mixed_law_each_kind_is_a_batch(ph_records):
    small = dataclasses.replace(paper(5), training=FreeRun("network", (0, 2)))
    law = MixedLaw((LAWS["broad"], small, LAWS["noise"]))
    for scores in (SCORES, [get_score("robust")]):
        problem = blocks_in_turn([*ph_records], 3, law=law, scores=scores, washout=20)
        together, others = batch.kinds(problem, range(20))
        assert [one.law for one, _ in together] == [LAWS["broad"], LAWS["noise"]]
        assert sorted([*others, *(at for _, positions in together for at in positions)]) == [*range(20)]
        assert 0 < len(others) < 15
        assert equal(CPU.evaluate(problem, range(20)), draw_by_draw(problem, range(20)))


def test_the_cases_are_among_them(ph_records):
    """Networks that are held, that diverge, and whose Gram matrix has no Cholesky factor."""
    problem = hold_out(*ph_records, law=LAWS["held"], scores=SCORES, washout=30)
    assert (CPU.evaluate(problem, range(12))["status"] == Status.HELD).any()
    k = np.arange(600.0)
    growing = Record(u=np.sin(0.9 * k) * (k % 37), y=np.exp(0.02 * k))
    longer = Record(u=np.tile(growing.u, (60, 1)), y=np.tile(growing.y, (60, 1)))
    law = ReservoirLaw(order=5, output_delays=2, training=LeastSquares((1e-14,)), norm=0.5)
    problem = hold_out(growing, longer, law=law, scores=SCORES, washout=50)
    rows = CPU.evaluate(problem, range(12))
    assert (rows["status"] == Status.DIVERGED).any()
    assert equal(rows, draw_by_draw(problem, range(12)))
    law = ReservoirLaw(order=4, input_scale=0.0, input_delays=4, training=LeastSquares((1e-300, 1e-4)))
    repeated = Record(u=np.arange(600) % 2, y=np.random.default_rng(0).random(600))  # u(k-1) is u(k-3)
    problem = hold_out(repeated, repeated, law=law, scores=SCORES, washout=30)
    _, left = batch.evaluate(problem, [3, 5])
    assert left == [0, 1]
    assert equal(CPU.evaluate(problem, range(4)), draw_by_draw(problem, range(4)))


@settings(deadline=None, max_examples=25)
@given(
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(1, 3000),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-300, 1.0, 1e300]),
)
def test_scores_of_many_are_those_of_each(networks, alternatives, samples, outputs, seed, size):
    generator = np.random.default_rng(seed)
    measured = size * generator.standard_normal((samples, outputs))
    many = measured + 0.1 * size * generator.standard_normal((networks, alternatives, samples, outputs))
    found = rmse_per_output(measured, many)
    each = [[rmse_per_output(measured, one.copy()) for one in runs] for runs in many]
    assert (found == np.array(each)).all(), "sums run in the same order"


def test_rows_do_not_depend_on_how_they_are_cut_nor_on_threads(ph_records, monkeypatch):
    problem = hold_out(*ph_records, law=LAWS["broad"], scores=SCORES, washout=30)
    expected, found = CPU.evaluate(problem, range(23)), {}
    monkeypatch.setattr(batch, "MOST", 3)
    assert equal(CPU.evaluate(problem, range(23)), expected)
    monkeypatch.setattr(batch, "ROOM", 1)
    assert [len(piece) for piece in batch.pieces(problem, range(3))] == [1, 1, 1]
    assert equal(CPU.evaluate(problem, range(23)), expected)

    def work(number):
        found[number] = CPU.evaluate(problem, range(number, 23, 4))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(equal(found[number], expected[number::4]) for number in range(4))
    assert len(CPU.evaluate(problem, [])) == 0


def test_what_needs_more_is_evaluated_draw_by_draw(ph_records):
    law = paper(8)
    others = [
        {"law": dataclasses.replace(law, training=FreeRun())},
        {"law": dataclasses.replace(law, training=LeastSquares((0.0, 1e-4)))},
        {"horizon": 2},
    ]
    for other in others:
        assert not batch.suits(hold_out(*ph_records, **{"law": law, "scores": SCORES, "washout": 30, **other}))


def test_noise_is_that_of_the_draw():
    draw = ReservoirDraw(dataclasses.replace(paper(5), training_noise=0.07), inputs=1, outputs=2, seed=3, index=8)
    y = np.random.default_rng(0).random((50, 2))
    deviation = np.array([0.3, 1.7])
    levels = np.empty(100)
    batch.units(draw.key, batch.NOISE, levels)
    [fed] = draw.fed_back([y], deviation)
    assert (batch.noisy(y, levels, 0.07, deviation) == fed).all()
