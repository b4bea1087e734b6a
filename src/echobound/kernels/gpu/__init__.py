"""The GPU kernel: batches of networks, every stage one launch for all of them.

The arithmetic is that of the reference kernel, in double precision. A batch holds networks with the same layout over a
thread block, as many as fit into memory; a few batches are in progress at once.

The card computes reservoirs that are trained by plain least squares, clipped or not, and small ones that are trained on
the free-run error. Draws of a law of any other kind, or those among the draws of a mixed law, are computed by the CPU
kernel on the host, in as many threads as there are cores, while the card is at work on the others. Rows come back in
the order of the indices and do not depend on the batches.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Rows, Signal, Vector
from echobound.kernels.base import Run, Trial, TrialKernel, best_alternative, row_dtype
from echobound.kernels.gpu.batch import BatchResult, law_of
from echobound.kernels.gpu.descents import work_of
from echobound.kernels.gpu.device import gpu_problem, require_gpu
from echobound.kernels.gpu.sharing import computed, for_card, shares_of
from echobound.kernels.problem import Problem
from echobound.network.derivatives import weights_of, with_weights
from echobound.network.reservoir import Reservoir
from echobound.network.training import Tools, Trained

__all__ = ["GPUKernel", "gpu_problem"]

_card = threading.Lock()  # the lanes serve one call at a time


class GPUKernel:
    """Evaluate draws on an NVIDIA GPU, and those that it does not know on the host."""

    name = "gpu"
    batch = 1024  # enough to fill a card
    parallel = False  # there is one card: several workers would only wait for each other

    def __init__(self) -> None:
        require_gpu()

    @cached_property
    def host(self) -> TrialKernel:
        """What computes the draws that the card does not know; loaded when the first of them comes."""
        from echobound.kernels.cpu import CPUKernel

        return CPUKernel()

    def __getstate__(self) -> dict[str, object]:
        """Nothing: what it uses is loaded where it arrives, and a worker that has no card says so when it is asked."""
        return {}

    def tools(self, draw: Any) -> Tools:
        """What trains and simulates a single draw: that of the host."""
        return self.host.tools(draw)

    def evaluate(self, problem: Problem, indices: Iterable[int]) -> Rows:
        """Draw, train and score the given draws of a problem."""
        numbers = np.array([*indices], dtype=np.int64)
        rows = np.zeros(len(numbers), dtype=row_dtype(len(problem.scores)))
        host: Callable[..., Rows] = lambda one, some: self.host.evaluate(one, some)  # noqa: E731 (loaded if needed)
        for at, part in computed(shares_of(problem, numbers), numbers, self.rows_on_card, host):
            rows[at] = part
        return rows

    def runs(self, problem: Problem, indices: Iterable[int]) -> list[Run]:
        """What the given draws are scored by."""
        numbers = np.array([*indices], dtype=np.int64)
        found: dict[int, Run] = {}
        host: Callable[..., list[Run]] = lambda one, some: self.host.runs(one, some)  # noqa: E731
        for at, part in computed(shares_of(problem, numbers), numbers, self.runs_on_card, host):
            found |= zip(at.tolist(), part, strict=True)
        return [found[position] for position in range(len(numbers))]

    def trial(self, problem: Problem, index: int) -> Trial:
        """Draw and train one network, and simulate it."""
        law = problem.law.component(problem.key(index))
        if not for_card(law, problem):
            return self.host.trial(problem, index)
        return self.trials_on_card(problem.of_law(law), np.array([index], dtype=np.int64))[0]

    def trials(self, problem: Problem, indices: Iterable[int]) -> list[Trial]:
        """As `trial`, of several draws: those for the card in one batch."""
        numbers = np.array([*indices], dtype=np.int64)
        found: dict[int, Trial] = {}
        host: Callable[..., list[Trial]] = lambda one, some: [self.host.trial(one, index) for index in some]  # noqa: E731
        for at, part in computed(shares_of(problem, numbers), numbers, self.trials_on_card, host):
            found |= zip(at.tolist(), part, strict=True)
        return [found[position] for position in range(len(numbers))]

    def over_training(self, problem: Problem, trial: Trial, best: int) -> Signal:
        """Of a demanding problem: outputs over the training data of the draw with alternative `best`."""
        if not for_card(trial.draw.law, problem):
            return self.host.over_training(problem, trial, best)
        _ = problem.whole  # so that both share its data
        own, numbers = trial.trained[0][best], np.array([trial.draw.index])
        given = [weights_of(own.reservoir, own.readout, whole=True)] if isinstance(own.reservoir, Reservoir) else None
        return self._over_training(problem.of_law(trial.draw.law), numbers, best, given)[0]

    def rows_on_card(self, problem: Problem, numbers: NDArray[np.int64]) -> Rows:
        """Rows of draws that are all for the card."""
        require_gpu()  # of the machine that the kernel was sent to
        begun, rows = time.perf_counter(), np.zeros(len(numbers), dtype=row_dtype(len(problem.scores)))
        rows["stream"], rows["family"], rows["index"] = problem.stream, problem.family, numbers
        if problem.demanding:
            for row, run in zip(rows, self.runs_on_card(problem, numbers), strict=True):
                row["order"], row["ridge"], row["scores"] = run.order, run.setting, run.scores(problem)
                row["status"] = run.status(problem)
        else:
            fast = all(score.of_rms is not None for score in problem.scores)
            with _card:
                work = work_of(problem, numbers)
                rows["order"] = [hyper.order for hyper in work.hypers]
                for at, result, used in work.results(whole=not fast):
                    table, each = work.table(result), np.arange(len(at))
                    best = best_alternative(problem, table)
                    rows["scores"][at], rows["ridge"][at] = table[each, best], used[each, best]
                    rows["status"][at] = work.status(result)[each, best]
            if work.left:
                rows[work.left] = self.host.evaluate(problem, numbers[work.left].tolist())
        rows["seconds"] = (time.perf_counter() - begun) / max(len(rows), 1)
        return rows

    def runs_on_card(self, problem: Problem, numbers: NDArray[np.int64]) -> list[Run]:
        """What draws are scored by that are all for the card."""
        require_gpu()
        found: dict[int, Run] = {}
        weights: dict[int, Vector] = {}
        alternatives = np.zeros(len(numbers), dtype=np.intp)
        with _card:
            work = work_of(problem, numbers)
            for at, result, used in work.results(whole=True):
                alternatives[at] = best_alternative(problem, work.table(result))
                for row, position in enumerate(at.tolist()):
                    best = alternatives[position]
                    # Copied: the outputs of all ridges of a batch are not kept for the sake of one.
                    outputs = [fold[row, best].copy() for fold in result.outputs]
                    order, setting = work.hypers[position].order, float(used[row, best])
                    found[position] = Run(order, setting, outputs, None, law_of(problem).clip)
                    if result.weights:
                        weights[position] = result.weights[0][row, best].copy()
        found |= zip(work.left, self.host.runs(problem, numbers[work.left].tolist()) if work.left else (), strict=True)
        alternatives[work.left] = -1  # whose runs are whole
        for best in np.unique(alternatives[alternatives >= 0]).tolist() if problem.demanding else ():
            at = np.flatnonzero(alternatives == best)
            own = [weights[position] for position in at.tolist()] if weights else None
            for position, whole in zip(at.tolist(), self._over_training(problem, numbers[at], best, own), strict=True):
                found[position] = replace(found[position], whole=whole)
        return [found[position] for position in range(len(numbers))]

    def trials_on_card(self, problem: Problem, numbers: NDArray[np.int64]) -> list[Trial]:
        """Trials of draws that are all for the card."""
        found: dict[int, Trial] = {}
        with _card:
            work = work_of(problem, numbers)
            for at, result, used in work.results(whole=True):
                for row, position in enumerate(at.tolist()):
                    found[position] = trial_of(problem, int(numbers[position]), result, row, used[row])
        for position in work.left:
            found[position] = self.host.trial(problem, int(numbers[position]))
        return [found[position] for position in range(len(numbers))]

    def _over_training(
        self, problem: Problem, numbers: NDArray[np.int64], best: int, weights: list[Vector] | None = None
    ) -> list[Signal]:
        """Outputs over the training data, trained on all of them with one alternative.

        Of a hold-out least squares are solved on the same data once more: on the card that costs less than to keep all
        readouts. What was trained for longer is run with the weights that it has.
        """
        weights = weights if len(problem.folds) == 1 else None
        law = law_of(problem)
        whole = problem.whole.of_law(replace(law, training=law.training.chosen(best)))
        found: dict[int, Signal] = {}
        with _card:
            work = work_of(whole, numbers, weights)
            for at, result, _ in work.results(whole=True):
                found |= zip(at.tolist(), result.outputs[0][:, 0], strict=True)
        for position in work.left:
            index = int(numbers[position])
            found[position] = self.host.over_training(problem, self.host.trial(problem, index), best)
        return [found[position] for position in range(len(numbers))]


def trial_of(problem: Problem, index: int, result: BatchResult, row: int, used: Vector) -> Trial:
    """What the card found of one draw; `used` are the settings of its alternatives."""
    draw = problem.draw(index)
    columns = draw.hyper.columns(problem.inputs, problem.outputs)
    trained: list[list[Trained]] = []
    for fold, readouts in enumerate(result.readouts):
        # Without the columns that only wider networks of a batch have.
        own = list(zip(used.tolist(), readouts[row, :, :, :columns], strict=True))
        if not len(result.weights):
            trained.append([Trained(setting, readout) for setting, readout in own])
            continue
        changed = []
        for (setting, readout), theta in zip(own, result.weights[fold][row], strict=True):
            count = weights_of(draw.reservoir, readout, whole=True).size
            reservoir, same = with_weights(draw.reservoir, readout, theta[:count])
            changed.append(Trained(setting, same.copy(), reservoir))
        trained.append(changed)
    return Trial(draw, trained, [outputs[row] for outputs in result.outputs])
