"""A batch: networks that go through all stages together, without synchronising with the host in between.

Everything here only starts work on the current stream; `Batch.collect` waits for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Mask, Matrix, Words
from echobound.errors import InputError
from echobound.kernels.gpu.device import Lane, compiled, cupy, launch, shared_bytes
from echobound.kernels.problem import Problem, Segment
from echobound.network.law import ReservoirLaw
from echobound.network.reservoir import Hyperparameters, leak_rates
from echobound.network.training import FreeRun, LeastSquares

ROWS = 8192  # of the regression in memory at once; fixed, since the order of summation must not vary with the card
NORM_STEPS = 2048  # MOST_STEPS of norm.cu
# Threads of a multiprocessor, by units: what is left to each in registers is the best found.
RESIDENT = {1: 768, 2: 512}
SOLVE_THREADS = 256  # of solve.cu and fallback.cu
TILES = (32, 64, 128)  # sides of the tiles of a Gram matrix
GRAM = {32: (16, 4), 64: (16, 4), 128: (16, 4)}  # for each of them DEPTH and STAGES of gram.cu


def _each(hypers: Sequence[Hyperparameters], of: Callable[[Hyperparameters], Any], kind: Any) -> NDArray[Any]:
    """Values of each network, ``(value, network)``; computed once if the law leaves nothing to chance."""
    if len({id(hyper) for hyper in hypers}) == 1:
        return np.repeat(np.array([of(hypers[0])], dtype=kind).T, len(hypers), axis=1)
    return np.ascontiguousarray(np.array([of(hyper) for hyper in hypers], dtype=kind).T)


class Layout(NamedTuple):
    """How one network is spread over a thread block; it depends on the network's own order alone."""

    threads: int
    units: int  # for each thread


def layout_of(order: int) -> Layout:
    """A thread for each unit; beyond 128 for every two, beyond 1024 for as many as it takes to need 512 threads."""
    units = math.ceil(order / 512) if order > 1024 else 2 if order > 128 else 1
    return Layout(32 * math.ceil(order / units / 32), units)


def law_of(problem: Problem) -> ReservoirLaw:
    """The law of a problem whose draws are all reservoirs."""
    if not isinstance(problem.law, ReservoirLaw):
        raise InputError(f"the card draws reservoirs, not networks of the law {problem.law.name}: use --device cpu")
    return problem.law


def ridges_of(problem: Problem) -> tuple[float, ...]:
    """The ridges of the readouts that are solved by least squares, be they the last ones or those to start from."""
    training = law_of(problem).training
    if type(training) is FreeRun:
        return (training.ridge,)
    if type(training) is not LeastSquares:
        raise InputError(f"the GPU kernel does not train by {training.kind}: use --device cpu")
    return training.ridges


def require_order(order: int, horizon: int | None, outputs: int, diagonals: bool) -> None:
    """Refuse networks whose state does not fit into the fast memory of a thread block."""
    doubled = diagonals and layout_of(order).units <= 4
    state = (2 if horizon is None else 4) * (2 if doubled else 1) * order + 32 * outputs
    norm = (3 if diagonals else 4) * order + 2 * NORM_STEPS + 32
    if 8 * max(state, norm) > shared_bytes():
        most = int(order * shared_bytes() / (8 * max(state, norm)))
        raise InputError(
            f"a network of {order} states is more than a thread block of this GPU can hold (about {most}): take a"
            " smaller order, or --device cpu"
        )


