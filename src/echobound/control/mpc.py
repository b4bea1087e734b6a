"""MPC: model predictive control by a certified model. At each sample inputs are planned, and the first is applied."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echobound.arrays import Array, Matrix, Signal, Vector
from echobound.control.bounds import ahead, bounds_of, channel_values, within
from echobound.control.observer import GAIN, GATE, Observer
from echobound.control.planning import Effort, Outcome, plan_inputs
from echobound.control.prediction import Predictor, members_of
from echobound.control.problem import Problem
from echobound.control.quadratic import solver
from echobound.control.steps import Active, ControlStep
from echobound.errors import InputError

MOVE_WEIGHT = 0.1
SLACK = (10.0, 1000.0)  # linear and square: of one scale of an output for one sample
ACTIVE = 1e-9


class MPC:
    """A tracking controller with preview, bounds, and every model of a committee kept within the output bounds.

    Parameters
    ----------
    model
        Any delivered model. With a committee, the cost is the mean of its members' costs, and the output bounds hold
        for every member.
    horizon
        How many samples are predicted.
    control_horizon
        For how many of them inputs are planned; the last one is held from there on. All of them if not given.
    manipulated
        Names of the inputs that the controller moves; all if not given. The others are known disturbances.
    input_low, input_high
        Bounds of the manipulated inputs, never violated; the range of the training data if not given.
    rate
        The largest change of each from one sample to the next, never violated; none if not given.
    output_low, output_high
        Soft bounds: kept wherever that is possible, and violated as little as possible otherwise.
    output_weight, move_weight
        Of the squared error in each output, and of the squared change of each input, both relative to their ranges.
    output_price, input_price
        An economic term: the price of one unit of each output and of each manipulated input, for one sample.
    slack_weight
        Linear and square, of an output beyond its bound, relative to its range.
    scenarios
        Further models that must stay within the output bounds, and have no part in the cost.
    starts
        1: plan from the last planned inputs. 2: at news (another reference, an unfinished plan) also from inputs that
        are held, and the cheaper outcome is taken: there are local minima.
    effort
        How much is done for one sample.
    gain, gate
        Of the observer.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(600, 400))
    >>> model = identify(training, validation, law="paper", order=20, networks=20).network
    >>> controller = MPC(model, horizon=15, rate=0.5)
    >>> controller.start(u=15.6, y=7.0)
    >>> step = controller.step(reference=7.5, y=7.0)
    >>> step.inputs.shape, step.outputs.shape, step.converged, bool(abs(step.u[0] - 15.6) <= 0.5)
    ((15, 1), (15, 1), True, True)
    """

    def __init__(
        self,
        model: Any,
        horizon: int = 20,
        *,
        control_horizon: int | None = None,
        manipulated: Sequence[str] | None = None,
        input_low: ArrayLike | None = None,
        input_high: ArrayLike | None = None,
        rate: ArrayLike | None = None,
        output_low: ArrayLike | None = None,
        output_high: ArrayLike | None = None,
        output_weight: ArrayLike = 1.0,
        move_weight: ArrayLike = MOVE_WEIGHT,
        output_price: ArrayLike = 0.0,
        input_price: ArrayLike = 0.0,
        slack_weight: tuple[float, float] = SLACK,
        scenarios: Any = (),
        starts: int = 2,
        effort: Effort | None = None,
        gain: float = GAIN,
        gate: float = GATE,
    ) -> None:
        self.model = model
        self.horizon = _whole("the horizon", horizon, 1)
        self.control_horizon = horizon if control_horizon is None else _whole("the control horizon", control_horizon, 1)
        if self.control_horizon > horizon:
            raise InputError(f"the control horizon, {control_horizon}, must not exceed the horizon, {horizon}")
        if starts not in (1, 2):
            raise InputError(f"planning has 1 start or 2, got {starts}")
        if not (len(slack_weight) == 2 and slack_weight[0] >= 0 and slack_weight[1] > 0):
            raise InputError(
                "the weights of a slack must be a linear one that is not negative and a positive square one"
            )
        costed = [Predictor(one) for one in members_of(model)]
        given = [scenarios] if hasattr(scenarios, "simulate") else list(scenarios)
        own = {one.model.digest for one in costed}  # one that the cost is about already is bounded as well
        others = [Predictor(m) for several in given for m in members_of(several) if m.digest not in own]
        for one in others:
            for name in ("input_names", "output_names", "sampling_time"):
                if getattr(one.model, name) != getattr(model, name):
                    raise InputError(f"a scenario has another {name} than the model: give models of the same data")
        self.observer = Observer([*costed, *others], gain=gain, gate=gate, judges=len(costed))
        self.costed, self.starts, self.effort = len(costed), starts, effort or Effort()
        self.bounds = bounds_of(
            model, manipulated, input_low, input_high, rate, output_low, output_high, costed[0].scaling
        )
        names, outputs = [model.input_names[i] for i in self.bounds.manipulated], model.output_names
        self.output_weight = channel_values("output_weight", output_weight, outputs, least=0.0)
        self.move_weight = channel_values("move_weight", move_weight, names, least=0.0)
        self.output_price = channel_values("output_price", output_price, outputs)
        self.input_price = channel_values("input_price", input_price, names)
        self.slack_weight = slack_weight
        self.supports: set[int] = set()
        self._planned: Signal | None = None
        self._wanted: Signal | None = None
        self._finished = True
        self._disturbance = np.zeros(len(self.bounds.known))
        self._column = self._columns()

    @property
    def manipulated(self) -> tuple[str, ...]:
        """Names of the inputs that the controller moves."""
        return tuple(self.model.input_names[i] for i in self.bounds.manipulated)

    @property
    def disturbances(self) -> tuple[str, ...]:
        """Names of the inputs that it does not move, whose values must be given."""
        return tuple(name for name in self.model.input_names if name not in self.manipulated)

    def with_effort(self, effort: Effort) -> MPC:
        """The same controller with another effort, not yet started."""
        other = copy(self)
        other.observer, other.effort, other.supports = copy(self.observer), effort, set()
        other._planned = other._wanted = None
        other.__dict__.pop("_u", None)
        return other

    def start(self, u: ArrayLike, y: ArrayLike, disturbance: ArrayLike | None = None) -> None:
        """Start at rest at a manipulated input, an output and, if the model has any, known disturbances."""
        applied, self._disturbance = self.first(u, disturbance)
        self.observer.start(self._whole_input(applied, self._disturbance), y)
        self._u, self._planned, self._reference = applied, None, np.atleast_1d(np.asarray(y, float)).copy()
        self._wanted, self._finished = None, True
        self._prepare()
        self.supports = set()

    def first(self, u: ArrayLike, disturbance: ArrayLike | None) -> tuple[Vector, Vector]:
        """The manipulated inputs and the known disturbances of a start, checked."""
        applied = channel_values("the first input", u, list(self.manipulated))
        if not ((applied >= self.bounds.low) & (applied <= self.bounds.high)).all():
            raise InputError(
                f"the first input, {_listed(applied)}, must lie within its bounds, {_listed(self.bounds.low)} to"
                f" {_listed(self.bounds.high)}: bring the plant there first, or widen the bounds"
            )
        notes: list[str] = []
        known = self._given_disturbance(disturbance, notes)
        if notes:
            raise InputError("known disturbances must be numbers when the controller is started")
        return applied, known[0]

    def adapt(self, model: Any) -> None:
        """Go on with the same model and another readout, as `Adaptation` finds it; what the observer knows is kept."""
        known = self.observer.predictors
        if len(known) > 1:
            raise InputError(f"a controller adapts if it has one model, and this one has {len(known)}")
        [one] = members_of(model)
        own, after = known[0], Predictor(one)
        same = own.equations.states == after.equations.states and all(
            np.array_equal(mine, value) for mine, value in zip(_scale(own), _scale(after), strict=True)
        )
        if not same:
            raise InputError("an adapted model has the states and the scaling of the one before: give Adaptation.model")
        self.model, self.observer.predictors = one, (after,)

    def _prepare(self) -> None:
        """Compile what is compiled on first use, and load the solver: the first step shall not take longer for it."""
        rest = np.repeat(self._reference[None], self.horizon, axis=0)
        problem = self._problem(rest, np.repeat(self._disturbance[None], self.horizon + 1, axis=0))
        with np.errstate(over="ignore", invalid="ignore"):
            at = problem.evaluate(self._planned_values(np.repeat(self._u[None], self.horizon, axis=0)), True)
            problem.curvature(np.ones(at.outputs.shape))
        solver()

    def step(
        self, reference: ArrayLike, y: ArrayLike, *, disturbance: ArrayLike | None = None, age: int = 0
    ) -> ControlStep:
        """Take in the measurement of this sample, and decide what to apply until the next.

        Parameters
        ----------
        reference
            What the outputs should be at the next samples: one value, or ``(step, output)`` with as much preview as is
            known; the last row is held. Where it is not a number, the last one that was is held.
        y
            The measured outputs; NaN where they were lost.
        disturbance
            Known disturbances ``(step, disturbance)`` from this sample on, or one value that is held.
        age
            How many samples old the measurement is.
        """
        began = time.perf_counter()
        if self._planned is None and not hasattr(self, "_u"):
            raise InputError("the controller has not been started: call start with the present input and output")
        notes: list[str] = []
        reading = self.observer.measure(y, age)
        wanted = self._given_reference(reference, notes)
        known = self._given_disturbance(disturbance, notes)
        problem = self._problem(wanted, known)
        outcome = plan_inputs(problem, self._starts(wanted), self.effort)
        self.supports |= problem.supports
        planned = self._inputs(outcome.at.v)
        if not np.isfinite(outcome.at.cost):
            notes.append("no plan leads to numbers: the input is held")
            planned = np.repeat(self._u[None], self.horizon, axis=0)
        # Exactly within the bounds: rounding and the solver's tolerance are removed here.
        u = within(self.bounds, planned[0], self._u)
        planned[0] = u
        self.observer.advance(self._whole_input(u, known[0]))
        active = self._active(outcome, problem)
        self._u, self._planned, self._disturbance, self._finished = u, planned, known[0], outcome.converged
        return ControlStep(
            u=u,
            inputs=planned,
            outputs=outcome.at.outputs[: self.costed].mean(axis=0),
            cost=outcome.at.cost,
            residual=outcome.residual,
            converged=outcome.converged,
            iterations=outcome.iterations,
            failures=outcome.failures,
            seconds=time.perf_counter() - began,
            active=active,
            reading=reading,
            notes=tuple(notes),
        )

    def _problem(self, wanted: Signal, known: Signal) -> Problem:
        """The optimisation of this sample."""
        own, bounds = self.observer, self.bounds
        span = bounds.high - bounds.low
        states, now, offsets = own.states, own.now.copy(), own.offsets.copy()

        def outlook(v: Vector, sensitive: bool) -> tuple[Array, Array]:
            u = self._all_inputs(v, known)
            column = self._column if sensitive else None
            found = [
                one.outlook(state, fed, offset, u, column)
                for one, state, fed, offset in zip(own.predictors, states, now, offsets, strict=True)
            ]
            # Derivatives by v, which goes from 0 to 1 over the range of its input.
            spans = np.tile(span, self.control_horizon) if sensitive else np.ones(0)
            return np.stack([y for y, _ in found]), np.stack([slopes * spans for _, slopes in found])

        def curvature(errors: Array) -> Matrix | None:
            total = np.zeros((len(self.bounds.low) * self.control_horizon,) * 2)
            for one, error in zip(own.predictors, errors, strict=True):
                if error.any():
                    second = one.curvature(error)
                    if second is None:
                        return None
                    total += second
            return total * np.outer(*(np.tile(span, self.control_horizon),) * 2)

        samples = np.ones(self.control_horizon)
        samples[-1] += self.horizon - self.control_horizon
        return Problem(
            outlook=outlook,
            curvature=curvature,
            reference=wanted,
            previous=(self._u - bounds.low) / span,
            rate=bounds.rate / span,
            low=bounds.output_low,
            high=bounds.output_high,
            weight=self.output_weight / bounds.output_scale**2,
            move_weight=self.move_weight,
            scale=bounds.output_scale,
            slack_linear=self.slack_weight[0],
            slack_square=self.slack_weight[1],
            output_price=self.output_price,
            input_price=self.input_price * span,
            samples=samples,
            costed=self.costed,
        )

    def _starts(self, wanted: Signal) -> list[Vector]:
        """Planned inputs to begin with, within all bounds: the last ones, a sample later, and the present one held.

        The latter only if there is news: another reference than was known, or a plan that was not finished. Otherwise
        the plan of the last sample, which won then, is continued.
        """
        held = np.repeat(self._u[None], self.horizon, axis=0)
        expected = None if self._wanted is None else np.concatenate([self._wanted[1:], self._wanted[-1:]])
        news = expected is None or not np.array_equal(expected, wanted) or not self._finished
        self._wanted = wanted
        if self._planned is None:
            return [self._planned_values(held)]
        shifted = np.concatenate([self._planned[1:], self._planned[-1:]])
        starts = [self._planned_values(self._feasible(shifted))]
        return [*starts, self._planned_values(held)] if self.starts == 2 and news else starts

    def _feasible(self, inputs: Signal) -> Signal:
        """The nearest inputs that keep rates and bounds, sample after sample."""
        result, before = np.empty_like(inputs), self._u
        for k, u in enumerate(inputs):
            result[k] = before = within(self.bounds, u, before)
        return result

    def _planned_values(self, inputs: Signal) -> Vector:
        """V of inputs."""
        bounds = self.bounds
        v = (inputs[: self.control_horizon] - bounds.low) / (bounds.high - bounds.low)
        return np.clip(v, 0.0, 1.0).reshape(-1)

    def _inputs(self, v: Vector) -> Signal:
        """Inputs ``(step, manipulated)`` of v."""
        bounds = self.bounds
        blocks = bounds.low + v.reshape(self.control_horizon, -1) * (bounds.high - bounds.low)
        rest = np.repeat(blocks[-1:], self.horizon - self.control_horizon, axis=0)
        return np.asarray(np.clip(np.concatenate([blocks, rest]), bounds.low, bounds.high))

    def _all_inputs(self, v: Vector, known: Signal) -> Signal:
        """All inputs of the model ``(horizon + 1, input)``; the last one is held for the present input of a readout."""
        u = np.empty((self.horizon + 1, len(self.model.input_names)))
        planned = self._inputs(v)
        u[:-1, self.bounds.manipulated], u[-1, self.bounds.manipulated] = planned, planned[-1]
        u[:, self.bounds.known] = known
        return u

    def _columns(self) -> NDArray[np.int64]:
        """Which planned input each input of the model is, -1 for known disturbances."""
        count = len(self.bounds.manipulated)
        column = np.full((self.horizon + 1, len(self.model.input_names)), -1)
        block = np.minimum(np.arange(self.horizon + 1), self.control_horizon - 1)
        column[:, self.bounds.manipulated] = block[:, None] * count + np.arange(count)
        return column

    def _whole_input(self, u: Vector, disturbance: Vector) -> Vector:
        whole = np.empty(len(self.model.input_names))
        whole[self.bounds.manipulated], whole[self.bounds.known] = u, disturbance
        return whole

    def _given_reference(self, reference: ArrayLike, notes: list[str]) -> Signal:
        names = self.model.output_names
        rows = ahead("reference", reference, names, self.horizon, self._reference, notes)
        self._reference = rows[0].copy()
        return rows

    def _given_disturbance(self, disturbance: ArrayLike | None, notes: list[str]) -> Signal:
        names = self.disturbances
        if not names:
            return np.zeros((self.horizon + 1, 0))
        if disturbance is None:
            listed = ", ".join(names)
            raise InputError(f"the model has inputs that the controller does not move ({listed}): give their values")
        return ahead("known disturbance", disturbance, names, self.horizon + 1, self._disturbance, notes)

    def _active(self, outcome: Outcome, problem: Problem) -> Active:
        v = outcome.at.v.reshape(self.control_horizon, -1)
        moves = np.abs(np.diff(v, axis=0, prepend=problem.previous[None]))
        outputs, scale = outcome.at.outputs, self.bounds.output_scale
        near = ACTIVE * scale
        at_bound = (outputs >= problem.high - near) | (outputs <= problem.low + near)
        return Active(
            low=v <= ACTIVE,
            high=v >= 1 - ACTIVE,
            rate=moves >= problem.rate - ACTIVE,
            output=np.asarray(at_bound.any(axis=0)),
            slack=outcome.at.slack * scale,
        )


def _whole(what: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{what} must be a whole number of samples, at least {least}, got {value!r}")
    return int(value)


def _scale(one: Predictor) -> list[Any]:
    return list(one.scaling.to_arrays().values())


def _listed(values: Vector) -> str:
    return ", ".join(f"{value:g}" for value in values)
