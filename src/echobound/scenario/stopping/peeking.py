"""What it costs to look at the scores and stop at will."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from echobound.errors import InputError

__all__ = ["peeking_probability"]


def peeking_probability(networks: Sequence[int], epsilons: Sequence[float]) -> float:
    """P(the violation probability of the best exceeds its limit at one look or more), exactly.

    Parameters
    ----------
    networks
        Numbers of networks at the looks, increasing.
    epsilons
        The limits there, not increasing.

    Examples
    --------
    >>> looks = range(100, 1001)
    >>> round(peeking_probability(looks, [1 - 0.05 ** (1 / n) for n in looks]), 3)  # naive
    0.282
    """
    n, log_miss = np.asarray(networks, dtype=float), np.log1p(-np.asarray(epsilons, dtype=float))
    if len(n) != len(log_miss) or (np.diff(n) <= 0).any() or (np.diff(log_miss) < -1e-12).any():
        raise InputError("as many limits as looks are needed, the looks increasing and the limits not")
    first = np.zeros(len(n))  # P(exceeded at this look and at none before)
    # Exceeded at look j, less those that were first exceeded at a look i before and whose draws since then all missed
    # the share of limit j; what exceeded limit i exceeds limit j too, since limits do not grow.
    for j in range(len(n)):
        first[j] = math.exp(n[j] * log_miss[j]) - first[:j] @ np.exp((n[j] - n[:j]) * log_miss[j])
    return float(first.sum())
