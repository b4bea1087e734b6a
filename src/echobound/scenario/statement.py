"""Statement: a promise in numbers that follow from few, and in plain words.

A statement holds what was settled and what was seen (its fields); everything else about it is a property that is
computed from them. Stored as JSON it carries the computed numbers and the words too, and reading it derives them again:
a statement whose numbers do not follow is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import types
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, TypedDict, Union, get_args, get_origin, get_type_hints

from echobound.errors import DamagedFile, InputError
from echobound.scenario.bounds import as_probability
from echobound.scenario.ordering import goodness
from echobound.scenario.words import confidence

__all__ = ["ScoreStatement", "Scoring", "Statement", "digest_of"]


class Scoring(TypedDict, total=False):
    """What was scored, as in `certify`: keywords that every statement about scores takes."""

    score: str
    direction: Literal["max", "min"]
    unit: str
    horizon: int | None
    blocks: int | None


@dataclass(frozen=True, kw_only=True)
class Statement:
    """Base of all statements; a subclass names its `kind` and which of its properties are stored (`derived`).

    Each has a method `of`, which makes it from data.

    Examples
    --------
    >>> from echobound.scenario import Removal
    >>> scores = [90.0 - i / 10 for i in range(93)]
    >>> statement = Removal.of(scores, discarded=1, beta=0.05)
    >>> Statement.from_dict(statement.to_dict()) == statement
    True
    >>> statement.check(scores)  # thresholds derived again from the scores
    """

    kind: ClassVar[str] = ""
    derived: ClassVar[tuple[str, ...]] = ()
    of_all_scores: ClassVar[bool] = False  # whether its data are a table of all scores, not those of the first alone
    _kinds: ClassVar[dict[str, type[Statement]]] = {}

    def __init_subclass__(cls) -> None:
        if cls.kind:
            Statement._kinds[cls.kind] = cls

    @property
    def words(self) -> str:
        """The statement in plain words."""
        raise NotImplementedError

    def again(self, *data: Any) -> Statement:
        """The same statement made once more from the data it speaks of."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The statement as JSON: its kind, what it holds, what follows, and the words."""
        names = [*(f.name for f in fields(self)), *self.derived, "words"]
        return {"kind": self.kind, **{name: _plain(getattr(self, name)) for name in names}}

    @staticmethod
    def from_dict(content: Mapping[str, Any], path: str | Path = "certificate.json") -> Statement:
        """Inverse of `to_dict`, for every kind; what is missing, unknown or does not follow is refused."""
        cls = Statement._kinds.get(str(content.get("kind")))
        if cls is None:
            raise DamagedFile(path, "kind", f"{content.get('kind')!r} is not a statement")
        held = {f.name for f in fields(cls)}
        for name in sorted((held | {*cls.derived, "kind", "words"}) ^ set(content)):
            raise DamagedFile(path, f"{cls.kind}: {name}", "unknown" if name in content else "missing")
        hints = get_type_hints(cls)
        try:
            values = {name: _read(content[name], path) for name in held}
            for name, value in values.items():
                if not _fits(value, hints[name]):
                    raise InputError(f"{name} cannot be {_short(value)}")
            statement = cls(**values)
            _require_equal(statement, content, path)
        except InputError as error:
            raise DamagedFile(path, cls.kind, str(error)) from None
        return statement

    def check(self, *data: Any, path: str | Path = "certificate.json") -> None:
        """Derive the statement again from the data it speaks of (see `again`).

        Raises
        ------
        DamagedFile
            Naming the first number that does not follow.
        """
        try:
            found = self.again(*data)
        except InputError as error:
            raise DamagedFile(path, self.kind, str(error)) from None
        _require_equal(found, self.to_dict(), path)


@dataclass(frozen=True, kw_only=True)
class ScoreStatement(Statement):
    """A statement about the scores of networks.

    Parameters
    ----------
    beta
        1 - confidence.
    score, direction, unit, horizon, blocks
        As in `certify`.
    """

    beta: float
    score: str = "score"
    direction: Literal["max", "min"] = "max"
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

    @property
    def scoring(self) -> Scoring:
        """What was scored, as keywords."""
        return {
            "score": self.score,
            "direction": self.direction,
            "unit": self.unit,
            "horizon": self.horizon,
            "blocks": self.blocks,
        }


def digest_of(identity: Mapping[str, Any]) -> str:
    """SHA-256 over the content of a certificate, as JSON."""
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Statement):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read(value: Any, path: str | Path) -> Any:
    if isinstance(value, list):
        return tuple(_read(item, path) for item in value)
    return Statement.from_dict(value, path) if isinstance(value, dict) else value


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value has a type; true and false are not numbers, and whole numbers are numbers."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in inside)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(item, inside[0]) for item in value)
    if origin is Literal:
        return value in inside
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))


def _require_equal(found: Statement, stated: Mapping[str, Any], path: str | Path) -> None:
    for name, value in found.to_dict().items():
        if json.dumps(value) != json.dumps(stated.get(name)):
            raise DamagedFile(
                path, f"{found.kind}: {name}", f"{_short(value)} follows, {_short(stated.get(name))} is stated"
            )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
