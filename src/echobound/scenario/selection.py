"""Selection: the best of N by their scores."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from echobound.scenario.verification import goodness

__all__ = ["ranking", "select"]


def select(scores: ArrayLike, direction: Literal["max", "min"]) -> int | None:
    """Index of the best score; the lowest wins ties, and None if all networks diverged.

    Examples
    --------
    >>> select([1.0, 3.0, 3.0], "max"), select([2.0, float("nan")], "min"), select([float("nan")], "max")
    (1, 0, None)
    """
    best = ranking(scores, direction, 1)
    return best[0] if best else None


def ranking(scores: ArrayLike, direction: Literal["max", "min"], count: int) -> list[int]:
    """Indices of the best scores, the best first and the lowest index of equals; diverged networks are not among them.

    Examples
    --------
    >>> ranking([1.0, 3.0, float("nan"), 3.0], "max", 2), ranking([1.0, float("inf")], "min", 2)
    ([1, 3], [0])
    """
    values = goodness(scores, direction)
    order = np.argsort(-values, kind="stable")[:count]
    return [int(index) for index in order if values[index] != -np.inf]
