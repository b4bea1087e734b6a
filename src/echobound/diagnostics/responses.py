"""Responses: how far ahead a model predicts well, and how it answers a step at several operating points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from echobound.arrays import Array, Signal
from echobound.data.record import Record
from echobound.diagnostics.finding import Finding
from echobound.diagnostics.verdict import per_cent
from echobound.network import dynamics as plain_dynamics
from echobound.network.dynamics import Dynamics
from echobound.scores import fit

HORIZONS = (1, 2, 5, 10, 20, 50)
BUDGET = 20_000  # steps of each horizon: predictions k samples ahead take k steps for each sample
POINTS = (0.25, 0.5, 0.75)  # quantiles of the inputs
STEP = 0.25  # of the range of an input
LONGEST = 500  # samples of a step response


@dataclass(frozen=True)
class HorizonCurve:
    """FIT of predictions by how far ahead they look; the free run last, as None."""

    horizons: tuple[int | None, ...]
    fits: tuple[float | None, ...]
    data: str  # on what, in words

    @property
    def finding(self) -> Finding:
        """What the curve says, in a sentence."""
        first, last = self.fits[0], self.fits[-1]
        ahead = "one sample ahead" if self.horizons[0] == 1 else f"{self.horizons[0]} samples ahead"
        if first is None or last is None:
            return Finding("prediction", True, f"Predictions or the free run ran off on {self.data}.")
        words = f"On {self.data} the FIT is {per_cent(first, 1)} {ahead} and {per_cent(last, 1)} in free run."
        alarm = first - last > 20.0
        advice = "Errors add up in free run: predict only as far ahead as you need (--horizon)." if alarm else ""
        return Finding("prediction", alarm, words, advice, None, {"first": first, "free run": last})


def horizon_curve(
    model: Any, records: Sequence[Record], data: str, *, dynamics: Dynamics = plain_dynamics
) -> HorizonCurve:
    """FIT of a model's predictions 1, 2, 5, ... samples ahead and of its free run, all on the same samples.

    Of long records only the beginning is used.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(400, 300))
    >>> model = identify(training, validation, law="paper", order=10, networks=20).network
    >>> curve = horizon_curve(model, [validation], "validation data")
    >>> curve.horizons, len(curve.fits)
    ((1, 2, 5, 10, 20, 50, None), 7)
    """
    first = model.washout
    each = BUDGET // HORIZONS[-1] // max(len(records), 1)
    parts = [one.part(0, min(len(one), first + max(each, 100))) for one in records if len(one) > first + 10]
    found: list[float | None] = []
    for horizon in (*HORIZONS, None):
        runs = [
            model.simulate(part, dynamics=dynamics)
            if horizon is None
            else model.predict(part, horizon, dynamics=dynamics)
            for part in parts
        ]
        pairs = [(part.y[run.first :], run.y) for part, run in zip(parts, runs, strict=True)]
        value = float(fit(*(np.concatenate(side) for side in zip(*pairs, strict=True)))) if pairs else np.nan
        found.append(value if np.isfinite(value) else None)
    return HorizonCurve((*HORIZONS, None), tuple(found), data)


@dataclass(frozen=True, eq=False)
class StepResponses:
    """How outputs answer a step of one input, from rest at several operating points.

    Parameters
    ----------
    input
        Which one is stepped; the others rest at the same quantile of theirs.
    levels, step
        Value of the input before the step, at each operating point, and how far it steps.
    outputs
        Change of each output for a step of 1, ``(point, time, output)``.
    """

    input: str
    levels: tuple[float, ...]
    step: float
    outputs: Signal
    names: tuple[str, ...]

    @property
    def gains(self) -> Array:
        """Change of each output in the end, for a step of 1: ``(point, output)``."""
        return np.asarray(self.outputs[:, -1])

    @property
    def settled(self) -> bool:
        """Whether all have come to rest: the last fifth moves by less than a twentieth of the whole."""
        tail = self.outputs[:, -max(2, self.outputs.shape[1] // 5) :]
        whole = np.maximum(np.abs(self.outputs).max(axis=1), 1e-300)
        return bool((np.ptp(tail, axis=1) < 0.05 * whole).all())


def step_responses(
    model: Any, training: Sequence[Record], *, dynamics: Dynamics = plain_dynamics
) -> tuple[StepResponses, ...]:
    """Steps of a quarter of the range of each input, at its lower quartile, median and upper quartile.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(800, 500))
    >>> model = identify(training, validation, law="broad", order=20, networks=20).network
    >>> [found] = step_responses(model, [training])
    >>> found.input, found.outputs.shape[0], len(found.levels)
    ('q3', 3, 3)
    """
    u = np.concatenate([record.u for record in training])
    low, high = u.min(axis=0), u.max(axis=0)
    rest = min(LONGEST, max(50, len(u) // 8))
    found = []
    for i, name in enumerate(training[0].input_names):
        runs, levels = [], []
        for point in POINTS:
            start = np.quantile(u, point, axis=0)
            step = STEP * (high[i] - low[i]) * (1 if start[i] + STEP * (high[i] - low[i]) <= high[i] else -1)
            inputs = np.tile(start, (2 * rest, 1))
            inputs[rest:, i] += step
            y = model.simulate(inputs, dynamics=dynamics).y
            runs.append((y[rest - 1 :] - y[rest - 1]) / step if step else np.zeros_like(y[rest - 1 :]))
            levels.append(float(start[i]))
        size = float(STEP * (high[i] - low[i]))
        found.append(StepResponses(name, tuple(levels), size, np.stack(runs), tuple(training[0].output_names)))
    return tuple(found)


def steps_finding(found: Sequence[StepResponses]) -> Finding:
    """What step responses say, in a sentence: gains by operating point, and whether the model comes to rest."""
    said = []
    values: dict[str, float] = {}
    for one in found:
        for j, name in enumerate(one.names):
            gains = one.gains[:, j]
            if not np.isfinite(gains).all():
                continue
            values |= {
                f"{one.input} to {name}, {level:.4g}": float(g) for level, g in zip(one.levels, gains, strict=True)
            }
            said.append((float(np.ptp(gains)) / max(float(np.abs(gains).max()), 1e-300), one.input, name, gains))
    if not said:
        return Finding("step responses", True, "The model does not come to rest at any operating point.")
    _, source, name, gains = max(said, key=lambda one: one[0])
    words = (
        f"The gain from {source} to {name} is {', '.join(f'{gain:.3g}' for gain in gains)} at the lower quartile, the"
        f" median and the upper quartile of {source}."
    )
    moving = [one.input for one in found if not one.settled]
    if not moving:
        return Finding("step responses", False, words, "", None, values)
    last = found[0].outputs.shape[1] - 1
    words += f" After a step of {moving[0]} the model has not come to rest within {last} samples."
    advice = "If the plant does come to rest, the model is wrong there; if it integrates, do not expect it to."
    return Finding("step responses", True, words, advice, None, values)
