"""Bounds of inputs, of their rates and of outputs: given in the data's units, checked once, and kept exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echobound.arrays import Signal, Vector
from echobound.data.scaling import Scaling
from echobound.errors import InputError


@dataclass(frozen=True, eq=False)
class Bounds:
    """What a controller may move, and how far; all in the data's own units."""

    manipulated: NDArray[np.int64]  # positions among the model's inputs
    known: NDArray[np.int64]  # positions of the known disturbances
    low: Vector  # (manipulated,)
    high: Vector
    rate: Vector  # infinite where there is none
    output_low: Vector  # (output,), infinite where there is none
    output_high: Vector
    output_scale: Vector  # what errors are relative to


def bounds_of(
    model: Any,
    manipulated: Sequence[str] | None,
    low: ArrayLike | None,
    high: ArrayLike | None,
    rate: ArrayLike | None,
    output_low: ArrayLike | None,
    output_high: ArrayLike | None,
    scaling: Scaling,
) -> Bounds:
    """Check what was asked for; without input bounds, those of the training data are taken where the model has them."""
    names = list(model.input_names) if manipulated is None else list(manipulated)
    unknown = [name for name in names if name not in model.input_names]
    if unknown or not names or len(set(names)) < len(names):
        raise InputError(
            f"manipulated inputs must be among those of the model ({', '.join(model.input_names)}), each once, got"
            f" {', '.join(names) or 'none'}"
        )
    positions = np.array([model.input_names.index(name) for name in names])
    known = np.array([i for i in range(len(model.input_names)) if i not in positions], dtype=np.int64)
    if (low is None or high is None) and scaling.kind != "minmax":
        raise InputError(
            "the model does not know the range of its inputs: give a lower and an upper bound of each manipulated one"
        )
    trained = scaling.input_offset[positions], (scaling.input_offset + scaling.input_span)[positions]
    lower = trained[0] if low is None else channel_values("the lower bound of the inputs", low, names)
    upper = trained[1] if high is None else channel_values("the upper bound of the inputs", high, names)
    _require_order("inputs", names, lower, upper)
    outputs = list(model.output_names)
    rates = np.full(len(names), np.inf) if rate is None else channel_values("the rate", rate, names, infinite=True)
    if not (rates > 0).all():
        raise InputError(
            "the rate of an input must be positive: leave the input out of the manipulated ones to hold it"
        )
    least = np.full(len(outputs), -np.inf)
    if output_low is not None:
        least = channel_values("the lower bound of the outputs", output_low, outputs, infinite=True)
    most = np.full(len(outputs), np.inf)
    if output_high is not None:
        most = channel_values("the upper bound of the outputs", output_high, outputs, infinite=True)
    _require_order("outputs", outputs, least, most)
    # Of standardised data the span is one standard deviation; their range is about four of them.
    scale = scaling.output_span * (4.0 if scaling.kind == "standard" else 1.0)
    return Bounds(positions, known, lower, upper, rates, least, most, scale)


def channel_values(
    what: str, value: ArrayLike, names: Sequence[str], *, least: float | None = None, infinite: bool = False
) -> Vector:
    """One number for each channel, from one for all or one each.

    Examples
    --------
    >>> channel_values("the rate", 0.5, ["q1", "q2"]).tolist()
    [0.5, 0.5]
    >>> channel_values("the rate", [1.0, 2.0, 3.0], ["q1", "q2"])
    Traceback (most recent call last):
        ...
    echobound.errors.InputError: the rate must be one number, or one for each of q1, q2: got 3 of them
    """
    values = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if values.ndim != 1 or len(values) not in (1, len(names)):
        raise InputError(f"{what} must be one number, or one for each of {', '.join(names)}: got {values.size} of them")
    if np.isnan(values).any() or not (infinite or np.isfinite(values).all()):
        raise InputError(f"{what} must be a number, got {', '.join(f'{one:g}' for one in values)}")
    if least is not None and (values < least).any():
        raise InputError(f"{what} must not be below {least:g}, got {', '.join(f'{one:g}' for one in values)}")
    return np.broadcast_to(values, (len(names),)).copy()


def ahead(what: str, values: ArrayLike, names: Sequence[str], count: int, held: Vector, notes: list[str]) -> Signal:
    """Values ``(step, channel)`` for the next samples; the last row is held, and so is `held` where there is no number.

    Examples
    --------
    >>> notes = []
    >>> ahead("reference", [np.nan, 7.0], ["pH"], 3, np.array([6.0]), notes).ravel().tolist(), notes
    ([6.0, 7.0, 7.0], ['the reference is not a number: the last one is held'])
    """
    rows = rows_of(what, values, names)
    rows = np.concatenate([rows, np.repeat(rows[-1:], max(count - len(rows), 0), axis=0)])[:count]
    if not np.isfinite(rows).all():
        notes.append(f"the {what} is not a number: the last one is held")
        for k in range(len(rows)):
            rows[k] = held = np.where(np.isfinite(rows[k]), rows[k], held)
    return np.asarray(rows)


def rows_of(what: str, values: ArrayLike, names: Sequence[str]) -> Signal:
    """Values ``(step, channel)``, one row at least, from one row or from a value for each step of one channel."""
    given, channels = np.asarray(values, dtype=np.float64), len(names)
    rows = given.reshape(-1, channels) if given.ndim < 2 and given.size % channels == 0 else given
    if rows.ndim != 2 or rows.shape[1] != channels or not len(rows):
        raise InputError(f"the {what} must be (step, {channels}) for {', '.join(names)}, got shape {given.shape}")
    return np.asarray(rows)


def within(bounds: Bounds, u: Vector, previous: Vector) -> Vector:
    """The nearest input within its bounds, that differs from the previous one by its rate at most: exactly so.

    Examples
    --------
    >>> bounds = Bounds(np.arange(1), np.arange(0), *(np.array([x]) for x in (0.0, 1.0, 0.1, 0.0, 1.0, 1.0)))
    >>> u = within(bounds, np.array([0.9]), np.array([0.7]))
    >>> float(u[0]), bool(abs(u[0] - 0.7) <= 0.1)
    (0.7999999999999999, True)
    """
    u = np.clip(np.clip(u, previous - bounds.rate, previous + bounds.rate), bounds.low, bounds.high)
    while (beyond := np.abs(u - previous) > bounds.rate).any():  # a sum is rounded: one step back is enough
        u = np.where(beyond, np.nextafter(u, previous), u)
    return np.asarray(u)


def _require_order(what: str, names: Sequence[str], low: Vector, high: Vector) -> None:
    for name, lower, upper in zip(names, low, high, strict=True):
        if not lower < upper:
            raise InputError(
                f"the bounds of the {what} must leave room, but {name} would lie between {lower:g} and {upper:g}"
            )
