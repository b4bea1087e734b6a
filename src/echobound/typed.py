"""Typed JSON: frozen dataclasses to JSON and back, every field checked by its type hint; and their JSON Schema.

A class whose JSON is not simply its fields brings three methods of its own, which are used wherever it is nested:
``to_json(self)``, ``from_json(cls, content, path)`` and ``json_schema(cls)``.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import types
from collections.abc import Iterable, Mapping
from dataclasses import field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from echobound.errors import DamagedFile, InputError

T = TypeVar("T")
_UNIONS = (Union, types.UnionType)
# Plain types: what JSON Schema calls them, and what the user does.
_NAMES = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
_SPOKEN = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", type(None): "null"}


class Keywords:
    """What the JSON Schema of a field says beyond its type, as in ``Annotated[int, Keywords("N", minimum=1)]``."""

    def __init__(self, description: str = "", **keywords: Any) -> None:
        self.content = {**keywords, **({"description": description} if description else {})}


def later(default: Any) -> Any:
    """A field of a dataclass that came later: the default is not written, so that what has it keeps its digest.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Point:
    ...     x: float
    ...     weight: int = later(1)
    >>> to_json(Point(0.5)), to_json(Point(0.5, weight=3)), from_json(Point, {"x": 0.5}).weight
    ({'x': 0.5}, {'x': 0.5, 'weight': 3}, 1)
    """
    return field(default=default, metadata={"later": True})


def setting(default: Any, help: str, *, text: str | None = None, option: str | None = None) -> Any:
    """A field that is also an option of the command line and of the studio, with its help text and name (`option`).

    `text` says how several values are typed: ``"words"`` or ``"numbers"``, separated by commas.
    """
    return field(default=default, metadata={"help": help, "text": text, "option": option})


def written(value: Any) -> list[str]:
    """Names of the fields of a dataclass that its JSON has."""
    return [f.name for f in fields(value) if not f.metadata.get("later") or getattr(value, f.name) != f.default]


def held_in(cls: Any, content: Any) -> list[str]:
    """Names of the fields of a dataclass that JSON content must have: those that came later only if they are there."""
    return [f.name for f in fields(cls) if not f.metadata.get("later") or f.name in content]


def to_json(value: Any) -> Any:
    """A value as JSON; a number that is not finite becomes null, since JSON has no other.

    Examples
    --------
    >>> to_json({"scores": (1.0, float("nan"))})
    {'scores': [1.0, None]}
    """
    # First of all: a class with a JSON form of its own may be a dataclass too.
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value):
        return {name: to_json(getattr(value, name)) for name in written(value)}
    if isinstance(value, Mapping):
        return {str(name): to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def from_json(cls: type[T], content: Any, path: str | Path | None = None, name: str = "") -> T:
    """Inverse of `to_json` for a dataclass: a field that is missing, unknown or of another type is refused.

    With the `path` of a file it is refused as a `DamagedFile`, otherwise as an `InputError`. `name` is what to call the
    content as a whole, before the names of its fields.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Point:
    ...     x: float
    ...     names: tuple[str, ...] = ()
    >>> from_json(Point, {"x": 1, "names": ["a", "b"]})
    Point(x=1, names=('a', 'b'))
    >>> from_json(Point, {"x": True, "names": []})
    Traceback (most recent call last):
        ...
    echobound.errors.InputError: x: a number was expected, found True
    """
    if not isinstance(content, Mapping):
        refuse(path, name or cls.__name__, f"an object was expected, found {shortened(repr(content))}")
    hints = get_type_hints(cls)
    names = held_in(cls, content)
    require_names(names, content, path, name)
    return cls(**{one: _read(content[one], hints[one], path, _inside(name, one)) for one in names})


def fields_from_json(cls: Any, content: Any, names: Iterable[str], path: str | Path | None = None) -> dict[str, Any]:
    """Some fields of a dataclass from JSON that has others too, each checked by its type.

    Examples
    --------
    >>> from echobound.data import Record
    >>> fields_from_json(Record, {"name": "tank", "sampling_time": "slow"}, ["name", "sampling_time"])
    Traceback (most recent call last):
        ...
    echobound.errors.InputError: sampling_time: a number was expected, found 'slow'
    """
    if not isinstance(content, Mapping):
        refuse(path, cls.__name__, f"an object was expected, found {shortened(repr(content))}")
    hints = get_type_hints(cls)
    for one in names:
        if one not in content:
            refuse(path, one, "missing")
    return {one: _read(content[one], hints[one], path, one) for one in names}


def require_names(expected: Iterable[str], content: Mapping[str, Any], path: str | Path | None, name: str = "") -> None:
    """Refuse content with other entries than those expected, by the name of the first that differs."""
    expected = set(expected)
    for one in sorted(expected ^ {str(key) for key in content}):
        refuse(path, _inside(name, one), "missing" if one in expected else "unknown")


def require_version(content: Mapping[str, Any], version: int, path: str | Path) -> None:
    """Refuse JSON of another ``schema_version``."""
    found = content.get("schema_version")
    if found is not version:  # not `!=`, since true equals 1
        refuse(path, "schema_version", f"{shortened(repr(found))}, this version reads {version}")


def require_equal(
    derived: Mapping[str, Any], stated: Mapping[str, Any], path: str | Path | None = None, name: str = ""
) -> None:
    """Refuse stated content that is not what was derived again, by the first entry that differs.

    Examples
    --------
    >>> require_equal({"networks": 3}, {"networks": 4})
    Traceback (most recent call last):
        ...
    echobound.errors.InputError: networks: 3 follows, 4 is stated
    """
    require_names(derived, stated, path, name)
    for one in derived:
        # As text, since 1, 1.0 and true are equal in Python and are not the same in a file.
        ours, theirs = (json.dumps(side[one], sort_keys=True) for side in (derived, stated))
        if ours != theirs:
            refuse(path, _inside(name, one), f"{shortened(ours)} follows, {shortened(theirs)} is stated")


def refuse(path: str | Path | None, name: str, why: str) -> NoReturn:
    """Raise what `from_json` raises about a field."""
    raise InputError(f"{name}: {why}") if path is None else DamagedFile(path, name, why)


def _inside(name: str, field: str) -> str:
    return f"{name}.{field}" if name else field


def _read(value: Any, hint: Any, path: str | Path | None, name: str) -> Any:
    """A JSON value as its type hint says."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in _UNIONS:
        if any(_suits(value, one) for one in inside):
            return value
        # An object or a list can suit only one of the types in use.
        others = [one for one in inside if one not in _NAMES and get_origin(one) is not Literal]
        if value is not None and others:
            return _read(value, others[0], path, name)
    elif origin is tuple and isinstance(value, list):
        each = inside[:1] * len(value) if inside[1:] == (...,) else inside
        if len(each) == len(value):
            pairs = enumerate(zip(value, each, strict=True))
            return tuple(_read(item, one, path, f"{name}[{i}]") for i, (item, one) in pairs)
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {key: _read(item, inside[1], path, f"{name}.{key}") for key, item in value.items()}
    elif hasattr(hint, "from_json"):
        return hint.from_json(value, path)
    elif is_dataclass(hint):
        return from_json(hint, value, path, name)  # type: ignore[arg-type]  # a class, not one of its objects
    elif _suits(value, hint):
        return value
    return refuse(path, name, f"{_named(hint)} was expected, found {shortened(repr(value))}")


