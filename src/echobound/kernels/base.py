"""What all kernels share: trials in, rows out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Matrix, Rows, Signal
from echobound.kernels.problem import Problem
from echobound.network.law import Hyperparameters

__all__ = ["Kernel", "Status", "Trial", "TrialKernel", "best_ridge", "row_dtype"]


class Status(IntEnum):
    """How a trial ended. A diverged network is a row like any other, with the worst score."""

    OK = 0
    DIVERGED = 1


def row_dtype(scores: int) -> np.dtype[Any]:
    """A row: which draw, how it ended, its scores, its order, the ridge that was used, and the seconds it took.

    `seconds` is outside all promises of identity.
    """
    return np.dtype(
        [
            ("stream", np.int64),
            ("family", np.int64),
            ("index", np.int64),
            ("status", np.int64),
            ("order", np.int64),
            ("ridge", np.float64),
            ("scores", np.float64, (scores,)),
            ("seconds", np.float64),
        ]
    )


def best_ridge(problem: Problem, table: Matrix) -> NDArray[np.intp]:
    """Position of the ridge that is best by the first score (the first of equals); table ``(..., ridge, score)``."""
    first = table[..., 0]
    return np.asarray(np.argmax(first, axis=-1) if problem.scores[0].direction == "max" else np.argmin(first, axis=-1))


@dataclass(frozen=True, eq=False)
class Trial:
    """One network trained on every fold, with every ridge of the law.

    Parameters
    ----------
    hyper
        Its hyper-parameters.
    ridges
        For each ridge of the law, the one that was used (0 where the minimum-norm solution stood in).
    readouts
        For each fold ``(ridge, output, column)``.
    outputs
        For each fold the simulated outputs ``(ridge, time, output)``, in the data's own units.
    """

    hyper: Hyperparameters
    ridges: Sequence[float]
    readouts: Sequence[Matrix]
    outputs: Sequence[Matrix]

    def table(self, problem: Problem) -> Matrix:
        """Scores ``(ridge, score)``, each the mean over folds."""
        scores = np.array(
            [
                [[score(measured, one) for score in problem.scores] for one in simulated]
                for measured, simulated in zip(problem.measured, self.outputs, strict=True)
            ]
        )
        return np.asarray(scores.mean(axis=0))

    def pick(self, problem: Problem) -> tuple[int, Matrix]:
        """Position of the ridge that is best by the first score (the first of equals), and its scores."""
        table = self.table(problem)
        best = int(best_ridge(problem, table))
        return best, table[best]

    def simulated(self, ridge: int) -> list[Signal]:
        """Simulated outputs of each fold for one ridge."""
        return [outputs[ridge] for outputs in self.outputs]


class Kernel(Protocol):
    """Evaluates a block of draws. Rows do not depend on how indices are cut into blocks."""

    name: str

    def evaluate(self, problem: Problem, indices: Iterable[int]) -> Rows:
        """Draw, train and score the given draws of a problem."""
        ...

    def trial(self, problem: Problem, index: int) -> Trial:
        """One draw with its readouts and simulated outputs, for the network that is kept and for users' own scores."""
        ...


class TrialKernel:
    """A kernel that evaluates one trial after the other."""

    name = "base"

    def trial(self, problem: Problem, index: int) -> Trial:
        """Draw and train one network, and simulate it."""
        raise TypeError("a kernel defines trial()")

    def evaluate(self, problem: Problem, indices: Iterable[int]) -> Rows:
        """Draw, train and score the given draws of a problem."""
        rows = list(self._rows(problem, indices))
        return np.array(rows, dtype=row_dtype(len(problem.scores)))

    def _rows(self, problem: Problem, indices: Iterable[int]) -> Iterator[tuple[Any, ...]]:
        for index in indices:
            start = time.perf_counter()
            trial = self.trial(problem, index)
            ridge, scores = trial.pick(problem)
            finite = all(np.isfinite(outputs).all() for outputs in trial.simulated(ridge))
            status = Status.OK if finite else Status.DIVERGED
            yield (
                problem.stream,
                problem.family,
                index,
                status,
                trial.hyper.order,
                trial.ridges[ridge],
                scores,
                time.perf_counter() - start,
            )
