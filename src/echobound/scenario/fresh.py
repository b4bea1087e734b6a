"""Fresh networks against a certificate: how many violate it, how probable that many are, and what all of them certify.

A verification can be repeated, and fresh networks added until content. So what is certified by them comes from
confidence sequences (`sequences`), which hold at every number of fresh networks together. Only where that number was
settled beforehand, and is looked at once, do the sharper limits of a number of trials hold (`settled`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from echobound.errors import InputError
from echobound.scenario.bounds import Probability, as_probability, epsilon_exact
from echobound.scenario.ordering import Case
from echobound.scenario.sequences import pooled_limit, sequential_limit
from echobound.scenario.words import confidence, noun, upward

RARE = Fraction(1, 100)  # a probability below which counts of violations are not planned for


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
    epsilon_fresh: float  # upper limit for the violation probability from the fresh networks alone
    epsilon_combined: float  # from all networks together; ties count as violations, or it would not hold
    alone: bool = False  # whether the search adds nothing, so that `epsilon_combined` is that of the fresh networks
    members: int = 1  # of how many networks each draw is a committee
    at_will: bool = False  # whether the number of networks of the search may depend on their scores
    settled: bool = False  # whether M was settled beforehand, so that the limits are those of one look

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
        searched = f"{self.networks} {many} of a search and " if self.at_will else ""
        expected = f"for {searched}{self.fresh} fresh ones settled beforehand, the exact theory expects"
        looks = "" if self.settled else ", however often one looks and adds more"
        counted = f"The {self.fresh} alone" if self.alone else f"All {self.networks + self.fresh} {many} together"
        return (
            f"Of {self.fresh} fresh {many}, {self.violations} {beaten} of the {self.networks} of the search{tied};"
            f" {expected} {self.expected:.3g}, and {self.violations} or more have probability {self.p_value:.3g}."
            f" {counted} certify epsilon = {upward(self.epsilon_combined)} at confidence"
            f" 1 - {confidence(self.beta)}{looks}. {either_words(self.beta)}"
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
    at_will: bool = False,
    settled: bool = False,
) -> Verification:
    """Judge a number of violations among fresh networks.

    `alone` leaves the search out of what is certified. `at_will` says that its number of networks may depend on their
    scores: they then count as the martingale of the rule `mixture` counts them. (To pool them as if their number had
    been settled missed 34 % of the time instead of 5 %, where somebody who knows the law of the scores stopped between
    100 and 5000 networks, followed by 20 fresh ones.) `settled` says that the number of fresh networks was settled
    beforehand and is looked at once; for one chosen by somebody who sees the counts, these limits miss 16 %.

    Examples
    --------
    >>> outcome = verify_counts(networks=645, fresh=500, violations=2, beta=0.05)
    >>> round(outcome.p_value, 9), round(outcome.epsilon_combined, 6)
    (0.190475463, 0.009347)
    >>> round(verify_counts(networks=645, fresh=500, violations=2, beta=0.05, settled=True).epsilon_combined, 9)
    0.005488204
    """
    if not 1 <= rank <= networks:
        raise InputError(f"the rank must lie between 1 and the {networks} networks, got {rank}")
    if not (violations >= 0 and ties >= 0 and violations + ties <= fresh):
        raise InputError(f"{violations} violations and {ties} ties cannot come from {fresh} fresh networks")
    at_least, more = (_at_least(networks, fresh, count, rank) for count in (violations, violations + 1))
    if settled and not at_will:
        of_fresh = _clopper_pearson(violations, fresh, beta)
        together = epsilon_exact(networks + fresh, beta, d=rank + violations + ties)
    else:
        # Nothing here is looked at before the search has ended: its size may serve as what is expected of fresh ones.
        mixture, events = (float(rank), networks - rank + 1.0), violations + ties
        of_fresh = sequential_limit(violations, fresh, beta, mixture)
        if not at_will:
            together = pooled_limit(networks, fresh, events, beta, rank)
        elif rank == 1:
            together = sequential_limit(events, fresh, beta, (1.0, float(networks)), stopped=networks)
        else:
            together = of_fresh
    found: dict[str, Any] = {
        "p_value": float(at_least),
        "probability": float(at_least - more),
        "epsilon_fresh": of_fresh,
    }
    found["epsilon_combined"] = of_fresh if alone else together
    how: dict[str, Any] = {"alone": alone, "members": members, "at_will": at_will, "settled": settled}
    return Verification(networks, rank, beta, fresh, violations, ties, **found, **how)


def planned_verification(networks: int, fresh: int, beta: Probability = 1e-7) -> list[Verification]:
    """What N networks and M fresh ones will certify together, planned beforehand: for 0, 1, 2, ... violations.

    As far as more violations have a probability of at least 0.01. What is certified holds however often one looks.

    Examples
    --------
    >>> plan = planned_verification(networks=315, fresh=600, beta=1e-7)
    >>> [(one.violations, round(one.p_value, 3), round(one.epsilon_combined, 4)) for one in plan[:2]]
    [(0, 1.0, 0.022), (1, 0.656, 0.0255)]
    """
    planned = [verify_counts(networks, fresh, 0, beta=beta)]
    while (x := planned[-1].violations + 1) <= fresh and _at_least(networks, fresh, x, 1) >= RARE:
        planned.append(verify_counts(networks, fresh, x, beta=beta))
    return planned


def fresh_needed(networks: int, epsilon: float, beta: Probability = 1e-7, violations: int = 0) -> int:
    """How many fresh networks certify epsilon together with N, even if so many of them violate; 0 if N suffice.

    Examples
    --------
    >>> fresh_needed(networks=315, epsilon=0.02, beta=1e-7), fresh_needed(networks=315, epsilon=0.02, violations=2)
    (698, 1003)
    """
    if not 0 < epsilon < 1:
        raise InputError(f"epsilon lies between 0 and 1, got {epsilon}")
    if not violations and epsilon_exact(networks, beta) <= epsilon:
        return 0
    low, high = violations - 1, max(2 * violations, networks)  # so many are too few, and perhaps enough
    while pooled_limit(networks, high, violations, beta) > epsilon:
        low, high = high, 2 * high
    while high - low > 1:  # the limit falls with every further network that does not violate
        middle = (low + high) // 2
        low, high = (low, middle) if pooled_limit(networks, middle, violations, beta) <= epsilon else (middle, high)
    return high


def either_words(beta: Probability) -> str:
    """Which epsilon may be quoted, once there is one from the search and one from a verification."""
    twice = confidence(2 * as_probability("beta", beta))
    return (
        f"The certificate's epsilon and this one hold together with confidence 1 - {twice}: quote the better at that."
    )


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
    epsilon_fresh: float
    epsilon_combined: float
    members: int = 1
    settled: bool = False

    @property
    def statement(self) -> str:
        """The outcome in plain words."""
        drawn = noun(self.members)
        looks = "" if self.settled else ", however often one looks and adds more"
        return (
            f"Of {self.fresh} fresh {drawn.many}, {self.diverged} diverged, and so did {self.failures} of the"
            f" {self.networks} of the search; together they show that {drawn.new} diverges with probability at most"
            f" {upward(self.epsilon_combined)} at confidence 1 - {confidence(self.beta)}{looks}."
        )


def verify_divergence(
    networks: int,
    failures: int,
    fresh: int,
    diverged: int,
    beta: Probability = 1e-7,
    *,
    members: int = 1,
    settled: bool = False,
) -> Divergence:
    """Upper limits for the probability of divergence; `settled` as in `verify_counts`.

    Whether a network diverges is a trial of its own, and the limits hold at every number of trials: so it does not
    matter what ended the search.

    Examples
    --------
    >>> counts = {"networks": 315, "failures": 30, "fresh": 500, "diverged": 48}
    >>> round(verify_divergence(**counts).epsilon_combined, 4)
    0.1731
    >>> round(verify_divergence(**counts, settled=True).epsilon_combined, 4)  # Clopper-Pearson
    0.159
    """
    if not (0 <= failures <= networks and 0 <= diverged <= fresh):
        raise InputError(f"{failures} of {networks} and {diverged} of {fresh} networks cannot have diverged")
    limit = _clopper_pearson if settled else sequential_limit
    of_fresh, together = limit(diverged, fresh, beta), limit(failures + diverged, networks + fresh, beta)
    return Divergence(networks, failures, beta, fresh, diverged, of_fresh, together, members, settled)


def _clopper_pearson(events: int, trials: int, beta: Probability) -> float:
    """Upper limit for a probability, from a number of trials settled beforehand."""
    return epsilon_exact(trials, beta, d=events + 1) if events < trials else 1.0


def _at_least(networks: int, fresh: int, violations: int, rank: int) -> Fraction:
    """P(X >= x): among the best x + k - 1 of all N + M, at most k - 1 are of the search. In whole numbers: exact."""
    top = violations + rank - 1
    ways = sum(math.comb(networks, i) * math.comb(fresh, top - i) for i in range(rank) if top >= i)
    return Fraction(ways, math.comb(networks + fresh, top)) if top <= networks + fresh else Fraction(0)
