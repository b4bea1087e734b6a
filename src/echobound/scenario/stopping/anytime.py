"""Anytime: stop anywhere from a first number of networks on, for any reason."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from echobound.errors import InputError
from echobound.scenario.bounds import as_count
from echobound.scenario.stopping.base import StoppingRule, certified_limit, log_share, solved_share


@dataclass(frozen=True, kw_only=True)
class Anytime(StoppingRule):
    """Stop at any number of networks from a first one on, without a last one, for any reason.

    Examples
    --------
    >>> rule = Anytime(beta=0.05)
    >>> round(rule.share, 10), round(rule.epsilon(645), 9)
    (0.0071302776, 0.010867494)
    """

    kind = "anytime"
    derived = ("share",)
    takes = (0, 1)
    example = "anytime"

    first: int = 100  # nothing is certified before

    def __post_init__(self) -> None:
        super().__post_init__()
        as_count("first", self.first)
        if self.share > math.exp(-2):
            raise InputError(
                f"beta = {self.beta:g} is too large for a rule without a last number of networks: take at most 0.5"
            )

    @cached_property
    def share(self) -> float:
        """The part of beta that is spent at the first n."""
        return solved_share(self.beta, lambda x: -x * (1 + 1 / (self.first + 1)) + 2 + 2 / self.first)

    def epsilon(self, networks: int) -> float:
        """What is certified at this many networks."""
        n = as_count("networks", networks)
        if n < self.first:
            return 1.0
        return certified_limit(log_share(self.share) - 2 * math.log1p(math.log(n / self.first)), n)

    @property
    def words(self) -> str:
        """What the rule promises."""
        first, *later = (self.limit_at(n * self.first) for n in (1, 10, 100))
        limits = f"{first} {self.drawn.many}, {', '.join(later)}, and so on without end"
        return self.promise(f" at {self.first} {self.drawn.many} or later", limits)
