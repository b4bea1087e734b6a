"""Load the compiled code before it is needed, so that compiling is announced and is not counted as drawing networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import event

from echobound.data.record import Record
from echobound.kernels.blas import one_blas_thread
from echobound.kernels.cpu import batch
from echobound.kernels.cpu.cascade_tools import CompiledCascadeTools
from echobound.kernels.cpu.tools import CompiledTools
from echobound.kernels.problem import Problem, hold_out
from echobound.network.cascade import Cascade, energy_factors
from echobound.network.cascade_law import CascadeLaw
from echobound.network.law import ReservoirLaw
from echobound.network.reservoir import ReservoirDraw
from echobound.network.training import FreeRun, LeastSquares, Trainer, TrainingSegment
from echobound.network.training.cascade_tools import Stretch
from echobound.network.training.free_run import Course
from echobound.network.training.separable import Coordinates
from echobound.scores import get_score

SIGNAL = np.sin(np.arange(12.0))[:, None]


def prepare(problem: Problem, compiling: Callable[[], None]) -> None:
    """Run each function that networks of a problem need on a few samples; `compiling` is called if one is not kept.

    The types of their arguments are the same for all laws and data, so that one run is enough. Whatever is left out
    here is loaded, or compiled, when it is first called.
    """
    announcer = _Announcer(compiling)
    with one_blas_thread(), event.install_listener("numba:compile", announcer):
        for kind in getattr(problem.law, "laws", (problem.law,)):
            if isinstance(kind, CascadeLaw):
                _run_cascade()
            elif isinstance(kind, ReservoirLaw):
                batches = batch.suits(problem.of_law(kind))
                if batches:
                    _run_batch()
                if not batches or announcer.told:  # where the batch is kept so is what trains one network: it can wait
                    _run_reservoir(problem.horizon, kind.training)


class _Announcer(event.Listener):  # type: ignore[misc]
    """Tells of the first function that is compiled."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell, self.told = tell, False

    def on_start(self, _: Any) -> None:
        if not self.told:
            self.told = True
            self._tell()

    def on_end(self, _: Any) -> None:
        pass


def _run_reservoir(horizon: int | None, training: Trainer) -> None:
    draw = ReservoirDraw(ReservoirLaw(order=3), inputs=1, outputs=1, seed=0, index=0)
    tools, data = CompiledTools(draw), [TrainingSegment(SIGNAL, SIGNAL, SIGNAL, washout=2)]
    [(_, readout)] = tools.least_squares(draw, data, (1e-4,))
    tools.simulate(draw, [readout], SIGNAL, SIGNAL, 2, horizon)
    if isinstance(training, FreeRun):
        tools.descend(draw, readout, data, Course((1,), 1, (100, 100), True, 1e-4))
    elif not isinstance(training, LeastSquares):
        tools.normal_equations(draw, readout, data, np.ones(1), True)


def _run_batch() -> None:
    record, law = Record(u=SIGNAL, y=SIGNAL), ReservoirLaw(order=3, training=LeastSquares((1e-4,)))
    batch.evaluate(hold_out(record, record, law=law, scores=[get_score("fit")], washout=2), [0])


def _run_cascade() -> None:
    sections = np.array([[-0.5, 0.06]])
    factors = energy_factors(sections)
    cascade = Cascade(sections, factors, np.array([[1.0, 0.0, 0.5]]), np.zeros(1), sections, factors)
    tools, stretches = CompiledCascadeTools(), [Stretch(SIGNAL, SIGNAL, 2, 9)]
    tools.features_gram(cascade, stretches)
    tools.descend(Coordinates(cascade, shared=True), stretches, 1e-3, 1)
