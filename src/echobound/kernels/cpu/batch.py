"""Many networks in one compiled call: drawn, trained and run without Python in between, so that threads do not wait.

At 50 states a network takes a millisecond, of which the tools of `tools.py` need a fifth for the way from call to call,
one thread at a time. Here Python is needed once for a batch; for a demanding score, twice. It is for reservoirs whose
readout is trained by least squares; whatever else there is takes much longer, and `TrialKernel` does it draw by draw,
each training one compiled call. Rows are the same bit for bit, since the stages are the same compiled functions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import carray, njit
from numpy.typing import NDArray

from echobound.arrays import Array, Matrix, Rows, Signal, Vector, Words
from echobound.draws import draw_keys
from echobound.kernels.base import Run, Status, best_alternative, row_dtype
from echobound.kernels.cpu import stages
from echobound.kernels.cpu.bidiagonal import spectral_norm
from echobound.kernels.cpu.fortran import routines
from echobound.kernels.cpu.net import contiguous
from echobound.kernels.cpu.philox import EXACT, floyd, symmetric, units
from echobound.kernels.cpu.stages import Clip, ReadoutInputs
from echobound.kernels.cpu.step import OPTIONS, Net, pointer
from echobound.kernels.cpu.tools import CHUNK, workspace
from echobound.kernels.problem import Problem
from echobound.network.law import ReservoirLaw
from echobound.network.mixed_law import MixedLaw
from echobound.network.reservoir import BIAS, COLUMNS, FEEDBACK, INPUT, NOISE, VALUES, Hyperparameters, leak_rates
from echobound.network.training import LeastSquares
from echobound.scores import rmse_per_output

MOST = 64  # networks in one call: the more, the less Python; a signal waits for as many
ROOM = 1 << 19  # simulated values of one call, 4 MiB: they are scored together
SQRT3 = float(np.sqrt(3.0))


def suits(problem: Problem) -> bool:
    """Whether draws of a problem can be evaluated here."""
    law: Any = problem.law
    return (
        type(law) is ReservoirLaw
        and type(law.training) is LeastSquares
        and min(law.training.ridges) > 0  # the minimum norm does not come from the Gram matrix
        and problem.horizon is None
    )


def kinds(problem: Problem, indices: Sequence[int]) -> tuple[list[tuple[Problem, list[int]]], list[int]]:
    """Positions of the draws that can be evaluated here, by their laws, each with its problem; and of all others."""
    law: Any = problem.law
    if not isinstance(law, MixedLaw):
        positions = [*range(len(indices))]
        return ([(problem, positions)], []) if suits(problem) else ([], positions)
    if problem.demanding:
        _ = problem.whole  # made once, and handed on to the problem of each law
    own = [problem.of_law(one) for one in law.laws]
    numbers = [law.laws.index(law.component(key)) for key in _keys(problem, indices)]
    chosen = [(one, [at for at, number in enumerate(numbers) if number == i]) for i, one in enumerate(own)]
    others = sorted(at for one, positions in chosen if not suits(one) for at in positions)
    return [(one, positions) for one, positions in chosen if positions and suits(one)], others


def _keys(problem: Problem, indices: Sequence[int]) -> Words:
    return draw_keys(problem.seed, problem.stream, problem.family, indices)


def _law(problem: Problem) -> Any:
    return problem.law


def _ridges(problem: Problem) -> Vector:
    return np.array(_law(problem).training.ridges)


def pieces(problem: Problem, indices: Sequence[int]) -> list[Sequence[int]]:
    """Indices in batches of a bounded size: what is held are the outputs of one of them."""
    values = len(_ridges(problem)) * sum(measured.size for measured in problem.measured)
    if problem.demanding:
        values = max(values, problem.whole.measured[0].size)
    size = max(1, min(MOST, ROOM // values))
    return [indices[start : start + size] for start in range(0, len(indices), size)]


@dataclass(frozen=True, eq=False)
class Many:
    """Networks of one law and scaling, trained and run."""

    problem: Problem
    positions: list[int]  # in the batch, of those that have readouts
    left: list[int]  # of those that must be evaluated draw by draw: their Gram matrix has no Cholesky factor
    orders: list[int]
    outputs: list[Array]  # for each fold (network, time, output), with the best alternative, in the data's own units
    wholes: Array | None  # of a demanding problem, over the training data
    best: NDArray[np.intp]
    means: Array  # (network, score): means over the folds

    def scores(self) -> Array:
        """Every score, ``(network, score)``."""
        if self.wholes is None:
            return self.means
        both = zip(self.means.tolist(), self.wholes, strict=True)
        return np.array([self.problem.demanded(means, whole) for means, whole in both])

    def status(self) -> NDArray[np.int64]:
        """How each ended."""
        finite = np.all([np.isfinite(y).all(axis=(-2, -1)) for y in self.outputs], axis=0)
        status, law = np.where(finite, Status.OK, Status.DIVERGED), _law(self.problem)
        if law.clip:
            pairs = zip(self.problem.limits, self.outputs, strict=True)
            held = [limits.holds(limits.held(y)) for limits, y in pairs]
            status = np.where((status == Status.OK) & np.any(held, axis=0), Status.HELD, status)
        return status

    def runs(self) -> list[Run]:
        """What each is scored by."""
        ridges, clipped = _ridges(self.problem)[self.best].tolist(), bool(_law(self.problem).clip)
        return [
            Run(
                order, ridges[i], [y[i] for y in self.outputs], None if self.wholes is None else self.wholes[i], clipped
            )
            for i, order in enumerate(self.orders)
        ]


def evaluate(problem: Problem, indices: Sequence[int]) -> tuple[Rows, list[int]]:
    """A row for each draw, and the positions of those that must be evaluated draw by draw: their rows are void."""
    start, rows = time.perf_counter(), np.zeros(len(indices), row_dtype(len(problem.scores)))
    left = list[int]()
    for many in trained(problem, indices):
        own, left = many.positions, left + many.left
        if own:
            rows["scores"][own], rows["status"][own] = many.scores(), many.status()
            rows["order"][own], rows["ridge"][own] = many.orders, _ridges(problem)[many.best]
    rows["stream"], rows["family"], rows["index"] = problem.stream, problem.family, indices
    rows["seconds"] = (time.perf_counter() - start) / max(len(indices), 1)
    return rows, left


def trained(problem: Problem, indices: Sequence[int]) -> Iterator[Many]:
    """Draw, train and run networks, those of each scaling together."""
    keys, law = _keys(problem, indices), problem.law
    hypers: list[Hyperparameters] = law.draw_all(keys)  # type: ignore[attr-defined]
    ridges = _ridges(problem)
    for kind in sorted({hyper.scaling for hyper in hypers}):
        own = np.array([position for position, hyper in enumerate(hypers) if hyper.scaling == kind])
        drawn = [hypers[i] for i in own]
        kept = _Readouts.room(problem, drawn, len(ridges))
        outputs, solved = _outputs(problem, kind, keys[own], drawn, np.tile(ridges, (len(own), 1)), kept)
        best, means = _best(problem, outputs)
        each, wholes = np.arange(len(own)), None
        if problem.demanding:
            kept = _Readouts(np.ascontiguousarray(kept.flat[each, best][:, None]), given=len(problem.folds) == 1)
            [wholes], again = _outputs(problem.whole, kind, keys[own], drawn, ridges[best][:, None], kept)
            wholes, solved = wholes[:, 0], solved & again
        yield Many(
            problem, own[solved].tolist(), own[~solved].tolist(), [h.order for h in np.array(drawn, object)[solved]],
            [y[each, best][solved] for y in outputs], None if wholes is None else wholes[solved],
            best[solved], means[solved],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Readouts:
    """Where the compiled code leaves readouts of the last fold, or finds them."""

    flat: Array  # (network, alternative, weight), with room for the widest
    given: bool  # they are not trained again

    @classmethod
    def room(cls, problem: Problem, hypers: Sequence[Hyperparameters], alternatives: int) -> _Readouts:
        widest = max(hyper.columns(problem.inputs, problem.outputs) for hyper in hypers) * problem.outputs
        return cls(np.empty((len(hypers), alternatives, widest)), given=False)


def _outputs(
    problem: Problem, kind: str, keys: Words, hypers: Sequence[Hyperparameters], ridges: Matrix, readouts: _Readouts
) -> tuple[list[Array], NDArray[np.bool_]]:
    """Outputs ``(network, alternative, time, output)`` on each fold, in the data's own units; and who has a readout."""
    law: Any = problem.law
    folds, channels = problem.folds, problem.outputs
    data = [problem.scaled(fold, kind) for fold in range(len(folds))]
    signals, table = list[Signal](), list[tuple[int, ...]]()
    for fold, (own, scaled) in enumerate(zip(folds, data, strict=True)):
        for role, segments, pairs in ((0, own.training, scaled.training), (1, own.scored, scaled.scored)):
            for segment, pair in zip(segments, pairs, strict=True):
                u, y = (contiguous(signal) for signal in pair)
                signals += [u, y]  # they must live as long as their addresses are used
                table.append((fold, role, u.ctypes.data, y.ctypes.data, len(u), segment.washout))
    whole = np.array([(h.order, h.input_delays, h.present_input, h.output_delays, h.constant) for h in hypers])
    real = np.array([(h.norm, h.input_scale, h.feedback_scale, h.bias_scale, h.leak, h.training_noise) for h in hypers])
    # A power of ten may differ in its last bit between libraries: leak rates with a spread are NumPy's everywhere.
    spread = [leak_rates(key, h) if h.leak_spread else np.empty(0) for key, h in zip(keys, hypers, strict=True)]
    ends = np.cumsum([0, *(len(rates) for rates in spread)])
    widest = max(h.columns(problem.inputs, channels) for h in hypers) + channels
    square = (workspace.array(name, widest * widest) for name in ("total", "factor"))
    room = (*square, workspace.array("chunk", CHUNK * widest))
    lengths = [len(measured) for measured in problem.measured]
    out, solved = np.empty((*ridges.shape, sum(lengths), channels)), np.empty(len(keys), np.bool_)
    run_networks(
        keys, whole, real, np.concatenate(spread), ends, np.array(table),
        (problem.inputs, channels, min(law.nonzeros, 2**31), law.pattern == "diagonals", law.padding, law.clip),
        ridges, (readouts.flat, readouts.given), np.stack([d.output_spread for d in data]),
        np.stack([d.limits.low for d in data]), np.stack([d.limits.high for d in data]),
        room, routines(), out, solved,
    )  # fmt: skip
    parts = np.split(out, np.cumsum(lengths)[:-1], axis=2)
    return [d.scaling.outputs_back(part) for d, part in zip(data, parts, strict=True)], solved


