"""SettledPlan: a plan with nothing left open, and its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

from echobound.errors import DamagedFile, InputError
from echobound.files import digest, jsonable
from echobound.kernels.problem import Fold, Segment
from echobound.network.law import NetworkLaw
from echobound.plan.laws import Family, Law, law_from_json, measures_of, name_families
from echobound.plan.plan import BEST, Plan
from echobound.plan.renewal import RenewalStep
from echobound.scenario import Statement, StoppingRule
from echobound.scenario.bounds import as_count
from echobound.scenario.words import data_seed
from echobound.scores import Score

SCHEMA = 1
# In every plan.json.
STORED = ("seed", "scores", "horizon", "networks", "epsilon", "beta", "bound", "committee", "data")
# Written in another form, or they follow.
NOT_STORED = ("law", "order", "trainer", "quick", "blocks", "washout", "folds", "measures")


@dataclass(frozen=True, kw_only=True)
class SettledPlan(Plan):
    """A plan with nothing left open: what a run will do, recorded before the first draw and never changed afterwards.

    N networks of each family certify epsilon. A rule that looks at ranks continues from `networks` to wherever it
    stops; under a target the search continues from `networks` until it is reached.
    """

    law: tuple[Law, ...]  # one for each family
    networks: int
    epsilon: float
    stop: StoppingRule | None
    scores: tuple[str, ...]
    washout: int
    committee: int = BEST
    folds: tuple[Fold, ...]  # what is trained on and what is scored
    data: str  # digest of the records and their roles
    samples: str = ""  # digest of the samples alone, whatever they are called, where the seed follows from it
    measures: tuple[Score, ...] = field(default=(), compare=False, repr=False)  # looked up by name if not given

    def __post_init__(self) -> None:
        super().__post_init__()
        as_count("networks", self.networks)
        if not self.measures:
            object.__setattr__(self, "measures", measures_of(self.law[0], self.scores))
        if bool(self.samples) != self.seed_of_data:
            raise InputError("the digest of the samples is stored where the seed follows from it, and only there")
        if self.seed_of_data and self.seed != data_seed(self.samples):
            raise InputError(
                f"the seed was to follow from the data, which give {data_seed(self.samples)}, not {self.seed}"
            )
        if self.members > 1 and not all(isinstance(law, NetworkLaw) for law in self.law):
            raise InputError(
                f"members={self.members} draws committees of networks, but what is drawn here are no networks: leave"
                " members out"
            )
        if (self.discarded or self.joint) and self.at_will:
            raise InputError(
                "networks can be set aside, and scores stated jointly, for a number of networks settled beforehand or"
                f" found by patience, not under the rule {self.rule}: leave out one of the two"
            )
        if len(self.law) > 1 and (self.stop is not None or self.discarded or self.joint or self.renewal is not None):
            raise InputError(
                f"{len(self.law)} families were given together with a stopping rule, networks to set aside, a joint"
                " statement or a renewal: these are for one law; leave out one of the two"
            )
        if self.target is not None and not self.at_will:
            raise InputError(
                "a target looks at the scores, so it needs a rule that holds however the search is stopped (anytime,"
                f" between, looks, mixture), not {self.rule}"
            )

    def asked(self) -> Plan:
        """The plan that settles to this one on the same data."""
        values = {f.name: getattr(self, f.name) for f in fields(Plan)}
        values["blocks"] = self.blocks or 0  # 0: without validation data, the end is held out again
        if self.stop is not None and self.stop.by_ranks:  # patience finds the number itself
            values["networks"] = None
        return Plan(**values | {"scores": self.measures})

    @property
    def plain(self) -> int:
        """Position of the first score that any data can be scored by: one that does not look at the training data."""
        return next(number for number, one in enumerate(self.measures) if one.demand is None)

    @property
    def rule(self) -> str:
        """The kind of the stopping rule; ``fixed`` where N is settled beforehand."""
        return "fixed" if self.stop is None else self.stop.kind

    @property
    def at_will(self) -> bool:
        """Whether the search may stop for any reason, so that any number of networks is as good as another."""
        return self.stop is not None and not self.stop.by_ranks

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """The families, in order."""
        return name_families(self.law, self.numbering)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON, with its digest."""
        laws = [law.to_dict() for law in self.law]
        content = {
            "schema_version": SCHEMA,
            "rule": self.rule,
            **({"law": laws[0]} if len(laws) == 1 else {"laws": laws}),
            "validation": "hold-out" if self.blocks is None else f"{self.blocks} blocks in turn, then refit on all",
            "folds": [{"training": _listed(fold.training), "scored": _listed(fold.scored)} for fold in self.folds],
        }
        for one in fields(self):
            value = getattr(self, one.name)
            # Settings that came later are left out at their default: plans without them keep their digest.
            if one.name in STORED or (one.name not in NOT_STORED and value != one.default):
                content[one.name] = _written(value)
        return {**content, "digest": digest(jsonable(content))}

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the plan."""
        return str(self.to_dict()["digest"])

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> SettledPlan:
        """Inverse of `to_dict`; a plan whose digest does not match its content is refused."""
        try:
            folds = tuple(
                Fold(*(tuple(Segment(*s) for s in fold[part]) for part in ("training", "scored")))
                for fold in content["folds"]
            )
            stored = {one.name: one for one in fields(cls) if one.name not in NOT_STORED}
            values = {name: _read(name, content[name]) for name in stored if name in content}
            missing = {name: one.default for name, one in stored.items() if name not in content}
            values |= {name: None if value is MISSING else value for name, value in missing.items()}
            plan = cls(
                law=tuple(law_from_json(law) for law in content.get("laws") or [content["law"]]),
                folds=folds,
                blocks=len(folds) if len(folds) > 1 else None,
                washout=folds[0].scored[0].washout,
                **values,
            )
            if plan.horizon is not None and (type(plan.horizon) is not int or plan.horizon < 1):
                raise ValueError("the horizon is not a number of samples")
            expected = jsonable(plan.to_dict())
        except DamagedFile:
            raise InputError("stop is not what was planned") from None
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a complete plan: {error}") from None
        for name in sorted(set(expected) | set(content)):
            if expected.get(name, MISSING) != content.get(name, MISSING):
                raise InputError(f"{name} is not what was planned")
        return plan


def _listed(segments: Sequence[Segment]) -> list[list[int]]:
    return [[s.record, s.start, s.stop, s.washout] for s in segments]


def _written(value: Any) -> Any:
    if isinstance(value, Statement):
        return value.to_dict()
    if isinstance(value, RenewalStep):
        return asdict(value)
    return list(value) if isinstance(value, tuple) else value


def _read(name: str, value: Any) -> Any:
    if name == "renewal":
        return RenewalStep(**value)
    if name == "stop":
        rule = Statement.from_dict(value, "plan.json")
        if not isinstance(rule, StoppingRule):
            raise ValueError("stop is not a stopping rule")
        return rule
    return tuple(value) if isinstance(value, list) else value
