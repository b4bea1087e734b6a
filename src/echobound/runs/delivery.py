"""Delivery: which of the models of a run is recommended, and why. The rule stands here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from echobound.plan import SettledPlan

FEWEST = 3  # members: the median of two is their mean, which one bad member ruins


@dataclass(frozen=True, slots=True)
class Delivery:
    """Which model is delivered as ``model.npz``, and a sentence that says why."""

    delivered: Literal["network", "committee"]
    reason: str


def delivery_of(plan: SettledPlan, finite: int) -> Delivery | None:
    """What is delivered under a plan; None if all networks diverged.

    It follows from the plan and from how many of the networks that it keeps did not diverge, and so is known when the
    pick is made: no data are looked at for it.

    Parameters
    ----------
    plan
        How large a committee of the best was asked for; and whether what is drawn are committees already.
    finite
        How many of the networks that the plan keeps (`kept_of`) there are.

    Examples
    --------
    >>> from echobound import Plan, ph_experiment
    >>> from echobound.plan import settle_validation
    >>> plan = Plan(law="paper", order=5, networks=20).settle(settle_validation(*ph_experiment(samples=(400, 300))))
    >>> delivery_of(plan, finite=10).delivered, delivery_of(plan, finite=2).delivered, delivery_of(plan, finite=0)
    ('committee', 'network', None)
    """
    if not finite:
        return None
    if getattr(plan, "members", 1) > 1:
        return Delivery("committee", "What is drawn are committees, so that the best of them is the model.")
    if not plan.committee:
        return Delivery("network", "No committee was asked for, so that the picked network is the model.")
    if finite < FEWEST:
        networks = f"{finite} network{'s' * (finite > 1)}"
        return Delivery("network", f"A committee of {networks} is no safer than the picked network alone.")
    return Delivery(
        "committee",
        f"The median of {finite} of the best networks is the safer model on new data: one of them that goes astray does"
        " not move it.",
    )
