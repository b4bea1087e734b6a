"""Sensitivity: rows computed twice agree to 1e-9, or the row itself is sensitive to rounding (contract 2).

A row beyond the tolerance counts as sensitive only if its score moves as much when rounding is imitated: by changing
the readout by 1e-12 relative, or the weights and the Gram matrix by 1e-14. The second matters more: with a norm of 0.99
the last bits of the state accumulate over a hundred steps, and a ridge of 1e-8 turns one last bit of the Gram matrix
into 4e-7 of the readout at order 200, on any kernel.

How *far* scores move does not say where to: rounding that can make a network worse does not explain a better score. So
what is found elsewhere must lie within the signed range of what imitated rounding gives. For a row that hardly moves
the range is extended at either end by the distance between its last two, or by half its own width (two
kernels differed by
7.2e-9 where 128 tries reached 6.6e-9); beyond that it is "different". A row that moves visibly has no such margin: its
range has long tails (a FIT of -1573 came to -86 and -28 in 128 tries, and could have been forged to 29), and what lies
outside is "unconfirmed": nobody can tell, which is neither a confirmation nor an accusation.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.random import Generator

from echobound.arrays import Array
from echobound.kernels.base import Kernel, Trial, TrialKernel
from echobound.kernels.blas import one_blas_thread
from echobound.kernels.problem import Problem
from echobound.kernels.reference import plain_tools
from echobound.kernels.training import train_network
from echobound.network.readout import Readouts, least_squares, ridge_solution
from echobound.network.reservoir import ReservoirDraw
from echobound.network.training import PlainTools, Tools, Trained, TrainingData

TOLERANCE = 1e-9
READOUT, WEIGHT = 1e-12, 1e-14  # relative changes that imitate rounding
TRIES = 8  # enough to tell most rows
MOST_TRIES = 128  # for those that come near; see `moves`
VISIBLE = 1e-3  # a row that rounding moves so much, relative, cannot be told from a forged one
Agreement = Literal["same", "sensitive", "unconfirmed", "different"]


def relative(a: Array, b: Array) -> float:
    """Largest relative difference of scores; infinities of the same sign are equal.

    Examples
    --------
    >>> relative(np.array([2.0, np.inf]), np.array([2.0, np.inf])), relative(np.array([np.inf]), np.array([1.0]))
    (0.0, inf)
    """
    same = a == b
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, np.abs(a - b) / np.maximum(np.abs(a), 1e-300))
    return float(np.where(np.isnan(difference), np.inf, difference).max())


def compare_rows(problem: Problem, kernel: Kernel, row: Any, other: Any, tolerance: float = TOLERANCE) -> Agreement:
    """Whether a row that `kernel` computed and one from elsewhere are of the same draw, trained in the same way.

    If two alternatives (ridges) are practically equal, rounding may decide which one is kept: rows that differ in it
    are then sensitive too.
    """
    if any(row[name] != other[name] for name in ("stream", "family", "index", "order")):
        return "different"
    difference = relative(row["scores"], other["scores"])
    if row["status"] == other["status"] and row["ridge"] == other["ridge"] and difference <= tolerance:
        return "same"
    if row["status"] != other["status"] and not difference:
        return "different"  # rounding cannot change the status and leave the scores as they are
    found = spread(problem, kernel, row, stored=other["scores"])
    agreement = found.agreement(other["scores"], difference, tolerance if row["ridge"] != other["ridge"] else 0.0)
    if agreement != "sensitive" or row["ridge"] == other["ridge"]:
        return agreement
    return "sensitive" if _may_have(problem, kernel, row, other["ridge"], max(found.moved, tolerance)) else "different"


def _may_have(problem: Problem, kernel: Kernel, row: Any, setting: float, within: float) -> bool:
    """Whether another alternative is as good, or the minimum norm replaced it because of rounding only.

    Or training itself ends elsewhere when rounding is imitated, and there it is the best: a cascade may have two ends.
    """
    trial = kernel.trial(problem, int(row["index"]))
    # Alternatives are compared by what they score on the folds: a demanding score goes on from the best of them alone.
    table = trial.table(problem)
    _, ours = trial.pick(problem)
    scores = [s for used, s in zip(trial.settings, table, strict=True) if used == setting]
    if not scores:
        return setting in trial.draw.law.training.settings and within > TOLERANCE
    if any(relative(ours, s) <= within for s in scores):
        return True
    return within >= VISIBLE and any(
        RoundedKernel(kernel, number).run(problem, int(row["index"])).setting == setting for number in range(TRIES)
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Spread:
    """Where scores go when rounding is imitated.

    Examples
    --------
    >>> found = Spread(np.array([[-38.0], [-6000.0], [-20.0]]))
    >>> found.holds(np.array([-12.0])), found.nearly(np.array([-12.0])), found.nearly(np.array([99.9]))
    (False, False, False)
    >>> still = Spread(np.array([[80.0], [80.000001]]))
    >>> still.nearly(np.array([80.0000014])), still.nearly(np.array([80.1]))
    (True, False)
    """

    tried: Array  # (try, score); the first are the scores as computed here

    @property
    def moved(self) -> float:
        """How far the scores move, relative, at most."""
        return max((relative(self.tried[0], other) for other in self.tried[1:]), default=0.0)

    def holds(self, scores: Array) -> bool:
        """Whether scores lie within the range of what was tried, each of them."""
        return bool(((self.tried.min(axis=0) <= scores) & (scores <= self.tried.max(axis=0))).all())

    def nearly(self, scores: Array) -> bool:
        """Whether they lie no further outside than the next try may go, where that is too little to gain by.

        That is as far as the last two at that end are apart, or half the width of the range.
        """
        if self.moved >= VISIBLE:
            return self.holds(scores)
        ordered = np.sort(np.unique(self.tried, axis=0), axis=0)
        if len(ordered) < 2:
            return self.holds(scores)
        with np.errstate(invalid="ignore"):
            below, above = ordered[1] - ordered[0], ordered[-1] - ordered[-2]
            half = (ordered[-1] - ordered[0]) / 2
            below, above = np.maximum(below, half), np.maximum(above, half)
            below, above = (np.where(np.isfinite(margin), margin, 0.0) for margin in (below, above))
            return bool(((ordered[0] - below <= scores) & (scores <= ordered[-1] + above)).all())

    def agreement(self, scores: Array, difference: float, tolerance: float = 0.0) -> Agreement:
        """What to say of scores from elsewhere that differ so much, relative, from those computed here."""
        if difference <= tolerance or self.nearly(scores):
            return "sensitive"
        return "unconfirmed" if self.moved >= VISIBLE else "different"


def spread(problem: Problem, kernel: Kernel, row: Any, stored: Array | None = None) -> Spread:
    """Where the scores of a row go when rounding is imitated; see `spread_of`."""
    index = int(row["index"])

    def again(number: int) -> Array:
        return RoundedKernel(kernel, number).run(problem, index).scores(problem)

    return spread_of(row["scores"], again, stored)


def moves(problem: Problem, kernel: Kernel, row: Any) -> float:
    """How much the scores of a row move, relative, when rounding is imitated."""
    return spread(problem, kernel, row).moved


def spread_of(scores: Array, again: Callable[[int], Array], stored: Array | None = None) -> Spread:
    """Where scores go when they are computed again with rounding number 0, 1, ...

    Where `stored` ones lie outside, but the scores move visibly or a hundredth of the way, more is tried: where a free
    run amplifies the last bit to the size of the signal, a few tries do not show how far it can go (measured: 0.052 in
    8 tries and 0.13 in 24, where two kernels differ by 0.068).
    """
    found = Spread(scores[None])
    enough = 0.0 if stored is None else relative(scores, stored)
    for number in range(MOST_TRIES):
        if number >= TRIES and (stored is None or found.holds(stored) or found.moved < min(enough / 100, VISIBLE)):
            break
        found = Spread(np.concatenate([found.tried, again(number)[None]]))
    return found


def moved_by_readout(scores: Array, again: Callable[[int], Array], tries: int = 2) -> float:
    """How far scores move, relative, when readouts change in their twelfth digit: quick, and enough to see chaos."""
    with one_blas_thread(), ThreadPoolExecutor(tries) as pool:
        return max(relative(scores, other) for other in pool.map(again, range(1, 2 * tries, 2)))


def model_moves(problem: Problem, kernel: Kernel, index: int, tries: int = TRIES) -> dict[str, float]:
    """How much each array of the model of draw `index` moves, relative in norm, when rounding is imitated."""
    _, ours = train_network(kernel, problem, index)[0].content()
    moved = dict.fromkeys(ours, 0.0)
    for number in range(tries):
        _, arrays = train_network(RoundedKernel(kernel, number), problem, index)[0].content()
        for name, array in ours.items():
            other = arrays.get(name)
            distance = np.inf if other is None or other.shape != array.shape else float(np.linalg.norm(other - array))
            moved[name] = max(moved[name], distance / max(float(np.linalg.norm(array)), 1e-300))
    return moved


class RoundedKernel(TrialKernel):
    """A kernel that rounds in another way: odd numbers change the readouts, even ones what they are trained from."""

    name = "rounded"

    def __init__(self, kernel: Kernel, number: int) -> None:
        self.kernel = kernel
        self.number, self.signs = number, np.random.default_rng(number)  # seeded, so that an audit can be repeated

    def trial(self, problem: Problem, index: int) -> Trial:
        """As the kernel does it, on one thread: several would sum in another order, and wait for each other."""
        with one_blas_thread():
            return super().trial(problem, index)

    def tools(self, draw: Any) -> Tools:
        """Those of the kernel; of one that has none for single draws, the plain ones, which are right, if slow."""
        own: Any = getattr(self.kernel, "tools", plain_tools)
        tools: Tools = own(draw)
        return tools

    def trained(self, problem: Problem, fold: int, draw: Any, tools: Tools) -> Sequence[Trained]:
        """The alternatives of a fold with other last bits.

        Whatever the trainer does, it starts from other last bits of the weights, or of the data where there are no
        weights to start from; if it solves least squares by its tools, the Gram matrix has other last bits too.
        """
        if self.number % 2:
            if isinstance(self.kernel, TrialKernel):
                trained = super().trained(problem, fold, draw, tools)
            else:  # a device trains all folds in one call, in a fraction of the time
                trained = trained_by(self.kernel, problem, draw.index)[fold]
            changed = [one.readout * (1 + READOUT * _signs(self.signs, one.readout.shape)) for one in trained]
            return [dataclasses.replace(one, readout=w) for one, w in zip(trained, changed, strict=True)]
        data = problem.training_data(fold, draw)
        if isinstance(draw, ReservoirDraw):
            arrays = {name: getattr(draw.reservoir, name) for name in ("values", "W_u", "W_y", "bias", "leak")}
            moved = {name: a * (1 + WEIGHT * _signs(self.signs, a.shape)) for name, a in arrays.items()}
            other: Any = draw.with_reservoir(dataclasses.replace(draw.reservoir, **moved))
            return [*draw.law.training.train(other, data, _RoundedTools(self.signs))]
        data = [dataclasses.replace(s, u=s.u * (1 + WEIGHT * _signs(self.signs, s.u.shape))) for s in data]
        return [*draw.law.training.train(draw, data, tools)]


_latest: WeakKeyDictionary[Kernel, tuple[Problem, int, Sequence[Sequence[Trained]]]] = WeakKeyDictionary()
_training = threading.Lock()


def trained_by(kernel: Kernel, problem: Problem, index: int) -> Sequence[Sequence[Trained]]:
    """The alternatives of a draw on each fold; the latest is kept, as its readouts are changed several times."""
    with _training:  # those who wait for the same draw find it
        known = _latest.get(kernel)
        if known is None or known[0] is not problem or known[1] != index:
            _latest[kernel] = known = (problem, index, kernel.trial(problem, index).trained)
        return known[2]


class _RoundedTools(PlainTools):
    """Least squares as another kernel would round it."""

    def __init__(self, signs: Generator) -> None:
        self.signs = signs

    def least_squares(self, draw: ReservoirDraw, data: TrainingData, ridges: tuple[float, ...]) -> Readouts:
        """As `PlainTools.least_squares`, with the last bits of the Gram matrix changed, or of Phi without one."""
        phi, y = self.regression(draw, data)
        gram = phi.T @ phi
        pattern = np.tril(_signs(self.signs, gram.shape))
        gram *= 1 + WEIGHT * (pattern + np.tril(pattern, -1).T)
        moment = phi.T @ y * (1 + WEIGHT * _signs(self.signs, (phi.shape[1], y.shape[1])))
        solved = [(r, w) for r in ridges if r > 0 and (w := ridge_solution(gram, moment, r)) is not None]
        if len(solved) < len(ridges):
            return least_squares(phi * (1 + WEIGHT * _signs(self.signs, phi.shape)), y, ridges)
        return solved


def _signs(generator: Generator, shape: tuple[int, ...]) -> Array:
    return np.where(generator.random(shape) < 0.5, -1.0, 1.0)
