"""The law of the violation probability: for N i.i.d. draws of a continuous score it is Beta(k, N - k + 1), exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass

from echobound.errors import InputError


@dataclass(frozen=True, slots=True)
class ViolationLaw:
    """Law of V, the probability that a new network beats the k-th best of N.

    Neither the score nor the training enters: V has the law Beta(k, N - k + 1) for every continuous score, and lies
    below it in probability for a score with ties.

    Examples
    --------
    >>> round(ViolationLaw(645).mean, 8)
    0.00154799
    """

    networks: int
    rank: int = 1  # k; 1 is the best

    def __post_init__(self) -> None:
        if not 1 <= self.rank <= self.networks:
            raise InputError(f"the rank must lie between 1 and the {self.networks} networks, got {self.rank}")

    @property
    def mean(self) -> float:
        """k / (N + 1)."""
        return self.rank / (self.networks + 1)

    def quantile(self, level: float) -> float:
        """Value that V does not exceed with probability `level`.

        For levels near 1 use `epsilon_exact`, which takes 1 - level and so loses no digits.
        """
        from scipy.special import betaincinv

        if not 0 <= level <= 1:
            raise InputError(f"the level of a quantile must lie between 0 and 1, got {level}")
        if self.rank == 1 and level < 1:
            return -math.expm1(math.log1p(-level) / self.networks)
        return float(betaincinv(self.rank, self.networks - self.rank + 1, level))
