"""Several statements at once: how many networks, what epsilon, what beta, by the exact bound.

To beat the best in *any* of K scores is one event of a scenario program with K decisions. Statements about *each* of K
scores, or of K families' own bests, share beta: each is made at beta / K, and the union bound makes them hold together.
"""

from __future__ import annotations

from dataclasses import dataclass

from echobound.scenario.bounds import (
    Probability,
    as_count,
    as_probability,
    beta_exact,
    epsilon_exact,
    networks_exact,
)


@dataclass(frozen=True)
class Several:
    """Numbers of networks (of each family), epsilon and beta: two given, the third follows; see `any_of`, `each_of`.

    Parameters
    ----------
    d
        Decisions of the scenario program.
    shares
        Statements that share beta.
    """

    d: int = 1
    shares: int = 1

    def networks(self, epsilon: Probability, beta: Probability) -> int:
        """Smallest number of networks for epsilon and beta."""
        # Beta is divided as it was typed, in decimals: 1e-7 / 3 has no exact float.
        return networks_exact(epsilon, as_probability("beta", beta) / self.shares, d=self.d)

    def epsilon(self, networks: int, beta: Probability) -> float:
        """Smallest epsilon that so many networks certify at beta."""
        return epsilon_exact(networks, as_probability("beta", beta) / self.shares, d=self.d)

    def beta(self, networks: int, epsilon: Probability) -> float:
        """Smallest beta at which so many networks certify epsilon."""
        return min(1.0, self.shares * beta_exact(networks, epsilon, d=self.d))


def any_of(scores: int) -> Several:
    """A new network beats the best in one or more of so many scores with probability at most epsilon.

    Examples
    --------
    >>> any_of(3).networks(0.05, 1e-7)
    424
    """
    return Several(d=as_count("scores", scores))


def each_of(count: int) -> Several:
    """Statements about each of so many scores or families, all true together with confidence 1 - beta.

    The best of all families alone needs only `networks_exact` of each family.

    Examples
    --------
    >>> each_of(3).networks(0.05, 1e-7), each_of(21).networks(0.05, 1e-7)
    (336, 374)
    """
    return Several(shares=as_count("count", count))
