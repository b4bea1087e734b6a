"""Ranks and quantiles of a finished search: what holds for a rank chosen after a look, and where a quantile lies."""

from __future__ import annotations

from typing import Any

from echobound.errors import InputError
from echobound.runs.derivation import search_of
from echobound.runs.folder import RunFolder
from echobound.scenario import QuantileInterval, RankBand

RANKS = 50  # best networks whose limits hold together, so that one may be chosen after a look


def ranks_and_quantiles(folder: RunFolder, rank: int | None = None, quantile: float | None = None) -> dict[str, Any]:
    """What the scores say about a rank chosen after a look, and about a quantile, each as JSON under its name.

    The rank is one of the 50 best, whose limits hold together, and so do those of all quantiles: one may look first.
    """
    if rank is None and quantile is None:
        return {}
    plan = folder.plan
    if plan.at_will or len(plan.families) > 1:
        raise InputError(
            "ranks and quantiles are stated for networks of one law, their number settled beforehand or found by"
            " patience: leave out the rank and the quantile"
        )
    scores, scoring, found = folder.search["scores"][:, 0], search_of(plan, folder.search).scoring, dict[str, Any]()
    if rank is not None:
        band = RankBand.of(scores, beta=plan.beta, ranks=min(RANKS, len(scores)), **scoring)
        words = band.words_of(rank)
        threshold, epsilon = band.thresholds[rank - 1], band.epsilons[rank - 1]
        found["rank"] = {"rank": rank, "threshold": threshold, "epsilon": epsilon, "words": words}
    if quantile is not None:
        found["quantile"] = QuantileInterval.of(
            scores, level=quantile, beta=plan.beta, simultaneous=True, **scoring
        ).to_dict()
    return found
