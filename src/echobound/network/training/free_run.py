"""Training on the free-run error: from the least-squares readout on, by Levenberg-Marquardt steps.

Least squares minimises the error of one step ahead; this minimises the error of the free run itself, over the readout
or over all weights of a small network. Whether it helps is for the scored data to say: the number of steps is an
alternative, and none is one of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from echobound.arrays import Matrix, Vector
from echobound.draws import unit, words
from echobound.errors import InputError
from echobound.network.derivatives import NormalEquations, weights_of, with_weights
from echobound.network.reservoir import TRAINING, Reservoir, ReservoirDraw
from echobound.network.training.base import Trained, Trainer, register_trainer
from echobound.network.training.tools import Tools, TrainingData, TrainingSegment

REJECTIONS = 6  # steps in a row that do not help: then the run is as good as it gets
FLAT = 1e-4  # relative: a step that gains less is the last one
PIECE = 500  # samples of a piece, about: long enough for slow errors to show


@register_trainer
@dataclass(frozen=True)
class FreeRun(Trainer):
    """Levenberg-Marquardt on the free-run error, from the least-squares readout on.

    No draw ends worse on its own training data than it started: only steps that reduce the error are taken.

    Parameters
    ----------
    trained
        ``"readout"``, or ``"network"`` for all weights: this is for small networks.
    steps
        Numbers of steps; if there are several, the best on the scored data is kept. 0 is least squares.
    ridge
        Relative ridge of the least-squares readout.
    penalty
        On the squared distance from where training starts, relative to the variance of the outputs: a number, or the
        ends between which each draw takes its own.
    increments
        How often the readout starts from the increments of y, as suits a plant that integrates; needs output delays.
    samples, until
        Most samples that steps are computed from; of longer data, pieces from all over them are taken. After `until`
        steps, four times as many are used.

    Examples
    --------
    >>> FreeRun(steps=(0, 5, 15)).chosen(1).steps
    (5,)
    """

    kind: ClassVar[str] = "free run"
    setting_name: ClassVar[str] = "steps"
    setting_unit: ClassVar[str] = "on the free-run error"

    trained: str = "readout"
    steps: tuple[int, ...] = (8,)
    ridge: float = 1e-8
    penalty: tuple[float, float] = (1e-7, 1e-7)
    increments: float = 0.0
    samples: int = 5_000
    until: int = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(int(n) for n in np.atleast_1d(self.steps)))
        ends = np.atleast_1d(np.asarray(self.penalty, dtype=float)).tolist()
        object.__setattr__(self, "penalty", (ends[0], ends[-1]))
        if self.trained not in ("readout", "network"):
            raise InputError(f"training on the free run is of the 'readout' or the 'network', got {self.trained!r}")
        if not self.steps or min(self.steps) < 0:
            raise InputError(f"numbers of steps must be one or more, each at least 0, got {self.steps}")
        if not 0 < self.ridge < math.inf or not 0 <= self.penalty[0] <= self.penalty[1] < math.inf:
            raise InputError(
                f"the ridge must be positive and the penalty at least 0, got {self.ridge} and {self.penalty}"
            )
        if not 0 <= self.increments <= 1 or self.samples < 100 or self.until < 0:
            raise InputError(
                "increments must be a share from 0 to 1, samples at least 100, and until not negative, got"
                f" {self.increments}, {self.samples} and {self.until}"
            )

    def train(self, draw: ReservoirDraw, data: TrainingData, tools: Tools) -> Sequence[Trained]:
        """The network after each number of steps."""
        levels = unit(words(draw.key, TRAINING, 2))
        low, high = self.penalty
        penalty = low * (high / low) ** float(levels[0]) if low > 0 else high * float(levels[0])
        readout = _start(draw, data, tools, self.ridge, increments=bool(levels[1] < self.increments))
        whole = self.trained == "network"
        course = Course(self.steps, self.until, (self.samples, 4 * self.samples), whole, penalty)
        # A kernel may have all of it in one call.
        found = getattr(tools, "descend", partial(descend, tools=tools))(draw, readout, data, course)
        return [Trained(float(steps), found[steps].readout, found[steps].reservoir) for steps in self.steps]

    def chosen(self, alternative: int) -> FreeRun:
        """The same with one number of steps."""
        return replace(self, steps=(self.steps[alternative],))

    @property
    def settings(self) -> tuple[float, ...]:
        """The numbers of steps."""
        return tuple(float(n) for n in self.steps)


def _start(draw: ReservoirDraw, data: TrainingData, tools: Tools, ridge: float, increments: bool) -> Matrix:
    """The least-squares readout; of the increments, with y(k-1) added to what it gives."""
    if not increments or not draw.hyper.output_delays:
        return tools.least_squares(draw, data, (ridge,))[0][1]
    steps = [replace(s, y=s.y - np.concatenate([s.fed[:1], s.fed[:-1]])) for s in data]
    readout = tools.least_squares(draw, steps, (ridge,))[0][1].copy()
    hyper = draw.hyper
    first = hyper.order + (hyper.input_delays + hyper.present_input) * draw.inputs  # the column of y(k-1)
    readout[:, first : first + draw.outputs] += np.eye(draw.outputs)
    return readout


def pieces(data: TrainingData, most: int) -> TrainingData:
    """At most so many samples that count, in pieces of about `PIECE`, two or more of each segment.

    Each piece has a washout of its own. The same data come back if they are few enough.

    Examples
    --------
    >>> signal = np.zeros((10_000, 1))
    >>> data = [TrainingSegment(signal, signal, signal, washout=50)]
    >>> [len(piece.u) for piece in pieces(data, 2000)], pieces(data, 10_000) is data
    ([550, 550, 550, 550], True)
    """
    total = sum(len(segment.u) - segment.washout for segment in data)
    if total <= most:
        return data
    found = []
    for segment in data:
        counted = len(segment.u) - segment.washout
        number = max(2, round(most * counted / total / PIECE))
        length = min(counted, most * counted // total // number) + segment.washout
        for start in np.linspace(0, len(segment.u) - length, number).astype(int).tolist():
            part = slice(start, start + length)
            found.append(TrainingSegment(segment.u[part], segment.y[part], segment.fed[part], segment.washout))
    return found


class Network(NamedTuple):
    """What training moves; the reservoir is None where it stays as it was drawn."""

    readout: Matrix
    reservoir: Reservoir | None


def squares(draw: ReservoirDraw, network: Network, data: TrainingData, tools: Tools) -> float:
    """Squared errors of the free run over the data, in variances of each output; infinite if it diverges."""
    readout, reservoir = network
    if not np.isfinite(readout).all():
        return math.inf
    own, total = draw if reservoir is None else draw.with_reservoir(reservoir), 0.0
    importance = importance_of(data)
    for segment in data:
        [outputs] = tools.simulate(own, [readout], segment.u, segment.y, segment.washout, None)
        with np.errstate(over="ignore", invalid="ignore"):
            total += float(np.square((segment.y[segment.washout :] - outputs) * importance).sum())
    return total if math.isfinite(total) else math.inf


def importance_of(data: TrainingData) -> Vector:
    """By what each output's error is multiplied, so that all of them count alike."""
    spread = np.concatenate([segment.y[segment.washout :] for segment in data]).std(axis=0)
    return np.asarray(1.0 / np.where(spread > 0, spread, 1.0))


