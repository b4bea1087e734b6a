"""Derivation: from a settled plan and the rows of its search to the certificate, in this one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from echobound.arrays import Rows, Scores
from echobound.plan import SettledPlan
from echobound.scenario import (
    BothEnds,
    Certificate,
    Families,
    Gain,
    JointScores,
    Patience,
    Removal,
    Renewal,
    Statement,
    Stopped,
    certify,
)
from echobound.scenario.ordering import goodness
from echobound.scenario.statement import Scoring

__all__ = ["by_family", "certificate_of", "networks_due", "scoring_of", "search_rows", "unbroken"]

FURTHER = 64  # networks that are drawn at least before a target is looked for again


def networks_due(plan: SettledPlan, scores: Scores) -> int:
    """How many networks of each family the search needs, as far as these scores say, in the order of their index.

    It follows from the scores up to there alone, so that neither workers nor rows beyond can change it.
    """
    direction = plan.measures[0].direction
    if isinstance(plan.stop, Patience):
        return plan.stop.due(scores, direction)
    if plan.stop is None or plan.target is None:
        return plan.networks
    reached, most = goodness(scores, direction) >= goodness([plan.target], direction), plan.stop.final
    enough = int(np.argmax(reached)) + 1 if reached.any() else len(scores) + max(FURTHER, len(scores) // 4)
    return max(plan.networks, enough if most is None else min(enough, most))


def by_family(plan: SettledPlan, rows: Rows) -> list[Rows]:
    """The rows of each family separately."""
    return [rows[rows["family"] == family.number] for family in plan.families]


def search_rows(plan: SettledPlan, rows: Rows, stated: int | None = None) -> Rows:
    """Of the rows in the ledger, family after family, those that the certificate speaks of.

    Parameters
    ----------
    plan, rows
        What was planned, and what was drawn.
    stated
        How many the certificate says there are: it counts where the plan allows stopping at will.
    """
    if plan.at_will:
        return rows[: unbroken(rows) if stated is None else stated]
    parts = by_family(plan, rows)
    return np.concatenate([part[: networks_due(plan, part["scores"][:, 0])] for part in parts])


def unbroken(rows: Rows) -> int:
    """How many rows there are before the first missing index."""
    return int((rows["index"] == np.arange(len(rows))).sum())


def certificate_of(
    plan: SettledPlan, rows: Rows, *, digests: Mapping[str, str], provenance: Mapping[str, Any] | None = None
) -> Certificate:
    """What the rows of a finished search certify under a plan.

    Parameters
    ----------
    plan, rows
        What was planned, and the rows that `run_search` returned.
    digests, provenance
        As in `certify`.
    """
    table, score, several = rows["scores"], plan.measures[0], len(plan.families) > 1
    epsilon = plan.epsilon
    if plan.stop is not None and plan.at_will:  # a search that was stopped early gets what it certifies
        epsilon = max(epsilon, plan.stop.epsilon(len(rows)))
    return certify(
        table[:, 0],
        score=score.name,
        direction=score.direction,
        unit=score.unit,
        horizon=plan.horizon,
        blocks=plan.blocks,
        epsilon=epsilon,
        beta=plan.beta,
        bound=plan.bound,
        law={} if several else plan.law[0].to_dict(),
        seed=plan.seed,
        families=[
            {"family": family.number, "name": family.name, "networks": plan.networks, "law": family.law.to_dict()}
            for family in (plan.families if several else ())
        ],
        digests=digests,
        statements=_statements(plan, table),
        provenance=provenance,
    )


def _statements(plan: SettledPlan, table: Scores) -> tuple[Statement, ...]:
    scores, scoring, found = table[:, 0], scoring_of(plan), list[Statement]()
    if len(plan.families) > 1:
        parts = np.split(scores, len(plan.families))
        named = {family.name: part for family, part in zip(plan.families, parts, strict=True)}
        return (Families.of(named, beta=plan.beta, **scoring), Gain.of(scores, **scoring))
    if plan.renewal is not None:
        options: dict[str, Any] = {"networks": plan.networks, "beta": plan.beta, "updates": plan.renewal.updates}
        found.append(Renewal.of(scores, **options, depends_on_model=False, **scoring))
    if plan.stop is not None:
        found.append(Stopped.of(scores, plan.stop, **scoring))
    if plan.discarded:
        found.append(Removal.of(scores, discarded=plan.discarded, beta=plan.beta, **scoring))
    if not plan.at_will and len(scores) > 1:
        found.append(BothEnds.of(scores, beta=plan.beta, **scoring))
    if plan.joint:
        named = dict(zip(plan.scores, table.T, strict=True))
        found.append(JointScores.of(named, beta=plan.beta, directions=[score.direction for score in plan.measures]))
    return (*found, Gain.of(scores, **scoring))


def scoring_of(plan: SettledPlan) -> Scoring:
    """What was scored, as statements take it."""
    score = plan.measures[0]
    return {
        "score": score.name,
        "direction": score.direction,
        "unit": score.unit,
        "horizon": plan.horizon,
        "blocks": plan.blocks,
    }
