"""Fresh networks against a certificate: how many violate it, and how probable that is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import Probability, epsilon_exact

__all__ = ["Verification", "count_violations", "verify_counts"]

Case = Literal["best", "worst"]


@dataclass(frozen=True, slots=True)
class Verification:
    """What M fresh networks say about the k-th best (or worst) of N.

    Parameters
    ----------
    networks, rank, beta
        The certificate: N, k and beta.
    fresh, violations, ties
        M, those strictly beyond the threshold, and those exactly on it.
    p_value
        P(X >= violations) under the exact law, X ~ BetaBinomial(M; k, N - k + 1); too large with ties, never too small.
    probability
        P(X = violations).
    clopper_pearson
        Upper limit for the violation probability at confidence 1 - beta from the fresh networks alone.
    epsilon_combined
        The same from search and fresh networks together; ties count as violations, without which it would not hold.
    """

    networks: int
    rank: int
    beta: Probability
    fresh: int
    violations: int
    ties: int
    p_value: float
    probability: float
    clopper_pearson: float
    epsilon_combined: float

    @property
    def expected(self) -> float:
        """Mean number of violations under the exact law."""
        return self.fresh * self.rank / (self.networks + 1)

    def statement(self, case: Case = "best") -> str:
        """The outcome in plain words."""
        beyond = "beat the best" if case == "best" else "fall below the worst"
        tied = f", {self.ties} tie with it" if self.ties else ""
        return (
            f"Of {self.fresh} fresh networks, {self.violations} {beyond} of the {self.networks} of the search{tied};"
            f" the exact theory expects {self.expected:.3g}, and {self.violations} or more have probability"
            f" {self.p_value:.3g}. All {self.networks + self.fresh} networks together certify epsilon ="
            f" {self.epsilon_combined:.6g} at confidence 1 - {float(self.beta):g}."
        )


def verify_counts(
    networks: int, fresh: int, violations: int, ties: int = 0, beta: Probability = 1e-7, rank: int = 1
) -> Verification:
    """Judge a number of violations among fresh networks.

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
    at_least = _at_least(networks, fresh, violations, rank)
    return Verification(
        networks=networks,
        rank=rank,
        beta=beta,
        fresh=fresh,
        violations=violations,
        ties=ties,
        p_value=at_least,
        probability=_exactly(networks, fresh, violations, rank),
        clopper_pearson=epsilon_exact(fresh, beta, d=violations + 1) if violations < fresh else 1.0,
        epsilon_combined=epsilon_exact(networks + fresh, beta, d=rank + violations + ties),
    )


def _at_least(networks: int, fresh: int, violations: int, rank: int) -> float:
    """P(X >= x): among the best x + k - 1 of all N + M, at most k - 1 are of the search. In whole numbers: exact."""
    top = violations + rank - 1
    ways = sum(math.comb(networks, i) * math.comb(fresh, top - i) for i in range(rank) if top >= i)
    return ways / math.comb(networks + fresh, top)


def _exactly(networks: int, fresh: int, violations: int, rank: int) -> float:
    """P(X = x) = C(x+k-1, x) C(N+M-x-k, M-x) / C(N+M, M)."""
    before = math.comb(violations + rank - 1, violations)
    after = math.comb(networks + fresh - violations - rank, fresh - violations)
    return before * after / math.comb(networks + fresh, fresh)


def count_violations(
    scores: ArrayLike, threshold: float | None, direction: Literal["max", "min"], case: Case
) -> tuple[int, int]:
    """Number of scores strictly beyond a threshold, and exactly on it.

    NaN and None stand for a diverged network, the worst of all.

    Examples
    --------
    >>> count_violations([1.0, 2.0, 3.0, 3.0], threshold=2.0, direction="max", case="best")
    (2, 1)
    >>> count_violations([1.0, float("nan")], threshold=0.5, direction="min", case="worst")
    (2, 0)
    """
    values = goodness(scores, direction)
    limit = goodness([math.nan if threshold is None else threshold], direction)[0]
    beyond = values > limit if case == "best" else values < limit
    return int(beyond.sum()), int((values == limit).sum())


def goodness(scores: ArrayLike, direction: str) -> np.ndarray:
    """Scores turned so that larger is better, NaN as -inf."""
    if direction not in ("max", "min"):
        raise InputError(f"the direction of a score must be 'max' or 'min', got {direction!r}")
    values = np.asarray(scores, dtype=np.float64)
    values = values if direction == "max" else -values
    return np.where(np.isnan(values), -np.inf, values)