@dataclass(frozen=True)
class Course:
    """How a descent goes: settings of `FreeRun`, with the penalty of one draw."""

    steps: tuple[int, ...]
    until: int
    samples: tuple[int, int]  # at most so many, until then and afterwards
    whole: bool  # whether all weights are trained
    penalty: float

    def sets(self, data: TrainingData) -> tuple[TrainingData, TrainingData, TrainingData]:
        """What the first steps and the later ones are computed from, and all data; the same object if all is used."""
        first, later = (pieces(data, most) for most in self.samples)
        return first, later, data


def first_damping(whole: bool) -> float:
    """A readout starts near its optimum, in directions of very different curvature; a whole network does not."""
    return 1e-2 if whole else 1e-6


def descend(
    draw: ReservoirDraw, readout: Matrix, data: TrainingData, course: Course, *, tools: Tools
) -> dict[int, Network]:
    """The network after each number of steps, or the one at the start where they helped on a part of the data alone."""
    first, later, _ = course.sets(data)
    descent = Descent(draw, readout, first, tools, course.whole, course.penalty)
    start = descent.network
    before = squares(draw, start, data, tools) if first is not data else math.inf
    found = {}
    for steps in sorted(set(course.steps)):
        descent.advance_to(min(steps, course.until))
        if steps > course.until:
            descent.go_on_with(later)
            descent.advance_to(steps)
        kept = first is data or squares(draw, descent.network, data, tools) <= before
        found[steps] = descent.network if kept else start
    return found


