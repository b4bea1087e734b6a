"""Looks: stop at one of a few numbers of networks, for any reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from echobound.errors import InputError
from echobound.scenario.bounds import as_count, epsilon_exact
from echobound.scenario.stopping.base import SAFE, StoppingRule, solved_share


@dataclass(frozen=True, kw_only=True)
class Looks(StoppingRule):
    """Stop at one of a few numbers of networks settled beforehand, for any reason.

    Examples
    --------
    >>> rule = Looks(beta=0.05, looks=(100, 200, 400, 800))
    >>> round(rule.share, 9), round(rule.epsilon(400), 6), rule.epsilon(500) == rule.epsilon(400)
    (0.013703061, 0.010668, True)
    """

    kind = "looks"
    derived = ("share",)
    example = "looks:100,200,400"

    looks: tuple[int, ...]  # increasing
    rank: int = 1  # k: the threshold is the k-th best

    def __post_init__(self) -> None:
        super().__post_init__()
        for n in self.looks:
            as_count("a look", n)
        if not self.looks or list(self.looks) != sorted(set(self.looks)) or as_count("rank", self.rank) > self.looks[0]:
            raise InputError(f"looks must be increasing numbers of networks, none below the rank, got {self.looks}")

    @classmethod
    def of_numbers(cls, beta: float, numbers: Sequence[int]) -> Looks | None:
        """As in ``looks:100,200,400``."""
        return cls(beta=beta, looks=tuple(numbers)) if numbers else None

    @cached_property
    def share(self) -> float:
        """The part of beta that is spent at each look."""
        # For the best, what the looks have in common is known and need not be paid twice; other ranks share beta.
        if self.rank > 1:
            return self.beta / len(self.looks) / SAFE
        gaps = [1 - before / after for before, after in zip(self.looks[:-1], self.looks[1:], strict=True)]
        return solved_share(self.beta, lambda x: 1 - sum(math.expm1(x * gap) for gap in gaps))

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
        when = f" at one of the looks at {', '.join(map(str, self.looks))} {self.drawn.many}"
        best = "best" if self.rank == 1 else f"{self.rank}-th best"
        return self.promise(when, ", ".join(map(self.limit_at, self.looks)), best)
