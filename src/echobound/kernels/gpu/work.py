"""Work: the draws of one call that the card computes, cut into batches of one layout, a few in progress at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Matrix
from echobound.draws import draw_keys
from echobound.errors import InputError
from echobound.kernels.base import Status
from echobound.kernels.gpu.batch import (
    Batch,
    BatchResult,
    FoldOnCard,
    bytes_per_network,
    law_of,
    layout_of,
    require_order,
    ridges_of,
)
from echobound.kernels.gpu.device import Lane, cupy, free_bytes, lanes
from echobound.kernels.problem import Problem
from echobound.network.reservoir import Hyperparameters

MOST = 4096  # networks of a batch: larger ones are no faster
KEPT = 8  # sets of data on the card: those of each kind of a mixed law, and of its last fits


class DataOnCard:
    """The data that are on the card: they stay there, since they are the same for all batches of a campaign."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], tuple[list[FoldOnCard], Problem]] = {}

    def folds(self, problem: Problem, kinds: tuple[str, ...]) -> list[FoldOnCard]:
        """The folds of a problem, copied to the card if they are not there yet."""
        # The problem is kept too: while its records exist, no other object can have their identity.
        key = (id(problem.records), id(problem.folds), kinds)
        if key not in self._kept:
            if len(self._kept) == KEPT:
                del self._kept[next(iter(self._kept))]  # the oldest
            folds = [FoldOnCard.load(problem, number, kinds) for number in range(len(problem.folds))]
            cupy().cuda.get_current_stream().synchronize()  # other streams will read them
            self._kept[key] = folds, problem
        return self._kept[key][0]


_data = DataOnCard()


