"""Compiling is announced, once, and only where something is compiled."""

import numpy as np
import pytest
from numba import njit

from echobound.kernels import get_kernel, hold_out
from echobound.kernels.cpu import COMPILED, preparing
from echobound.network import CascadeLaw, FreeRun, MixedLaw, ReservoirLaw
from echobound.scores import get_score


def problem(records, law, horizon=None):
    return hold_out(*records, law=law, scores=[get_score("fit")], washout=30, horizon=horizon)


def test_the_first_of_several_compilations_is_told(ph_records, monkeypatch):
    def compiled(*_):
        for kind in (np.int16, np.int32):
            njit(lambda x: x + 1)(kind(3))

    monkeypatch.setattr(preparing, "_run_batch", compiled)
    told, kernel, task = [], get_kernel("cpu"), problem(ph_records, ReservoirLaw(order=4))
    kernel.prepare(task, told.append)
    assert len(told) == 1
    assert told[0].startswith("compiling")
    monkeypatch.undo()
    kernel.prepare(task, told.append)
    kernel.prepare(task, told.append)
    assert len(told) <= 2, "what is compiled needs no word"


@pytest.mark.parametrize(
    ("law", "horizon"),
    [
        (ReservoirLaw(order=4), None),
        (ReservoirLaw(order=4, pattern="random"), 3),
        (ReservoirLaw(order=4, training=FreeRun()), None),
        (MixedLaw((ReservoirLaw(order=4), CascadeLaw(units=2, sections=1))), None),
    ],
)
def test_what_is_prepared_is_what_networks_need(ph_records, law, horizon):
    """After it, evaluating networks compiles and loads nothing more: neither other functions nor other types."""

    def known():
        return {function.py_func.__name__: len(function.signatures) for function in COMPILED if function.signatures}

    kernel, task = get_kernel("cpu"), problem(ph_records, law, horizon)
    kernel.prepare(task, lambda words: None)
    before = known()
    kernel.evaluate(task, range(6))
    assert known() == before