def _best(problem: Problem, outputs: list[Array]) -> tuple[NDArray[np.intp], Array]:
    """The best alternative of each network, and its scores, from outputs ``(network, alternative, time, output)``."""
    finite = np.stack([np.isfinite(y).all(axis=(-2, -1)) for y in outputs])
    table = np.empty((*finite.shape, len(problem.scores)))  # (fold, network, alternative, score)
    for fold, (measured, y) in enumerate(zip(problem.measured, outputs, strict=True)):
        rms = rmse_per_output(measured, y)
        for s, score in enumerate(problem.scores):
            if score.of_rms is None:
                table[fold, ..., s] = [[score(measured, one) for one in runs] for runs in y]
                continue
            values = np.asarray(score.of_rms(measured, rms))
            table[fold, ..., s] = np.where(finite[fold] & ~np.isnan(values), values, score.worst)
    best = best_alternative(problem, table.mean(axis=0))
    # Contiguous over folds, so that they are summed as by `Problem.scores_of`.
    own = np.ascontiguousarray(table[:, np.arange(len(best)), best].transpose(1, 2, 0))
    return best, own.mean(axis=-1)


@njit(**EXACT)  # without contraction: `y + a b` is rounded twice, as by NumPy
def noisy(y, levels, noise, deviation):
    """Outputs as they are fed back in training; as `ReservoirDraw.fed_back`."""
    fed = np.empty(y.shape)
    for k in range(y.shape[0]):
        for o in range(y.shape[1]):
            level = levels[k * y.shape[1] + o]
            fed[k, o] = y[k, o] + SQRT3 * noise * deviation[o] * (2.0 * level - 1.0)
    return fed