class Descent:
    """Steps down the free-run error of one draw over its training data."""

    def __init__(
        self, draw: ReservoirDraw, readout: Matrix, data: TrainingData, tools: Tools, whole: bool, penalty: float
    ) -> None:
        self.draw, self.tools, self.whole, self.penalty = draw, tools, whole, penalty
        self.network = Network(readout, draw.reservoir if whole else None)
        self.anchor = self.theta = weights_of(draw.reservoir, readout, whole)
        self.damping, self.steps = first_damping(whole), 0
        self._take(data)

    def go_on_with(self, data: TrainingData) -> None:
        """Continue on other data; on the same nothing changes."""
        if data is not self.data:
            self._take(data)

    def _take(self, data: TrainingData) -> None:
        self.data, self.ended, self.importance = data, False, importance_of(data)
        samples = sum((len(segment.u) - segment.washout) * self.draw.outputs for segment in data)
        self.pull = self.penalty * samples
        self.cost = self._cost(self.network, self.theta)

    def advance_to(self, steps: int) -> None:
        """Take steps until there are so many, or none is left that helps."""
        while self.steps < steps and not self.ended:
            self._step()
            self.steps += 1

    def _step(self) -> None:
        readout, reservoir = self.network
        own = self.draw if reservoir is None else self.draw.with_reservoir(reservoir)
        equations = self.tools.normal_equations(own, readout, self.data, self.importance, self.whole)
        for _ in range(REJECTIONS):
            theta = self.theta + self._direction(equations)
            changed, own_readout = with_weights(own.reservoir, readout, theta)
            network = Network(own_readout, changed if self.whole else None)
            cost = self._cost(network, theta)
            if cost < self.cost:
                self.ended = cost > (1.0 - FLAT) * self.cost
                self.theta, self.network, self.cost = theta, network, cost
                self.damping /= 4.0
                return
            self.damping *= 6.0
        self.ended = True

    def _cost(self, network: Network, theta: Vector) -> float:
        distance = theta - self.anchor
        return squares(self.draw, network, self.data, self.tools) + self.pull * float(distance @ distance)

    def _direction(self, equations: NormalEquations) -> Vector:
        from scipy.linalg import cho_factor, cho_solve

        matrix = equations.curvature + self.pull * np.eye(len(self.theta))
        slope = equations.gradient - self.pull * (self.theta - self.anchor)
        size = np.diag(matrix)
        matrix[np.diag_indices_from(matrix)] += self.damping * np.maximum(size, 1e-12 * size.max())
        nowhere = np.full_like(slope, np.nan)
        if not (np.isfinite(matrix).all() and np.isfinite(slope).all()):
            return nowhere  # sensitivities overflowed: no step from here helps
        try:
            return np.asarray(cho_solve(cho_factor(matrix, check_finite=False), slope, check_finite=False))
        except np.linalg.LinAlgError:
            return nowhere
