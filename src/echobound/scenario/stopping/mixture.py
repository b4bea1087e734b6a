"""Mixture: stop anywhere from 2 networks on, for any reason."""

from __future__ import annotations

import math
from dataclasses import dataclass

from echobound.scenario.bounds import as_count
from echobound.scenario.stopping.base import StoppingRule, certified_limit


@dataclass(frozen=True, kw_only=True)
class Mixture(StoppingRule):
    """Stop at any number of networks from 2 on, for any reason; there is nothing to settle but beta.

    The limit comes from a martingale, which is below 1 / beta at all n together with probability 1 - beta, for a beta
    settled beforehand. With one that is chosen after a look, the probability of a miss, weighted by 1 / beta, is at
    most 1 on average; that is another promise than a confidence of 1 - beta.

    Examples
    --------
    >>> round(Mixture(beta=0.05).epsilon(645), 9)
    0.014587446
    """

    kind = "mixture"
    example = "mixture"

    def epsilon(self, networks: int) -> float:
        """What is certified at this many networks."""
        n = as_count("networks", networks)
        return certified_limit(-math.log1p((n - 1) / self.beta), n - 1) if n >= 2 else 1.0

    @property
    def words(self) -> str:
        """What the rule promises."""
        limits = ", ".join(map(self.limit_at, (100, 1000, 10_000)))
        return self.promise("", f"{limits} {self.drawn.many}, and so on without end")
