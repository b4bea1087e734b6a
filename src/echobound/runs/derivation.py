"""Derivation: from a settled plan and the rows of its search to the certificate, in this one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from echobound.arrays import Rows, Scores
from echobound.errors import InputError
from echobound.plan import SettledPlan
from echobound.scenario import Certificate, ScoreName, Search, certify, statements_of
from echobound.scenario.ordering import goodness

FURTHER = 64  # least number of networks between two looks at a target


def networks_due(plan: SettledPlan, scores: Scores) -> int:
    """How many networks of each family the search needs, as far as these scores say, in the order of their index.

    It follows from the scores up to that network alone, so that neither the number of workers nor later rows change it.
    """
    direction = plan.measures[0].direction
    if plan.stop is not None and plan.stop.by_ranks:
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
    """Those rows of the ledger that the certificate is about, family after family.

    Where the plan allows stopping at will, the number of networks `stated` in the certificate counts.
    """
    if plan.at_will:
        return rows[: unbroken(rows) if stated is None else stated]
    parts = by_family(plan, rows)
    return np.concatenate([part[: networks_due(plan, part["scores"][:, 0])] for part in parts])


def unbroken(rows: Rows) -> int:
    """How many rows there are before the first missing index."""
    return int((rows["index"] == np.arange(len(rows))).sum())


def digests_of(plan: SettledPlan) -> dict[str, str]:
    """The fingerprints that a certificate has of its data and its plan."""
    found = {"data": plan.data, "plan": plan.digest}
    return found | ({"samples": plan.samples} if plan.samples else {})


def certificate_of(
    plan: SettledPlan, rows: Rows, *, digests: Mapping[str, str], provenance: Mapping[str, Any] | None = None
) -> Certificate:
    """What the rows of a finished search certify under a plan; digests and provenance as in `certify`."""
    search, several, epsilon = search_of(plan, rows), len(plan.families) > 1, plan.epsilon
    if plan.stop is not None and plan.at_will:  # a search that was stopped early gets what it certifies
        epsilon = max(epsilon, plan.stop.epsilon(len(rows)))
    if plan.renewal is not None and len(rows) != plan.networks:
        # To leave out networks because of their scores would void a renewal.
        raise InputError(f"{plan.networks} networks are renewed, but {len(rows)} have scores: score all of them")
    return certify(
        search.first,
        **search.scoring,
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
        statements=statements_of(search),
        provenance=provenance,
    )


def search_of(plan: SettledPlan, rows: Rows) -> Search:
    """A search as statements see it, finished or not: from its plan and rows, family after family."""
    families = plan.families if len(plan.families) > 1 else ()
    return Search(
        table=rows["scores"],
        scores=tuple(ScoreName(score.name, score.direction, score.unit) for score in plan.measures),
        beta=plan.beta,
        horizon=plan.horizon,
        blocks=plan.blocks,
        members=plan.members,
        # Counted in the rows, since an audit asks about a ledger that lacks some.
        families=tuple((family.name, int((rows["family"] == family.number).sum())) for family in families),
        stop=plan.stop,
        discarded=plan.discarded,
        joint=plan.joint,
        updates=None if plan.renewal is None else plan.renewal.updates,
    )
