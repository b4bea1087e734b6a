"""Plan: everything that is settled before the first draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from echobound.errors import DamagedFile, InputError
from echobound.files import digest, jsonable
from echobound.kernels.problem import Fold, Problem, Segment
from echobound.network.law import ReservoirLaw, family_names
from echobound.plan.numbers import Bound
from echobound.scenario import Statement, StoppingRule
from echobound.scenario.bounds import as_count

__all__ = ["Plan", "Renewed", "require_covered"]

SCHEMA = 1


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
                f" between, looks, mixture), not with {'none' if self.stop is None else self.stop.kind}"
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


def _listed(segments: Sequence[Segment]) -> list[list[int]]:
    return [[s.record, s.start, s.stop, s.washout] for s in segments]
