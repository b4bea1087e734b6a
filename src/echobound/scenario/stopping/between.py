"""Between: stop anywhere between two numbers of networks, for any reason."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from echobound.errors import InputError
from echobound.scenario.bounds import as_count
from echobound.scenario.stopping.base import StoppingRule, certified_limit, log_share, solved_share


@dataclass(frozen=True, kw_only=True)
class Between(StoppingRule):
    """Stop at any number of networks between two settled beforehand, for any reason.

    Nothing is certified before the first; beyond the last, the limit of the last holds.

    Examples
    --------
    >>> rule = Between(beta=0.05, first=100, last=10_000)
    >>> round(rule.share, 10), round(rule.epsilon(645), 9)
    (0.0016371273, 0.009896153)
    """

    kind = "between"
    derived = ("share",)
    takes = (2, 2)
    example = "between:100,10000"
    formerly = "horizon"

    first: int
    last: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not as_count("first", self.first) <= as_count("last", self.last):
            raise InputError(f"the rule goes from fewer to more networks, got {self.first} to {self.last}")

    @cached_property
    def share(self) -> float:
        """The part of beta that is spent at each n."""
        return solved_share(self.beta, lambda x: 1 - x * math.log(self.last / self.first))

    @property
    def final(self) -> int:
        """The last number of networks."""
        return self.last

    def epsilon(self, networks: int) -> float:
        """What is certified at this many networks."""
        n = min(as_count("networks", networks), self.last)
        return certified_limit(log_share(self.share), n) if n >= self.first else 1.0

    @property
    def words(self) -> str:
        """What the rule promises."""
        limits = f"{self.limit_at(self.first)} {self.drawn.many} and {self.limit_at(self.last)}"
        return self.promise(f" between {self.first} and {self.last} {self.drawn.many}", limits)
