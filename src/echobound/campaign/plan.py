"""Plan: everything that is settled before the first draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

from echobound.errors import DamagedFile, InputError
from echobound.files import digest, jsonable
from echobound.kernels.problem import Fold, Problem, Segment
from echobound.network.law import ReservoirLaw, family_names
from echobound.scenario import (
    Patience,
    Statement,
    StoppingRule,
    epsilon_exact,
    epsilon_explicit,
    networks_exact,
    networks_explicit,
    stopping_rule,
)
from echobound.scenario.bounds import as_count

__all__ = ["Plan", "Renewed", "require_covered", "settle_networks", "settle_stop"]

SCHEMA = 1
MOST_NETWORKS = 2**32
Bound = Literal["exact", "explicit"]


@dataclass(frozen=True, kw_only=True)
class Renewed:
    """Where the networks of a renewal come from.

    Parameters
    ----------
    plan
        Digest of the plan by which they were drawn first.
    update, updates
        Which renewal this is, from 1 on, of how many that were planned.
    """

    plan: str
    update: int
    updates: int

    def __post_init__(self) -> None:
        if self.updates < 1:
            raise InputError(f"at least one renewal must be planned, got {self.updates}")
        if not 0 <= self.update <= self.updates:  # 0 before the first
            raise InputError(
                f"{self.updates} renewals were planned, and this would be number {self.update}: draw new networks, with"
                " another seed, and certify these"
            )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run will do, recorded before the first draw and never changed afterwards.

    Parameters
    ----------
    laws, seed, scores, folds, horizon
        The problem; each law has a family of networks of its own; scores by name, the first selects.
    networks, epsilon, beta, bound
        What will be certified: N networks of each family by this bound give epsilon at confidence 1 - beta.
    committee
        How many of the best networks make up the committee; 0 for none.
    data
        Digest of the records.
    stop
        The rule by which the search stops; None where the number of networks is settled here. A rule that looks at
        ranks goes on from `networks` to wherever it stops.
    target
        Of a rule that lets one stop at will: go on from `networks` until the best score is as good as this.
    discarded
        How many of the best networks are set aside in a further statement.
    joint
        Whether a further statement is about all scores together.
    renewal
        Of networks that were drawn before, for other data: of which plan, and which of how many renewals this is.
    """

    laws: tuple[ReservoirLaw, ...]
    seed: int
    scores: tuple[str, ...]
    folds: tuple[Fold, ...]
    horizon: int | None
    networks: int
    epsilon: float
    beta: float
    bound: Bound
    committee: int
    data: str
    stop: StoppingRule | None = None
    target: float | None = None
    discarded: int = 0
    joint: bool = False
    renewal: Renewed | None = None

    def __post_init__(self) -> None:
        as_count("networks", self.networks)
        as_count("committee", self.committee, least=0)
        as_count("discarded", self.discarded, least=0)
        if len(set(self.scores)) < len(self.scores):
            raise InputError(f"a score was given twice ({', '.join(self.scores)}): name each once")
        if self.joint and len(self.scores) == 1:
            raise InputError(f"a joint statement is about several scores, but {self.scores[0]} is the only one")
        require_covered(self.stop, further=bool(self.discarded or self.joint))
        if len(self.laws) > 1 and (self.stop is not None or self.discarded or self.joint or self.renewal is not None):
            raise InputError(
                f"{len(self.laws)} families were given, and with them a stopping rule, networks to set aside, a joint"
                " statement or a renewal: these are for one law; leave out one of the two"
            )
        if self.target is not None and (self.stop is None or self.stop.by_ranks):
            raise InputError(
                "a target looks at the scores, so it goes with a rule that holds whatever makes one stop (anytime,"
                f" horizon, looks, mixture), not with {'none' if self.stop is None else self.stop.kind}"
            )
        if self.target is not None and (isinstance(self.target, str | bool) or not math.isfinite(self.target)):
            raise InputError(f"a target is a finite number, got {self.target!r}")

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON, with its digest."""
        laws = [law.to_dict() for law in self.laws]
        content = {
            "schema_version": SCHEMA,
            "rule": "fixed" if self.stop is None else self.stop.kind,  # fixed: N, whatever the scores turn out to be
            **({"law": laws[0]} if len(laws) == 1 else {"laws": laws}),
            "seed": self.seed,
            "scores": list(self.scores),
            "validation": "hold-out" if self.blocks is None else f"{self.blocks} blocks in turn, then refit on all",
            "folds": [{"training": _listed(fold.training), "scored": _listed(fold.scored)} for fold in self.folds],
            "horizon": self.horizon,
            "networks": self.networks,
            "epsilon": self.epsilon,
            "beta": self.beta,
            "bound": self.bound,
            "committee": self.committee,
            "data": self.data,
        }
        # Only where they are wanted: a plan without them keeps the digest that it always had.
        content |= {} if self.stop is None else {"stop": self.stop.to_dict()}
        content |= {} if self.target is None else {"target": self.target}
        content |= {"discarded": self.discarded} if self.discarded else {}
        content |= {"joint": True} if self.joint else {}
        content |= {} if self.renewal is None else {"renewal": asdict(self.renewal)}
        return {**content, "digest": digest(jsonable(content))}

    @cached_property
    def families(self) -> list[dict[str, Any]]:
        """The families as a certificate lists them; none where there is but one law."""
        if len(self.laws) == 1:
            return []
        named = zip(family_names(self.laws), self.laws, strict=True)
        return [
            {"family": number, "name": name, "networks": self.networks, "law": law.to_dict()}
            for number, (name, law) in enumerate(named)
        ]

    @property
    def blocks(self) -> int | None:
        """How many blocks of the training data are scored in turn; None for validation data of their own."""
        return len(self.folds) if len(self.folds) > 1 else None

    @property
    def digest(self) -> str:
        """SHA-256 over the plan."""
        return str(self.to_dict()["digest"])

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Plan:
        """Inverse of `to_dict`; a plan that does not have the digest stored with it is refused."""
        try:
            stop = Statement.from_dict(content["stop"], "plan.json") if "stop" in content else None
            if not isinstance(stop, StoppingRule | None):
                raise ValueError("stop is not a stopping rule")
            plan = cls(
                stop=stop,
                target=content.get("target"),
                discarded=content.get("discarded", 0),
                joint=content.get("joint", False),
                renewal=Renewed(**content["renewal"]) if "renewal" in content else None,
                laws=tuple(ReservoirLaw.from_dict(law) for law in content.get("laws") or [content["law"]]),
                folds=tuple(
                    Fold(*(tuple(Segment(*s) for s in fold[part]) for part in ("training", "scored")))
                    for fold in content["folds"]
                ),
                scores=tuple(content["scores"]),
                **{name: content[name] for name in ("seed", "horizon", "networks", "epsilon", "beta", "bound")},
                **{name: content[name] for name in ("committee", "data")},
            )
        except DamagedFile:
            raise InputError("stop is not what was planned") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a complete plan: {error}") from None
        expected = jsonable(plan.to_dict())
        for name in sorted(set(expected) | set(content)):
            if expected.get(name) != content.get(name):
                raise InputError(f"{name} is not what was planned")
        return plan

    def problems(self, records: Sequence[Any], scores: Sequence[Any]) -> tuple[Problem, ...]:
        """The problem that the plan speaks of, for each family."""
        first = Problem(tuple(records), self.folds, self.laws[0], tuple(scores), seed=self.seed, horizon=self.horizon)
        return first.families(self.laws)


def require_covered(stop: StoppingRule | None, *, further: bool) -> None:
    """Refuse further statements under a rule that lets one stop at will: it covers the best and the worst alone."""
    if further and stop is not None and not stop.by_ranks:
        raise InputError(
            "networks are set aside, and scores stated jointly, for a number of networks settled beforehand or found by"
            f" patience, not by {stop.kind}: leave out one of the two"
        )


def settle_networks(
    epsilon: float | None,
    beta: float,
    networks: int | None,
    bound: Bound = "exact",
    discarded: int = 0,
    joint: int = 1,
) -> tuple[int, float]:
    """Number of networks and epsilon: one given, the other follows; neither, epsilon = 0.05.

    Where the number follows, there are enough of them to certify epsilon after so many of the best were discarded, and
    for so many scores jointly.

    Examples
    --------
    >>> settle_networks(0.05, 1e-7, None)
    (315, 0.05)
    >>> networks, epsilon = settle_networks(None, 1e-7, 645)
    >>> round(epsilon, 7)
    0.0246796
    """
    if bound not in ("exact", "explicit"):
        raise InputError(f"the bound must be 'exact' or 'explicit', got {bound!r}")
    required, inverse = (networks_exact, epsilon_exact) if bound == "exact" else (networks_explicit, epsilon_explicit)
    if networks is None:
        epsilon = 0.05 if epsilon is None else epsilon
        needed = max(required(epsilon, beta, discarded=discarded), required(epsilon, beta, d=joint))
        return _drawable(needed), float(epsilon)
    _drawable(networks)
    if networks < 1:
        raise InputError(f"the number of networks must be at least 1, got {networks}")
    if epsilon is None:
        epsilon = float(inverse(networks, beta))
        if epsilon >= 1:
            raise InputError(
                f"{networks} networks certify nothing at beta={beta:g} by the {bound} bound: draw more networks, or"
                " take a larger beta"
            )
        return networks, epsilon
    needed = required(epsilon, beta)
    if networks < needed:
        raise InputError(
            f"{networks} networks cannot certify epsilon={epsilon:g} at beta={beta:g}: {needed} are needed by the"
            f" {bound} bound, so draw more, or give up one of the three numbers"
        )
    return networks, float(epsilon)


def settle_stop(
    stop: str | StoppingRule,
    epsilon: float | None,
    beta: float,
    networks: int | None,
    bound: Bound = "exact",
    discarded: int = 0,
    joint: int = 1,
) -> tuple[StoppingRule, int, float]:
    """The rule, the number of networks before which it does not stop, and epsilon, which is certified there.

    Examples
    --------
    >>> rule, networks, epsilon = settle_stop("patience:200", None, 1e-7, None)
    >>> rule.draws, networks, epsilon
    (200, 315, 0.05)
    >>> settle_stop("anytime", 0.05, 1e-7, None)[1:]
    (409, 0.05)
    """
    rule = stopping_rule(stop, float(beta)) if isinstance(stop, str) else stop
    if rule.beta != float(beta):
        raise InputError(f"the stopping rule is for beta={rule.beta:g}, but beta={beta:g} was given: give the same")
    if bound != "exact":
        raise InputError(f"a stopping rule goes with the exact bound, got {bound!r}: leave the bound out")
    if isinstance(rule, Patience):
        if networks is not None:
            raise InputError(
                f"patience finds the number of networks itself, but {networks} were asked for: leave the number out, or"
                f" give the least number with the rule, as in patience:{rule.draws},{networks}"
            )
        least, epsilon = settle_networks(epsilon, beta, None, bound, discarded, joint)
        rule = replace(rule, least=max(rule.least, least))
        return rule, _drawable(rule.soonest), epsilon
    if networks is None:
        epsilon = 0.05 if epsilon is None else epsilon
        return rule, _drawable(rule.networks(epsilon)), float(epsilon)
    certified = rule.epsilon(_drawable(networks))
    if certified >= 1 or (epsilon is not None and certified > epsilon):
        wanted = "nothing" if certified >= 1 else f"epsilon={certified:g}"
        raise InputError(
            f"{networks} networks certify {wanted} at beta={beta:g} by the rule {rule.kind}: draw more, or take a"
            " larger epsilon or beta"
        )
    return rule, networks, certified if epsilon is None else float(epsilon)


def _drawable(networks: int) -> int:
    if networks > MOST_NETWORKS:
        raise InputError(
            f"{networks} networks were asked for, but an index has 32 bits: at most {MOST_NETWORKS} can be drawn, so"
            " take a larger epsilon or beta"
        )
    return networks


def _listed(segments: Sequence[Segment]) -> list[list[int]]:
    return [[s.record, s.start, s.stop, s.washout] for s in segments]
