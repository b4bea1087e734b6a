"""Observer: where the plant is, from what is measured, with samples that are lost, late or far off.

The models are driven by the measured inputs and outputs, so that each forgets its initial state at the rate at which
its reservoir contracts (||W_x|| < 1). What they do not explain is taken for a constant that is added to their outputs:
d(k) = d(k-1) + L (y(k) - own output - d(k-1)). As it is fed back together with the own output, a model whose prediction
has settled predicts what is measured, whatever is wrong with it: that is what makes tracking free of offset.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Array, Mask, Vector
from echobound.control.prediction import Predictor, members_of
from echobound.errors import InputError

GAIN = 0.1
GATE = 5.0  # robust standard deviations of the innovation; beyond, a measurement is taken for an outlier
PATIENCE = 3  # outliers in a row that are refused; the next one is believed
WINDOW = 50  # innovations that the standard deviation is estimated from
FEWEST = 20  # of them, before anything is taken for an outlier
BELIEVABLE = 1e9  # of the output's span: what is measured further off comes from a broken sensor, and counts as lost
FLOOR = 0.01  # of the output's span: no innovation smaller than this times the gate is an outlier
LATEST = 10  # samples: measurements that arrive later than this are not used


@dataclass(frozen=True, eq=False)
class Reading:
    """What became of a measurement, output by output."""

    used: Mask
    lost: Mask
    outlying: Mask
    innovation: Vector  # measured less predicted; NaN where nothing was measured


@dataclass(frozen=True, eq=False)
class _Sample:
    """Everything at one sample before its measurement, which may still come."""

    states: tuple[Vector, ...]
    offsets: Array  # (model, output): as they were before
    u: Vector  # what was applied at the sample before; then, once known, at this one
    y: Vector  # what was measured and accepted, NaN where not


class Observer:
    """Follow a plant by one model, or by the members of a committee side by side.

    Parameters
    ----------
    models
        A model, or several; a committee stands for its members.
    gain
        L, between 0 and 1: how much of what is unexplained counts as a lasting disturbance.
    gate, patience
        From how many standard deviations on a measurement is an outlier, which is not used; and how many of them are
        refused in a row before the next is believed after all. An infinite gate believes everything.
    latest
        How old, in samples, a measurement may be.
    judges
        How many of the models, the first ones, decide what is an outlier, by the median of their innovations; all if
        not given. Models that only bound the outputs have no say, so that they have no influence either.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(600, 400))
    >>> observer = Observer(identify(training, validation, law="paper", order=20, networks=20).network)
    >>> observer.start(validation.u[0], validation.y[0])
    >>> for u, y in zip(validation.u[:50], validation.y[:50]):
    ...     reading = observer.measure(y)
    ...     observer.advance(u)
    >>> bool(reading.used.all()), observer.measure([np.nan]).lost.tolist()
    (True, [True])
    """

    def __init__(
        self,
        models: Any,
        *,
        gain: float = GAIN,
        gate: float = GATE,
        patience: int = PATIENCE,
        latest: int = LATEST,
        judges: int | None = None,
    ) -> None:
        if not 0 < gain <= 1:
            raise InputError(f"the gain of the observer must be above 0 and at most 1, got {gain:g}")
        if not gate > 0 or patience < 1 or latest < 0:
            raise InputError(
                "the gate of the observer must be positive, its patience at least 1, `latest` not negative"
            )
        several: Sequence[Any] = models if isinstance(models, list | tuple) else [models]
        singles = [single for model in several for single in members_of(model)]
        self.predictors = tuple(one if isinstance(one, Predictor) else Predictor(one) for one in singles)
        self.gain, self.gate, self.patience, self.latest = gain, gate, patience, latest
        self._judges = slice(judges)
        span = np.max([one.scaling.output_span for one in self.predictors[self._judges]], axis=0)
        self.floor, self.believable = FLOOR * span, BELIEVABLE * span
        self._sample: _Sample | None = None

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.predictors[0].equations.outputs

    @property
    def forgetting(self) -> str:
        """How fast the initial state is forgotten, in words, and what is not promised."""
        known = [one.model.stability for one in self.predictors]
        first = known[0].statement
        if len(known) == 1:
            return str(first)
        contracting = sum(one.contracts for one in known)
        return f"{contracting} of {len(known)} models forget their initial state at a known rate. The first: {first}"

    def start(self, u: ArrayLike, y: ArrayLike) -> None:
        """Start at rest: this input was applied, and this output measured, for a long time."""
        now, measured = np.atleast_1d(np.asarray(u, float)), self._measured(y)
        if not (np.isfinite(now).all() and np.isfinite(measured).all()):
            raise InputError("the observer starts from an input and an output that are numbers: measure them first")
        states = tuple(one.start(now, measured) for one in self.predictors)
        own = np.stack([one.output(state, now) for one, state in zip(self.predictors, states, strict=True)])
        self._past: deque[_Sample] = deque(maxlen=self.latest)
        self._innovations: list[deque[float]] = [deque(maxlen=WINDOW) for _ in range(self.outputs)]
        self._refused = np.zeros(self.outputs, dtype=int)
        self._sample = _Sample(states, measured - own, now, np.full(self.outputs, np.nan))
        self._settle()

    @property
    def input(self) -> Vector:
        """The input, all channels of the model, that was applied last."""
        return self._current.u

    @property
    def states(self) -> tuple[Vector, ...]:
        """The state of each model at this sample."""
        return self._current.states

    def measure(self, y: ArrayLike, age: int = 0) -> Reading:
        """Take in a measurement of this sample, or of `age` samples ago; NaN is one that was lost."""
        measured = self._measured(y)
        if not 0 <= age <= len(self._past):
            nothing = np.zeros(self.outputs, dtype=bool)
            return Reading(nothing, ~nothing, nothing, np.full(self.outputs, np.nan))
        later = [self._current, *(self._past.pop() for _ in range(age))][::-1]
        self._sample = later[0]
        reading = self._accept(measured)
        for one in later[1:]:
            # What was known of the following samples is kept; only their states are computed again.
            self.advance(one.u)
            self._sample = replace(self._current, y=one.y)
        self._settle()
        return reading

    def advance(self, u: ArrayLike) -> None:
        """Go to the next sample, with this input applied until then."""
        applied, before = np.atleast_1d(np.asarray(u, float)), self._current
        self._settle()
        states = tuple(
            one.advance(state, applied, fed)
            for one, state, fed in zip(self.predictors, before.states, self.now, strict=True)
        )
        self._past.append(before)
        self._sample = _Sample(states, self.offsets, applied, np.full(self.outputs, np.nan))
        self._settle()

    def _measured(self, y: ArrayLike) -> Vector:
        measured = np.atleast_1d(np.asarray(y, dtype=np.float64))
        if measured.shape != (self.outputs,):
            raise InputError(f"a measurement of {self.outputs} outputs was expected, got shape {measured.shape}")
        return measured

    def _accept(self, measured: Vector) -> Reading:
        lost = ~(np.abs(measured - self.predictors[0].scaling.output_offset) <= self.believable)  # NaN is, too
        expected = (self._own() + self._current.offsets)[self._judges]
        innovation = measured - np.median(expected, axis=0)
        outlying = np.zeros(self.outputs, dtype=bool)
        for o in np.flatnonzero(~lost):
            seen, far = self._innovations[o], False
            if len(seen) >= FEWEST:
                far = abs(innovation[o]) > self.gate * max(1.4826 * float(np.median(seen)), self.floor[o])
            outlying[o] = far and self._refused[o] < self.patience
            self._refused[o] = self._refused[o] + 1 if far else 0
            seen.append(abs(float(innovation[o])))
        used = ~lost & ~outlying
        known = self._current.y
        self._sample = replace(self._current, y=np.where(used, measured, known))
        return Reading(used, lost, outlying, innovation)

    def _own(self) -> Array:
        """The own output of each model at this sample, whose input is not known yet: the last one stands in."""
        sample = self._current
        return np.stack([p.output(state, sample.u) for p, state in zip(self.predictors, sample.states, strict=True)])

    def _settle(self) -> None:
        """Offsets and what is fed back, from what is known of this sample."""
        sample, own = self._current, self._own()
        known = np.isfinite(sample.y)
        error = np.where(known, sample.y - own - sample.offsets, 0.0)
        self.offsets = sample.offsets + self.gain * error
        self.now = np.where(known, sample.y, own + self.offsets)

    @property
    def _current(self) -> _Sample:
        if self._sample is None:
            raise InputError("the observer has not been started: call start with the present input and output")
        return self._sample
