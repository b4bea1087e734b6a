"""Drawn: the candidates of a plan, made from the data of its run."""

from __future__ import annotations

from collections.abc import Sequence

from echobound.candidates import Candidates, Committees, Networks
from echobound.data.experiments import Experiments
from echobound.errors import InputError, RunError
from echobound.files import jsonable
from echobound.kernels import Kernel, get_kernel
from echobound.kernels.problem import Problem
from echobound.network import NetworkLaw
from echobound.plan import SettledPlan


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
        if isinstance(law, NetworkLaw):
            if problem is None:
                problem = Problem(records, plan.folds, law, plan.measures, seed=plan.seed, horizon=plan.horizon)
            networks = Networks(code, problem.of_family(family.number, law))
            found.append(networks if plan.members == 1 else Committees(networks, plan.members))
        elif hasattr(law, "candidates"):
            found.append(law.candidates(plan, experiments, family))
        else:
            raise RunError(
                f"this run stores neither its data nor what it drew ({law.name}), so that nothing can be drawn again"
                " from the folder: fit the search again in Python, and pass candidates=[search.candidates_]"
            )
    return tuple(found)


def require_candidates(plan: SettledPlan, candidates: Sequence[Candidates], *, but: Sequence[str] = ()) -> None:
    """Refuse candidates from elsewhere that are not those of a plan, `but` for parts of the law that may differ."""
    differs = [] if [c.family for c in candidates] == [f.number for f in plan.families] else ["families"]
    for one, family in zip(candidates, plan.families, strict=False):
        ours, theirs = jsonable(one.describe()), jsonable(family.law.to_dict())
        differs += [name for name in {**theirs, **ours} if ours.get(name) != theirs.get(name) and name not in but]
        given = {"seed": one.seed, "scores": tuple(s.name for s in one.measures), "data": one.data or plan.data}
        differs += [name for name, value in given.items() if value != getattr(plan, name)]
    if differs:
        raise InputError(
            f"these candidates are not those of the run (other {', '.join(dict.fromkeys(differs))}): give the"
            " candidates_ of the search that made it, or of one with the same options and data"
        )
