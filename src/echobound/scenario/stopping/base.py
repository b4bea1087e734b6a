"""StoppingRule: when a search may stop, named before the first draw, and what holds when it does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import as_probability, least_count
from echobound.scenario.statements.base import Statement
from echobound.scenario.words import confidence, upward

SAFE = 1 + 2.0**-44  # more than the rounding errors of a limit: no reported epsilon is better than the truth


@dataclass(frozen=True, kw_only=True)
class StoppingRule(Statement):
    """When a search may stop, and what is certified then with confidence 1 - beta."""

    by_ranks: ClassVar[bool] = False  # then all that holds for a number settled beforehand holds where it stops
    takes: ClassVar[tuple[int, int]] = (0, 0)  # how many numbers follow its name, at least and at most
    example: ClassVar[str] = ""  # how it is written, for help and errors
    formerly: ClassVar[str] = ""  # an old name that `stopping_rule` still reads

    beta: float

    def __post_init__(self) -> None:
        as_probability("beta", self.beta)

    @classmethod
    def of_numbers(cls, beta: float, numbers: Sequence[int]) -> Self | None:
        """The rule with the numbers after its name, which are its fields in their order; None for too few or many."""
        fewest, most = cls.takes
        if not fewest <= len(numbers) <= most:
            return None
        names = [f.name for f in fields(cls) if f.name not in ("beta", "members")]
        return cls(beta=beta, **dict(zip(names, numbers, strict=False)))

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
        >>> from echobound.scenario import Anytime, Patience
        >>> Patience(beta=1e-7, draws=200).networks(0.05), Anytime(beta=1e-7).networks(0.05)
        (315, 409)
        """
        as_probability("epsilon", epsilon)
        if self.epsilon(2**60) > epsilon:
            raise InputError(
                f"the rule never certifies epsilon = {epsilon:g}: give a larger epsilon, or a rule that runs longer."
                f" {self.words}"
            )
        return least_count(lambda networks: self.epsilon(networks) <= epsilon)

    def due(self, scores: ArrayLike, direction: str = "max") -> int:
        """Number of networks at which a rule by ranks stops, as far as the scores in the order of their index say."""
        raise NotImplementedError

    def stops_at(self, scores: ArrayLike, direction: str = "max") -> int | None:
        """Number of networks at which the rule stops by itself; None if it has not yet, or leaves it to you."""
        due = self.due(scores, direction) if self.by_ranks else None
        return due if due is not None and due <= len(np.atleast_1d(scores)) else None

    def promise(self, when: str, limits: str, best: str = "best") -> str:
        """The words of a rule under which one stops at will."""
        return (
            f"With confidence 1 - {confidence(self.beta)}, whatever makes you stop{when}, {self.drawn.new} beats the"
            f" {best} so far with probability at most epsilon = {limits}."
        )

    def limit_at(self, networks: int) -> str:
        """As in "0.01 at 300": what is certified there, for the words."""
        return f"{upward(self.epsilon(networks))} at {networks}"


def solved_share(beta: float, looks: Callable[[float], float]) -> float:
    """The b that solves beta = b looks(ln b), by iteration on ln b; rounded down, to spend no more than beta."""
    x = math.log(beta)
    for _ in range(200):
        x = math.log(beta) - math.log(looks(x))
    return math.exp(x) / SAFE


def log_share(share: float) -> float:
    """Its logarithm; minus infinity where it is below all floats."""
    return math.log(share) if share else -math.inf


def certified_limit(log_probability: float, networks: int) -> float:
    """1 - exp(log_probability / networks), rounded up; 1 where the share of beta is below all floats."""
    return min(1.0, -math.expm1(log_probability / networks) * SAFE)
