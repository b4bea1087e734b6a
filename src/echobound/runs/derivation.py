"""Derivation: from a plan and the rows of its search to the certificate, in this one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from echobound import scenario
from echobound.arrays import Rows, Scores
from echobound.errors import InputError
from echobound.plan.plan import Plan
from echobound.scenario import Certificate, ScoreName, Search, Statement, StoppingRule, certify
from echobound.scenario.ordering import goodness
from echobound.scenario.statements.base import Scoring
from echobound.scores import Direction, Score, get_score

__all__ = [
    "by_family",
    "certificate_of",
    "networks_due",
    "scoring_of",
    "search_of",
    "search_rows",
    "statements_of",
    "stops_at_will",
    "unbroken",
]

FURTHER = 64  # networks that are drawn at least before a target is looked for again



class Terms(Protocol):
    """What a plan says about when to stop and what to state, whatever is drawn."""

    @property
    def networks(self) -> int: ...
    @property
    def beta(self) -> float: ...
    @property
    def stop(self) -> StoppingRule | None: ...
    @property
    def target(self) -> float | None: ...
    @property
    def discarded(self) -> int: ...
    @property
    def horizon(self) -> int | None: ...
    @property
    def blocks(self) -> int | None: ...


def stops_at_will(plan: Terms) -> bool:
    """Whether whatever made the search stop is covered, so that any number of networks is as good as another."""
    return plan.stop is not None and not plan.stop.by_ranks


def networks_due(plan: Terms, scores: Scores, direction: Direction) -> int:
    """How many networks of each family the search has to have, as far as these scores say: in the order of their index.

    It follows from the scores up to there alone. So neither workers nor rows beyond it can change it.
    """
    if plan.stop is not None and plan.stop.by_ranks:
        return plan.stop.due(scores, direction)
    if plan.stop is None or plan.target is None:
        return plan.networks
    reached, most = goodness(scores, direction) >= goodness([plan.target], direction), plan.stop.final
    enough = int(np.argmax(reached)) + 1 if reached.any() else len(scores) + max(FURTHER, len(scores) // 4)
    return max(plan.networks, enough if most is None else min(enough, most))


def by_family(plan: Plan, rows: Rows) -> list[Rows]:
    """The rows of each family apart."""
    return [rows[rows["family"] == family] for family in range(len(plan.laws))]


def search_rows(plan: Plan, rows: Rows, stated: int | None = None) -> Rows:
    """Of the rows in the ledger, family after family, those that the certificate speaks of.

    Parameters
    ----------
    plan, rows
        What was planned, and what was drawn.
    stated
        How many the certificate says there are: it counts where the plan lets one stop at will.
    """
    if stops_at_will(plan):
        return rows[: unbroken(rows) if stated is None else stated]
    direction = get_score(plan.scores[0]).direction
    parts = by_family(plan, rows)
    return np.concatenate([part[: networks_due(plan, part["scores"][:, 0], direction)] for part in parts])


def unbroken(rows: Rows) -> int:
    """How many rows there are before the first index that is missing."""
    return int((rows["index"] == np.arange(len(rows))).sum())


def certificate_of(
    plan: Plan,
    rows: Rows,
    scores: Sequence[Score],
    *,
    digests: Mapping[str, str],
    provenance: Mapping[str, Any] | None = None,
) -> Certificate:
    """What the rows of a finished search are worth, by what was planned; it is derived in this one place.

    Parameters
    ----------
    plan, rows, scores
        What was planned, the rows that `run_search` returned, and the scores in them.
    digests, provenance
        As in `certify`.
    """
    search, families, epsilon = search_of(plan, rows, scores), plan.families, plan.epsilon
    if plan.stop is not None and search.at_will:  # who stopped before epsilon was reached gets what there is
        epsilon = max(epsilon, plan.stop.epsilon(len(rows)))
    if plan.renewal is not None and len(rows) != plan.networks:
        # To leave out networks because of their scores would void a renewal.
        raise InputError(f"{plan.networks} networks are renewed, and {len(rows)} have scores: score all of them")
    return certify(
        search.first,
        **search.scoring,
        epsilon=epsilon,
        beta=plan.beta,
        bound=plan.bound,
        law={} if families else plan.laws[0].to_dict(),
        seed=plan.seed,
        families=families,
        digests=digests,
        statements=scenario.statements_of(search),
        provenance=provenance,
    )


def search_of(plan: Plan, rows: Rows, scores: Sequence[Score]) -> Search:
    """A search as statements see it, finished or not: from its plan and rows, family after family."""
    counts = [len(part) for part in by_family(plan, rows)]
    return replace(
        _search(plan, rows["scores"], scores),
        families=tuple((family["name"], count) for family, count in zip(plan.families, counts, strict=False)),
        joint=plan.joint,
        updates=None if plan.renewal is None else plan.renewal.updates,
    )


def statements_of(plan: Terms, scores: Scores, score: Score) -> tuple[Statement, ...]:
    """What the scores of a search in one law say besides the best and the worst, as settled in its plan."""
    return scenario.statements_of(_search(plan, scores[:, None], [score]))


def scoring_of(plan: Terms, score: Score) -> Scoring:
    """What was scored, as statements take it."""
    return _search(plan, np.empty((0, 1)), [score]).scoring


def _search(plan: Terms, table: Scores, scores: Sequence[Score]) -> Search:
    return Search(
        table=table,
        scores=tuple(ScoreName(score.name, score.direction, score.unit) for score in scores),
        beta=plan.beta,
        horizon=plan.horizon,
        blocks=plan.blocks,
        stop=plan.stop,
        discarded=plan.discarded,
    )