class Work:
    """The draws of one call, cut into batches."""

    def __init__(self, problem: Problem, indices: NDArray[np.int64]) -> None:
        self.problem, self.ridges = problem, ridges_of(problem)
        self.keys = draw_keys(problem.seed, problem.stream, problem.family, indices.tolist())
        self.hypers = law_of(problem).draw_all(self.keys)
        diagonals = law_of(problem).pattern == "diagonals"
        for order in {hyper.order for hyper in self.hypers}:
            require_order(order, problem.horizon, problem.outputs, diagonals)
        self.folds = _data.folds(problem, tuple(sorted({hyper.scaling for hyper in self.hypers})))
        self.left: list[int] = []  # positions of draws that the card cannot do after all: they are for the host

    def table(self, result: BatchResult) -> Matrix:
        """Scores ``(draw, ridge, score)`` of a batch, each the mean over folds."""
        return np.asarray(np.mean([self._scores(fold, result) for fold in range(len(self.folds))], axis=0))

    def status(self, result: BatchResult) -> NDArray[np.int64]:
        """How each ``(draw, ridge)`` of a batch ended, as `Run.status`."""
        finite = np.all([np.isfinite(rms).all(axis=-1) for rms in result.rms], axis=0)
        limits = zip(self.problem.limits, result.held, strict=True)
        held = law_of(self.problem).clip & np.any([one.holds(shares) for one, shares in limits], axis=0)
        return np.where(finite, np.where(held, Status.HELD, Status.OK), Status.DIVERGED).astype(np.int64)

    def _scores(self, fold: int, result: BatchResult) -> Matrix:
        """Scores (draw, ridge, score) on one fold."""
        measured, scores = self.problem.measured[fold], self.problem.scores
        if not result.outputs:
            columns = []
            for score in scores:
                assert score.of_rms is not None
                value = score.of_rms(measured, result.rms[fold])
                columns.append(np.where(np.isnan(value), score.worst, value))
            return np.stack(columns, axis=-1)
        return np.array([[[score(measured, one) for score in scores] for one in draw] for draw in result.outputs[fold]])

    def results(self, whole: bool) -> Iterator[tuple[NDArray[np.intp], BatchResult, Matrix]]:
        """For each batch: which draws, their results, the ridges used; the minimum norm replaces a failed Cholesky."""
        ridges = self.ridges
        everything = np.arange(len(self.hypers))
        if not any(ridges):
            for at, result in self._run(everything, whole, minimum_norm=True):
                # The one minimum-norm solution, for every ridge of a law in which all of them are zero.
                repeated: Any = ([np.repeat(part, len(ridges), axis=1) for part in parts] for parts in result)
                yield at, BatchResult(*repeated), np.zeros((len(at), len(ridges)))
            return
        ended = list(self._run(everything, whole, minimum_norm=False))
        failed = [at[np.any(result.failed, axis=(0, 2))] for at, result in ended]
        instead = list(self._run(np.sort(np.concatenate([*failed, everything[:0]])), whole, minimum_norm=True))
        for at, result in ended:
            for some, other in instead:
                _replace(at, result, some, other)
            yield at, result, np.where(np.any(result.failed, axis=0), 0.0, np.array(ridges))

    def _run(
        self, chosen: NDArray[np.intp], whole: bool, minimum_norm: bool
    ) -> Iterator[tuple[NDArray[np.intp], BatchResult]]:
        """Send batches through the card, one in progress on each lane."""
        pending: deque[tuple[NDArray[np.intp], Batch]] = deque()
        ridges = 1 if minimum_norm else len(self.ridges)
        for at, lane in zip(self._cut(chosen, ridges), cycle(lanes())):
            if len(pending) == len(lanes()):
                yield _collected(*pending.popleft(), whole)
            with lane.stream:
                batch = self._batch(at, lane, minimum_norm)
                batch.start()
            pending.append((at, batch))
        while pending:
            yield _collected(*pending.popleft(), whole)

    def _batch(self, at: NDArray[np.intp], lane: Lane, minimum_norm: bool) -> Batch:
        hypers = [self.hypers[i] for i in at]
        return Batch(self.problem, self.folds, self.keys[at], hypers, lane, minimum_norm)

    def _bytes(self, hyper: Hyperparameters, ridges: int) -> int:
        return bytes_per_network(self.problem, hyper, ridges)

    def _cut(self, chosen: NDArray[np.intp], ridges: int) -> Iterator[NDArray[np.intp]]:
        """Draws of one layout, as many as fit into memory."""
        orders, which = np.unique([self.hypers[i].order for i in chosen], return_inverse=True)
        layouts = [layout_of(int(order)) for order in orders]
        room = free_bytes()
        for layout in sorted(set(layouts)):
            mine = chosen[np.array([one == layout for one in layouts])[which]]
            different = {id(self.hypers[i]): self.hypers[i] for i in mine}
            need = max(self._bytes(hyper, ridges) for hyper in different.values())
            if need > room:
                raise InputError(
                    f"one network needs {need / 2**30:.1f} GiB on the GPU, but {room / 2**30:.1f} are free for it: take"
                    " a smaller order or fewer ridges, free some memory (see nvidia-smi), or use --device cpu"
                )
            size = int(min(room // need, MOST))
            yield from (mine[start : start + size] for start in range(0, len(mine), size))


def _collected(at: NDArray[np.intp], batch: Batch, whole: bool) -> tuple[NDArray[np.intp], BatchResult]:
    with batch.lane.stream:
        return at, batch.collect(whole)


def _replace(at: NDArray[np.intp], result: BatchResult, some: NDArray[np.intp], instead: BatchResult) -> None:
    """Put minimum-norm results where Cholesky failed."""
    _, rows, others = np.intersect1d(at, some, return_indices=True)
    for fold, failed in enumerate(result.failed):
        for row, other in zip(rows, others, strict=True):
            where = failed[row]
            result.rms[fold][row, where] = instead.rms[fold][other]
            result.held[fold][row, where] = instead.held[fold][other]
            if result.outputs:
                width = instead.readouts[fold].shape[-1]
                result.outputs[fold][row, where] = instead.outputs[fold][other]
                result.readouts[fold][row, where, :, :width] = instead.readouts[fold][other]
