"""Search: draw until the plan's rule stops."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

import numpy as np

from echobound.arrays import Rows
from echobound.campaign.dispatch import run_campaign
from echobound.campaign.engines import Engine, opened
from echobound.campaign.interrupt import Interrupted
from echobound.kernels.base import Kernel
from echobound.kernels.problem import Problem
from echobound.plan.plan import Plan
from echobound.runs.derivation import networks_due, stops_at_will, unbroken
from echobound.runs.ledger import Ledger
from echobound.runs.progress import Progress, TotalProgress

__all__ = ["run_search"]


def run_search(
    kernel: Kernel,
    problems: Sequence[Problem],
    plan: Plan,
    ledger: Ledger,
    *,
    workers: int | None = None,
    engine: str | Executor | Engine = "threads",
    on_progress: Callable[[Progress], None] | None = None,
) -> Rows:
    """Evaluate the networks of a plan, and return their rows, family after family; arguments as for `run_campaign`.

    Where the plan lets one stop at will, an interruption (SIGINT) is a reason to: the networks so far are returned.
    """
    whole = TotalProgress(on_progress, len(problems) * plan.networks, problems[0].scores[0].direction)
    found: list[Rows] = []
    with opened(engine, workers) as crew:
        for problem in problems:
            found.append(_search_family(kernel, problem, plan, ledger, crew, whole))
            whole.next()
    return np.concatenate(found)


def _search_family(
    kernel: Kernel, problem: Problem, plan: Plan, ledger: Ledger, crew: Engine, tell: Callable[[Progress], None]
) -> Rows:
    count = plan.networks
    while True:
        try:
            rows = run_campaign(kernel, problem, range(count), ledger, engine=crew, on_progress=tell)
        except Interrupted as asked:
            rows = ledger.rows(problem.stream, problem.family)
            rows = rows[: unbroken(rows)]
            if asked.signum == signal.SIGINT and _certifies(plan, len(rows)):
                return rows
            raise
        due = networks_due(plan, rows["scores"][:, 0], problem.scores[0].direction)
        if due <= count:
            return rows[:due]
        count = due


def _certifies(plan: Plan, networks: int) -> bool:
    """Whether one may stop here."""
    return plan.stop is not None and stops_at_will(plan) and networks > 0 and plan.stop.epsilon(networks) < 1
