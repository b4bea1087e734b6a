"""Scores: pure functions of (measured, simulated), each with its direction.

Signals have the shape ``(time, channel)``; simulated signals may have leading axes (several networks at once), which
the score keeps. Only the scored samples are passed in, without the washout, and the mean in FIT is the mean of these.

A simulated signal that is not finite has diverged and scores worst: ``-inf`` if larger is better, ``inf`` if smaller
is better. Finite signals are scored however large they are: the norms are scaled so that they do not overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

import numpy as np

from echobound.arrays import Array
from echobound.errors import InputError

__all__ = ["Direction", "Score", "fit", "fit_per_output", "get_score", "mean_summary", "peak", "register_score"]
__all__ += ["rmse", "rmse_per_output", "robust_fit", "summary"]

Direction = Literal["max", "min"]


def _rms(error: Array) -> Array:
    """Root mean square over time, free of overflow and underflow."""
    size = np.abs(error).max(axis=-2, keepdims=True)
    scale = np.where(size > 0, size, 1.0)
    with np.errstate(invalid="ignore"):  # inf / inf is NaN, which the caller treats as diverged
        mean_square = np.mean(np.square(error / scale), axis=-2)
    return np.asarray(scale[..., 0, :] * np.sqrt(mean_square))


def rmse_per_output(measured: Array, simulated: Array) -> Array:
    """Return the root-mean-square error of each output, in its own unit; ``inf`` where the simulation diverged.

    Examples
    --------
    >>> rmse_per_output(np.array([[1.0, 0.0], [3.0, 4.0]]), np.zeros((2, 2))).round(3).tolist()
    [2.236, 2.828]
    """
    if np.ndim(measured) != 2 or np.shape(simulated)[-2:] != np.shape(measured):
        raise InputError(
            "measured and simulated signals must have the same shape (time, channel), got"
            f" {np.shape(measured)} and {np.shape(simulated)}"
        )
    with np.errstate(invalid="ignore", over="ignore"):
        value = _rms(np.asarray(simulated) - measured)
    return np.where(np.isfinite(value), value, np.inf)


def fit_per_output(measured: Array, simulated: Array) -> Array:
    """Return the FIT of each output in per cent, as MATLAB's ``compare``: 100 (1 - ||y - yhat|| / ||y - mean(y)||).

    NaN where the measured output is constant.

    Examples
    --------
    >>> y = np.array([[0.0], [1.0], [2.0]])
    >>> fit_per_output(y, y).tolist(), fit_per_output(y, np.ones((3, 1))).tolist()
    ([100.0], [0.0])
    """
    return _fit_of_rms(measured, rmse_per_output(measured, simulated))


def _fit_of_rms(measured: Array, rms: Array) -> Array:
    """Return the FIT of each output from the root mean square of its error."""
    # A constant is found by comparison, since its standard deviation may be a rounding error; its FIT is undefined.
    spread = np.where((measured == measured[0]).all(axis=0), np.nan, _rms(measured - measured.mean(axis=0)))
    with np.errstate(over="ignore"):  # the FIT of a free run near the largest double is -inf
        return np.asarray(100.0 * (1.0 - rms / spread))


def rmse(measured: Array, simulated: Array) -> Array:
    """Return the root-mean-square error over all samples and outputs.

    Examples
    --------
    >>> float(rmse(np.zeros((4, 2)), np.array([[3.0, 4.0]] * 4)).round(6))
    3.535534
    """
    return _pooled(measured, rmse_per_output(measured, simulated))


def _pooled(measured: Array, rms: Array) -> Array:
    value = _rms(rms[..., :, None])[..., 0]
    return np.where(np.isfinite(value), value, np.inf)


def fit(measured: Array, simulated: Array) -> Array:
    """Return the FIT in per cent, mean over outputs.

    Examples
    --------
    >>> y = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> float(fit(y, y))
    100.0
    """
    return _mean_fit(measured, rmse_per_output(measured, simulated))


def _mean_fit(measured: Array, rms: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(_fit_of_rms(measured, rms).mean(axis=-1))


def peak(measured: Array, simulated: Array) -> Array:
    """Return the largest absolute error of any output at any sample, in the outputs' units; ``inf`` if diverged.

    Examples
    --------
    >>> float(peak(np.array([[0.0], [2.0]]), np.array([[0.5], [-1.0]])))
    3.0
    """
    with np.errstate(invalid="ignore", over="ignore"):
        value = np.abs(np.asarray(simulated) - measured).max(axis=(-2, -1))
    return np.where(np.isfinite(value), value, np.inf)


class OutputScores(TypedDict):
    """FIT and RMSE."""

    fit: float
    rmse: float


class Summary(OutputScores):
    """FIT and RMSE over all outputs, and of each."""

    per_output: dict[str, OutputScores]


def summary(measured: Array, simulated: Array, names: Sequence[str]) -> Summary:
    """Return FIT and RMSE over all outputs, and for each output by name.

    Examples
    --------
    >>> summary(np.array([[0.0], [2.0]]), np.array([[0.0], [2.0]]), ["pH"])["per_output"]
    {'pH': {'fit': 100.0, 'rmse': 0.0}}
    """
    per_output = zip(names, fit_per_output(measured, simulated), rmse_per_output(measured, simulated), strict=True)
    return {
        "fit": float(fit(measured, simulated)),
        "rmse": float(rmse(measured, simulated)),
        "per_output": {name: {"fit": float(f), "rmse": float(r)} for name, f, r in per_output},
    }


def mean_summary(summaries: Sequence[Summary]) -> Summary:
    """Return the mean of several summaries, number by number: the scores of blocks that are scored in turn.

    Examples
    --------
    >>> one, two = ({"fit": x, "rmse": x, "per_output": {"pH": {"fit": x, "rmse": x}}} for x in (20.0, 80.0))
    >>> mean_summary([one, two])["per_output"]
    {'pH': {'fit': 50.0, 'rmse': 50.0}}
    """

    def mean(scores: Sequence[OutputScores]) -> OutputScores:
        return {"fit": float(np.mean([s["fit"] for s in scores])), "rmse": float(np.mean([s["rmse"] for s in scores]))}

    outputs = {name: mean([one["per_output"][name] for one in summaries]) for name in summaries[0]["per_output"]}
    return {**mean(summaries), "per_output": outputs}


@dataclass(frozen=True, slots=True)
class Score:
    """A named score and its direction.

    Parameters
    ----------
    name
        What certificates, tables and the command line call it.
    function
        ``function(measured, simulated) -> float``; signals are ``(time, channel)``.
    direction
        ``"max"`` if larger is better, ``"min"`` if smaller is better.
    unit
        Printed after the value.
    of_rms
        For a score that depends on the simulation only through the root mean square of each output's error: the same
        score as ``of_rms(measured, rms)``, with rms ``(..., channel)``. A kernel then need not return the outputs.
    demand
        For a score that asks for more than the scored samples: ``demand(value, measured, simulated, disturbed)``, where
        `value` is the mean of `function` over the scored samples, and the signals are the outputs over the training
        data: measured, those of the model trained on all of them, and the same with 2 % of noise on the inputs.

    Examples
    --------
    >>> final = Score("final error", lambda y, yhat: abs(y - yhat)[-1].max(), "min")
    >>> final(np.array([[1.0], [2.0]]), np.array([[1.0], [2.5]]))
    0.5
    >>> final(np.array([[1.0], [2.0]]), np.array([[1.0], [np.nan]]))
    inf
    """

    name: str
    function: Callable[[Array, Array], object]
    direction: Direction
    unit: str = ""
    of_rms: Callable[[Array, Array], Array] | None = None
    demand: Callable[[float, Array, Array, Array], float] | None = None

    def __post_init__(self) -> None:
        if self.direction not in ("max", "min"):
            raise InputError(f"the direction of score {self.name!r} must be 'max' or 'min', got {self.direction!r}")

    @property
    def worst(self) -> float:
        """The score of a network that diverged."""
        return -np.inf if self.direction == "max" else np.inf

    def __call__(self, measured: Array, simulated: Array) -> float:
        """Score one simulated signal; one that is not finite, or whose score is NaN, scores worst."""
        if not np.isfinite(simulated).all():
            return self.worst
        value = float(self.function(measured, simulated))  # type: ignore[arg-type]  # whatever a user returns
        return self.worst if np.isnan(value) else value

    def demanded(self, value: float, measured: Array, simulated: Array, disturbed: Array) -> float:
        """The score of a model whose mean over the scored samples is `value`, and which runs so over its training data.

        What is not finite scores worst.
        """
        if self.demand is None:
            return value
        if not (np.isfinite(simulated).all() and np.isfinite(disturbed).all()):
            return self.worst
        value = float(self.demand(value, measured, simulated, disturbed))
        return self.worst if np.isnan(value) else value


def robust_fit(value: float, measured: Array, simulated: Array, disturbed: Array) -> float:
    """The lesser of two FITs, less what noise on the inputs changes: on the scored samples, and over the training data.

    Both FITs are of free runs (or predictions), the second of the model that is trained on all data. The change is the
    root mean square between the outputs with and without noise, in per cent of each output's standard deviation. An
    output that does not vary over the training data is left out there.

    Examples
    --------
    >>> y = np.array([[0.0], [1.0], [2.0]])
    >>> robust_fit(90.0, y, y, y), round(robust_fit(90.0, y, y, y + 0.1), 2)
    (90.0, 77.75)
    """
    moving = (measured != measured[0]).any(axis=0)
    if not moving.any():
        return value
    measured, simulated, disturbed = (signal[:, moving] for signal in (measured, simulated, disturbed))
    with np.errstate(over="ignore"):  # outputs near the largest double: the change is infinite
        change = 100.0 - fit(measured, measured + (disturbed - simulated))
    return float(min(value, float(fit(measured, simulated))) - change)


_REGISTRY: dict[str, Score] = {}


def register_score(score: Score) -> Score:
    """Register a score by its name, so that files and the command line can refer to it.

    Examples
    --------
    >>> bias = register_score(Score("bias", lambda y, yhat: abs((y - yhat).mean()), "min"))
    >>> get_score("bias") is bias
    True
    """
    known = _REGISTRY.get(score.name)
    if known is not None and known != score:
        raise InputError(f"a score named {score.name!r} is registered already: choose another name")
    _REGISTRY[score.name] = score
    return score


def get_score(name: str | Score) -> Score:
    """Return the score of a name; a `Score` is returned as it is."""
    if isinstance(name, Score):
        return name
    if name not in _REGISTRY:
        raise InputError(
            f"unknown score {name!r}: known are {', '.join(sorted(_REGISTRY))}; add one with register_score"
        )
    return _REGISTRY[name]


register_score(Score("fit", fit, "max", "%", of_rms=_mean_fit))
register_score(Score("rmse", rmse, "min", of_rms=_pooled))
register_score(Score("peak", peak, "min"))
register_score(Score("robust", fit, "max", "%", of_rms=_mean_fit, demand=robust_fit))