@njit(**EXACT)
def draw_net(key, real, rates, n, inputs, outputs, nonzeros, diagonals):
    """As `net.drawn_net`."""
    norm, input_scale, feedback_scale, bias_scale, leak = real[0], real[1], real[2], real[3], real[4]
    slots = min(nonzeros, n)
    levels = np.empty((slots, 1 if diagonals else n))
    units(key, COLUMNS, levels.reshape(-1))
    columns = np.empty(levels.shape, np.int64)
    floyd(levels, n, columns)
    values = np.empty((slots, n))
    symmetric(key, VALUES, 1.0, values.reshape(-1))
    values *= norm / spectral_norm(values, columns)
    W_u, W_y, bias = np.empty((n, inputs)), np.empty((n, outputs)), np.empty(n)
    symmetric(key, INPUT, input_scale, W_u.reshape(-1))
    symmetric(key, FEEDBACK, feedback_scale, W_y.reshape(-1))
    symmetric(key, BIAS, bias_scale, bias)
    leaks, leaky = np.empty(n), leak != 1.0
    leaks[:] = leak
    if len(rates):
        leaks[:] = rates
        leaky = (rates != 1.0).any()
    across, back = np.ascontiguousarray(W_u.T), np.ascontiguousarray(W_y.T)
    return Net(values, columns, across, back, bias, leaks, leaky, np.zeros(2 * n), np.zeros(n))


