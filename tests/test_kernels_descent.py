"""Trainings that are one compiled call, against the same kernel step by step."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

from echobound.data import Record
from echobound.kernels import blocks_in_turn, get_kernel, hold_out
from echobound.kernels.cpu.cascade_tools import CompiledCascadeTools
from echobound.kernels.cpu.descent import pairwise
from echobound.kernels.cpu.tools import CompiledTools
from echobound.network import CascadeLaw, FreeRun, ReservoirLaw, broad, small
from echobound.network.training import projection
from echobound.network.training.cascade_tools import CascadeTools, Stretch
from echobound.network.training.separable import Coordinates, descended
from echobound.scores import get_score

CPU = get_kernel("cpu")
SCORES = [get_score("robust"), get_score("fit"), get_score("rmse")]
SHORT = FreeRun("network", (0, 2, 5), ridge=1e-6, penalty=(1e-4, 1e-3), increments=0.4, samples=300, until=3)
LAWS = {
    "small": dataclasses.replace(small(), training=dataclasses.replace(SHORT, samples=5000)),
    "on pieces": dataclasses.replace(small(), training=SHORT),
    "readout": dataclasses.replace(broad(order=12), training=FreeRun(steps=(0, 3, 6), samples=400, until=2)),
    "noise": dataclasses.replace(small(), training=SHORT, training_noise=0.05, pattern="random"),
    "wild": ReservoirLaw(order=6, feedback_scale=20.0, output_delays=2, training=FreeRun("network", (1, 4))),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("plant", ["ph_records", "mimo_records"])
def test_steps_in_one_call_are_those_of_one_after_the_other(law, plant, request, monkeypatch):
    training, validation = request.getfixturevalue(plant)
    problems = [hold_out(training, validation, law=law, scores=SCORES, washout=30)]
    if plant == "ph_records":
        problems.append(blocks_in_turn([training, validation], 3, law=law, scores=SCORES, washout=20))
    found = [CPU.evaluate(problem, range(3)) for problem in problems]
    monkeypatch.delattr(CompiledTools, "descend")
    for problem, rows in zip(problems, found, strict=True):
        expected = CPU.evaluate(problem, range(3))
        for name in ("scores", "status", "ridge"):
            assert (rows[name] == expected[name]).all(), "equal in every bit"


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 127, 128, 129, 136, 1000, 4097, 60_001])
def test_sums_run_in_the_order_of_numpy(count):
    values = np.random.default_rng(count).standard_normal(count) ** 3
    assert pairwise(values) == values.sum()


def plant(samples, inputs, outputs):
    rng = np.random.default_rng(inputs)
    u, x = rng.standard_normal((samples, inputs)), np.zeros((samples, outputs))
    W = rng.standard_normal((inputs, outputs))
    for k in range(1, samples):
        x[k] = 0.7 * x[k - 1] + np.tanh(u[k - 1] @ W)
    return Record(u=u, y=x + 0.01 * rng.standard_normal(x.shape))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("channels", [(1, 1), (2, 3)])
def test_variable_projection_in_one_call_goes_the_same_way(shared, channels):
    """Only its first steps can be compared: each step magnifies the last bits of the one before."""
    record = plant(500, *channels)
    problem = hold_out(record, record, law=CascadeLaw(units=3, sections=2), scores=SCORES, washout=30)
    plain, fast = CascadeTools(), CompiledCascadeTools()
    for index in range(2):
        draw = problem.draw(index)
        [one] = projection._stretches(problem.training_data(0, draw), 6000)
        start = projection._start(draw, [one])
        stretches = [Stretch(one.u, one.y, one.first, len(one.u))]  # all of it is trained on: the last step is the best
        coordinates = Coordinates(start, shared)
        for iterations in (0, 1, 2):
            one = descended(plain, coordinates, stretches, 1e-3, iterations)
            other = fast.descend(coordinates, stretches, 1e-3, iterations)
            assert np.allclose(other.parameters, one.parameters, rtol=1e-4, atol=1e-5)
        assert not np.allclose(one.parameters, start.parameters, rtol=1e-3), "it has moved"


def test_a_start_that_is_no_number_ends_nowhere():
    record = plant(200, 1, 1)
    problem = hold_out(record, record, law=CascadeLaw(units=2, sections=1), scores=SCORES, washout=20)
    draw = problem.draw(0)
    stretches = projection._stretches(problem.training_data(0, draw), 6000)
    start = projection._start(draw, stretches)
    broken = Coordinates(dataclasses.replace(start, bias=np.full(2, np.nan)), shared=False)
    assert CompiledCascadeTools().descend(broken, stretches, 1e-3, 3) is None
    assert descended(CascadeTools(), broken, stretches, 1e-3, 3) is None


LOADED = """
import json, sys
import numpy as np
from echobound.data import Record
from echobound.kernels import get_kernel, hold_out
from echobound.network import CascadeLaw, FreeRun, MixedLaw, ReservoirLaw
from echobound.scores import get_score
u = np.sin(0.1 * np.arange(200.0)) ** 3
laws = ReservoirLaw(order=4, training=FreeRun("network", (2,))), CascadeLaw(units=2, sections=1), ReservoirLaw(order=5)
law = MixedLaw(laws)
problem = hold_out(Record(u=u, y=u), Record(u=u, y=u), law=law, scores=[get_score("fit")], washout=20)
print(json.dumps(get_kernel("cpu").evaluate(problem, range(6))["scores"].tolist()))
"""


def test_code_that_was_kept_runs_in_another_process():
    """A recursive function, say, is compiled and runs, and crashes when it is loaded."""
    first, second = (
        json.loads(subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout)
        for _ in range(2)
    )
    assert first == second
