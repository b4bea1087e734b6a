"""Derivation: from a plan and the rows of its search to the certificate, in this one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Rows, Scores
from echobound.plan.plan import Plan
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
    StoppingRule,
    certify,
)
from echobound.scenario.ordering import goodness
from echobound.scenario.statement import Scoring
from echobound.scores import Direction, Score, get_score

__all__ = [
    "by_family",
    "certificate_of",
    "networks_due",
    "scoring_of",
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
    if isinstance(plan.stop, Patience):
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
    table, score, families = rows["scores"], scores[0], plan.families
    epsilon = plan.epsilon
    if plan.stop is not None and stops_at_will(plan):  # who stopped before epsilon was reached gets what there is
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
        law={} if families else plan.laws[0].to_dict(),
        seed=plan.seed,
        families=families,
        digests=digests,
        statements=_statements_of(plan, table, scores),
        provenance=provenance,
    )


def _statements_of(plan: Plan, table: Scores, scores: Sequence[Score]) -> tuple[Statement, ...]:
    if plan.families:
        parts, scoring = np.split(table[:, 0], len(plan.laws)), scoring_of(plan, scores[0])
        named = {family["name"]: part for family, part in zip(plan.families, parts, strict=True)}
        return (Families.of(named, beta=plan.beta, **scoring), Gain.of(table[:, 0], **scoring))
    joint: tuple[Statement, ...] = ()
    if plan.joint:
        named = dict(zip(plan.scores, table.T, strict=True))
        joint = (JointScores.of(named, beta=plan.beta, directions=[score.direction for score in scores]),)
    renewed: tuple[Statement, ...] = ()
    if plan.renewal is not None:
        renewed = (
            Renewal.of(
                table[:, 0],
                networks=plan.networks,
                beta=plan.beta,
                updates=plan.renewal.updates,
                depends_on_model=False,  # or there would be no such plan
                **scoring_of(plan, scores[0]),
            ),
        )
    *certain, estimate = statements_of(plan, table[:, 0], scores[0])
    return (*renewed, *certain, *joint, estimate)


def statements_of(plan: Terms, scores: Scores, score: Score) -> tuple[Statement, ...]:
    """What the scores of a search in one law say besides the best and the worst, as settled in its plan."""
    scoring, found = scoring_of(plan, score), list[Statement]()
    if plan.stop is not None:
        found.append(Stopped.of(scores, plan.stop, **scoring))
    if plan.discarded:
        found.append(Removal.of(scores, discarded=plan.discarded, beta=plan.beta, **scoring))
    # Both ends are stated for a number that does not depend on the scores, or on their ranks alone.
    if not stops_at_will(plan) and len(scores) > 1:
        found.append(BothEnds.of(scores, beta=plan.beta, **scoring))
    return (*found, Gain.of(scores, **scoring))


def scoring_of(plan: Terms, score: Score) -> Scoring:
    """What was scored, as statements take it."""
    return {
        "score": score.name,
        "direction": score.direction,
        "unit": score.unit,
        "horizon": plan.horizon,
        "blocks": plan.blocks,
    }
