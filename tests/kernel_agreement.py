"""Contract 2: rows of two kernels agree within a tolerance, or the row is sensitive to rounding itself.

A row beyond the tolerance counts as sensitive only if its score moves as much when rounding is imitated: the readout
changed by 1e-12 relative, or the weights and the Gram matrix by 1e-14. The second matters more: a norm of 0.99 lets
last bits of the state add up over a hundred steps, and a ridge of 1e-8 turns one last bit of the Gram matrix into
4e-7 of the readout at order 200, whatever the kernel.
"""

import dataclasses

import numpy as np

from echobound.kernels.reference import _regression, _simulate
from echobound.network.readout import least_squares, ridge_solution
from echobound.network.reservoir import draw_reservoir

READOUT, WEIGHT = 1e-12, 1e-14


def agreement(problem, one, other, indices, tolerance=1e-9):
    """Return (rows that agree, rows that are sensitive, rows that disagree)."""
    rows, others = one.evaluate(problem, indices), other.evaluate(problem, indices)
    for name in ("stream", "family", "index", "order"):
        assert (rows[name] == others[name]).all(), name
    agree, sensitive, disagree = 0, 0, []
    for row, twin in zip(rows, others, strict=True):
        difference = relative(row["scores"], twin["scores"])
        if difference <= tolerance and row["status"] == twin["status"]:
            agree += 1
        elif moves(problem, one, row) >= difference:
            sensitive += 1
        else:
            disagree.append((int(row["index"]), difference))
    return agree, sensitive, disagree


def relative(a, b):
    """Largest relative difference of scores; infinities of one sign are equal."""
    same = a == b
    with np.errstate(invalid="ignore"):
        return float(np.where(same, 0.0, np.abs(a - b) / np.maximum(np.abs(a), 1e-300)).max())


def moves(problem, kernel, row, tries=8):
    """How much the scores of a row move, relative, when rounding is imitated."""
    trial = kernel.trial(problem, int(row["index"]))
    reservoir = draw_reservoir(
        problem.law, problem.inputs, problem.outputs, problem.seed, problem.stream, problem.family, int(row["index"])
    )
    return max(relative(row["scores"], _imitated(problem, trial, reservoir, row, t)) for t in range(tries))


def _imitated(problem, trial, reservoir, row, number):
    signs = np.random.default_rng(number)
    table = []
    for fold_number, fold in enumerate(problem.folds):
        data = problem.scaled(fold_number, trial.hyper.scaling)
        if number % 2:
            weights = [w * (1 + READOUT * _signs(signs, w.shape)) for w in trial.readouts[fold_number]]
        else:
            arrays = {name: getattr(reservoir, name) for name in ("values", "W_u", "W_y", "bias", "leak")}
            moved = dataclasses.replace(
                reservoir, **{name: a * (1 + WEIGHT * _signs(signs, a.shape)) for name, a in arrays.items()}
            )
            phi, y = _regression(problem, int(row["index"]), moved, fold, data)
            gram = phi.T @ phi
            pattern = np.tril(_signs(signs, gram.shape))
            gram *= 1 + WEIGHT * (pattern + np.tril(pattern, -1).T)
            moment = phi.T @ y * (1 + WEIGHT * _signs(signs, (phi.shape[1], y.shape[1])))
            weights = [ridge_solution(gram, moment, r) if r > 0 else None for r in problem.law.ridges]
            if any(w is None for w in weights):
                phi = phi * (1 + WEIGHT * _signs(signs, phi.shape))
                weights = [w for _, w in least_squares(phi, y, problem.law.ridges)]
        outputs = [_simulate(problem, reservoir, w, fold, data) for w in weights]
        table.append([[score(problem.measured[fold_number], o) for score in problem.scores] for o in outputs])
    scores = np.mean(table, axis=0)
    best = np.argmax(scores[:, 0]) if problem.scores[0].direction == "max" else np.argmin(scores[:, 0])
    return scores[best]


def _signs(generator, shape):
    return np.where(generator.random(shape) < 0.5, -1.0, 1.0)
