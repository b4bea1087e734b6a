"""Statement: a promise in numbers that follow from few, and in plain words.

A statement holds what was settled and what was seen (its fields); everything else about it is a property that is
computed from them. Stored as JSON it carries the computed numbers and the words too, and reading it derives them again:
a statement whose numbers do not follow is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypedDict, get_type_hints

from echobound.errors import InputError
from echobound.scenario.bounds import as_probability
from echobound.scenario.ordering import Direction, goodness
from echobound.scenario.words import Noun, confidence, noun
from echobound.typed import (
    Keywords,
    from_json,
    held_in,
    later,
    object_schema,
    refuse,
    require_equal,
    require_names,
    shortened,
    to_json,
    written,
)

if TYPE_CHECKING:
    from echobound.scenario.search import Search


class Scoring(TypedDict, total=False):
    """What was scored, as in `certify`: keywords that every statement about scores takes."""

    score: str
    direction: Direction
    unit: str
    horizon: int | None
    blocks: int | None
    members: int


Members = Annotated[
    int,
    Keywords(
        "What was drawn: committees of so many networks each, and all numbers of networks count committees. Left out"
        " where single networks were drawn.",
        minimum=2,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """Base of all statements. Each has a method `of`, which makes it from data.

    A subclass names its `kind`, which registers it; its `title`, a short label in which ``{many}`` stands for what was
    drawn; and which of its properties are stored (`derived`). A statement about the scores of a search also has
    `of_search`, `claims` and `settled`.

    Examples
    --------
    >>> from echobound.scenario import Removal
    >>> statement = Removal.of([90.0 - i / 10 for i in range(93)], discarded=1, beta=0.05)
    >>> Statement.from_dict(statement.to_dict()) == statement
    True
    """

    kind: ClassVar[str] = ""
    title: ClassVar[str] = ""
    derived: ClassVar[tuple[str, ...]] = ()
    of_all_scores: ClassVar[bool] = False  # whether it is about all scores of a search, not the selecting one alone
    kinds: ClassVar[dict[str, type[Statement]]] = {}

    members: Members = later(1)

    def __init_subclass__(cls) -> None:
        if cls.kind:
            Statement.kinds[cls.kind] = cls

    @property
    def words(self) -> str:
        """The statement in plain words."""
        raise NotImplementedError

    @property
    def drawn(self) -> Noun:
        """What was drawn, as the words call it."""
        return noun(self.members)

    @classmethod
    def of_search(cls, search: Search) -> Self | None:
        """The statement about a finished search; None where it is not made."""
        raise NotImplementedError

    @classmethod
    def claims(cls, search: Search) -> list[int]:
        """Positions in the table of a search of the draws that such a statement rests on.

        An audit draws and trains these again. It asks about incomplete searches too, so nothing is refused here.
        """
        return []

    @property
    def promises(self) -> int:
        """How many promises it adds to those of best and worst in a certificate, each with confidence 1 - beta."""
        return 0

    def settled(self) -> Mapping[str, Any]:
        """The fields of a `Search` that this statement shows: from them and the scores `of_search` makes it again."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """The statement as JSON: its kind, what it holds, what follows, and the words."""
        names = [*written(self), *self.derived, "words"]
        return {"kind": self.kind, **{name: to_json(getattr(self, name)) for name in names}}

    to_json = to_dict  # as it is nested in other JSON

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], path: str | Path = "certificate.json") -> Self:
        """Inverse of `to_dict` for all kinds; an entry that is missing, unknown or does not follow is refused."""
        return cls.from_json(content, path)

    @classmethod
    def from_json(cls, content: Any, path: str | Path | None = None) -> Self:
        """As `from_dict`: how a statement is read that is nested in other JSON."""
        found = content.get("kind") if isinstance(content, Mapping) else content
        own = Statement.kinds.get(found) if isinstance(found, str) else None
        if own is None or not issubclass(own, cls):
            refuse(path, "kind", f"{shortened(repr(found))} is not a statement that can stand here")
        held = held_in(own, content)
        require_names([*held, *own.derived, "kind", "words"], content, path, own.kind)
        try:
            statement = from_json(own, {name: content[name] for name in held}, path, own.kind if path else "")
            derived = statement.to_dict()
        except (InputError, OverflowError) as error:  # the latter where a whole number is beyond all floats
            refuse(path, own.kind, str(error))
        require_equal(derived, content, path, own.kind)
        return statement

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema of this kind of statement; of a base class, of all that derive from it."""
        if not cls.kind:
            return {"anyOf": [kind.json_schema() for kind in Statement.kinds.values() if issubclass(kind, cls)]}
        hints = get_type_hints(cls, include_extras=True)
        inside = {f.name: hints[f.name] for f in fields(cls)}
        for name in cls.derived:
            found = getattr(cls, name)
            getter = found.func if isinstance(found, cached_property) else found.fget
            inside[name] = get_type_hints(getter, include_extras=True)["return"]
        content = object_schema(
            {"kind": str, **inside, "words": str}, ["kind", *held_in(cls, ()), *cls.derived, "words"]
        )
        content["properties"]["kind"] = {"const": cls.kind}
        content["properties"]["words"] = {"type": "string", "minLength": 1}
        return content


@dataclass(frozen=True, kw_only=True)
class ScoreStatement(Statement):
    """A statement about the scores of networks."""

    beta: float  # 1 - confidence
    # What was scored, as in `certify`.
    score: str = "score"
    direction: Direction = "max"
    unit: str = ""
    horizon: int | None = None
    blocks: int | None = None

    def __post_init__(self) -> None:
        as_probability("beta", self.beta)
        goodness([], self.direction)  # refuses other directions

    @property
    def start(self) -> str:
        """How the words begin."""
        return f"With confidence 1 - {confidence(self.beta)}"
