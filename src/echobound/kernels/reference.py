"""The reference kernel: plain NumPy, one network after the other. It defines what is right."""

from __future__ import annotations

import numpy as np

from echobound.kernels.base import Trial, TrialKernel
from echobound.kernels.problem import Fold, FoldData, Problem
from echobound.network.dynamics import features, free_run, predictions, teacher_states
from echobound.network.readout import least_squares
from echobound.network.reservoir import Reservoir, draw_reservoir

__all__ = ["ReferenceKernel"]


class ReferenceKernel(TrialKernel):
    """Evaluate draws in plain NumPy.

    Examples
    --------
    >>> from echobound.data import Record
    >>> from echobound.kernels import hold_out
    >>> from echobound.network import paper
    >>> from echobound.scores import get_score
    >>> k = np.arange(300.0)
    >>> record = Record(u=np.sin(0.1 * k) ** 3, y=np.sin(0.1 * (k - 2)) ** 2)
    >>> problem = hold_out(record, record, law=paper(5), scores=[get_score("fit")])
    >>> rows = ReferenceKernel().evaluate(problem, range(2))
    >>> rows["index"].tolist(), rows["order"].tolist()
    ([0, 1], [5, 5])
    """

    name = "reference"

    def trial(self, problem: Problem, index: int) -> Trial:
        """Draw and train one network, and simulate it."""
        reservoir = draw_reservoir(
            problem.law, problem.inputs, problem.outputs, problem.seed, problem.stream, problem.family, index
        )
        readouts, outputs = [], []
        used = list(problem.law.ridges)
        for number, fold in enumerate(problem.folds):
            data = problem.scaled(number, reservoir.hyper.scaling)
            phi, y = _regression(problem, index, reservoir, fold, data)
            solutions = least_squares(phi, y, problem.law.ridges)
            used = [min(before, ridge) for before, (ridge, _) in zip(used, solutions, strict=True)]
            readouts.append(np.array([weights for _, weights in solutions]))
            outputs.append(np.array([_simulate(problem, reservoir, w, fold, data) for _, w in solutions]))
        return Trial(reservoir.hyper, used, readouts, outputs)


def _regression(
    problem: Problem, index: int, reservoir: Reservoir, fold: Fold, data: FoldData
) -> tuple[np.ndarray, np.ndarray]:
    """Phi and Y of the paper's steps (e) to (g), over all training segments of a fold."""
    rows, targets = [], []
    fed = problem.fed_back(index, reservoir.hyper, data)
    for segment, (u, y), y_fed in zip(fold.training, data.training, fed, strict=True):
        states = teacher_states(reservoir, u, y_fed, problem.law.padding)
        times = np.arange(segment.washout, len(u))
        rows.append(features(reservoir.hyper, states[times], u, y_fed, times, y_fed[0]))
        targets.append(y[times])
    return np.concatenate(rows), np.concatenate(targets)


def _simulate(problem: Problem, reservoir: Reservoir, readout: np.ndarray, fold: Fold, data: FoldData) -> np.ndarray:
    """Outputs on the scored segments of a fold, in the data's own units."""
    parts = []
    for segment, (u, y) in zip(fold.scored, data.scored, strict=True):
        if problem.horizon is None:
            parts.append(free_run(reservoir, readout, u, y, segment.washout, problem.law.padding))
        else:
            parts.append(predictions(reservoir, readout, u, y, segment.washout, problem.horizon, problem.law.padding))
    return data.scaling.outputs_back(np.concatenate(parts))
