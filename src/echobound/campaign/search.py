"""Search: draw until the plan's rule stops."""

from __future__ import annotations

import signal
from collections.abc import Sequence

import numpy as np

from echobound.arrays import Rows
from echobound.campaign.dispatch import OnProgress, run_campaign
from echobound.campaign.engines import Engine
from echobound.campaign.interrupt import Interrupted
from echobound.candidates import Candidates
from echobound.plan import SettledPlan
from echobound.runs.derivation import networks_due, unbroken
from echobound.runs.ledger import Ledger
from echobound.runs.progress import TotalProgress


def run_search(
    plan: SettledPlan,
    candidates: Sequence[Candidates],
    ledger: Ledger,
    engine: Engine,
    on_progress: OnProgress | None = None,
) -> Rows:
    """Score the candidates of a plan, and return their rows, family after family; arguments as for `run_campaign`.

    Where the plan allows stopping at will, an interruption (SIGINT) is a reason to: what was drawn so far is returned.
    """
    total = TotalProgress(on_progress, len(candidates) * plan.networks, candidates[0].measures[0].direction)
    found: list[Rows] = []
    for family in candidates:
        found.append(_search_family(plan, family, ledger, engine, total))
        total.next()
    return found[0] if len(found) == 1 else np.concatenate(found)  # a long table is not held twice


def _search_family(plan: SettledPlan, candidates: Candidates, ledger: Ledger, engine: Engine, tell: OnProgress) -> Rows:
    count = plan.networks
    while True:
        try:
            rows = run_campaign(candidates, range(count), ledger, engine, on_progress=tell)
        except Interrupted as asked:
            rows = ledger.rows(candidates.stream, candidates.family)
            rows = rows[: unbroken(rows)]  # batches finish in any order, but a certificate needs the first n draws
            may_stop = asked.signum == signal.SIGINT and plan.at_will and len(rows) > 0
            if may_stop and plan.stop is not None and plan.stop.epsilon(len(rows)) < 1:
                return rows
            raise
        # Asked only when all rows up to here are there, so that the answer does not depend on who finished first.
        due = networks_due(plan, rows["scores"][:, 0])
        if due <= count:
            return rows[:due]
        count = due
