"""Ordering: which score is better, which networks come first, and which lie beyond a threshold."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Array, Mask
from echobound.errors import InputError

Case = Literal["best", "worst"]
Direction = Literal["max", "min"]  # whether larger or smaller is better


def count_violations(scores: ArrayLike, threshold: float | None, direction: Direction, case: Case) -> tuple[int, int]:
    """Number of scores strictly beyond a threshold, and exactly on it.

    NaN and None stand for a diverged network, the worst of all.

    Examples
    --------
    >>> count_violations([1.0, 2.0, 3.0, 3.0], threshold=2.0, direction="max", case="best")
    (2, 1)
    >>> count_violations([1.0, float("nan")], threshold=0.5, direction="min", case="worst")
    (2, 0)
    """
    limit = math.nan if threshold is None else threshold
    ties = goodness(scores, direction) == goodness([limit], direction)
    return int(violates(scores, threshold, direction, case).sum()), int(ties.sum())


def violates(scores: ArrayLike, threshold: float | None, direction: Direction, case: Case) -> Mask:
    """Which scores lie strictly beyond a threshold: better than the best, or worse than the worst."""
    if case not in ("best", "worst"):
        raise InputError(f"the case must be 'best' or 'worst', got {case!r}")
    values = goodness(scores, direction)
    limit = goodness([math.nan if threshold is None else threshold], direction)
    return np.asarray(values > limit if case == "best" else values < limit)


def goodness(scores: ArrayLike, direction: str) -> Array:
    """Scores turned so that larger is better; -inf for a network that diverged, whose score is not finite."""
    if direction not in ("max", "min"):
        raise InputError(f"the direction of a score must be 'max' or 'min', got {direction!r}")
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"scores must be numbers: {error}") from None
    return np.where(np.isfinite(values), values if direction == "max" else -values, -np.inf)


def goodness_of_each(scores: ArrayLike, direction: str) -> Array:
    """As `goodness`, of one score for each of one network or more."""
    values = goodness(scores, direction)
    if values.ndim != 1 or not len(values):
        raise InputError(f"one score for each network is needed, got an array of shape {values.shape}")
    return values


def select(scores: ArrayLike, direction: Direction) -> int | None:
    """Index of the best score; the lowest wins ties, and None if all networks diverged.

    Examples
    --------
    >>> select([1.0, 3.0, 3.0], "max"), select([2.0, float("nan")], "min"), select([float("nan")], "max")
    (1, 0, None)
    """
    best = ranking(scores, direction, 1)
    return best[0] if best else None


def best_of(scores: ArrayLike, direction: Direction = "max") -> tuple[int | None, float | None]:
    """Index and value of the best score, the lowest index among equals; None and None if all networks diverged."""
    order, values = ordered(scores, direction)
    return (None, None) if values[0] is None else (order[0], values[0])


def require_member(winner: int | None, networks: int) -> None:
    """Refuse a winner that is not one of so many networks; None stands for no winner."""
    if winner is not None and not 0 <= winner < networks:
        raise InputError(f"network {winner} is not one of {networks}")


def ranking(scores: ArrayLike, direction: Direction, count: int) -> list[int]:
    """Indices of the best scores, the best first and the lowest index of equals; diverged networks are not among them.

    Examples
    --------
    >>> ranking([1.0, 3.0, float("nan"), 3.0], "max", 2), ranking([1.0, float("inf")], "min", 2)
    ([1, 3], [0])
    """
    values = goodness(scores, direction)
    order = np.argsort(-values, kind="stable")[:count]  # stable, so that the lowest index comes first among equals
    return [int(index) for index in order if values[index] != -np.inf]


def ordered(
    scores: ArrayLike, direction: Direction = "max", case: Case = "best"
) -> tuple[list[int], list[float | None]]:
    """Indices and scores of networks from the best to the worst (or back), the lowest index first among equals.

    The score of a diverged network is None.

    Examples
    --------
    >>> ordered([1.0, 3.0, float("nan"), 3.0], "max")
    ([1, 3, 0, 2], [3.0, 3.0, 1.0, None])
    """
    if case not in ("best", "worst"):
        raise InputError(f"the case must be 'best' or 'worst', got {case!r}")
    values = goodness_of_each(scores, direction)
    order = np.argsort(-values if case == "best" else values, kind="stable")
    sign = 1.0 if direction == "max" else -1.0
    return order.tolist(), [value if math.isfinite(value) else None for value in (sign * values[order]).tolist()]