def _suits(value: Any, hint: Any) -> bool:
    """Whether a value has a plain type: true and false are not numbers, and whole numbers are numbers."""
    if get_origin(hint) is Literal:
        return any(value == one and type(value) is type(one) for one in get_args(hint))
    # `type(...) is`, not `isinstance`: true and false are integers in Python.
    if hint is float:
        # A whole number of any length is JSON; one beyond the largest double is not a number to us.
        whole = type(value) is int and abs(value) <= sys.float_info.max
        return whole or (isinstance(value, float) and math.isfinite(value))
    return type(value) is hint


def _named(hint: Any) -> str:
    """A type as the user would call it."""
    if get_origin(hint) in _UNIONS:
        return " or ".join(map(_named, get_args(hint)))
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    return _SPOKEN.get(hint, "a list" if get_origin(hint) is tuple else "an object")


def schema(hint: Any) -> dict[str, Any]:
    """The JSON Schema of a dataclass, or of any type that one may have in its fields.

    Examples
    --------
    >>> schema(tuple[float, ...])
    {'type': 'array', 'items': {'type': 'number'}}
    >>> schema(Annotated[int | None, Keywords(minimum=1)])
    {'type': ['integer', 'null'], 'minimum': 1}
    """
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        added = [one.content for one in hint.__metadata__ if isinstance(one, Keywords)]
        return {key: value for part in (schema(inside[0]), *added) for key, value in part.items()}
    if hasattr(hint, "json_schema"):
        return dict(hint.json_schema())
    if hint in _NAMES:
        return {"type": _NAMES[hint]}
    if origin is Literal:
        return {"enum": list(inside)}
    if origin in _UNIONS:
        if all(one in _NAMES for one in inside):
            return {"type": [_NAMES[one] for one in inside]}
        return {"anyOf": [schema(one) for one in inside]}
    if origin is tuple:
        if inside[1:] == (...,):
            return {"type": "array", "items": schema(inside[0])}
        each = [schema(one) for one in inside]
        return {"type": "array", "prefixItems": each, "items": False, "minItems": len(each)}
    if is_dataclass(hint):
        hints = get_type_hints(hint, include_extras=True)
        return object_schema({f.name: hints[f.name] for f in fields(hint)}, held_in(hint, ()))
    if inside and inside[1] is not Any:
        return {"type": "object", "additionalProperties": schema(inside[1])}
    return {} if hint is Any else {"type": "object"}


def object_schema(hints: Mapping[str, Any], required: Iterable[str] | None = None) -> dict[str, Any]:
    """The JSON Schema of an object with these entries, each by its type, and no others; all required if not said."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(hints if required is None else required),
        "properties": {name: schema(hint) for name, hint in hints.items()},
    }


def shortened(value: Any, most: int = 80) -> str:
    """A value as Python shows it, a text as it is, with at most so many characters: for sentences about it.

    Examples
    --------
    >>> shortened(list(range(100)), most=20)
    '[0, 1, 2, 3, 4, 5...'
    """
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def digest_of(content: Any) -> str:
    """SHA-256 over JSON content, the same however it was written.

    Examples
    --------
    >>> digest_of({"b": 1, "a": 2}) == digest_of({"a": 2, "b": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