@dataclass(frozen=True, eq=False)
class FoldOnCard:
    """A fold's signals on the card, for each kind of scaling that a law can draw; segments one after the other."""

    kinds: tuple[str, ...]
    training: tuple[tuple[Segment, int], ...]  # with the sample at which it starts
    scored: tuple[tuple[Segment, int], ...]
    u: Any  # (kind, sample, input)
    y: Any
    spreads: Any  # (kind, output)
    u_scored: Any
    y_scored: Any
    spans: Any  # (kind, output)
    offsets: Any
    limits: Any  # (kind, end, output), scaled
    measured: Any  # (sample that is scored, output), in the data's own units
    ends: Any  # (end, output): beyond them an output counts as being at a limit, in the data's own units

    @classmethod
    def load(cls, problem: Problem, number: int, kinds: tuple[str, ...]) -> FoldOnCard:
        """Copy fold `number` to the card."""
        cp, fold = cupy(), problem.folds[number]
        data = [problem.scaled(number, kind) for kind in kinds]
        return cls(
            kinds=kinds,
            training=_starts(fold.training),
            scored=_starts(fold.scored),
            u=cp.asarray(np.stack([np.concatenate([u for u, _ in d.training]) for d in data])),
            y=cp.asarray(np.stack([np.concatenate([y for _, y in d.training]) for d in data])),
            spreads=cp.asarray(np.stack([d.output_spread for d in data])),
            u_scored=cp.asarray(np.stack([np.concatenate([u for u, _ in d.scored]) for d in data])),
            y_scored=cp.asarray(np.stack([np.concatenate([y for _, y in d.scored]) for d in data])),
            spans=cp.asarray(np.stack([d.scaling.output_span for d in data])),
            offsets=cp.asarray(np.stack([d.scaling.output_offset for d in data])),
            limits=cp.asarray(np.stack([(d.limits.low, d.limits.high) for d in data])),
            measured=cp.asarray(np.ascontiguousarray(problem.measured[number])),
            ends=cp.asarray(np.stack(problem.limits[number].ends)),
        )


def _starts(segments: tuple[Segment, ...]) -> tuple[tuple[Segment, int], ...]:
    lengths = [segment.stop - segment.start for segment in segments]
    return tuple(zip(segments, np.cumsum([0, *lengths[:-1]]).tolist(), strict=True))


def bytes_per_network(problem: Problem, hyper: Hyperparameters, ridges: int) -> int:
    """Memory that one network needs on the card, all folds reusing the same."""
    width = hyper.columns(problem.inputs, problem.outputs) + problem.outputs + 1
    rows = max(min(ROWS, segment.counted) for fold in problem.folds for segment in fold.training)
    scored = sum(sum(segment.counted for segment in fold.scored) for fold in problem.folds)
    fed = max(sum(s.stop - s.start for s in fold.training) for fold in problem.folds) if hyper.training_noise else 0
    arrays = hyper.order * (2 * law_of(problem).nonzeros + problem.inputs + problem.outputs + 4)
    matrices = width**2 * (1 + ridges)
    readouts = len(problem.folds) * ridges * width * problem.outputs
    return 8 * (rows * width + matrices + arrays + readouts + (fed + ridges * scored) * problem.outputs)


class BatchResult(NamedTuple):
    """The results of a batch for each fold; the last three on request only."""

    rms: list[Matrix]  # (network, ridge, output), in the data's own units
    held: list[Matrix]  # (network, ridge, output), share of the samples at which an output is at a limit
    failed: list[Mask]  # (network, ridge)
    outputs: list[Matrix]  # (network, ridge, time, output), in the data's own units
    readouts: list[Matrix]  # (network, ridge, output, column)
    weights: Sequence[Matrix] = ()  # (network, alternative, weight), where training changes them


