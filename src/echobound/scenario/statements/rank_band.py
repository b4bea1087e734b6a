"""Ranks that are chosen after a look: limits for the best (or worst) K networks together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Unpack

from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bands import covered_ranks, local_level, rank_limits
from echobound.scenario.bounds import as_count
from echobound.scenario.ordering import Case, ordered
from echobound.scenario.statements.base import ScoreStatement, Scoring
from echobound.scenario.words import data_words, outcome_words, score_words, threshold_words, upward


@dataclass(frozen=True, kw_only=True)
class RankBand(ScoreStatement):
    """Limits for the best (or worst) K networks together: any of them may be made the threshold after a look."""

    kind = "rank band"
    title = "rank"
    derived = ("level", "epsilons")

    networks: int
    case: Case
    thresholds: tuple[float | None, ...]  # scores of the K best (or worst), K settled beforehand; None: it diverged

    def __post_init__(self) -> None:
        super().__post_init__()
        covered_ranks(as_count("networks", self.networks), len(self.thresholds))

    @cached_property
    def level(self) -> float:
        """The probability with which each rank alone misses."""
        return local_level(self.networks, self.beta, len(self.thresholds))

    @cached_property
    def epsilons(self) -> tuple[float, ...]:
        """For each rank, the largest probability that a new network lies beyond its threshold."""
        return tuple(rank_limits(self.networks, self.level, len(self.thresholds), two_sided=False)[1].tolist())

    @property
    def words(self) -> str:
        """The statement in plain words."""
        # A few ranks stand for all: somebody who wants another asks `words_of`.
        shown = {k for k in (1, 2, 5, 10, len(self.thresholds)) if k <= len(self.thresholds)}
        said, best = [], self.case == "best"
        for k in sorted(shown):
            threshold, epsilon = self.thresholds[k - 1], upward(self.epsilons[k - 1])
            if threshold is not None:
                said.append(f"{threshold_words(self, threshold, best=best)} at most {epsilon} (rank {k})")
            elif best:
                said.append(f"any finite score at most {epsilon} (rank {k})")
        return (
            f"{self.start}, the probability that {self.drawn.drawn()} scores"
            f" {score_words(self)} {data_words(self)} beyond the k-th {self.case} of {self.networks} is limited for"
            f" k = 1 to {len(self.thresholds)} together, so that k may be chosen after a look:"
            f" {'; '.join(said) or 'nothing is worse than divergence'}."
        )

    def words_of(self, rank: int) -> str:
        """What holds for one rank, chosen after a look."""
        if not 1 <= as_count("rank", rank) <= len(self.thresholds):
            raise InputError(f"the band covers the {self.case} {len(self.thresholds)} networks, got rank {rank}")
        threshold = self.thresholds[rank - 1]
        what = outcome_words(self, threshold, best=self.case == "best")
        return (
            f"{self.start}, {self.drawn.drawn()} {what} {data_words(self)} with"
            f" probability at most {upward(self.epsilons[rank - 1])}. The threshold is that of rank {rank} of"
            f" {self.networks}, and may be chosen after a look: the limits of the {len(self.thresholds)}"
            f" {self.case} hold together."
        )

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        *,
        beta: float,
        ranks: int | None = None,
        case: Case = "best",
        **scoring: Unpack[Scoring],
    ) -> RankBand:
        """State limits for the first so many ranks together (all if not given).

        Examples
        --------
        >>> band = RankBand.of(range(645), beta=0.05, ranks=10)
        >>> round(band.level, 7), round(band.epsilons[4], 7), band.thresholds[4]
        (0.0136128, 0.0171969, 640.0)
        """
        _, values = ordered(scores, scoring.get("direction", "max"), case)
        count = covered_ranks(len(values), ranks)
        return cls(networks=len(values), case=case, thresholds=tuple(values[:count]), beta=beta, **scoring)
