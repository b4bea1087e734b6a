"""Drawn: the candidates of a plan, made from the data of its run."""

from __future__ import annotations

from echobound.candidates import Candidates, Networks
from echobound.data.experiments import Experiments
from echobound.errors import RunError
from echobound.kernels import Kernel, get_kernel
from echobound.kernels.problem import Problem
from echobound.network import ReservoirLaw
from echobound.plan import SettledPlan

__all__ = ["candidates_of"]


def candidates_of(plan: SettledPlan, experiments: Experiments, kernel: str | Kernel = "cpu") -> tuple[Candidates, ...]:
    """The candidates of each family, on the stream of the search.

    A law of another kind makes its own, by a method ``candidates(plan, experiments, family)``; one that is known by its
    description alone cannot.

    Examples
    --------
    >>> from echobound import Plan, ph_experiment
    >>> from echobound.plan import settle_validation
    >>> validation = settle_validation(*ph_experiment(samples=(400, 300)))
    >>> plan = Plan(law="paper", order=[5, 10], networks=20).settle(validation)
    >>> [networks.describe()["order"] for networks in candidates_of(plan, validation.experiments)]
    [5, 10]
    """
    code = get_kernel(kernel) if isinstance(kernel, str) else kernel
    records, problem, found = (*experiments.training, *experiments.validation), None, list[Candidates]()
    for family in plan.families:
        law = family.law
        if isinstance(law, ReservoirLaw):
            if problem is None:
                problem = Problem(records, plan.folds, law, plan.measures, seed=plan.seed, horizon=plan.horizon)
            found.append(Networks(code, problem.of_family(family.number, law)))
        elif hasattr(law, "candidates"):
            found.append(law.candidates(plan, experiments, family))
        else:
            raise RunError(
                f"this run drew candidates of the kind {law.name!r}, and neither they nor their data are stored: draw"
                " again in Python, where they are at hand, and pass them as candidates"
            )
    return tuple(found)
