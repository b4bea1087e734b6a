"""The closed loop: plant, measurements with noise and faults, observer and controller, and how well it went."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Matrix, Signal, Vector
from echobound.control.plants import Plant
from echobound.draws import PLANT, draw_key, unit, words
from echobound.errors import EchoboundError, InputError
from echobound.network import Adaptation
from echobound.plants import gaussian

LOST, OUTLYING, SIZES = 16, 17, 18  # regions of a draw of stream PLANT, beside excitation and noise
FAMILY = 17  # of the noise and the faults of closed loops, apart from those of experiments


@dataclass(frozen=True)
class Faults:
    """What goes wrong with measurements, at random.

    Parameters
    ----------
    lost, outliers
        Share of the samples that are lost, and that are far off.
    size
        How far at most, in the output's units.
    delay
        How many samples late all measurements arrive.
    """

    lost: float = 0.0
    outliers: float = 0.0
    size: float = 1.0
    delay: int = 0

    def __post_init__(self) -> None:
        if not (0 <= self.lost <= 1 and 0 <= self.outliers <= 1 and self.size >= 0 and self.delay >= 0):
            raise InputError("shares of faults lie between 0 and 1, and neither their size nor a delay is negative")

    def applied(self, y: Signal, seed: int, index: int) -> Signal:
        """Measurements with faults: NaN where they are lost."""
        if not (self.lost or self.outliers):
            return y
        key = draw_key(seed, PLANT, FAMILY, index)
        draws = [unit(words(key, region, y.size)).reshape(y.shape) for region in (LOST, OUTLYING, SIZES)]
        off = np.where(draws[1] < self.outliers, self.size * (2 * draws[2] - 1), 0.0)
        return np.where(draws[0] < self.lost, np.nan, y + off)


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """What happened, sample by sample; row k has what was true, measured and decided at sample k."""

    reference: Signal  # (time, output)
    y: Signal  # the true outputs
    measured: Signal  # with noise and faults
    u: Signal  # (time, manipulated): applied from this sample to the next
    before: Vector  # the input before the first sample
    disturbance: Signal  # (time, disturbance): unmeasured
    seconds: Vector  # wall-clock time of each decision
    residual: Vector  # of the Karush-Kuhn-Tucker conditions; NaN of a controller without
    converged: Vector  # 1, 0, or NaN of a controller without
    iterations: Vector
    failures: int  # quadratic programs that the solver gave up
    lost: int  # measurements
    outlying: int
    notes: tuple[tuple[int, str], ...]  # the sample, and what was put in place of something unusable
    bounds: Any
    sampling_time: float
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    input_units: tuple[str, ...]
    output_units: tuple[str, ...]

    @property
    def scores(self) -> dict[str, Any]:
        """Errors of the true outputs, effort, violations and time."""
        error = self.y - self.reference
        finite = np.where(np.isfinite(error), error, 0.0)  # where there is no reference there is no error
        counted = np.maximum(np.isfinite(error).sum(axis=0), 1)
        moves = np.diff(self.u, axis=0, prepend=self.before[None])
        bounds = self.bounds
        outside = np.maximum(np.maximum(self.y - bounds.output_high, bounds.output_low - self.y), 0.0)
        known = self.converged[np.isfinite(self.converged)]
        return {
            "samples": len(self.y),
            "rms": dict(zip(self.output_names, np.sqrt((finite**2).sum(axis=0) / counted).tolist(), strict=True)),
            "offset": dict(zip(self.output_names, np.abs(error[-1]).tolist(), strict=True)),
            "effort": dict(zip(self.input_names, np.abs(moves).sum(axis=0).tolist(), strict=True)),
            "input_violations": int(((self.u < bounds.low) | (self.u > bounds.high)).sum()),
            "rate_violations": int((np.abs(moves) > bounds.rate).sum()),
            "output_violations": int((outside > 0).any(axis=1).sum()),
            "output_violation_sum": float(outside.sum()),
            "output_violation_largest": float(outside.max(initial=0.0)),
            "milliseconds_median": float(1e3 * np.median(self.seconds)),
            "milliseconds_p99": float(1e3 * np.quantile(self.seconds, 0.99)),
            "not_converged": int((known == 0).sum()),
            "solver_failures": self.failures,
            "lost": self.lost,
            "outliers": self.outlying,
        }


def simulate_closed_loop(
    plant: Plant,
    controller: Any,
    reference: ArrayLike,
    *,
    preview: bool = True,
    disturbance: ArrayLike | None = None,
    known: ArrayLike | None = None,
    noise: float = 0.0,
    faults: Faults | None = None,
    seed: int = 0,
    index: int = 0,
    adaptation: Adaptation | None = None,
    every: int = 100,
    on_sample: Callable[[int, int], None] | None = None,
) -> ClosedLoop:
    """Close the loop around a plant.

    Parameters
    ----------
    plant
        `PHProcess`, `FunctionPlant`, `FMUPlant`, or any object with their two methods.
    controller
        `MPC`, `PI`, or any object with their two methods.
    reference
        What the outputs should be, ``(time, output)``; its length is that of the simulation.
    preview
        Whether the controller knows the reference ahead, as far as its horizon goes; otherwise it knows its present
        value and takes it for constant.
    disturbance
        Unmeasured disturbances ``(time, disturbance)`` of the plant.
    known
        Disturbances that are inputs of the model, ``(time, disturbance)``; the controller knows them as it knows the
        reference.
    noise
        Standard deviation of the measurement noise.
    faults
        What else goes wrong with measurements.
    seed, index
        Which draw of noise and faults.
    adaptation
        It watches the loop: it is given every input with what was measured, or expected where a sample is lost or
        refused. The controller goes on with the adapted readout after each `every` samples, and at once when the plant
        was seen to have changed. It must be an adaptation of the controller's only model.
    on_sample
        Called after each sample with its number and that of all samples.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> from echobound.control import MPC, PHProcess
    >>> model = identify(*ph_experiment(samples=(800, 500)), law="paper", order=20, networks=20).network
    >>> wanted = np.repeat([7.3, 6.9], 30)
    >>> loop = simulate_closed_loop(PHProcess(), MPC(model, horizon=15), wanted)
    >>> loop.scores["input_violations"], loop.scores["rms"]["pH"] < 0.2
    (0, True)
    """
    wanted = _rows("reference", reference)
    count = len(wanted)
    unknown = _rows("disturbance", disturbance, count)
    given = _rows("known disturbance", known, count)
    faults = faults or Faults()
    u, y = plant.start()
    if wanted.shape[1] != len(y):
        raise InputError(f"the plant has {len(y)} outputs, but the reference has {wanted.shape[1]} columns")
    moved = len(controller.bounds.low)
    if len(u) not in (moved, moved + given.shape[1]):
        raise InputError(
            f"the plant starts from {len(u)} inputs, but the controller moves {moved} and knows {given.shape[1]} more:"
            " give a plant with the model's inputs"
        )
    several = {} if known is None else {"disturbance": given[0]}
    controller.start(u[:moved], y, **several)
    noises = np.stack([gaussian(count, noise, seed=seed, family=FAMILY, index=index + 1000 * o) for o in range(len(y))])
    ahead = controller.horizon
    if adaptation is not None and (faults.delay or every < 1):
        raise InputError("adaptation needs measurements without delay, and `every` at least 1")
    expected = y
    true, measured, applied = np.empty_like(wanted), np.empty_like(wanted), np.empty((count, moved))
    numbers = np.full((4, count), np.nan)
    failures, lost, outlying = 0, 0, 0
    notes: list[tuple[int, str]] = []
    shifts = faults.applied(np.zeros((count, len(y))), seed, index)
    for k in range(count):
        true[k] = y
        measured[k] = y + noises[:, k] + shifts[k]
        seen = measured[k - faults.delay] if k >= faults.delay else np.full(len(y), np.nan)
        if preview:
            window = wanted[min(k + 1, count - 1) : k + 1 + ahead]
            coming = {} if known is None else {"disturbance": given[k : k + 1 + ahead]}
        else:
            window, coming = wanted[k : k + 1], {} if known is None else {"disturbance": given[k : k + 1]}
        step = controller.step(window, seen, age=faults.delay, **coming)
        applied[k] = step.u
        numbers[:, k] = step.seconds, *(getattr(step, one, np.nan) for one in ("residual", "converged", "iterations"))
        failures += getattr(step, "failures", 0)
        if (reading := getattr(step, "reading", None)) is not None:
            lost, outlying = lost + int(reading.lost.any()), outlying + int(reading.outlying.any())
        notes += [(k, note) for note in getattr(step, "notes", ())]
        whole = np.concatenate([step.u, given[k]])
        if adaptation is not None:
            seen_changes = len(adaptation.changes)
            adaptation.update(controller.observer.input, np.where(step.reading.used, seen, expected))
            if (k + 1) % every == 0 or len(adaptation.changes) > seen_changes:
                controller.adapt(adaptation.model)
            expected = step.outputs[0]
        y = _next_output(plant, whole, unknown[k], k + 1, len(y))
        if on_sample is not None:
            on_sample(k + 1, count)
    return ClosedLoop(
        reference=wanted,
        y=true,
        measured=measured,
        u=applied,
        before=u[: applied.shape[1]],
        disturbance=unknown,
        seconds=numbers[0],
        residual=numbers[1],
        converged=numbers[2],
        iterations=numbers[3],
        failures=failures,
        lost=lost,
        outlying=outlying,
        notes=tuple(notes),
        bounds=controller.bounds,
        sampling_time=getattr(plant, "sampling_time", 1.0),
        **_channels(controller, applied.shape[1], len(y)),
    )


def _next_output(plant: Plant, u: Vector, disturbance: Vector, sample: int, outputs: int) -> Vector:
    """One sample of a plant, which is anybody's code: what is wrong with it is said in one sentence."""
    try:
        y = np.atleast_1d(np.asarray(plant.step(u, disturbance), dtype=np.float64))
    except EchoboundError:
        raise
    except Exception as error:
        raise InputError(f"the plant failed at sample {sample} ({type(error).__name__}: {error})") from error
    if y.shape != (outputs,) or not np.isfinite(y).all():
        listed = ", ".join(f"{value:g}" for value in y.ravel()[:5])
        raise InputError(
            f"the plant must return {outputs} finite outputs, but at sample {sample} came {listed or 'none'}"
        )
    return y


def _channels(controller: Any, inputs: int, outputs: int) -> dict[str, tuple[str, ...]]:
    """Names and units of the model that a controller has, if it has one."""
    model = getattr(controller, "model", None)
    if model is None:
        names = tuple(f"u{i + 1}" for i in range(inputs)), tuple(f"y{i + 1}" for i in range(outputs))
        units = ("",) * inputs, ("",) * outputs
    else:
        names = controller.manipulated, model.output_names
        units = tuple(model.input_units[model.input_names.index(name)] for name in names[0]), model.output_units
    return dict(zip(("input_names", "output_names", "input_units", "output_units"), (*names, *units), strict=True))


def _rows(what: str, values: ArrayLike | None, count: int | None = None) -> Matrix:
    if values is None:
        return np.zeros((count or 0, 0))
    rows = np.asarray(values, dtype=np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or not len(rows):
        raise InputError(f"the {what} must be a signal (time, channel), got shape {rows.shape}")
    if count is not None and len(rows) != count:
        raise InputError(f"the {what} has {len(rows)} samples, the reference {count}: give as many")
    return rows
