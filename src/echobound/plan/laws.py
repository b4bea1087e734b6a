"""Laws: what can be drawn, whatever it is, and the families of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from echobound.errors import InputError, RunError
from echobound.files import jsonable
from echobound.network.law import NetworkLaw
from echobound.network.laws import Orders, Shape, family_names, get_laws
from echobound.network.mixed_law import NETWORK_LAWS, network_law_from_dict
from echobound.network.training import Trainer
from echobound.scores import Score, get_score


@runtime_checkable
class Law(Protocol):
    """The distribution that candidates are drawn from, as plans and certificates name it.

    `ReservoirLaw` is one. Another kind has a ``kind`` that its JSON names, and is made known by `register_law`.
    """

    @property
    def name(self) -> str:
        """What the law is called."""

    def to_dict(self) -> dict[str, Any]:
        """The law as JSON."""


LawChoice: TypeAlias = str | Law | Sequence[str | Law]
_KINDS: dict[str, Any] = {}


@dataclass(frozen=True)
class Family:
    """The candidates of one law. Its number is part of the key of each draw."""

    number: int
    name: str
    law: Law


@dataclass(frozen=True)
class DescribedLaw:
    """A law of another kind, known by its JSON alone: its candidates cannot be made from a run folder.

    Examples
    --------
    >>> DescribedLaw({"kind": "estimator", "estimator": "MLPRegressor"}).name
    'estimator'
    """

    content: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What the law is called."""
        return str(self.content.get("name", self.content["kind"]))

    def to_dict(self) -> dict[str, Any]:
        """The law as JSON."""
        plain: dict[str, Any] = jsonable(self.content)
        return plain

    def measure(self, score: str | Score) -> Score:
        """A score by its name; larger is better, and it cannot be computed here."""
        return score if isinstance(score, Score) else Score(score, max, "max")


def register_law(cls: Any) -> Any:
    """Make a kind of law known by its ``kind``, so that plans that name it can be read; usable as a decorator."""
    _KINDS[cls.kind] = cls
    return cls


def law_from_json(content: Mapping[str, Any]) -> Law:
    """Read a law of any kind.

    Examples
    --------
    >>> from echobound.network import paper
    >>> law_from_json(paper(50).to_dict()) == paper(50)
    True
    """
    kind = content.get("kind")
    if kind in NETWORK_LAWS:
        return network_law_from_dict(content)
    if kind == "estimator":
        return DescribedLaw(content)
    if kind not in _KINDS:
        raise RunError(f"the kind of law {kind!r} is not known here: import the module that registers it first")
    law: Law = _KINDS[kind].from_dict(content)
    return law


def settle_laws(law: LawChoice | None, order: Orders, trainer: str | Trainer | None, shape: Shape) -> tuple[Law, ...]:
    """The laws of a plan, one for each family; laws by name may depend on how much data there are.

    Whoever gives an order or a trainer but no law means large networks: other kinds have none that could be given.
    """
    if law is None:
        law = "mixed" if order is None and trainer is None else "broad"
    if isinstance(law, str) and law in _KINDS:
        law = _KINDS[law]()
    if isinstance(law, list | tuple) and len(law) == 1:
        return settle_laws(law[0], order, trainer, shape)
    if isinstance(law, Law) and not isinstance(law, NetworkLaw):
        if order is not None or trainer is not None:
            raise InputError(f"the law {law.name} has no order and no trainer to be given: leave them out")
        return (law,)
    return get_laws(law, order, shape, trainer)  # type: ignore[arg-type]  # what is no law is refused there


def measures_of(law: Law, scores: Sequence[str | Score]) -> tuple[Score, ...]:
    """The scores by name: registered ones, or what a law of another kind says they are."""
    look_up = getattr(law, "measure", get_score)
    return tuple(look_up(score) for score in scores)


def name_families(laws: Sequence[Law], numbering: Sequence[int] = ()) -> tuple[Family, ...]:
    """The families of a plan, numbered from 0 unless said otherwise."""
    numbers = tuple(numbering) or tuple(range(len(laws)))
    if len(numbers) != len(laws) or len(set(numbers)) < len(numbers):
        raise InputError(f"{len(laws)} families need as many different numbers, got {list(numbers)}")
    networks = [law for law in laws if isinstance(law, NetworkLaw)]
    names = family_names(networks) if len(networks) == len(laws) else tuple(law.name for law in laws)
    return tuple(Family(number, name, law) for number, name, law in zip(numbers, names, laws, strict=True))
