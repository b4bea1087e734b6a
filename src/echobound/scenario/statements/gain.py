"""Gain: whether it is worth training more networks. These are estimates, not promises."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Array
from echobound.errors import InputError
from echobound.scenario.bounds import as_count
from echobound.scenario.ordering import Direction, goodness_of_each
from echobound.scenario.search import Search
from echobound.scenario.statements.base import Scoring, Statement
from echobound.scenario.words import ahead_words, score_title, upward
from echobound.typed import later


def beaten_probability(networks: int, further: int) -> float:
    """Probability that the best of M further networks beats the best of N: M / (N + M).

    Exact for a continuous score, before the scores are seen; smaller with ties (0 where every network scores the same).
    """
    n, m = as_count("networks", networks), as_count("further", further, least=0)
    return m / (n + m)


def learning_curve(scores: ArrayLike, sizes: Iterable[int], direction: str = "max") -> Array:
    """Mean best score of n of the N networks, over all ways to take n of them: unbiased for a search of n.

    One value for each n of `sizes`, from 1 to N; infinitely bad where n networks may all have diverged.

    Examples
    --------
    >>> learning_curve(range(1, 11), [1, 5, 9, 10]).round(6).tolist()
    [5.5, 9.166667, 9.9, 10.0]
    """
    values = np.sort(goodness_of_each(scores, direction))
    sign = 1.0 if direction == "max" else -1.0
    return np.array([sign * _mean_best(values, as_count("a size of the learning curve", n)) for n in sizes])


def _mean_best(values: Array, n: int) -> float:
    """U(n) = sum_i S_(i) C(i - 1, n - 1) / C(N, n), values ascending; weights by recursion from the largest."""
    count = len(values)
    if n > count:
        raise InputError(f"the learning curve goes up to the {count} networks there are, got {n}")
    i = np.arange(count, n - 1, -1)
    weights = n / count * np.concatenate([[1.0], np.cumprod((i[:-1] - n) / (i[:-1] - 1.0))])
    counted = weights > 0  # or 0 times the -inf of a diverged network would be NaN
    return float(weights[counted] @ values[i[counted] - 1])


@dataclass(frozen=True)
class _Tail:
    """Generalised Pareto tail fitted by probability-weighted moments to the k largest excesses."""

    shape: float  # xi, clipped to [-0.5, 0] for a score that is bounded above
    scale: float
    count: int

    def gain(self, factor: float) -> float:
        xi = self.shape
        if xi == 0:
            return self.scale * math.log(factor)
        return self.scale / xi * math.pow(self.count, xi) * math.gamma(1 - xi) * (math.pow(factor, xi) - 1)


def _tail(values: Array, count: int) -> _Tail | None:
    """The tail of ascending values; None where the scores do not allow one."""
    if count < 2 or len(values) <= count or not np.isfinite(values[-count - 1]):
        return None
    excess = values[-count:] - values[-count - 1]
    a0 = float(excess.mean())
    a1 = float((excess * np.arange(count - 1, -1, -1) / (count - 1)).mean())
    if not a0 > 2 * a1 > 0:
        return None
    # A score that is bounded above has no heavier tail than an exponential one: its shape is at most 0.
    shape = min(0.0, max(-0.5, 2 - a0 / (a0 - 2 * a1)))
    return _Tail(shape, a0 * (1 - shape), count)


def tail_gain(scores: ArrayLike, factor: float = 10.0, direction: str = "max") -> float | None:
    """Estimated gain of the best score if `factor` times as many networks were drawn, from the tail of the scores.

    A generalised Pareto law is fitted to the largest tenth of the scores. Its error is 35
    to 95 per cent: an order of magnitude. None where there are too few different scores.

    Examples
    --------
    >>> scores = [-math.log(1 - i / 201) for i in range(1, 201)]
    >>> round(tail_gain(scores), 6), round(tail_gain(scores, factor=2), 6)
    (1.639112, 0.522258)
    """
    if not (math.isfinite(factor) and factor > 1):
        raise InputError(f"the factor must be above 1, got {factor}")
    values = np.sort(goodness_of_each(scores, direction))
    tail = _tail(values, len(values) // 10)
    return None if tail is None else tail.gain(factor)


@dataclass(frozen=True, kw_only=True)
class Gain(Statement):
    """Whether more networks would be worth their time: an estimate."""

    kind = "gain"
    title = "more {many}"
    derived = ("further", "probability")

    networks: int
    factor: int  # how many times as many networks are considered
    # What the last factor of ten gained: best of N against the mean best of N / 10. For a score that is bounded above,
    # the next factor of ten gains at most about as much. None where it is not finite.
    last_decade: float | None
    tail: float | None  # `tail_gain`: the estimate; None where there is none
    # What was scored, as in `certify`.
    score: str = "score"
    direction: Direction = "max"
    unit: str = ""
    horizon: int | None = None
    blocks: int | None = None
    at_will: bool = later(False)  # whether the number of networks may depend on the scores

    def __post_init__(self) -> None:
        as_count("networks", self.networks)
        as_count("factor", self.factor, least=2)

    @classmethod
    def of_search(cls, search: Search) -> Gain:
        """Always made: it is an estimate, for whatever search."""
        return replace(cls.of(search.first, **search.scoring), at_will=search.at_will)

    @property
    def further(self) -> int:
        """Networks to be drawn in addition."""
        return (self.factor - 1) * self.networks

    @property
    def probability(self) -> float:
        """Largest probability, before the scores are seen, that the best of all these beats the present best.

        It is reached by a continuous score; with ties it is smaller. It follows from ranks, so nothing follows where
        the search was stopped at will.
        """
        return beaten_probability(self.networks, self.further)

    @property
    def words(self) -> str:
        """The estimate in plain words."""
        times = {2: "Twice", 10: "Ten times"}.get(self.factor, f"{self.factor} times")
        name = score_title(self.score)
        point = f"{name} point" if self.unit == "%" else self.unit or name
        # With ties it is less, and after a look at the scores it is another number: only the limit is certain.
        better = f"they would find a better one with probability at most {upward(self.probability, 3)}"
        chance = f" By ranks alone, {better}." if not self.at_will else ""
        ahead = "" if self.horizon is None else f", {ahead_words(self.horizon)},"
        seen = "" if self.last_decade is None else f" (the last factor of ten gained {_in_full(self.last_decade, 2)})"
        luck = "on these validation data" if self.blocks is None else "on these blocks"
        if self.tail is None:
            alike = f"The scores{ahead.rstrip(',')} are too few or too alike to say what {times.lower()} as many"
            return f"{alike} {self.drawn.many} would gain{seen}.{chance} Part of any gain is luck {luck}."
        gained = _in_full(self.tail, 1)
        points = "s" if self.unit == "%" and gained != "1" else ""
        return (
            f"{times} as many {self.drawn.many} would probably gain about {gained} {point}{points}{ahead}{seen}; this"
            f" estimate of an order of magnitude may err by more than its own size.{chance} Part of such a gain is luck"
            f" {luck}."
        )

    @classmethod
    def of(cls, scores: ArrayLike, *, factor: int = 10, **scoring: Unpack[Scoring]) -> Gain:
        """Estimate it from the scores of all N networks.

        Examples
        --------
        >>> scores = [100 - 10 * math.sqrt(1 - i / 201) for i in range(1, 201)]
        >>> print(Gain.of(scores, score="fit", unit="%").words)
        Ten times as many networks would probably gain about 0.4 FIT points (the last factor of ten gained 1.3); this
        estimate of an order of magnitude may err by more than its own size. By ranks alone, they would find a better
        one with probability at most 0.9. Part of such a gain is luck on these validation data.
        """
        direction = scoring.get("direction", "max")
        values = np.sort(goodness_of_each(scores, direction))
        tenth = len(values) // 10
        decade = float(values[-1]) - _mean_best(values, tenth) if tenth and np.isfinite(values[-1]) else math.nan
        tail = _rounded(tail_gain(scores, factor, direction))
        return cls(networks=len(values), factor=factor, last_decade=_rounded(decade), tail=tail, **scoring)


def _in_full(value: float, digits: int) -> str:
    """A number of few digits in full: 10, not 1e+01."""
    return f"{float(f'{value:.{digits}g}'):g}"


def _rounded(value: float | None) -> float | None:
    """Six digits: an estimate has no more, and the last bits of a sum differ between machines."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