class Batch:
    """Networks of one layout, drawn, trained and run on every fold; `minimum_norm` instead of the law's ridges."""

    def __init__(
        self,
        problem: Problem,
        folds: Sequence[FoldOnCard],
        keys: Words,
        hypers: Sequence[Hyperparameters],
        lane: Lane,
        minimum_norm: bool = False,
    ) -> None:
        self.problem, self.folds, self.hypers = problem, folds, hypers
        self.lane, self.minimum_norm = lane, minimum_norm
        self.count, self.layout = len(hypers), layout_of(hypers[0].order)
        self.ridges = (0.0,) if minimum_norm else ridges_of(problem)
        cp, nu, ny = cupy(), problem.inputs, problem.outputs

        def whole_numbers(h: Hyperparameters) -> tuple[int, ...]:
            readout_inputs = (h.input_delays, h.present_input, h.output_delays, h.constant)
            return h.order, h.columns(nu, ny) + ny, folds[0].kinds.index(h.scaling), *readout_inputs

        whole = _each(hypers, whole_numbers, np.int32)
        self.width = int(whole[1].max())  # of a row of phi, without the even padding; of a Gram matrix
        self.pitch = self.width + self.width % 2
        self.stride = int(whole[0].max())
        self.most_tail = int((whole[1] - whole[0]).max())
        self._sizes = whole[1]
        self.keys, on_card = cp.asarray(keys), cp.asarray(whole)
        self.orders, self.sizes, self.u_of, self.readout_inputs = on_card[0], on_card[1], on_card[2], on_card[3:]
        self.trained_of = self.u_of  # which signals of a fold each network is trained on
        real = _each(
            hypers,
            lambda h: (h.norm, h.input_scale, h.feedback_scale, h.bias_scale, h.leak, np.sqrt(3.0) * h.training_noise),
            np.float64,
        )
        self.noisy = bool(real[5].any())
        self.scales = cp.asarray(real)
        room = 512 if self.layout.threads > 256 else 256 if self.layout.threads > 128 else 128
        law, units = law_of(problem), self.layout.units
        drawn = {"NU": nu, "NY": ny, "SLOTS": law.nonzeros, "DIAGONALS": int(law.pattern == "diagonals")}
        resident = max(1, RESIDENT.get(units if nu + ny <= 3 else 2, 512) // room)
        spread = {"UNITS": units, "THREADS": room, "RESIDENT": resident}
        self.module = compiled("draw", "norm", "step", "run", **drawn, **spread)
        self.algebra = compiled("solve", "fallback", NY=ny)
        self._results: list[tuple[Any, Any, Any, Any, Any]] = []

    def start(self) -> None:
        """Put all work of the batch on the current stream."""
        self._draw()
        for number, fold in enumerate(self.folds):
            readouts, failed = self._train(fold)
            outputs, rms, held = self._simulate(number, fold, readouts)
            self._results.append((rms, held, failed, outputs, readouts))

    def collect(self, whole: bool = False) -> BatchResult:
        """Wait, and copy what is wanted to the host."""
        cp = cupy()
        rms, held, failed, outputs, readouts = zip(*self._results, strict=True)
        return BatchResult(
            rms=[cp.asnumpy(one) for one in rms],
            held=[cp.asnumpy(one) / len(fold.measured) for one, fold in zip(held, self.folds, strict=True)],
            failed=[cp.asnumpy(one).astype(bool) for one in failed],
            outputs=[cp.asnumpy(one) for one in outputs] if whole else [],
            readouts=[cp.asnumpy(one) for one in readouts] if whole else [],
        )

    def _draw(self) -> None:
        cp, law, n = cupy(), law_of(self.problem), self.stride
        count, slots, diagonals = self.count, law.nonzeros, law.pattern == "diagonals"
        values = cp.empty((count, slots, n))
        columns = cp.empty((count, slots) if diagonals else (count, slots, n), dtype=np.int32)
        W_u, W_y = cp.empty((count, self.problem.inputs, n)), cp.empty((count, self.problem.outputs, n))
        bias = cp.empty((count, n))
        own = any(hyper.leak_spread for hyper in self.hypers)
        leak = cp.asarray(self._leak()) if own else cp.empty((count, n))
        self.factors = cp.empty(count)
        threads, arrays = self.layout.threads, (values, columns, W_u, W_y, bias, leak)
        scales = (self.orders, self.scales, np.int32(n))
        launch(self.module, "draw", (count,), threads, self.keys, *scales, np.bool_(own), *arrays)
        self.net = (self.orders, *arrays, np.int32(n))
        self._normalise(values, columns)

    def _normalise(self, values: Any, columns: Any) -> None:  # a step of its own: tests look at weights without it
        n = self.stride
        shared = 8 * ((3 if columns.ndim == 2 else 4) * n + 2 * NORM_STEPS + 32)
        arguments = (self.orders, self.scales, np.int32(n), values, columns, self.factors)
        launch(self.module, "normalise", (self.count,), self.layout.threads, *arguments, shared=shared)

    def _leak(self) -> Matrix:
        """Leak rates from the host: a power of ten may differ in its last bit between libraries."""
        leak = np.ones((self.count, self.stride))
        for row, key, hyper in zip(leak, cupy().asnumpy(self.keys), self.hypers, strict=True):
            row[: hyper.order] = leak_rates(key, hyper)
        return leak

    def _train(self, fold: FoldOnCard) -> tuple[Any, Any]:
        """Readouts ``(network, ridge, output, column)``, and where Cholesky failed."""
        cp, ny, count = cupy(), self.problem.outputs, self.count
        fed, fed_of = self._fed_back(fold)
        samples = np.int64(fold.u.shape[1])
        rows = max(min(ROWS, segment.counted) for segment, _ in fold.training)
        size = rows * self.pitch
        phi = self.lane.array("phi", (count * size + 2 * 128,))  # tiles may look beyond the last row
        rows_of_phi = (phi, np.int32(self.pitch), np.int64(size))
        state = cp.empty((count, self.stride))
        matrices = self.lane.array("matrices", (count, self.width, self.width))
        if self.minimum_norm:
            matrices.data.memset_async(0, matrices.nbytes)
        first_rows = True
        for segment, start in fold.training:
            length, done = segment.stop - segment.start, 0
            while done < length:
                row = max(done - segment.washout, 0)
                reached = min(segment.washout + row + rows, length)
                times = map(np.int32, (done, reached, segment.washout, law_of(self.problem).padding))
                driven = (*self.net, fold.u, fed, self.trained_of, fed_of, samples, np.int64(start), *times, state)
                shared, threads = 8 * 2 * self._state_size, self.layout.threads
                launch(self.module, "states", (count,), threads, *driven, *rows_of_phi, np.int32(row), shared=shared)
                filled = reached - segment.washout - row
                blocks = max(1, min(64, math.ceil(filled * self.most_tail / 1024)))
                signals = (fold.u, fed, fold.y, self.trained_of, fed_of, samples, np.int64(start))
                tails = (self.orders, self.readout_inputs, *signals, np.int32(reached - filled), np.int32(reached))
                launch(self.module, "fill_tails", (blocks, count), 256, *tails, *rows_of_phi)
                if self.minimum_norm:
                    self._fold_in(phi, size, filled, matrices)
                else:
                    self._gram(phi, size, filled, matrices, add=not first_rows)
                first_rows, done = False, reached
        readouts = cp.zeros((count, len(self.ridges), ny, self.width - ny))
        failed = cp.zeros((count, len(self.ridges)), dtype=np.int32)
        self._solve(matrices, readouts, failed)
        return readouts, failed

    def _fed_back(self, fold: FoldOnCard) -> tuple[Any, Any]:
        """Outputs as they are fed back in training, and which of them belong to which network."""
        if not self.noisy:
            return fold.y, self.u_of
        cp, samples = cupy(), fold.y.shape[1]
        fed = self.lane.array("fed", (self.count, *fold.y.shape[1:]))
        blocks = min(64, math.ceil(samples * self.problem.outputs / 1024))
        arguments = (self.keys, self.scales[5], self.u_of, fold.y, fold.spreads, np.int64(samples), fed)
        launch(self.module, "add_noise", (blocks, self.count), 256, *arguments)
        return fed, cp.asarray(np.arange(self.count, dtype=np.int32))

    @property
    def _state_size(self) -> int:
        doubled = law_of(self.problem).pattern == "diagonals" and self.layout.units <= 4
        return self.stride * (2 if doubled else 1)

    def _gram(self, phi: Any, size: int, rows: int, grams: Any, add: bool) -> None:
        cp = cupy()
        different, which = np.unique(self._sizes, return_inverse=True)
        tiles = np.array([next((tile for tile in TILES if q <= tile), TILES[-1]) for q in different])[which]
        for tile in np.unique(tiles).tolist():
            mine = self._sizes * (tiles == tile)  # networks of another tile have size 0 here, and end at once
            sizes = self.sizes if (tiles == tile).all() else cp.asarray(mine.astype(np.int32))
            sides = math.ceil(int(mine.max()) / tile)
            grid, threads = (sides * (sides + 1) // 2, self.count), 32 * (tile // 32) ** 2
            depth, stages = GRAM[tile]
            shared = 8 * 2 * stages * depth * (tile + 4)
            arguments = (sizes, phi, np.int32(self.pitch), np.int64(size), np.int32(rows), grams, np.int32(self.width))
            module = compiled("gram", TILE=tile, DEPTH=depth, STAGES=stages)
            launch(module, "gram", grid, threads, *arguments, np.bool_(add), shared=shared)

    def _fold_in(self, phi: Any, size: int, rows: int, triangles: Any) -> None:
        arguments = (self.sizes, phi, np.int32(self.pitch), np.int64(size), np.int32(rows), triangles)
        launch(self.algebra, "fold_in", (self.count,), SOLVE_THREADS, *arguments, np.int32(self.width))

    def _solve(self, matrices: Any, readouts: Any, failed: Any) -> None:
        cp, width, columns = cupy(), np.int32(self.width), np.int32(readouts.shape[3])
        if self.minimum_norm:
            some = (self.sizes, matrices, width, readouts, columns)
            launch(self.algebra, "minimum_norm", (self.count,), SOLVE_THREADS, *some)
        else:
            count = len(self.ridges)
            factors = self.lane.array("factors", (self.count * count, *matrices.shape[1:]))
            ridges = cp.asarray(np.array(self.ridges))
            arguments = (self.sizes, matrices, factors, width, ridges, np.int32(count), readouts, columns, failed)
            launch(self.algebra, "solve", (self.count * count,), SOLVE_THREADS, *arguments)

    def _simulate(self, number: int, fold: FoldOnCard, readouts: Any) -> tuple[Any, Any, Any]:
        """Outputs in the data's own units, the root mean square of their errors, and how often they are at a limit."""
        cp, ny, ridges, horizon = cupy(), self.problem.outputs, len(self.ridges), self.problem.horizon
        total, law = len(fold.measured), law_of(self.problem)
        outputs = self.lane.array(f"outputs {number}", (self.count, ridges, total, ny))
        rms, held = cp.empty((self.count, ridges, ny)), cp.empty((self.count, ridges, ny))
        samples, row = np.int64(fold.u_scored.shape[1]), 0
        for segment, start in fold.scored:
            weights = (self.readout_inputs, readouts, np.int32(readouts.shape[3]), np.int32(ridges))
            signals = (fold.u_scored, fold.y_scored, self.u_of, samples, np.int64(start))
            lengths = (segment.stop - segment.start, segment.washout, law.padding)
            target = (fold.limits, np.bool_(law.clip), outputs, np.int64(total), np.int64(row))
            arguments = (*self.net, *weights, *signals, *map(np.int32, lengths), *target)
            grid, threads, parts = (self.count * ridges,), self.layout.threads, 32 * ny
            if horizon is None:
                shared = 8 * (parts + 2 * self._state_size)
                launch(self.module, "free_run", grid, threads, *arguments, shared=shared)
            else:
                ahead = cp.empty((self.count * ridges, horizon, ny))
                shared = 8 * (parts + 4 * self._state_size)
                launch(self.module, "predict", grid, threads, *arguments, np.int32(horizon), ahead, shared=shared)
            row += segment.counted
        compared = (fold.measured, self.u_of, fold.spans, fold.offsets, fold.ends, np.int32(ridges), np.int64(total))
        launch(self.module, "measure", (self.count * ridges,), 256, *compared, outputs, rms, held)
        return outputs, rms, held
