"""Several orders or laws in one campaign (families), and several scores of the same networks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import Probability, as_count, as_probability, epsilon_exact, networks_exact
from echobound.scenario.ordering import ordered, select
from echobound.scenario.statement import ScoreStatement, Scoring, Statement
from echobound.scenario.words import confidence, downward, titled, upward

__all__ = ["Families", "JointScores", "networks_families", "networks_joint", "networks_separate", "spent_beta"]


def networks_families(epsilon: Probability, beta: Probability, families: int) -> int:
    """Networks of each family for every family's own best to be certified, all of them together.

    The global best alone needs only `networks_exact` of each.

    Examples
    --------
    >>> networks_families(0.05, 1e-7, families=21)
    374
    """
    return networks_exact(epsilon, _divided(beta, as_count("families", families)))


def networks_joint(epsilon: Probability, beta: Probability, scores: int) -> int:
    """Networks for "a new network beats the best in one or more of so many scores" to have probability epsilon at most.

    Examples
    --------
    >>> networks_joint(0.05, 1e-7, scores=3)
    424
    """
    return networks_exact(epsilon, beta, d=scores)


def networks_separate(epsilon: Probability, beta: Probability, scores: int) -> int:
    """Networks for a statement on each of so many scores, all together true with confidence 1 - beta.

    Examples
    --------
    >>> networks_separate(0.05, 1e-7, scores=3)
    336
    """
    return networks_exact(epsilon, _divided(beta, as_count("scores", scores)))


def spent_beta(beta: Probability, family: int) -> float:
    """The beta of family number 1, 2, ... when the next family is chosen by looking at the last: they sum to beta.

    Examples
    --------
    >>> round(spent_beta(0.05, 1), 6), round(spent_beta(0.05, 2), 6)
    (0.030396, 0.007599)
    """
    return float(as_probability("beta", beta)) * 6 / (math.pi * as_count("family", family)) ** 2


def _outward(threshold: float, direction: Literal["max", "min"]) -> str:
    """A threshold in six digits, rounded to the side on which what is said of it stays true."""
    return (upward if direction == "max" else downward)(threshold)


def _divided(beta: Probability, parts: int) -> Decimal:
    """Beta in equal parts, from what was typed."""
    return as_probability("beta", beta) / parts


@dataclass(frozen=True, kw_only=True)
class Families(ScoreStatement):
    """The best of each of several families (orders, laws), and the best of all; the list settled beforehand.

    Three statements, each with confidence 1 - beta. The global best needs no union bound: to beat the limit it had to
    be missed by all networks of one and the same family.

    Parameters
    ----------
    names
        What the families are called.
    networks
        How many of each.
    thresholds, winners
        Best score of each family and its index there; None where all diverged.
    """

    kind = "families"
    derived = ("best", "epsilon", "epsilon_mixture", "epsilons")

    names: tuple[str, ...]
    networks: tuple[int, ...]
    thresholds: tuple[float | None, ...]
    winners: tuple[int | None, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.names or not len(self.names) == len(self.networks) == len(self.thresholds) == len(self.winners):
            raise InputError("each family needs a name, a number of networks, a threshold and a winner")
        if len(set(self.names)) < len(self.names):
            raise InputError(f"families must have different names, got {', '.join(self.names)}")
        for count, winner in zip(self.networks, self.winners, strict=True):
            if winner is not None and not 0 <= winner < as_count("networks", count):
                raise InputError(f"network {winner} is not one of {count}")

    @property
    def best(self) -> int | None:
        """Position of the family with the best network of all, the first among equals; None if all diverged."""
        return select([math.nan if value is None else value for value in self.thresholds], self.direction)

    @cached_property
    def epsilon(self) -> float:
        """Of whichever family: a new network of it beats the global best with this probability at most."""
        return epsilon_exact(min(self.networks), self.beta)

    @cached_property
    def epsilon_mixture(self) -> float:
        """The same for a new network whose family is drawn with the shares the families had."""
        return epsilon_exact(sum(self.networks), self.beta)

    @cached_property
    def epsilons(self) -> tuple[float, ...]:
        """For each family: a new network of it beats its own best with this probability at most, all together."""
        part = _divided(self.beta, len(self.names))
        return tuple(epsilon_exact(count, part) for count in self.networks)

    @property
    def words(self) -> str:
        """The statement in plain words."""
        count = len(self.names)
        if self.best is None:
            return (
                f"All networks of {count} families diverged. {self.start}, a new network of whichever family gives a"
                f" finite score with probability at most {upward(self.epsilon)}."
            )
        unit = f" {self.unit}" if self.unit else ""
        bests = ", ".join(
            f"{name} {'none, all diverged' if value is None else f'{_outward(value, self.direction)}{unit}'}"
            for name, value in zip(self.names, self.thresholds, strict=True)
        )
        if len(set(self.networks)) == 1:
            own = upward(self.epsilons[0])
        else:
            own = "; ".join(f"{name} {upward(value)}" for name, value in zip(self.names, self.epsilons, strict=True))
        return (
            f"The best of all is in family {self.names[self.best]!r}. {self.start}, a new network of whichever of the"
            f" {count} families beats it with probability at most {upward(self.epsilon)}. {self.start}, a new network"
            f" whose family is drawn with the shares of the search beats it with probability at most"
            f" {upward(self.epsilon_mixture)}. The best of each family: {bests}. {self.start}, all {count} together,"
            f" a new network of a family beats that family's own best with probability at most {own}."
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
        found = [ordered(values, scoring.get("direction", "max")) for values in scores.values()]
        return cls(
            names=tuple(scores),
            networks=tuple(len(order) for order, _ in found),
            thresholds=tuple(values[0] for _, values in found),
            winners=tuple(None if values[0] is None else order[0] for order, values in found),
            beta=beta,
            **scoring,
        )

    def again(self, *data: Any) -> Families:
        """The statement from the scores of all networks, family after family."""
        (scores,) = data
        values = np.asarray(scores, dtype=np.float64)
        if len(values) != sum(self.networks):
            raise InputError(f"{sum(self.networks)} networks need as many scores, got {len(values)}")
        parts = np.split(values, np.cumsum(self.networks)[:-1])
        return Families.of(dict(zip(self.names, parts, strict=True)), beta=self.beta, **self.scoring)


@dataclass(frozen=True, kw_only=True)
class JointScores(Statement):
    """The best of N in each of several scores, stated together; the list of scores settled beforehand.

    Parameters
    ----------
    beta, networks
        1 - confidence and N.
    names, directions
        The scores, and for each ``"max"`` or ``"min"``.
    thresholds, winners
        For each score the best value and the network that has it; None where all diverged.
    """

    kind = "joint scores"
    of_all_scores = True
    derived = ("epsilon_joint", "epsilon_separate")

    beta: float
    networks: int
    names: tuple[str, ...]
    directions: tuple[Literal["max", "min"], ...]
    thresholds: tuple[float | None, ...]
    winners: tuple[int | None, ...]

    def __post_init__(self) -> None:
        as_probability("beta", self.beta)
        n = as_count("networks", self.networks)
        if not self.names or not len(self.names) == len(self.directions) == len(self.thresholds) == len(self.winners):
            raise InputError("each score needs a name, a direction, a threshold and a winner")
        for winner in self.winners:
            if winner is not None and not 0 <= winner < n:
                raise InputError(f"network {winner} is not one of {n}")

    @cached_property
    def epsilon_joint(self) -> float:
        """A new network beats the best in one or more of the scores with this probability at most."""
        return epsilon_exact(self.networks, self.beta, d=len(self.names))

    @cached_property
    def epsilon_separate(self) -> float:
        """It beats the best in each of the scores with this probability at most, all these statements together."""
        return epsilon_exact(self.networks, _divided(self.beta, len(self.names)))

    @property
    def words(self) -> str:
        """The statement in plain words."""
        limits = ", ".join(
            f"{titled(name)} {'any' if value is None else _outward(value, way)}"
            for name, value, way in zip(self.names, self.thresholds, self.directions, strict=True)
        )
        start = f"With confidence 1 - {confidence(self.beta)}, a new network drawn and trained in the same way"
        return (
            f"The best of {self.networks} networks in each score: {limits}. {start} beats one or more of them with"
            f" probability at most {upward(self.epsilon_joint)}. {start} beats each of them with probability at most"
            f" {upward(self.epsilon_separate)}, all {len(self.names)} statements together."
        )

    @classmethod
    def of(
        cls, scores: Mapping[str, ArrayLike], *, beta: float, directions: Sequence[Literal["max", "min"]]
    ) -> JointScores:
        """State it from the values of each score, by name, for the same networks in the same order.

        Examples
        --------
        >>> joint = JointScores.of({"fit": [80.0, 90.0], "rmse": [0.1, 0.2]}, beta=0.5, directions=["max", "min"])
        >>> joint.thresholds, joint.winners
        ((90.0, 0.1), (1, 0))
        """
        if len(directions) != len(scores):
            raise InputError(f"{len(scores)} scores need as many directions, got {len(directions)}")
        found = [ordered(values, way) for values, way in zip(scores.values(), directions, strict=True)]
        counts = {len(order) for order, _ in found}
        if len(counts) != 1:
            raise InputError(f"every score must be of the same networks, got {sorted(counts)} of them")
        return cls(
            beta=beta,
            networks=counts.pop(),
            names=tuple(scores),
            directions=tuple(directions),
            thresholds=tuple(values[0] for _, values in found),
            winners=tuple(None if values[0] is None else order[0] for order, values in found),
        )

    def again(self, *data: Any) -> JointScores:
        """The statement from a table of all scores, a row for each network."""
        (table,) = data
        values = np.asarray(table, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != len(self.names):
            raise InputError(f"a table with {len(self.names)} scores is needed, got an array of shape {values.shape}")
        named = dict(zip(self.names, values.T, strict=True))
        return JointScores.of(named, beta=self.beta, directions=self.directions)
