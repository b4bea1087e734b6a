"""What all kernels share: a draw is trained, simulated and scored; draws in, rows out."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Array, Rows, Signal, Vector
from echobound.errors import InputError
from echobound.kernels.problem import Problem
from echobound.network.training import Tools, Trained


class Status(IntEnum):
    """How a trial ended. A diverged network is a row like any other, with the worst score."""

    OK = 0
    DIVERGED = 1  # an output that is not finite
    HELD = 2  # an output that sits at a limit of its model for long: it does not follow, and would diverge without


def row_dtype(scores: int) -> np.dtype[Any]:
    """A row: which draw, how it ended, its scores, its order, the setting of its training, and the seconds it took.

    The setting stands in the column ``ridge``, since for least squares it is one. `seconds` is outside all promises of
    identity.
    """
    whole = [(name, np.int64) for name in ("stream", "family", "index", "status", "order")]
    return np.dtype([*whole, ("ridge", np.float64), ("scores", np.float64, (scores,)), ("seconds", np.float64)])


def best_alternative(problem: Problem, table: Array) -> NDArray[np.intp]:
    """Position of the alternative that is best by the first score, the first if several are equal.

    The table is ``(..., alternative, score)``.
    """
    first = table[..., 0]
    return np.asarray(np.argmax(first, axis=-1) if problem.scores[0].direction == "max" else np.argmin(first, axis=-1))


@dataclass(frozen=True, eq=False)
class Run:
    """What a draw is scored by: its outputs with the alternative that was picked, in the data's own units."""

    order: int
    setting: float
    outputs: Sequence[Signal]  # on the scored samples of each fold
    whole: Signal | None = None  # of a demanding problem, over the training data (see `Problem.whole`)
    clipped: bool = False  # whether its law clips outputs

    def scores(self, problem: Problem) -> Vector:
        """Every score of the problem."""
        return problem.scores_of(self.outputs, self.whole)

    def status(self, problem: Problem) -> Status:
        """How it ended, by its outputs and not by its scores: a user's own score may be infinite for other reasons."""
        if not all(np.isfinite(outputs).all() for outputs in self.outputs):
            return Status.DIVERGED
        held = self.clipped and any(
            limits.holds(limits.held(outputs)) for limits, outputs in zip(problem.limits, self.outputs, strict=True)
        )
        return Status.HELD if held else Status.OK


@dataclass(frozen=True, eq=False)
class Trial:
    """One draw, trained and simulated on every fold, with every alternative of its training."""

    draw: Any
    trained: Sequence[Sequence[Trained]]  # for each fold, the alternatives that the trainer returned
    outputs: Sequence[Array]  # for each fold (alternative, time, output), in the data's own units

    @property
    def hyper(self) -> Any:
        """The hyper-parameters that were drawn."""
        return self.draw.hyper

    @property
    def settings(self) -> list[float]:
        """The setting of each alternative: the least over folds, so that a ridge that failed on one shows as 0."""
        return [min(one.setting for one in alternatives) for alternatives in zip(*self.trained, strict=True)]

    def table(self, problem: Problem) -> Array:
        """Scores ``(alternative, score)``, each the mean over folds."""
        folds = zip(problem.measured, self.outputs, strict=True)
        scores = [[[s(measured, one) for s in problem.scores] for one in runs] for measured, runs in folds]
        return np.asarray(np.array(scores).mean(axis=0))

    def pick(self, problem: Problem) -> tuple[int, Vector]:
        """Position of the best alternative, and its scores."""
        table = self.table(problem)
        best = int(best_alternative(problem, table))
        return best, table[best]

    def simulated(self, alternative: int) -> list[Signal]:
        """Simulated outputs of one alternative on each fold."""
        return [outputs[alternative] for outputs in self.outputs]


class Kernel(Protocol):
    """Evaluates a batch of draws. Rows do not depend on how indices are cut into batches.

    A kernel may also have the attributes `batch`, the size of the batches that suit it, and `parallel`, False if
    several workers would only wait for each other; and the method `prepare(problem, tell)` for what is done once before
    the first draw, and told with a few words if it takes long.
    """

    name: str

    def evaluate(self, problem: Problem, indices: Iterable[int]) -> Rows:
        """Draw, train and score the given draws of a problem."""

    def trial(self, problem: Problem, index: int) -> Trial:
        """One draw with what came out of it, for the network that is kept and for users' own scores."""

    def over_training(self, problem: Problem, trial: Trial, best: int) -> Signal:
        """Of a demanding problem: outputs over the training data of the draw with alternative `best`."""

    def runs(self, problem: Problem, indices: Iterable[int]) -> list[Run]:
        """What the given draws are scored by."""


