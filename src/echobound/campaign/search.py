"""Search: draw until the plan's rule stops, and what the scores then say besides the certificate."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor

from numpy.typing import ArrayLike

from echobound.campaign.engine import run_campaign
from echobound.campaign.engines import Engine, opened
from echobound.campaign.ledger import Ledger
from echobound.campaign.plan import Plan
from echobound.campaign.progress import Progress
from echobound.kernels.base import Kernel, Rows
from echobound.kernels.problem import Problem
from echobound.scenario import BothEnds, Gain, Patience, Removal, Statement, Stopped
from echobound.scenario.statement import Scoring
from echobound.scores import Score

__all__ = ["networks_of", "run_search", "statements_of"]


def networks_of(plan: Plan, scores: ArrayLike, direction: str) -> int:
    """How many networks the search has, or has to have as far as these scores say: in the order of their index.

    Where patience stops follows from the scores up to there. So neither workers nor rows beyond it can change it.
    """
    return plan.stop.due(scores, direction) if isinstance(plan.stop, Patience) else plan.networks


def run_search(
    kernel: Kernel,
    problem: Problem,
    plan: Plan,
    ledger: Ledger,
    *,
    workers: int | None = None,
    engine: str | Executor | Engine = "threads",
    on_progress: Callable[[Progress], None] | None = None,
) -> Rows:
    """Evaluate the networks of a plan, and return their rows; arguments as for `run_campaign`."""
    count, direction = plan.networks, problem.scores[0].direction
    with opened(engine, workers) as crew:
        while True:
            rows = run_campaign(
                kernel, problem, range(count), ledger, workers=workers, engine=crew, on_progress=on_progress
            )
            due = networks_of(plan, rows["scores"][:, 0], direction)
            if due <= count:
                return rows[:due]
            count = due


def statements_of(plan: Plan, scores: ArrayLike, score: Score) -> tuple[Statement, ...]:
    """What the scores of a search say besides the best and the worst, as settled in its plan."""
    scoring: Scoring = {
        "score": score.name,
        "direction": score.direction,
        "unit": score.unit,
        "horizon": plan.horizon,
        "blocks": plan.blocks,
    }
    found: list[Statement] = []
    if plan.stop is not None:
        found.append(Stopped.of(scores, plan.stop, **scoring))
    if plan.discarded:
        found.append(Removal.of(scores, discarded=plan.discarded, beta=plan.beta, **scoring))
    # Both ends are stated for a number that does not depend on the scores, or on their ranks alone.
    if (plan.stop is None or plan.stop.by_ranks) and plan.networks > 1:
        found.append(BothEnds.of(scores, beta=plan.beta, **scoring))
    return (*found, Gain.of(scores, **scoring))
