"""Patience: stop when the last m networks brought no improvement."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from echobound.scenario.bounds import as_count, epsilon_exact
from echobound.scenario.ordering import goodness
from echobound.scenario.stopping.base import StoppingRule
from echobound.scenario.words import confidence, upward


@dataclass(frozen=True, kw_only=True)
class Patience(StoppingRule):
    """Stop when the last m networks brought no improvement. It looks at ranks alone, so it costs nothing.

    Ties are broken by independent coin tosses: without them, a score with few values would void the certificate.

    Examples
    --------
    >>> rule = Patience(beta=0.05, draws=3)
    >>> rule.stops_at([1.0, 5.0, 2.0, 3.0, 4.0, 9.0])  # the 9 comes too late
    5
    >>> rule.due([]), rule.due([1.0, 5.0, 2.0])
    (4, 5)
    >>> round(Patience(beta=0.05, draws=100).mean, 4)
    178.9985
    """

    kind = "patience"
    derived = ("mean",)
    by_ranks = True
    takes = (1, 2)
    example = "patience:200"

    draws: int  # m
    least: int = 1  # never stop before this many networks
    seed: int = 0  # of the coin tosses

    def __post_init__(self) -> None:
        super().__post_init__()
        as_count("draws", self.draws)
        as_count("least", self.least)
        as_count("seed", self.seed, least=0)

    @cached_property
    def mean(self) -> float:
        """Number of networks at which it stops, on average."""
        # By a recursion over records, since the sum over all orders of ranks has no closed form:
        # g(s) = s P(network s is the best so far and the rule has not stopped before s): from one record r to the next
        # record s there is r / ((s - 1) s), and the rule waits until max(r + m, least).
        g, total, window, first = [0.0, 1.0], 1.0, 1.0, 1
        for s in itertools.count(2):
            while s > max(first + self.draws, self.least):
                window -= g[first]
                first += 1
            if first > s - 1:
                break
            g.append(max(window, 0.0) / (s - 1))
            total += g[s]
            window += g[s]
            if g[s] < 1e-17 * total and s > self.least:
                break
        return total

    @property
    def soonest(self) -> int:
        """Number of networks before which it cannot stop."""
        return max(self.draws + 1, self.least)

    def epsilon(self, networks: int) -> float:
        """What is certified if the rule stops at this many networks: as for a number settled beforehand."""
        # The order of ranks is independent of the set of scores, and the rule sees nothing but the order.
        return epsilon_exact(networks, self.beta)

    def networks(self, epsilon: float) -> int:
        """Smallest number of networks at which the rule can stop and certifies epsilon."""
        return max(super().networks(epsilon), self.soonest)

    def due(self, scores: ArrayLike, direction: str = "max") -> int:
        """Number of networks at which the rule stops, unless one of those still to be drawn beats all of these.

        It cannot stop earlier, so nothing is drawn in vain by drawing that many and asking again.
        """
        values = goodness(scores, direction)
        # Raw words, since these are the same in every version of NumPy; they are only compared.
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
        many, soonest = self.drawn.many, self.soonest
        least = f", and at least {self.least} {many} were drawn" if self.least > 1 else ""
        return (
            f"Stop when the last {self.draws} {many} brought no improvement{least}: after {self.mean:.0f} {many} on"
            f" average, {soonest} at the soonest. Whatever number n it stops at, the n {many} certify what n settled"
            f" beforehand would, at confidence 1 - {confidence(self.beta)}: epsilon ="
            f" {upward(self.epsilon(soonest))} with {soonest}, {upward(self.epsilon(round(self.mean)))} with"
            f" {self.mean:.0f}. The rule looks at ranks alone; to stop at a target score, or when the last improvement"
            " was small, takes another rule."
        )
