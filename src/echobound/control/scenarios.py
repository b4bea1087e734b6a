"""Scenario constraints: output bounds that hold for many networks of a search, and what that says about other networks.

Given the score s of the (m+1)-th best of N independent draws, the m that score more are independent draws of the law
*given that the score exceeds s*: which of the N they are carries no information beyond that. So they are scenarios in
the sense of the theory, of the networks that are at least as good as these.

What a controller decides is a function of them. If it stays the same when all but k of them are left out (the support),
then, with confidence 1 - beta over the draw, a further such network violates the bounds under the planned inputs with
probability at most

    epsilon(k) = 1 - (beta / (m C(m, k)))^(1 / (m - k)),        epsilon(m) = 1

(Campi, Garatti and Ramponi, A general scenario theory for nonconvex optimization and decision making, 2018; nothing has
to be convex). In a closed loop the past depends on the networks as well: what counts is then the union of the supports
of all samples so far, since these networks alone would have led to the same past.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echobound.control.mpc import MPC
from echobound.errors import InputError
from echobound.runs import RunFolder
from echobound.runs.drawn import candidates_of
from echobound.scenario.ordering import ranking

NOT_SAID = (
    "It is about models and not about the plant, about planned inputs and not about what will be measured, and about"
    " bounds that are kept without slack; the closed loop through a model's own output is not shown to be stable."
)


@dataclass(frozen=True, eq=False)
class Scenarios:
    """Networks of a search as scenarios.

    Parameters
    ----------
    models
        The networks, the best first.
    threshold
        The score that all of them exceed and the next one does not; None if nothing can be said about others.
    score
        Its name.
    reason
        Why nothing can be said, in a sentence; empty if something can.
    """

    models: tuple[Any, ...]
    threshold: float | None
    score: str
    reason: str = ""

    def __iter__(self) -> Any:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)


def best_networks(run: str | Path | RunFolder, count: int) -> Scenarios:
    """The best networks of a run, drawn and trained again: `count` of them, or fewer if scores are equal.

    Parameters
    ----------
    run
        A finished run folder.
    count
        How many; there must be one more in the ledger, whose score they exceed.
    """
    folder = run if isinstance(run, RunFolder) else RunFolder(run)
    plan, rows = folder.plan, folder.search
    if getattr(plan, "members", 1) > 1:
        raise InputError("this run drew committees: give --scenarios committee, or use a run that draws networks")
    order = ranking(rows["scores"][:, 0], plan.measures[0].direction, len(rows))
    if not 1 <= count < len(order):
        raise InputError(
            f"the number of scenarios must lie between 1 and {len(order) - 1}, one less than there are networks that"
            f" did not diverge, got {count}"
        )
    threshold = float(rows["scores"][order[count], 0])
    chosen = [at for at in order[:count] if float(rows["scores"][at, 0]) != threshold]
    families = {one.family: one for one in candidates_of(plan, folder.experiments)}
    models = tuple(families[rows["family"][at]].make(int(rows["index"][at])).model for at in chosen)
    reason = ""
    if len(plan.families) > 1:
        reason = "The networks are from several families, and thus not draws of one law."
    elif plan.stop is not None:
        reason = "How many networks were drawn depended on their scores, so that the best are not independent draws."
    return Scenarios(models, None if reason else threshold, plan.measures[0].name, reason)


def epsilon_of(count: int, support: int, beta: float) -> float:
    """The probability that `count` scenarios, of which `support` decide, leave for a violation at confidence 1 - beta.

    Examples
    --------
    >>> [round(epsilon_of(count, 2, 1e-3), 3) for count in (10, 50, 500)], epsilon_of(5, 5, 1e-3)
    ([0.804, 0.312, 0.049], 1.0)
    """
    if not (0 <= support <= count and count >= 1 and 0 < beta < 1):
        raise InputError(
            f"a support between 0 and {count} and a beta between 0 and 1 were expected, got {support} and {beta:g}"
        )
    if support == count:
        return 1.0
    choices = math.lgamma(count + 1) - math.lgamma(support + 1) - math.lgamma(count - support + 1)
    # Rounded to the safe side: the exponent is right to a few last bits.
    exact = -math.expm1((math.log(beta) - math.log(count) - choices) / (count - support))
    return min(1.0, exact * (1 + 1e-12))


@dataclass(frozen=True)
class ScenarioStatement:
    """What bounds that hold for the scenarios say about other networks of the same law."""

    scenarios: int
    support: int  # scenarios that had any influence on what was decided so far, those of the cost among them
    beta: float
    epsilon: float | None  # None if nothing can be said
    threshold: float | None
    score: str
    reason: str = ""

    @property
    def words(self) -> str:
        """The statement with what it does not say."""
        kept = f"The output bounds were put on {self.scenarios} networks at each sample."
        if self.epsilon is None or self.threshold is None:
            return f"{kept} Nothing follows for other networks: {self.reason} {NOT_SAID}"
        if self.epsilon >= 1:
            why = f"{self.support} of them had a part in what was decided"
            return f"{kept} Nothing follows for other networks, since {why}. {NOT_SAID}"
        shown = math.ceil(self.epsilon * 1e4) / 1e4
        return (
            f"{kept} With confidence 1 - {self.beta:g}, a further network of the same law whose {self.score} is better"
            f" than {self.threshold:.6g} is outside the bounds under the last planned inputs, though all of these are"
            f" within, with probability at most {shown:g}: {self.support} of them had a part in what was decided."
            f" {NOT_SAID}"
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "statement": self.words}


def statement_of(controller: MPC, scenarios: Scenarios, beta: float = 1e-3) -> ScenarioStatement:
    """What can be said about other networks after the samples that a controller has decided so far."""
    given = {id(one) for one in scenarios.models}
    digests = {one.digest for one in scenarios.models}
    owners = [one.model for one in controller.observer.predictors]
    used = {i for i in range(len(owners)) if i < controller.costed or i in controller.supports}
    ours = [i for i in used if id(owners[i]) in given or owners[i].digest in digests]
    base = (len(scenarios), len(ours), beta)
    if scenarios.threshold is None:
        return ScenarioStatement(*base, None, None, scenarios.score, scenarios.reason)
    return ScenarioStatement(*base, epsilon_of(*base), scenarios.threshold, scenarios.score)