class TrialKernel(ABC):
    """A kernel that evaluates one draw after the other; a subclass has the tools."""

    name = "base"

    @abstractmethod
    def tools(self, draw: Any) -> Tools:
        """What trains and simulates this draw."""

    def trained(self, problem: Problem, fold: int, draw: Any, tools: Tools) -> Sequence[Trained]:
        """The alternatives of a draw that has the limits of the fold, trained on it."""
        trained: Sequence[Trained] = draw.law.training.train(draw, problem.training_data(fold, draw), tools)
        return trained

    def trial(self, problem: Problem, index: int) -> Trial:
        """Draw one network, train it on every fold, and simulate what came out."""
        draw, folds = problem.draw(index), range(len(problem.folds))
        tools = self.tools(draw)
        draws = [problem.on_fold(fold, draw) for fold in folds]
        trained = [self.trained(problem, fold, draws[fold], tools) for fold in folds]
        _require_contract(problem, draw, trained)
        outputs = [simulate_fold(problem, fold, draws[fold], trained[fold], tools) for fold in folds]
        return Trial(draw, trained, outputs)

    def run(self, problem: Problem, index: int) -> Run:
        """What one draw is scored by."""
        trial = self.trial(problem, index)
        best, _ = trial.pick(problem)
        whole = self.over_training(problem, trial, best) if problem.demanding else None
        clipped = bool(trial.draw.law.clip)
        return Run(trial.hyper.order, trial.settings[best], trial.simulated(best), whole, clipped)

    def over_training(self, problem: Problem, trial: Trial, best: int) -> Signal:
        """Outputs over the training data (see `Problem.whole`) of a draw that is trained on all of them."""
        if len(problem.folds) > 1:
            return self.trial(final_fit(problem, best, trial.draw.law), trial.draw.index).simulated(0)[0]
        draw = problem.on_fold(0, trial.draw)  # of a hold-out, it is the network that was scored
        return np.asarray(simulate_fold(problem.whole, 0, draw, [trial.trained[0][best]], self.tools(draw))[0])

    def runs(self, problem: Problem, indices: Iterable[int]) -> list[Run]:
        """What the given draws are scored by."""
        return [self.run(problem, index) for index in indices]

    def evaluate(self, problem: Problem, indices: Iterable[int]) -> Rows:
        """Draw, train and score the given draws of a problem."""
        rows = [self._row(problem, index) for index in indices]
        return np.array(rows, dtype=row_dtype(len(problem.scores)))

    def _row(self, problem: Problem, index: int) -> tuple[Any, ...]:
        start = time.perf_counter()
        run = self.run(problem, index)
        draw = (problem.stream, problem.family, index, run.status(problem))
        return *draw, run.order, run.setting, run.scores(problem), time.perf_counter() - start


def final_fit(problem: Problem, alternative: int, law: Any = None) -> Problem:
    """The problem whose single trained network is the model, once an alternative of the training was chosen.

    For a hold-out it is trained on the same data, for blocks in turn on all of them. Of a law that mixes several kinds,
    give the one of the draw.
    """
    law = problem.law if law is None else law
    chosen = replace(law, training=law.training.chosen(alternative))
    return (problem if len(problem.folds) == 1 else problem.whole).of_law(chosen)


def simulate_fold(problem: Problem, fold: int, draw: Any, trained: Sequence[Trained], tools: Tools) -> Array:
    """Outputs ``(alternative, time, output)`` on the scored segments of a fold, in the data's own units."""
    data, segments = problem.scaled(fold, draw.hyper.scaling), problem.folds[fold].scored

    def run(draw: Any, *alternatives: Trained) -> Array:
        readouts = [one.readout for one in alternatives]
        parts = [
            tools.simulate(draw, readouts, u, y, segment.washout, problem.horizon)
            for segment, (u, y) in zip(segments, data.scored, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    if all(one.reservoir is None for one in trained):
        outputs = run(draw, *trained)  # together, so that they share the washout
    else:
        draws = [draw if one.reservoir is None else draw.with_reservoir(one.reservoir) for one in trained]
        outputs = np.concatenate([run(*one) for one in zip(draws, trained, strict=True)])
    return data.scaling.outputs_back(outputs)


def _require_contract(problem: Problem, draw: Any, trained: Sequence[Sequence[Trained]]) -> None:
    """Refuse what a trainer must not return: compiled code would read beyond a readout of another shape."""
    shape = (problem.outputs, draw.hyper.columns(problem.inputs, problem.outputs))
    counts = {len(alternatives) for alternatives in trained}
    if len(counts) > 1 or 0 in counts:
        raise InputError(
            f"training by {draw.law.training.kind} must return as many alternatives on every fold, one or more, got"
            f" {sorted(counts)}"
        )
    for one in (one for alternatives in trained for one in alternatives):
        order, columns = draw.hyper.order, shape[1]
        if one.reservoir is not None:
            order, columns = one.reservoir.order, one.reservoir.readout_columns(problem.outputs)
        if one.readout.shape != shape or (order, columns) != (draw.hyper.order, shape[1]):
            raise InputError(
                f"training by {draw.law.training.kind} must return a readout of shape {shape} for"
                f" {draw.hyper.order} states, got shape {one.readout.shape} for {order} states"
            )
