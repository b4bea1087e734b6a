"""Keeping: which networks of a search are kept as models. The rule stands here and nowhere else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from echobound.arrays import Rows
from echobound.draws import SEARCH, draw_key
from echobound.network import MixedLaw
from echobound.plan import SettledPlan
from echobound.scenario.ordering import ranking
from echobound.scores import Score

NEAR = 1.5  # times the error of the best: what comes near it in that sense may take the place of more of its kind


def kept_of(plan: SettledPlan, rows: Rows) -> list[int]:
    """Positions of the networks that are kept, the best first; diverged ones are not among them.

    The first is the pick. With a committee there are more: the best ones, but of several kinds at most half are of one
    kind, as long as others come near the best. Kinds go wrong in different ways, and a median of both is the safer.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> from echobound.plan import Plan, settle_validation
    >>> records = ph_experiment(samples=(400, 300))
    >>> plan = Plan(law="paper", order=5, networks=20, committee=3).settle(settle_validation(*records))
    >>> result = identify(*records, plan=plan)
    >>> kept_of(plan, result.table) == list(result.table["scores"][:, 0].argsort()[::-1][:3])
    True
    """
    count = max(plan.committee, 1)
    order = ranking(rows["scores"][:, 0], plan.measures[0].direction, len(rows))
    # By the plain score: the noise that a demanding one allows for would hide how far apart accurate networks are.
    kind, error = _kinds(plan, rows), _errors(plan.measures[plan.plain])
    if not order or count == 1 or kind is None or error is None:
        return order[:count]
    errors = [error(float(score)) for score in rows["scores"][:, plan.plain]]
    chosen, of_kind = list[int](), Counter[Any]()
    for position in order:
        if len(chosen) == count:
            break
        if errors[position] <= NEAR * errors[order[0]] and of_kind[kind(position)] < -(-count // 2):
            of_kind[kind(position)] += 1
            chosen.append(position)
    more = [position for position in order if position not in chosen][: count - len(chosen)]
    return [position for position in order if position in {*chosen, *more}]


def _kinds(plan: SettledPlan, rows: Rows) -> Callable[[int], Any] | None:
    """The kind of the network at a position; None if all are of one."""
    laws = {family.number: family.law for family in plan.families}
    if not any(isinstance(law, MixedLaw) for law in laws.values()):
        return None

    def kind(position: int) -> Any:
        family, index = int(rows["family"][position]), int(rows["index"][position])
        law = laws[family]
        if not isinstance(law, MixedLaw):
            return family
        return family, law.laws.index(law.component(draw_key(plan.seed, SEARCH, family, index)))

    return kind


def _errors(score: Score) -> Callable[[float], float] | None:
    """How far a score is from perfect; None for one that has no best value."""
    if score.direction == "min":
        return abs
    return (lambda value: 100.0 - value) if score.unit == "%" else None
