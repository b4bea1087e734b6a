"""Stopping early, honestly: rules that are named before the first draw, and what holds when they stop.

A rule that looks only at *ranks* ("stop when the last m networks brought no improvement") costs nothing: how the ranks
came about says nothing about where the best lies, so the certificate of the n networks at which it stopped is exact.
Whoever looks at *scores* may stop for whatever reason only under a rule whose limit holds for all n together:

    looks      at a few numbers of networks, settled beforehand         (L)
    horizon    at any n up to a last one                                (C)
    anytime    at any n from a first one on, without end                (I)
    mixture    at any n from 2 on; nothing to settle; a wider limit     (M)

To stop at will and then quote the certificate of a fixed n ("naive peeking") misses 44.7 % of the time instead of 5 %
between 100 and 10,000 networks; it is not offered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import as_count, as_probability, epsilon_exact
from echobound.scenario.ordering import goodness, ordered
from echobound.scenario.statement import ScoreStatement, Scoring, Statement
from echobound.scenario.words import beyond, confidence, scored, upward, where

__all__ = [
    "Anytime",
    "Horizon",
    "Looks",
    "Mixture",
    "Patience",
    "Stopped",
    "StoppingRule",
    "peeking_probability",
    "stopping_rule",
]

SAFE = 1 + 2.0**-44  # more than the rounding errors of a limit: no reported epsilon is better than the truth


@dataclass(frozen=True, kw_only=True)
class StoppingRule(Statement):
    """When one may stop, and what is certified then.

    Parameters
    ----------
    beta
        1 - confidence.
    """

    by_ranks: ClassVar[bool] = False  # then whatever holds for a number settled beforehand holds where it stops

    beta: float

    def __post_init__(self) -> None:
        as_probability("beta", self.beta)

    @property
    def final(self) -> int | None:
        """Number of networks beyond which nothing more is certified; None if there is none."""
        return None

    def epsilon(self, networks: int) -> float:
        """What is certified if the rule stops at this many networks; 1.0 where it certifies nothing."""
        raise NotImplementedError

    def networks(self, epsilon: float) -> int:
        """Smallest number of networks at which the rule certifies epsilon.

        Examples
        --------
        >>> Patience(beta=1e-7, draws=200).networks(0.05), Anytime(beta=1e-7).networks(0.05)
        (315, 409)
        """
        as_probability("epsilon", epsilon)
        few, enough = 0, 1
        while self.epsilon(enough) > epsilon:
            few, enough = enough, 2 * enough
            if enough > 2**60:
                raise InputError(
                    f"the rule never certifies epsilon = {epsilon:g}: give a larger epsilon, or a rule that goes on for"
                    f" longer. {self.words}"
                )
        while enough - few > 1:
            middle = (few + enough) // 2
            few, enough = (few, middle) if self.epsilon(middle) <= epsilon else (middle, enough)
        return enough

    def allows(self, scores: ArrayLike, direction: str = "max") -> int | None:
        """Number of networks, in order of their index, at which the rule stops; None if it does not say."""
        return None

    @property
    def always(self) -> str:
        """How the words of a rule for all n begin."""
        return f"With confidence 1 - {confidence(self.beta)}, whatever makes you stop"


@dataclass(frozen=True, kw_only=True)
class Patience(StoppingRule):
    """Stop when the last m networks brought no improvement. Rank-based, hence free of charge.

    Ties are broken by independent coins: without them a score with few values would void it.

    Parameters
    ----------
    draws
        m.
    least
        Never stop before so many networks.
    seed
        Of the coins.

    Examples
    --------
    >>> rule = Patience(beta=0.05, draws=3)
    >>> rule.allows([1.0, 5.0, 2.0, 3.0, 4.0, 9.0])  # the 9 comes too late
    5
    >>> round(Patience(beta=0.05, draws=100).mean, 4)
    178.9985
    """

    kind = "patience"
    derived = ("mean",)
    by_ranks = True

    draws: int
    least: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        as_count("draws", self.draws)
        as_count("least", self.least)
        as_count("seed", self.seed, least=0)

    @cached_property
    def mean(self) -> float:
        """Number of networks at which it stops, on average."""
        # g(s) = s P(network s is the best so far and the rule has not stopped before s): from one record r to the next
        # record s there is r / ((s - 1) s), and the rule waits until max(r + m, least).
        g, total, window, first = [0.0, 1.0], 1.0, 1.0, 1
        s = 1
        while True:
            s += 1
            while s > max(first + self.draws, self.least):
                window -= g[first]
                first += 1
            if first > s - 1:
                return total
            g.append(max(window, 0.0) / (s - 1))
            total += g[s]
            window += g[s]
            if g[s] < 1e-17 * total and s > self.least:
                return total

    @property
    def soonest(self) -> int:
        """Number of networks before which it cannot stop."""
        return max(self.draws + 1, self.least)

    def epsilon(self, networks: int) -> float:
        """What is certified if the rule stops at this many networks: as for a number settled beforehand."""
        return epsilon_exact(networks, self.beta)

    def networks(self, epsilon: float) -> int:
        """Smallest number of networks at which the rule can stop and certifies epsilon."""
        return max(super().networks(epsilon), self.soonest)

    def allows(self, scores: ArrayLike, direction: str = "max") -> int | None:
        """Number of networks, in order of their index, at which the rule stops; None if it has not yet."""
        due = self.due(scores, direction)
        return due if due <= len(np.atleast_1d(scores)) else None

    def due(self, scores: ArrayLike, direction: str = "max") -> int:
        """Number of networks at which the rule stops unless one that is still to be drawn is better than all of these.

        It cannot stop before, so that nothing is drawn in vain by going there and asking again.

        Examples
        --------
        >>> rule = Patience(beta=0.05, draws=3)
        >>> rule.due([]), rule.due([1.0, 5.0, 2.0]), rule.due([1.0, 5.0, 2.0, 3.0, 4.0, 9.0])
        (4, 5, 5)
        """
        values = goodness(scores, direction)
        # Raw words, which are the same in every version of NumPy; compared, never turned into numbers.
        coins = np.random.Philox(key=self.seed).random_raw(len(values))
        record, due = 0, self.soonest
        for now in range(len(values)):
            if now >= due:
                break
            if (values[now], coins[now]) > (values[record], coins[record]):
                record, due = now, max(now + 1 + self.draws, self.least)
        return due

    @property
    def words(self) -> str:
        """What the rule promises."""
        least, soonest = f", and {self.least} networks were drawn at least" if self.least > 1 else "", self.soonest
        return (
            f"Stop when the last {self.draws} networks brought no improvement{least}: after {self.mean:.0f} networks on"
            f" average, {soonest} at the soonest. Whatever number n it stops at, the n networks certify what n settled"
            f" beforehand would, at confidence 1 - {confidence(self.beta)}: epsilon ="
            f" {upward(self.epsilon(soonest))} with {soonest}, {upward(self.epsilon(round(self.mean)))} with"
            f" {self.mean:.0f}. The rule looks at ranks alone; a target for the score, or the size of the last"
            " improvement, are other rules."
        )


@dataclass(frozen=True, kw_only=True)
class Looks(StoppingRule):
    """Stop at one of a few numbers of networks settled beforehand, for whatever reason.

    Parameters
    ----------
    looks
        The numbers, increasing.
    rank
        The threshold is the k-th best.

    Examples
    --------
    >>> rule = Looks(beta=0.05, looks=(100, 200, 400, 800))
    >>> round(rule.share, 9), round(rule.epsilon(400), 6), rule.epsilon(500) == rule.epsilon(400)
    (0.013703061, 0.010668, True)
    """

    kind = "looks"
    derived = ("share",)

    looks: tuple[int, ...]
    rank: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for n in self.looks:
            as_count("a look", n)
        if not self.looks or list(self.looks) != sorted(set(self.looks)) or as_count("rank", self.rank) > self.looks[0]:
            raise InputError(f"looks must be increasing numbers of networks, from the rank on, got {self.looks}")

    @cached_property
    def share(self) -> float:
        """The beta that is used up at each look."""
        if self.rank > 1:
            return self.beta / len(self.looks) / SAFE
        gaps = [1 - before / after for before, after in zip(self.looks[:-1], self.looks[1:], strict=True)]
        return _share(self.beta, lambda x: 1 - sum(math.expm1(x * gap) for gap in gaps))

    @property
    def final(self) -> int:
        """The last look."""
        return self.looks[-1]

    def epsilon(self, networks: int) -> float:
        """What is certified at this many networks: the violation probability only shrinks, so the last look holds."""
        passed = [n for n in self.looks if n <= as_count("networks", networks)]
        return epsilon_exact(passed[-1], self.share, d=self.rank) if passed else 1.0

    @property
    def words(self) -> str:
        """What the rule promises."""
        limits = ", ".join(f"{upward(self.epsilon(n))} at {n}" for n in self.looks)
        best = "best" if self.rank == 1 else f"{self.rank}-th best"
        return (
            f"{self.always} at one of the looks at {', '.join(map(str, self.looks))} networks, a new network beats the"
            f" {best} so far with probability at most epsilon = {limits}."
        )


@dataclass(frozen=True, kw_only=True)
class Horizon(StoppingRule):
    """Stop at any number of networks between two that were settled beforehand, for whatever reason.

    Parameters
    ----------
    first, last
        Nothing is certified before the first; beyond the last, the limit of the last holds.

    Examples
    --------
    >>> rule = Horizon(beta=0.05, first=100, last=10_000)
    >>> round(rule.share, 10), round(rule.epsilon(645), 9)
    (0.0016371273, 0.009896153)
    """

    kind = "horizon"
    derived = ("share",)

    first: int
    last: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not as_count("first", self.first) <= as_count("last", self.last):
            raise InputError(f"the horizon must go from fewer to more networks, got {self.first} to {self.last}")

    @cached_property
    def share(self) -> float:
        """The beta that is used up at each n."""
        return _share(self.beta, lambda x: 1 - x * math.log(self.last / self.first))

    @property
    def final(self) -> int:
        """The last number of networks."""
        return self.last

    def epsilon(self, networks: int) -> float:
        """What is certified at this many networks."""
        n = min(as_count("networks", networks), self.last)
        return _limit(math.log(self.share), n) if n >= self.first else 1.0

    @property
    def words(self) -> str:
        """What the rule promises."""
        return (
            f"{self.always} between {self.first} and {self.last} networks, a new network beats the best so far with"
            f" probability at most epsilon = {upward(self.epsilon(self.first))} at {self.first} networks and"
            f" {upward(self.epsilon(self.last))} at {self.last}."
        )


@dataclass(frozen=True, kw_only=True)
class Anytime(StoppingRule):
    """Stop at any number of networks from a first one on, without a horizon, for whatever reason.

    Parameters
    ----------
    first
        Nothing is certified before.

    Examples
    --------
    >>> rule = Anytime(beta=0.05)
    >>> round(rule.share, 10), round(rule.epsilon(645), 9)
    (0.0071302776, 0.010867494)
    """

    kind = "anytime"
    derived = ("share",)

    first: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        as_count("first", self.first)
        if self.share > math.exp(-2):
            raise InputError(f"beta = {self.beta:g} is too large for a rule without a horizon: take at most 0.5")

    @cached_property
    def share(self) -> float:
        """The beta that is used up at the first n."""
        n = self.first
        return _share(self.beta, lambda x: -x * (1 + 1 / (n + 1)) + 2 + 2 / n)

    def epsilon(self, networks: int) -> float:
        """What is certified at this many networks."""
        n = as_count("networks", networks)
        if n < self.first:
            return 1.0
        return _limit(math.log(self.share) - 2 * math.log1p(math.log(n / self.first)), n)

    @property
    def words(self) -> str:
        """What the rule promises."""
        return (
            f"{self.always} at {self.first} networks or later, a new network beats the best so far with probability at"
            f" most epsilon = {upward(self.epsilon(self.first))} at {self.first} networks,"
            f" {upward(self.epsilon(10 * self.first))} at {10 * self.first},"
            f" {upward(self.epsilon(100 * self.first))} at {100 * self.first}, and so on without end."
        )


@dataclass(frozen=True, kw_only=True)
class Mixture(StoppingRule):
    """Stop at any number of networks from 2 on, for whatever reason; there is nothing to settle but beta.

    Even beta may be chosen after the data: the limit comes from a martingale, of which 1 / beta is a value.

    Examples
    --------
    >>> round(Mixture(beta=0.05).epsilon(645), 9)
    0.014587446
    """

    kind = "mixture"

    def epsilon(self, networks: int) -> float:
        """What is certified at this many networks."""
        n = as_count("networks", networks)
        return _limit(-math.log1p((n - 1) / self.beta), n - 1) if n >= 2 else 1.0

    @property
    def words(self) -> str:
        """What the rule promises."""
        limits = ", ".join(f"{upward(self.epsilon(n))} at {n}" for n in (100, 1000, 10_000))
        return (
            f"{self.always}, a new network beats the best so far with probability at most epsilon = {limits} networks,"
            " and so on without end."
        )


def stopping_rule(text: str, beta: float) -> StoppingRule:
    """Read a rule: ``patience:200``, ``looks:100,200,400``, ``horizon:100,10000``, ``anytime``, ``mixture``.

    ``patience:200,315`` draws 315 networks at least; ``anytime:50`` begins at 50 instead of 100.

    Examples
    --------
    >>> stopping_rule("patience:200", beta=1e-7) == Patience(beta=1e-7, draws=200)
    True
    """
    name, colon, rest = text.strip().partition(":")
    try:
        numbers = [int(number) for number in rest.split(",")] if colon else []
    except ValueError:
        name, numbers = "", []
    match name, numbers:
        case "patience", [draws]:
            return Patience(beta=beta, draws=draws)
        case "patience", [draws, least]:
            return Patience(beta=beta, draws=draws, least=least)
        case "looks", [_, *_]:
            return Looks(beta=beta, looks=tuple(numbers))
        case "horizon", [first, last]:
            return Horizon(beta=beta, first=first, last=last)
        case "anytime", []:
            return Anytime(beta=beta)
        case "anytime", [first]:
            return Anytime(beta=beta, first=first)
        case "mixture", []:
            return Mixture(beta=beta)
    raise InputError(
        f"unknown stopping rule {text!r}: give patience:200, looks:100,200,400, horizon:100,10000, anytime or mixture"
    )


@dataclass(frozen=True, kw_only=True)
class Stopped(ScoreStatement):
    """What the best says when a rule, named before the first draw, was used to stop.

    Parameters
    ----------
    rule
        The rule; its beta is the statement's.
    networks
        n, at which it was stopped.
    winner, threshold
        The best of the first n, None if all diverged.
    """

    kind = "stopped"
    derived = ("epsilon",)

    rule: StoppingRule
    networks: int
    winner: int | None
    threshold: float | None

    def __post_init__(self) -> None:
        super().__post_init__()
        n = as_count("networks", self.networks)
        if self.beta != self.rule.beta:
            raise InputError(f"the rule is for beta = {self.rule.beta:g}, not {self.beta:g}")
        if self.winner is not None and not 0 <= self.winner < n:
            raise InputError(f"network {self.winner} is not one of {n}")

    @property
    def epsilon(self) -> float:
        """What is certified."""
        return self.rule.epsilon(self.networks)

    @property
    def words(self) -> str:
        """The statement in plain words."""
        what = (
            "gives a finite score"
            if self.threshold is None
            else f"scores {scored(self)} {beyond(self, self.threshold, best=True)}"
        )
        return (
            f"Stopped at {self.networks} networks by the rule {self.rule.kind!r}, named before the first draw."
            f" {self.start}, a new network drawn and trained in the same way {what} {where(self)} with"
            f" probability at most {upward(self.epsilon)}."
        )

    @classmethod
    def of(
        cls, scores: ArrayLike, rule: StoppingRule, networks: int | None = None, **scoring: Unpack[Scoring]
    ) -> Stopped:
        """State it from the scores in order of their index; those beyond where the rule stopped are not used.

        Parameters
        ----------
        scores, rule
            The scores and the rule.
        networks
            Where one stopped; given by the rule itself if it is `Patience`, all scores if not given.

        Examples
        --------
        >>> stopped = Stopped.of([1.0, 5.0, 2.0, 3.0, 4.0, 9.0], Patience(beta=0.05, draws=3))
        >>> stopped.networks, stopped.threshold, round(stopped.epsilon, 6)
        (5, 5.0, 0.45072)
        """
        direction = scoring.get("direction", "max")
        given, n = len(goodness(scores, direction)), rule.allows(scores, direction)
        if isinstance(rule, Patience) and n is None:
            raise InputError(f"the rule has not stopped after {given} networks: draw more")
        if networks is not None and (as_count("networks", networks) > given or n not in (None, networks)):
            raise InputError(f"the rule stops at {n or f'up to {given}'} networks, not at {networks}")
        n = n or networks or given
        order, values = ordered(np.asarray(scores, dtype=np.float64)[:n], direction)
        best = values[0]
        return cls(
            rule=rule,
            networks=n,
            winner=None if best is None else order[0],
            threshold=best,
            beta=rule.beta,
            **scoring,
        )

    def again(self, *data: Any) -> Stopped:
        """The statement from the scores in order of their index."""
        (scores,) = data
        return Stopped.of(scores, self.rule, self.networks, **self.scoring)


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
    for j in range(len(n)):
        first[j] = math.exp(n[j] * log_miss[j]) - first[:j] @ np.exp((n[j] - n[:j]) * log_miss[j])
    return float(first.sum())


def _share(beta: float, looks: Callable[[float], float]) -> float:
    """Solve beta = b looks(ln b) by iteration on ln b, and stay below the solution."""
    x = math.log(beta)
    for _ in range(200):
        x = math.log(beta) - math.log(looks(x))
    return math.exp(x) / SAFE


def _limit(log_probability: float, networks: int) -> float:
    """1 - exp(log_probability / networks), rounded up."""
    return min(1.0, -math.expm1(log_probability / networks) * SAFE)
