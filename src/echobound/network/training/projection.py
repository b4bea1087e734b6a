"""Variable projection: the training of cascades, from poles of a linear model to filters and units of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from echobound.arrays import Matrix, Vector
from echobound.errors import InputError
from echobound.network.cascade import RADIUS, Cascade, energy_factors, sections_of
from echobound.network.training.base import Trained, Trainer, register_trainer
from echobound.network.training.cascade_tools import CascadeTools, Stretch
from echobound.network.training.least_squares import require_ridges
from echobound.network.training.linear import linear_poles
from echobound.network.training.separable import Coordinates, descended, solve_readout
from echobound.network.training.tools import TrainingData

if TYPE_CHECKING:  # a law holds a trainer, and a trainer is handed draws
    from echobound.network.cascade_law import CascadeDraw

HELD_OUT = 0.2  # share of each stretch, at its end, that decides when to stop
SMOOTHER = (1e-3, 1e-5)  # ridges that training begins with
PIECES = 6  # stretches that a part of a long record is made of
FASTEST = 0.3  # of the random poles
"""Random poles are not smaller."""


@register_trainer
@dataclass(frozen=True)
class VariableProjection(Trainer):
    """Train a cascade by Levenberg-Marquardt, with the readout solved anew by least squares in every trial step.

    Both banks start with the poles of a linear model and two random ones. First all units have one direction, then each
    has its own; the last fifth of each stretch of the training data is held out to decide when to stop. Finally the
    readout is fitted to all training data.

    Parameters
    ----------
    ridges
        Ridges of the last readout, for each sample; if there are several, the best on the scored data is kept.
    shared, free, last
        Iterations with one direction, with free ones, and on more data where the record is long.
    part, most
        Samples from which on a record is long: iterations run on so many of them, the last ones on at most `most`.

    Examples
    --------
    >>> VariableProjection((1e-8, 1e-4)).chosen(1).ridges
    (0.0001,)
    """

    kind: ClassVar[str] = "variable projection"
    setting_name: ClassVar[str] = "ridge"
    setting_unit: ClassVar[str] = "for each sample"

    ridges: tuple[float, ...] = (1e-8, 1e-5)
    shared: int = 24
    free: int = 40
    last: int = 15
    part: int = 6_000
    most: int = 60_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "ridges", require_ridges(self.ridges))
        for name in ("shared", "free", "last"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 0:
                raise InputError(f"{name} must be a number of iterations, 0 or more, got {getattr(self, name)!r}")
        for name in ("part", "most"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 100:
                raise InputError(f"{name} must be a number of samples, 100 or more, got {getattr(self, name)!r}")

    def chosen(self, alternative: int) -> VariableProjection:
        """The same training with one of the ridges."""
        others = (self.shared, self.free, self.last, self.part, self.most)
        return VariableProjection((self.ridges[alternative],), *others)

    @property
    def settings(self) -> tuple[float, ...]:
        """The ridges."""
        return self.ridges

    def train(self, draw: CascadeDraw, data: TrainingData, tools: Any) -> Sequence[Trained]:  # type: ignore[override]
        """A readout for each ridge, all of the same cascade."""
        tools = tools if isinstance(tools, CascadeTools) else draw.tools()
        # Whatever overflows on the way is rejected there: a draw ends as something finite.
        with np.errstate(all="ignore"):
            few, many = (_stretches(data, samples) for samples in (self.part, self.most))
            cascade = _start(draw, few)
            down = getattr(tools, "descend", partial(descended, tools))  # a kernel may have all of it in one call
            for shared, iterations, stretches, ridge in self._stages(draw.hyper.ridge, few, many):
                cascade = down(Coordinates(cascade, shared), stretches, ridge, iterations) or cascade
            everything = [Stretch(one.u, one.y, one.washout, len(one.u)) for one in data]
            total, _ = tools.features_gram(cascade, everything)
            return [Trained(ridge, _readout(total, cascade.columns, ridge), cascade) for ridge in self.ridges]

    def _stages(
        self, ridge: float, few: list[Stretch], many: list[Stretch]
    ) -> Iterator[tuple[bool, int, list[Stretch], float]]:
        """Whether directions are shared, iterations, data and ridge of each stage.

        Large ridges first: with small ones, weights of opposite sign are so large that nearly every step is too long.
        """
        for smooth in SMOOTHER:
            yield True, self.shared // len(SMOOTHER), few, max(smooth, ridge)
        yield False, self.free // 2, few, max(SMOOTHER[-1], ridge)
        yield False, self.free - self.free // 2, few, ridge
        if sum(len(one.u) for one in few) < sum(len(one.u) for one in many):
            yield False, self.last, many, ridge


def _readout(total: Matrix, columns: int, ridge: float) -> Matrix:
    """The readout, with a larger ridge if there is none with this one; in the end the mean."""
    larger = ridge
    while larger < 1.0:
        solution = solve_readout(total, columns, larger)
        if solution is not None:
            return solution[0]
        larger = max(100 * larger, 1e-14)
    readout = np.zeros((len(total) - columns, columns))
    means = total[columns:, columns - 1] / max(total[columns - 1, columns - 1], 1.0)
    readout[:, -1] = np.where(np.isfinite(means), means, 0.0)
    return readout


def _stretches(data: TrainingData, samples: int) -> list[Stretch]:
    """The training data with a part at the end of each stretch held out; of long data, so many samples only.

    Those are evenly spread pieces; each starts with a washout of its own.
    """
    rows = sum(len(one.u) - one.washout for one in data)
    found = []
    for one in data:
        own = len(one.u) - one.washout
        pieces = PIECES if rows > samples else 1
        length = own if pieces == 1 else max(int(own * samples / rows) // pieces, 1)
        for piece in range(pieces):
            start = (own - length) * piece // max(pieces - 1, 1)
            part = slice(start, start + one.washout + length)
            split = one.washout + max(length - int(HELD_OUT * length), 1)
            found.append(
                Stretch(np.ascontiguousarray(one.u[part]), np.ascontiguousarray(one.y[part]), one.washout, split)
            )
    return found


def _start(draw: CascadeDraw, stretches: Sequence[Stretch]) -> Cascade:
    """The cascade from which training starts, from the data and the draw's own words."""
    from echobound.network.cascade_law import DIRECTION, GAINS, MIXTURE, POLES, THRESHOLDS

    hyper = draw.hyper
    real = FASTEST + (hyper.slowest - FASTEST) * draw.uniform(POLES, 2 + 2 * hyper.sections)
    poles = linear_poles([(one.u[: one.split], one.y[: one.split]) for one in stretches], 2 * hyper.sections)
    linear = sections_of(real[2:].astype(np.complex128)) if poles is None else sections_of(poles, 0.99 * RADIUS)
    missing = max(hyper.sections - len(linear), 0)  # poles at zero, that a polynomial has lost
    sections = np.concatenate([linear[: hyper.sections], np.zeros((missing, 2)), sections_of(real[:2].astype(complex))])
    factors = energy_factors(sections)
    units, signals = hyper.units, draw.inputs * (2 * len(sections) + 1)
    form = Cascade(sections, factors, np.zeros((units, signals)), np.zeros(units), sections, factors)
    z = np.concatenate([form.before(one.u)[one.first : one.split] for one in stretches])
    y = np.concatenate([one.y[one.first : one.split] for one in stretches])
    mixture = 2 * draw.uniform(MIXTURE, draw.outputs) - 1 if draw.outputs > 1 else np.ones(1)
    direction = _direction(z, y @ mixture) + hyper.wander * _unit(z, 2 * draw.uniform(DIRECTION, signals) - 1)
    x = z @ direction
    deviation = float(x.std())
    scale = deviation if np.isfinite(deviation) and deviation > 0 else 1.0
    gains = hyper.gain * (0.5 + draw.uniform(GAINS, units))
    thresholds = hyper.spread * (2 * draw.uniform(THRESHOLDS, units) - 1)
    centre = float(x.mean()) / scale
    weights, bias = np.outer(gains, direction / scale), -gains * (thresholds + centre)
    return Cascade(sections, factors, weights, bias, sections, factors)


def _direction(z: Matrix, y: Vector) -> Vector:
    """Weights of the linear model y = w' z + c, as far as there is one, for a signal of variance 1."""
    rows = np.concatenate([z, np.ones((len(z), 1)), y[:, None]], axis=1)
    solution = solve_readout(rows.T @ rows, z.shape[1] + 1, 1e-8)
    return _unit(z, np.ones(z.shape[1]) if solution is None else solution[0][0, :-1])


def _unit(z: Matrix, weights: Vector) -> Vector:
    """Weights for which w' z has variance 1."""
    deviation = float((z @ weights).std())
    return weights / deviation if np.isfinite(deviation) and deviation > 0 else weights
