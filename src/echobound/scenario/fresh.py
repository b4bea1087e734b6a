"""Fresh networks against a certificate: how many violate it, and how probable that many are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from echobound.errors import InputError
from echobound.scenario.bounds import Probability, epsilon_exact
from echobound.scenario.ordering import Case
from echobound.scenario.words import confidence, noun, upward


@dataclass(frozen=True, slots=True)
class Verification:
    """What M fresh networks say about the k-th best (or worst) of N."""

    networks: int
    rank: int
    beta: Probability
    fresh: int  # M
    violations: int  # those strictly beyond the threshold
    ties: int  # those exactly on it
    p_value: float  # P(X >= violations), X ~ BetaBinomial(M; k, N - k + 1): exact, with ties an upper bound
    probability: float  # P(X = violations)
    clopper_pearson: float  # upper limit for the violation probability from the fresh networks alone
    epsilon_combined: float  # from all networks together; ties count as violations, or it would not hold
    alone: bool = False  # whether the search adds nothing, so that `epsilon_combined` is that of the fresh networks
    members: int = 1  # of how many networks each draw is a committee

    @property
    def expected(self) -> float:
        """Mean number of violations under the exact law."""
        return self.fresh * self.rank / (self.networks + 1)

    def statement(self, case: Case = "best") -> str:
        """The outcome in plain words."""
        one = self.violations == 1
        better, worse = ("beats", "is") if one else ("beat", "are")
        beaten = f"{better} the best" if case == "best" else f"{worse} worse than the worst"
        tied = f", {self.ties} tie with it" if self.ties else ""
        many = noun(self.members).many
        settled = f"for {self.networks} {many} settled beforehand " if self.alone else ""
        counted = f"The {self.fresh} alone" if self.alone else f"All {self.networks + self.fresh} {many} together"
        return (
            f"Of {self.fresh} fresh {many}, {self.violations} {beaten} of the {self.networks} of the search{tied};"
            f" {settled}the exact theory expects {self.expected:.3g}, and {self.violations} or more have probability"
            f" {self.p_value:.3g}. {counted} certify epsilon = {upward(self.epsilon_combined)} at confidence"
            f" 1 - {confidence(self.beta)}."
        )


def verify_counts(
    networks: int,
    fresh: int,
    violations: int,
    ties: int = 0,
    beta: Probability = 1e-7,
    rank: int = 1,
    *,
    alone: bool = False,
    members: int = 1,
) -> Verification:
    """Judge a number of violations among fresh networks.

    `alone` leaves the search out of what is certified: it adds nothing where its number of networks was found by
    looking at the scores. (Pooling the two missed 34 % of the time instead of 5 % where somebody who knows the law of
    the scores stopped between 100 and 5000 networks, followed by 20 fresh ones.)

    Examples
    --------
    >>> outcome = verify_counts(networks=645, fresh=500, violations=2, beta=0.05)
    >>> round(outcome.p_value, 9), round(outcome.epsilon_combined, 9)
    (0.190475463, 0.005488204)
    """
    if not 1 <= rank <= networks:
        raise InputError(f"the rank must lie between 1 and the {networks} networks, got {rank}")
    if not (violations >= 0 and ties >= 0 and violations + ties <= fresh):
        raise InputError(f"{violations} violations and {ties} ties cannot come from {fresh} fresh networks")
    at_least, more = (_at_least(networks, fresh, count, rank) for count in (violations, violations + 1))
    of_fresh = epsilon_exact(fresh, beta, d=violations + 1) if violations < fresh else 1.0
    together = epsilon_exact(networks + fresh, beta, d=rank + violations + ties)
    found: dict[str, Any] = {
        "p_value": float(at_least),
        "probability": float(at_least - more),
        "clopper_pearson": of_fresh,
    }
    found["epsilon_combined"] = of_fresh if alone else together
    return Verification(networks, rank, beta, fresh, violations, ties, **found, alone=alone, members=members)


@dataclass(frozen=True, slots=True)
class Divergence:
    """What fresh networks say about the probability of divergence, when the worst of the search diverged.

    Nothing is worse than divergence, so no fresh network can violate such a worst case; what can be stated is an upper
    limit for the probability that a new network diverges, from the fresh networks alone and from all together.
    """

    networks: int
    failures: int
    beta: Probability
    fresh: int
    diverged: int
    clopper_pearson: float
    epsilon_combined: float
    alone: bool = False
    members: int = 1

    @property
    def statement(self) -> str:
        """The outcome in plain words."""
        drawn = noun(self.members)
        counted = "the fresh ones alone" if self.alone else "together they"
        return (
            f"Of {self.fresh} fresh {drawn.many}, {self.diverged} diverged, and so did {self.failures} of the"
            f" {self.networks} of the search; {counted} show that {drawn.new} diverges with probability at most"
            f" {upward(self.epsilon_combined)} at confidence 1 - {confidence(self.beta)}."
        )


def verify_divergence(
    networks: int,
    failures: int,
    fresh: int,
    diverged: int,
    beta: Probability = 1e-7,
    *,
    alone: bool = False,
    members: int = 1,
) -> Divergence:
    """Upper limits (Clopper-Pearson) for the probability of divergence; `alone` as in `verify_counts`.

    Examples
    --------
    >>> round(verify_divergence(networks=315, failures=30, fresh=500, diverged=48).epsilon_combined, 4)
    0.159
    """
    if not (0 <= failures <= networks and 0 <= diverged <= fresh):
        raise InputError(f"{failures} of {networks} and {diverged} of {fresh} networks cannot have diverged")
    of_fresh = epsilon_exact(fresh, beta, d=diverged + 1) if fresh > diverged else 1.0
    counted, failed = networks + fresh, failures + diverged
    together = epsilon_exact(counted, beta, d=failed + 1) if counted > failed else 1.0
    limit = of_fresh if alone else together
    return Divergence(networks, failures, beta, fresh, diverged, of_fresh, limit, alone, members)


def _at_least(networks: int, fresh: int, violations: int, rank: int) -> Fraction:
    """P(X >= x): among the best x + k - 1 of all N + M, at most k - 1 are of the search. In whole numbers: exact."""
    top = violations + rank - 1
    ways = sum(math.comb(networks, i) * math.comb(fresh, top - i) for i in range(rank) if top >= i)
    return Fraction(ways, math.comb(networks + fresh, top)) if top <= networks + fresh else Fraction(0)
