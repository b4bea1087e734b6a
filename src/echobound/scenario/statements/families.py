"""Families: several orders or laws in one campaign."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import as_count, each_of, epsilon_exact
from echobound.scenario.ordering import best_of, ranking, require_member, select
from echobound.scenario.search import Search
from echobound.scenario.statements.base import ScoreStatement, Scoring
from echobound.scenario.words import judged_words, outward, upward


@dataclass(frozen=True, kw_only=True)
class Families(ScoreStatement):
    """The best of each of several families (orders, laws), and the best of all; the list is settled beforehand.

    Three statements, each with confidence 1 - beta. The global best needs no union bound: for the limit to be exceeded,
    all networks of one and the same family must have missed.
    """

    kind = "families"
    title = "families"
    derived = ("best", "epsilon", "epsilon_mixture", "epsilons")

    names: tuple[str, ...]
    networks: tuple[int, ...]
    # Best score of each family and its index there; None where all diverged.
    thresholds: tuple[float | None, ...]
    winners: tuple[int | None, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.names or not len(self.names) == len(self.networks) == len(self.thresholds) == len(self.winners):
            raise InputError("each family needs a name, a number of networks, a threshold and a winner")
        if len(set(self.names)) < len(self.names):
            raise InputError(f"families must have different names, got {', '.join(self.names)}")
        for count, winner in zip(self.networks, self.winners, strict=True):
            require_member(winner, as_count("networks", count))

    @classmethod
    def of_search(cls, search: Search) -> Families | None:
        """Made where there are several families."""
        if not search.families:
            return None
        named = {name: search.first[part] for (name, _), part in zip(search.families, search.parts, strict=True)}
        return cls.of(named, beta=search.beta, **search.scoring)

    @classmethod
    def claims(cls, search: Search) -> list[int]:
        """The best of each family."""
        parts = search.parts if search.families else []
        bests = [(part, ranking(search.first[part], search.direction, 1)) for part in parts]
        return [int(part[best[0]]) for part, best in bests if best]

    def settled(self) -> Mapping[str, Any]:
        """The families."""
        return {"families": tuple(zip(self.names, self.networks, strict=True))}

    @property
    def best(self) -> int | None:
        """Position of the family with the best network of all, the first among equals; None if all diverged."""
        return select([math.nan if value is None else value for value in self.thresholds], self.direction)

    @cached_property
    def epsilon(self) -> float:
        """A new network, from any family, beats the global best with at most this probability."""
        # The smallest family has the weakest limit, and the new network may be from that one.
        return epsilon_exact(min(self.networks), self.beta)

    @cached_property
    def epsilon_mixture(self) -> float:
        """The same for a new network whose family is drawn with the shares the families had."""
        # All networks of the search are then draws from this mixture, if stratified ones, which only helps.
        return epsilon_exact(sum(self.networks), self.beta)

    @cached_property
    def epsilons(self) -> tuple[float, ...]:
        """For each family: a new network of it beats its own best with at most this probability, all together."""
        return tuple(each_of(len(self.names)).epsilon(count, self.beta) for count in self.networks)

    @property
    def promises(self) -> int:
        """About any family, about their mixture, and about the own best of each."""
        return 3

    @property
    def words(self) -> str:
        """The statement in plain words."""
        count, many, new = len(self.names), self.drawn.many, self.drawn.new
        if self.best is None:
            return (
                f"All {many} of {count} families diverged. {self.start}, {new} of any family gives a"
                f" finite score with probability at most {upward(self.epsilon)}."
            )
        unit = f" {self.unit}" if self.unit else ""
        bests = ", ".join(
            f"{name} {'none, all diverged' if value is None else f'{outward(value, self.direction)}{unit}'}"
            for name, value in zip(self.names, self.thresholds, strict=True)
        )
        if len(set(self.networks)) == 1:
            own = upward(self.epsilons[0])
        else:
            own = "; ".join(f"{name} {upward(value)}" for name, value in zip(self.names, self.epsilons, strict=True))
        return (
            f"The best of all, by {judged_words(self)}, is in family {self.names[self.best]!r}. {self.start},"
            f" {new} from any of the {count} families beats it with probability at most {upward(self.epsilon)}."
            f" {self.start}, {new} whose family is drawn with the shares of the search beats it with probability"
            f" at most {upward(self.epsilon_mixture)}. The best of each family: {bests}. {self.start}, all {count}"
            f" together, {new} of a family beats that family's own best with probability at most {own}."
        )

    @classmethod
    def of(cls, scores: Mapping[str, ArrayLike], *, beta: float, **scoring: Unpack[Scoring]) -> Families:
        """State it from the scores of each family, by name.

        Examples
        --------
        >>> families = Families.of({"order 10": [70.0, 80.0], "order 20": [75.0, float("nan"), 85.0]}, beta=0.05)
        >>> families.best, families.winners, round(families.epsilon, 4), round(families.epsilon_mixture, 4)
        (1, (1, 2), 0.7764, 0.4507)
        """
        bests = [best_of(values, scoring.get("direction", "max")) for values in scores.values()]
        winners, thresholds = tuple(winner for winner, _ in bests), tuple(threshold for _, threshold in bests)
        counts = tuple(np.size(values) for values in scores.values())
        return cls(names=tuple(scores), networks=counts, thresholds=thresholds, winners=winners, beta=beta, **scoring)
