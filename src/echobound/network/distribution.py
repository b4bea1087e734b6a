"""Distributions of hyper-parameters: uniform, log-uniform, and a choice among values or further distributions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from echobound.errors import InputError

Constant: TypeAlias = float | int | bool | str


@dataclass(frozen=True, slots=True)
class Uniform:
    """Uniform between `low` and `high`.

    Examples
    --------
    >>> Uniform(0.25, 0.75).at([0.5])
    0.5
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not -math.inf < self.low <= self.high < math.inf:
            raise InputError(f"a uniform distribution needs finite low <= high, got {self.low} and {self.high}")

    def at(self, units: Sequence[float]) -> float:
        """Value at the first of the given numbers in [0, 1)."""
        return self.low + units[0] * (self.high - self.low)


@dataclass(frozen=True, slots=True)
class LogUniform:
    """Uniform in the logarithm between `low` and `high`.

    Examples
    --------
    >>> round(LogUniform(0.01, 1.0).at([0.5]), 12)
    0.1
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high < math.inf:
            raise InputError(f"a log-uniform distribution needs 0 < low <= high, got {self.low} and {self.high}")

    def at(self, units: Sequence[float]) -> float:
        """Value at the first of the given numbers in [0, 1)."""
        return self.low * math.exp(units[0] * math.log(self.high / self.low))


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several options, each a constant or a distribution, with equal chance or by weight.

    Examples
    --------
    >>> Choice((0.0, LogUniform(0.01, 1.0)), weights=(0.1, 0.9)).at([0.05, 0.5])
    0.0
    """

    options: tuple[Value, ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        weights = tuple(float(w) for w in self.weights) or (1.0,) * len(self.options)
        if not self.options or len(weights) != len(self.options):
            raise InputError(
                f"a choice needs at least one option and as many weights, got {len(self.options)} and {len(weights)}"
            )
        if not all(0 <= w < math.inf for w in weights) or sum(weights) <= 0:
            raise InputError(f"the weights of a choice must be non-negative and not all zero, got {weights}")
        object.__setattr__(self, "options", tuple(self.options))
        object.__setattr__(self, "weights", weights)

    def at(self, units: Sequence[float]) -> Constant:
        """Pick an option by the first number in [0, 1); if it is a distribution, the next numbers draw from it."""
        level = units[0] * sum(self.weights)
        option = self.options[-1]  # unless one below is found: rounding may leave a rest behind all weights
        for candidate, weight in zip(self.options, self.weights, strict=True):
            if level < weight:
                option = candidate
                break
            level -= weight
        return value_at(option, units[1:])


Distribution: TypeAlias = Uniform | LogUniform | Choice
Value: TypeAlias = Constant | Distribution


def value_at(value: Value, units: Sequence[float]) -> Constant:
    """Value of a constant (itself) or of a distribution at the given numbers in [0, 1)."""
    return value.at(units) if isinstance(value, Uniform | LogUniform | Choice) else value


def extremes(value: Value) -> Iterator[Constant]:
    """The constants between which (or among which) a value lies, to check a law before anything is drawn."""
    if isinstance(value, Uniform | LogUniform):
        yield from (value.low, value.high)
    elif isinstance(value, Choice):
        for option, weight in zip(value.options, value.weights, strict=True):
            if weight > 0:
                yield from extremes(option)
    else:
        yield value


def depth(value: Value) -> int:
    """How many numbers in [0, 1) a draw of this value needs."""
    if isinstance(value, Choice):
        return 1 + max(depth(option) for option in value.options)
    return 1 if isinstance(value, Uniform | LogUniform) else 0


def to_json(value: Value) -> Any:
    """The value as JSON: a constant as itself, a distribution as a one-key object."""
    if isinstance(value, Uniform):
        return {"uniform": [value.low, value.high]}
    if isinstance(value, LogUniform):
        return {"loguniform": [value.low, value.high]}
    if isinstance(value, Choice):
        return {"choice": [to_json(option) for option in value.options], "weights": list(value.weights)}
    return value


def from_json(value: Any) -> Value:
    """Inverse of `to_json`; raises `InputError` for anything else."""
    if isinstance(value, str | int | float):
        return value
    try:
        match value:  # with these keys alone, so that a misspelt one is not ignored
            case {"uniform": [low, high], **rest} if not rest:
                return Uniform(low, high)
            case {"loguniform": [low, high], **rest} if not rest:
                return LogUniform(low, high)
            case {"choice": [*options], "weights": [*weights], **rest} if not rest:
                return Choice(tuple(from_json(option) for option in options), tuple(weights))
    except TypeError:  # bounds or weights that are not numbers
        pass
    raise InputError(f"a constant, uniform, loguniform or choice was expected in a law, got {value!r}")