@njit(**OPTIONS)
def run_networks(
    keys, whole, real, spread, ends, table, law, ridges, kept, deviation, low, high, room, blas, out, solved
):
    """Draw, train and run networks one after the other; see `_outputs` for the arguments."""
    inputs, outputs, nonzeros, diagonals, padding, clipped = law
    stored, given = kept
    alternatives = ridges.shape[1]
    for b in range(len(keys)):
        order, delays, present, output_delays, constant = (
            whole[b, 0],
            whole[b, 1],
            whole[b, 2],
            whole[b, 3],
            whole[b, 4],
        )
        readout_inputs = ReadoutInputs(delays, present != 0, output_delays, constant != 0)
        p = order + (delays + present) * inputs + output_delays * outputs + constant
        width = p + outputs
        total, factor = room[0][: width * width].reshape(width, width), room[1][: width * width].reshape(width, width)
        chunk = room[2][: CHUNK * width].reshape(CHUNK, width)
        net = draw_net(keys[b], real[b], spread[ends[b] : ends[b + 1]], order, inputs, outputs, nonzeros, diagonals)
        readouts, levels = np.empty((alternatives, outputs, p)), np.empty(0)
        if given:
            for a in range(alternatives):
                readouts[a] = stored[b, a, : outputs * p].reshape(outputs, p)
        solved[b], fold, at, used = True, -1, 0, 0
        for s in range(len(table)):
            length, washout = table[s, 4], table[s, 5]
            u = carray(pointer(table[s, 2]), (length, inputs), np.float64)
            y = carray(pointer(table[s, 3]), (length, outputs), np.float64)
            if given and table[s, 1] == 0:
                fold = table[s, 0]
                continue
            if table[s, 0] != fold:  # its first segment
                fold, used = table[s, 0], 0
                total[:] = 0.0
                if real[b, 5] != 0.0:  # the words of the noise run on from segment to segment
                    levels = np.empty(table[(table[:, 0] == fold) & (table[:, 1] == 0), 4].sum() * outputs)
                    units(keys[b], NOISE, levels)
            if table[s, 1] == 0:
                fed = y
                if real[b, 5] != 0.0:
                    fed = noisy(y, levels[used : used + y.size], real[b, 5], deviation[fold])
                    used += y.size
                stages.gram(net, readout_inputs, u, fed, y, washout, padding, chunk, total, blas)
                if s + 1 == len(table) or table[s + 1, 1] == 1:  # the last that is trained on
                    for a in range(alternatives):
                        if not stages.ridge_readout(total, factor, ridges[b, a], readouts[a], blas):
                            solved[b] = False
                        stored[b, a, : outputs * p] = readouts[a].reshape(-1)
                if not solved[b]:
                    break
            else:
                run = np.empty((alternatives, length - washout, outputs))
                clip = Clip(clipped, low[fold], high[fold])
                stages.free_run(net, readout_inputs, readouts, u, y, washout, padding, clip, run)
                out[b, :, at : at + length - washout] = run
                at += length - washout
        if not solved[b]:
            out[b] = np.nan
