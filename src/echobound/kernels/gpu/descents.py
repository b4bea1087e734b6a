"""Descents: small networks trained on the free-run error, a step of all networks of a batch at a time.

The sources are in `cuda/descent.cu`; the products of sensitivities and the solution of the damped equations are the
Gram matrices and the Cholesky factorisation of all other networks. Nothing waits for the host: networks whose descent
has ended have no work in the launches that are left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Matrix, Vector, Words
from echobound.draws import unit, words
from echobound.kernels.gpu.batch import (
    GRAM,
    ROWS,
    SOLVE_THREADS,
    Batch,
    BatchResult,
    FoldOnCard,
    bytes_per_network,
    law_of,
)
from echobound.kernels.gpu.device import Lane, compiled, cupy, launch
from echobound.kernels.gpu.work import Work
from echobound.kernels.problem import Problem
from echobound.network.distribution import extremes
from echobound.network.law import NetworkLaw, ReservoirLaw
from echobound.network.reservoir import TRAINING, Hyperparameters
from echobound.network.training import FreeRun, TrainingSegment
from echobound.network.training.free_run import FLAT, REJECTIONS, importance_of, pieces

MOST_UNITS = 16  # their sensitivities stay in the registers of a thread
MOST_WEIGHTS = 480  # a thread each
MOST_DELAYS = 4  # of outputs that the readout sees
TILE = 64  # of the Gram matrices of sensitivities
FEWEST = 1e-300  # a ridge that adds nothing: the equations are damped already
NOTHING = np.int64(0)  # the null pointer


def descends(law: NetworkLaw) -> bool:
    """Whether a law draws networks that are trained on the free-run error, small enough for the card.

    Examples
    --------
    >>> from echobound.network import paper
    >>> from echobound.network.laws import small
    >>> descends(small()), descends(paper(10))
    (True, False)
    """
    if not isinstance(law, ReservoirLaw) or type(law.training) is not FreeRun or law.training.trained != "network":
        return False
    quiet = all(value == 0 for value in extremes(law.training_noise))
    return quiet and most(law.order) <= MOST_UNITS and most(law.output_delays) <= MOST_DELAYS


def most(value: Any) -> int:
    """The largest whole number that is drawn."""
    return math.ceil(max(float(one) for one in extremes(value)))


def weights_of(law: ReservoirLaw, order: int, columns: int, inputs: int, outputs: int) -> int:
    """How many weights of a network are trained."""
    return order * (min(law.nonzeros, order) + inputs + outputs + 1) + outputs * columns


def fits(problem: Problem) -> bool:
    """Whether networks of a law that `descends` are small enough with the channels of the problem."""
    law, inputs, outputs = law_of(problem), problem.inputs, problem.outputs
    order, columns = most(law.order), law.most_columns(inputs, outputs)
    return weights_of(law, order, columns, inputs, outputs) < MOST_WEIGHTS and columns - 1 <= 64 and outputs <= 4


@dataclass(frozen=True, eq=False)
class Part:
    """What steps are computed from: pieces of the training data, on the card."""

    table: Any  # (what, piece): start, length, washout, first row of J, first step of the path
    count: int
    rows: int  # of J
    steps: int  # of the path
    importance: Any  # (kind, output)
    samples: int  # that count
    everything: bool  # whether it is all of the training data

    @classmethod
    def of(cls, problem: Problem, number: int, fold: FoldOnCard, padding: int, at_most: float) -> Part:
        """The pieces of a fold with at most so many samples."""
        cp, outputs = cupy(), problem.outputs
        segments = []
        for segment, start in fold.training:
            at = np.arange(start, start + segment.stop - segment.start)[:, None]
            segments.append(TrainingSegment(at, at, at, segment.washout))  # type: ignore[arg-type]
        chosen = segments if math.isinf(at_most) else pieces(segments, int(at_most))
        starts = [int(one.u[0, 0]) for one in chosen]
        counted = [len(one.u) - one.washout for one in chosen]
        lengths, washouts = [len(one.u) for one in chosen], [one.washout for one in chosen]
        paths = [length + padding for length in lengths]
        firsts = [np.cumsum([0, *sizes[:-1]]) for sizes in ([outputs * one for one in counted], paths)]
        importance = []
        for kind in fold.kinds:
            y = np.concatenate([one for _, one in problem.scaled(number, kind).training])
            own = [y[start : start + length] for start, length in zip(starts, lengths, strict=True)]
            importance.append(
                importance_of([TrainingSegment(one, one, one, w) for one, w in zip(own, washouts, strict=True)])
            )
        table = np.array([starts, lengths, washouts, *firsts], dtype=np.int64)
        return cls(
            table=cp.asarray(table),
            count=len(chosen),
            rows=outputs * sum(counted),
            steps=sum(paths),
            importance=cp.asarray(np.array(importance)),
            samples=outputs * sum(counted),
            everything=chosen is segments,
        )


class Descents(Batch):
    """Small networks, drawn, trained on the free-run error and run on every fold."""

    def __init__(
        self,
        problem: Problem,
        folds: Sequence[FoldOnCard],
        keys: Words,
        hypers: Sequence[Hyperparameters],
        lane: Lane,
        given: Sequence[Vector] | None = None,
    ) -> None:
        super().__init__(problem, folds, keys, hypers, lane)
        self.given = given  # weights of networks that are trained already, and only run
        cp, law, nu, ny = cupy(), law_of(problem), problem.inputs, problem.outputs
        training: Any = law.training
        self.training: FreeRun = training
        counts = [weights_of(law, h.order, h.columns(nu, ny), nu, ny) for h in hypers]
        self.many, self.most = cp.asarray(np.array(counts, dtype=np.int32)), max(counts)
        levels = [unit(words(key, TRAINING, 2)) for key in keys]
        low, high = training.penalty
        self.penalties = np.array(
            [low * (high / low) ** float(v[0]) if low > 0 else high * float(v[0]) for v in levels]
        )
        starts = [bool(v[1] < training.increments) and h.output_delays > 0 for v, h in zip(levels, hypers, strict=True)]
        self.increments = np.array(starts)
        # The targets that are increments lie behind the others, a set for each kind of scaling.
        behind = np.where(self.increments, len(folds[0].kinds), 0).astype(np.int32)
        self.trained_of = cp.asarray(cp.asnumpy(self.u_of) + behind)
        units, columns = most(law.order), law.most_columns(nu, ny)
        threads = 32 * math.ceil((weights_of(law, units, columns, nu, ny) + 1) / 32)
        self.threads = threads
        sizes = {"NU": nu, "NY": ny, "SLOTS": law.nonzeros, "DIAGONALS": int(law.pattern == "diagonals")}
        sizes |= {"UNITS": 1, "THREADS": 128, "RESIDENT": 6, "MOST": units, "RING": max(1, most(law.output_delays))}
        sizes |= {"TAIL": max(1, columns - 1), "WEIGHTS": threads, "FITTING": max(1, 640 // threads)}
        self.record = 2 * units + 2 * ny
        self.descent = compiled("step", "run", "descent", **sizes)
        self.one = compiled("solve", "fallback", NY=1)
        self._weights: list[Any] = []

    def start(self) -> None:
        """Put all work of the batch on the current stream."""
        cp = cupy()
        self._draw()
        alternatives = len(self.training.steps)
        for number, fold in enumerate(self.folds):
            if self.given is None:
                readouts, failed = self._train(with_increments(fold))
                readouts += self._ones(readouts.shape)
                thetas = self._descend(number, fold, readouts)
            else:
                outputs = self.problem.outputs
                readouts = cp.zeros((self.count, 1, outputs, self.width - outputs))
                failed, own = cp.zeros((self.count, 1), dtype=np.int32), np.zeros((self.count, 1, self.most))
                for row, theta in zip(own, self.given, strict=True):
                    size = min(theta.size, self.most)  # behind a network's own weights there may be zeros
                    row[0, :size] = theta[:size]
                thetas = cp.asarray(own)
            outputs, rms, held, trained = self._run(number, fold, thetas, readouts)
            self._results.append((rms, held, cp.repeat(failed, alternatives, axis=1), outputs, trained))
            self._weights.append(thetas)

    def collect(self, whole: bool = False) -> BatchResult:
        """Wait, and copy what is wanted to the host."""
        cp = cupy()
        return super().collect(whole)._replace(weights=[cp.asnumpy(one) for one in self._weights] if whole else [])

    def _fed_back(self, fold: FoldOnCard) -> tuple[Any, Any]:
        return fold.y, self.u_of  # the outputs themselves, whatever the targets are

    def _ones(self, shape: tuple[int, ...]) -> Any:
        """What is added to a readout of increments: y(k-1)."""
        ones, outputs = np.zeros(shape), np.arange(self.problem.outputs)
        for b in np.flatnonzero(self.increments).tolist():
            hyper = self.hypers[b]
            first = hyper.order + (hyper.input_delays + hyper.present_input) * self.problem.inputs
            ones[b, :, outputs, first + outputs] = 1.0
        return cupy().asarray(ones)

    def _descend(self, number: int, fold: FoldOnCard, readouts: Any) -> Any:
        """Weights ``(network, alternative, weight)`` after each number of steps."""
        cp, training, count = cupy(), self.training, self.count
        padding = law_of(self.problem).padding
        few, more, all_of_it = (
            Part.of(self.problem, number, fold, padding, most)
            for most in (training.samples, 4 * training.samples, math.inf)
        )
        theta, anchor = cp.zeros((count, self.most)), cp.empty((count, self.most))
        self._spread("pack", theta, *self._arrays(self.net, readouts))
        anchor[...] = theta
        facts = cp.asarray(np.repeat(np.array([[np.inf], [1e-2], [0.0]]), count, axis=1))
        counters = cp.zeros((5, count), dtype=np.int32)
        state = (theta, anchor, facts, counters)
        taken, part, found = 0, few, {}
        self._begin(fold, part, *state)
        whole = cp.empty((count, all_of_it.count))
        if not few.everything:
            self._whole_costs(fold, all_of_it, theta, whole)
        for target in sorted(set(training.steps)):
            first = min(target, training.until)
            self._advance(fold, part, first, first - taken, *state)
            taken = max(taken, first)
            if target > training.until:
                # Those that had ended go on with other data, having taken one step at least.
                more_steps = target - taken
                if not part.everything and part is few:
                    part, more_steps = more, target - min(taken, 1)
                    self._begin(fold, part, *state)
                self._advance(fold, part, target, more_steps, *state)
                taken = target
            own = theta.copy()
            if not few.everything:
                costs = cp.empty((count, all_of_it.count))
                self._whole_costs(fold, all_of_it, own, costs)
                sizes = (self.many, anchor, np.int32(self.most), whole, costs, np.int32(all_of_it.count), own)
                launch(self.descent, "keep_better", (count,), 128, *sizes)
            found[target] = own
        thetas = cp.empty((count, len(training.steps), self.most))
        for at, steps in enumerate(training.steps):
            thetas[:, at] = found[steps]
        return thetas

    def _arrays(self, net: tuple[Any, ...], readouts: Any) -> tuple[Any, ...]:
        _, values, _, W_u, W_y, bias, _, stride = net
        return values, W_u, W_y, bias, stride, readouts, np.int32(readouts.shape[-1])

    def _spread(self, name: str, theta: Any, *arrays: Any) -> None:
        launch(
            self.descent,
            name,
            (self.count,),
            128,
            self.orders,
            self.readout_inputs,
            *arrays,
            theta,
            np.int32(self.most),
        )

    def _begin(self, fold: FoldOnCard, part: Part, theta: Any, anchor: Any, facts: Any, counters: Any) -> None:
        """The cost of where the descents are, over other data, and the path that their derivatives follow."""
        cp = cupy()
        costs = cp.empty((self.count, part.count))
        everyone = cp.asarray(np.ones(self.count, dtype=np.int32))
        self._follow(fold, part, theta, NOTHING, NOTHING, everyone, costs, keep=True)
        pulls = cp.asarray(self.penalties * part.samples)
        arguments = (self.many, theta, np.int32(self.most), anchor, costs, np.int32(part.count), pulls, facts, counters)
        launch(self.descent, "begin", (self.count,), 32, *arguments)

    def _whole_costs(self, fold: FoldOnCard, part: Part, theta: Any, costs: Any) -> None:
        everyone = cupy().asarray(np.ones(self.count, dtype=np.int32))
        self._follow(fold, part, theta, NOTHING, NOTHING, everyone, costs, keep=False)

    def _follow(
        self, fold: FoldOnCard, part: Part, theta: Any, direction: Any, failed: Any, trying: Any, costs: Any, keep: bool
    ) -> None:
        law, size = law_of(self.problem), part.steps * self.record
        path = self.lane.array("path", (self.count * size,)) if keep else NOTHING
        _, _, columns, _, _, _, leak, stride = self.net
        networks = (self.orders, self.readout_inputs, columns, leak, stride, theta, np.int32(self.most))
        step = (direction, np.int32(self.most), failed, trying)
        signals = (fold.u, fold.y, self.u_of, np.int64(fold.u.shape[1]), part.table, np.int32(law.padding))
        rest = (part.importance, fold.limits, np.bool_(law.clip), np.bool_(keep), path, np.int64(size), costs)
        launch(self.descent, "follow", (part.count, self.count), 32, *networks, *step, *signals, *rest)

    def _advance(
        self, fold: FoldOnCard, part: Part, target: int, steps: int, theta: Any, anchor: Any, facts: Any, counters: Any
    ) -> None:
        """Steps until each network has taken `target` of them, or none helps; `steps` are enough for all."""
        cp, count, width = cupy(), self.count, self.most + 1
        if steps < 1:
            return
        padding, samples = np.int32(law_of(self.problem).padding), np.int64(fold.u.shape[1])
        pitch = width + width % 2
        size, most = part.rows * pitch, np.int32(self.most)
        rows = self.lane.array("phi", (count * size + 2 * 128,))
        grams, damped, factors = (
            self.lane.array(name, (count, width, width)) for name in ("matrices", "damped", "factors")
        )
        costs, direction = cp.empty((count, part.count)), cp.zeros((count, self.most))
        failed, overflowed = (cp.zeros((count,), dtype=np.int32) for _ in range(2))
        ridge, blocks = cp.asarray(np.array([FEWEST])), math.ceil(count / 128)
        _, _, columns, _, _, _, leak, stride = self.net
        path = self.lane.array("path", (count * part.steps * self.record,))
        trying, sizes = counters[0], counters[4]
        sides = math.ceil(width / TILE)
        (depth, stages), grid, threads = GRAM[TILE], (sides * (sides + 1) // 2, count), 32 * (TILE // 32) ** 2
        shared = 8 * 2 * stages * depth * (TILE + 4)
        gram = compiled("gram", TILE=TILE, DEPTH=depth, STAGES=stages)
        for _ in range(steps):
            launch(self.descent, "next_step", (blocks,), 128, self.many, np.int32(count), np.int32(target), counters)
            networks = (self.orders, self.readout_inputs, columns, leak, stride, theta, most, trying)
            signals = (fold.u, fold.y, self.u_of, samples, part.table, padding, part.importance)
            followed = (path, np.int64(part.steps * self.record), rows, np.int32(pitch), np.int64(size))
            each = (part.count, count)
            launch(self.descent, "sensitivities", each, self.threads, *networks, *signals, *followed)
            products = (sizes, rows, np.int32(pitch), np.int64(size), np.int32(part.rows), grams, np.int32(width))
            launch(gram, "gram", grid, threads, *products, np.bool_(False), shared=shared)
            for _ in range(REJECTIONS):
                equations = (
                    self.many,
                    grams,
                    np.int32(width),
                    theta,
                    most,
                    anchor,
                    facts,
                    counters,
                    damped,
                    overflowed,
                )
                launch(self.descent, "damp", (count,), SOLVE_THREADS, *equations)
                solved = (sizes, damped, factors, np.int32(width), ridge, np.int32(1), direction, most, failed)
                launch(self.one, "solve", (count,), SOLVE_THREADS, *solved)
                launch(self.descent, "join", (blocks,), 128, np.int32(count), overflowed, failed)
                self._follow(fold, part, theta, direction, failed, trying, costs, keep=True)
                taken = (self.many, theta, most, direction, most, anchor, costs, np.int32(part.count))
                rest = (np.int32(REJECTIONS), np.float64(FLAT), facts, counters)
                launch(self.descent, "decide", (count,), 32, *taken, *rest)

    def _run(self, number: int, fold: FoldOnCard, thetas: Any, readouts: Any) -> tuple[Any, Any, Any, Any]:
        """Outputs, errors and what is held of all alternatives, each run as a network of its own, and the readouts."""
        cp, alternatives, runs = cupy(), thetas.shape[1], copy(self)
        runs.count, runs.ridges = self.count * alternatives, (0.0,)
        repeated = [cp.repeat(one, alternatives, axis=0) for one in self.net[:-1]]
        runs.net = (*repeated, self.net[-1])
        runs.orders, runs.u_of = repeated[0], cp.repeat(self.u_of, alternatives, axis=0)
        runs.readout_inputs = cp.repeat(self.readout_inputs, alternatives, axis=1)
        trained = cp.zeros((runs.count, *readouts.shape[1:]))
        networks = (self.orders, self.readout_inputs, np.int32(alternatives), thetas, np.int32(self.most))
        launch(self.descent, "unpack", (runs.count,), 128, *networks, *self._arrays(runs.net, trained))
        found = runs._simulate(number, fold, trained)
        each = (one.reshape(self.count, alternatives, *one.shape[2:]) for one in found)
        outputs, rms, held = each
        return outputs, rms, held, trained.reshape(self.count, alternatives, *trained.shape[2:])


def with_increments(fold: FoldOnCard) -> FoldOnCard:
    """A fold whose targets are there twice, for each kind of scaling: outputs, and behind them their increments."""
    cp, parts = cupy(), []
    for segment, start in fold.training:
        y = fold.y[:, start : start + segment.stop - segment.start]
        parts.append(y - cp.concatenate([y[:, :1], y[:, :-1]], axis=1))
    y = cp.concatenate([fold.y, cp.concatenate(parts, axis=1)], axis=0)
    return replace(fold, u=cp.concatenate([fold.u, fold.u], axis=0), y=y)


class DescentWork(Work):
    """The draws of one call that are trained on the free-run error, or were already: `given` are their weights."""

    def __init__(self, problem: Problem, indices: NDArray[np.int64], given: Sequence[Vector] | None = None) -> None:
        super().__init__(problem, indices)
        self.given = given

    def results(self, whole: bool) -> Iterator[tuple[NDArray[np.intp], BatchResult, Matrix]]:
        """For each batch: which draws, their results, the numbers of steps; without those that have no readout."""
        training: Any = law_of(self.problem).training
        for at, result in self._run(np.arange(len(self.hypers)), whole, minimum_norm=False):
            failed = np.any([fold.any(axis=1) for fold in result.failed], axis=0)
            self.left += at[failed].tolist()
            keep = ~failed
            kept: Any = ([fold[keep] for fold in part] for part in result)
            steps = np.array(training.steps, dtype=float)
            yield at[keep], BatchResult(*kept), np.repeat(steps[None], int(keep.sum()), axis=0)

    def _batch(self, at: NDArray[np.intp], lane: Lane, minimum_norm: bool) -> Batch:
        given = None if self.given is None else [self.given[i] for i in at]
        return Descents(self.problem, self.folds, self.keys[at], [self.hypers[i] for i in at], lane, given)

    def _bytes(self, hyper: Hyperparameters, ridges: int) -> int:
        """Memory of the start, of the sensitivities and the path, and of the runs of all alternatives."""
        problem, law = self.problem, law_of(self.problem)
        training: Any = law.training
        columns = hyper.columns(problem.inputs, problem.outputs)
        width = weights_of(law, hyper.order, columns, problem.inputs, problem.outputs) + 2
        pieces_of = [one for fold in problem.folds for one in fold.training]
        longest = max(sum(s.stop - s.start for s in fold.training) for fold in problem.folds)
        most_samples = min(longest, 4 * training.samples + len(pieces_of) * max(s.washout for s in pieces_of) * 50)
        steps = min(longest, most_samples) + law.padding * (most_samples // 200 + len(pieces_of))
        rows = max(min(longest, 4 * training.samples) * problem.outputs * width, ROWS * columns)
        path = steps * 2 * (MOST_UNITS + problem.outputs)
        return int(bytes_per_network(problem, hyper, len(training.steps)) + 8 * (rows + path + 3 * width * width))


def work_of(problem: Problem, indices: NDArray[np.int64], given: Sequence[Vector] | None = None) -> Work:
    """The work of draws of one kind; `given` are their weights where they were trained already."""
    return DescentWork(problem, indices, given) if descends(law_of(problem)) else Work(problem, indices)
