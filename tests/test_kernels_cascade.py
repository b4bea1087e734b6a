"""Cascades on the CPU kernel: its Gram matrices and rows are those of the reference."""

import numpy as np
import pytest
from kernel_agreement import agreement

from echobound.data import Record
from echobound.kernels import blocks_in_turn, get_kernel, hold_out
from echobound.kernels.cpu.cascade_tools import CompiledCascadeTools
from echobound.kernels.training import train_network
from echobound.network import CascadeLaw, MixedLaw, VariableProjection, paper
from echobound.network.cascade import Cascade, energy_factors
from echobound.network.training.cascade_tools import CascadeTools, Stretch
from echobound.plants import wiener_hammerstein_experiment
from echobound.scores import get_score

SCORES = [get_score("fit"), get_score("rmse")]
SHORT = CascadeLaw(units=3, sections=1, training=VariableProjection((1e-8, 1e-4), shared=4, free=4))


@pytest.mark.parametrize(("inputs", "outputs", "split"), [(1, 1, 300), (2, 3, 250), (3, 1, 129)])
def test_gram_matrices_are_those_of_the_reference(inputs, outputs, split):
    rng = np.random.default_rng(inputs)
    front, back = np.array([[-1.5, 0.6], [-0.3, -0.2]]), np.array([[-1.2, 0.5], [0.1, 0.3], [-1.9, 0.91]])
    weights, bias = rng.standard_normal((4, 5 * inputs)), rng.standard_normal(4)
    cascade = Cascade(front, energy_factors(front), weights, bias, back, energy_factors(back))
    u, y = rng.standard_normal((300, inputs)), rng.standard_normal((300, outputs))
    stretches = [Stretch(u, y, 20, split), Stretch(u[:50].copy(), y[:50].copy(), 10, 50)]
    readout = rng.standard_normal((outputs, cascade.columns))
    plain, fast = CascadeTools(), CompiledCascadeTools()
    for one, other in zip(plain.features_gram(cascade, stretches), fast.features_gram(cascade, stretches), strict=True):
        assert np.allclose(one, other, rtol=1e-11, atol=1e-11 * np.abs(one).max(initial=1.0))
    expected = plain.jacobian_gram(cascade, readout, stretches)
    assert np.allclose(
        fast.jacobian_gram(cascade, readout, stretches), expected, rtol=1e-10, atol=1e-10 * expected.max()
    )


def mimo(samples, seed):
    rng = np.random.default_rng(seed)
    u, x = rng.standard_normal((samples, 2)), np.zeros((samples, 2))
    for k in range(1, samples):
        x[k] = 0.7 * x[k - 1] + np.tanh(u[k - 1] @ np.array([[0.5, 0.2], [0.1, -0.6]]))
    return Record(u=u, y=x + 0.01 * rng.standard_normal(x.shape))


@pytest.mark.parametrize("case", ["one input", "several", "mixed"])
def test_rows_agree_with_the_reference(case):
    records = wiener_hammerstein_experiment((400, 200)) if case == "one input" else (mimo(300, 0), mimo(150, 1))
    law = MixedLaw((SHORT, paper(10))) if case == "mixed" else SHORT
    problem = hold_out(*records, law=law, scores=SCORES, washout=30)
    _, _, disagree = agreement(problem, get_kernel("reference"), get_kernel("cpu"), range(3))
    assert not disagree


def test_rows_do_not_depend_on_batches_and_long_records_are_cut():
    [record] = wiener_hammerstein_experiment((900,))
    law = CascadeLaw(units=3, sections=1, training=VariableProjection((1e-8,), shared=2, free=2, last=2, part=200))
    problem, kernel = blocks_in_turn(record, 3, law=law, scores=SCORES, washout=30), get_kernel("cpu")
    rows = kernel.evaluate(problem, range(3))
    again = np.concatenate([kernel.evaluate(problem, [index]) for index in (2, 0, 1)])[[1, 2, 0]]
    for name in ("scores", "status", "order", "ridge", "index"):
        assert (rows[name] == again[name]).all()


def test_what_is_scored_is_the_refitted_cascade_too():
    problem = blocks_in_turn(mimo(400, 2), 4, law=SHORT, scores=[get_score("rmse")], washout=20)
    model, outputs = train_network(get_kernel("cpu"), problem, 1)
    assert model.origin["index"] == 1
    assert len(outputs) == 4
    record = problem.records[0]
    error = np.sqrt(np.mean((model.simulate(record).y - record.y[20:]) ** 2))
    assert error < 0.5 * record.y.std()
