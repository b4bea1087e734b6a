"""Form: the fields of `Plan`, `Computing` and `ReadingOptions` as a form has them; a new one appears by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from echobound.campaign import Computing
from echobound.data.options import ReadingOptions
from echobound.errors import InputError
from echobound.plan import Plan

GROUPS = {
    "What is certified": ("epsilon", "beta", "networks", "bound", "stop", "target", "discarded", "joint"),
    "What is drawn": ("quick", "law", "order", "trainer", "members", "committee", "seed", "seed_of_data"),
    "How it is scored": ("scores", "blocks", "washout", "horizon", "criterion", "confirm"),
}
FIRST = ("epsilon", "beta", "networks", "quick")  # in sight; the others open on request
OTHERS = "Other settings"
COMPUTING = "Computing"
TABLE = ("inputs", "outputs", "time", "rows")  # chosen in the table of columns and on the plot
READING_FIRST = ("sampling_time", "missing", "resample")
SUGGESTIONS = {
    "law": ("mixed", "quick", "broad", "paper", "small", "cascade"),
    "trainer": ("least squares", "free run"),
    "stop": ("patience:200", "anytime", "mixture"),
    "scores": ("robust,fit,rmse", "fit,rmse", "rmse,fit"),
    "kernel": ("cpu", "gpu", "auto"),
    "engine": ("threads", "processes"),
    "missing": ("interpolate:3", "split", "interpolate:3,split"),
    "dates": ("european", "american"),
    "time_unit": ("ms", "s", "min", "h"),
}
KINDS: dict[Any, str] = {bool: "flag", int: "integer", float: "number"}


@cache
def form() -> list[dict[str, Any]]:
    """Groups of fields: name, option of the command line, help, kind of value, default.

    Examples
    --------
    >>> [group["title"] for group in form()][:3]
    ['What is certified', 'What is drawn', 'How it is scored']
    >>> form()[0]["fields"][0]["name"], form()[0]["fields"][0]["kind"]
    ('epsilon', 'number')
    """
    plan = {one.name: one for one in fields(Plan) if one.metadata.get("help")}
    placed = {name for names in GROUPS.values() for name in names}
    groups = {title: [plan[name] for name in names if name in plan] for title, names in GROUPS.items()}
    groups[OTHERS] = [one for name, one in plan.items() if name not in placed]
    groups[COMPUTING] = [one for one in fields(Computing) if one.metadata.get("help")]
    hints = get_type_hints(Plan) | get_type_hints(Computing)
    return [
        {"title": title, "fields": [_field(one, hints[one.name], FIRST) for one in several]}
        for title, several in groups.items()
        if several
    ]


@cache
def reading_form() -> list[dict[str, Any]]:
    """How files are read: every option of the command line that is not chosen in the table of columns.

    Examples
    --------
    >>> [one["name"] for one in reading_form() if one["first"]]
    ['sampling_time', 'resample', 'missing']
    """
    hints = get_type_hints(ReadingOptions)
    return [_field(one, hints[one.name], READING_FIRST) for one in fields(ReadingOptions) if one.name not in TABLE]


def _field(one: Field[Any], hint: Any, first: tuple[str, ...]) -> dict[str, Any]:
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    plain = get_args(hint) or (hint,)
    kind = "text" if one.metadata.get("text") else next((k for t, k in KINDS.items() if t in plain), "text")
    default = None if one.default is MISSING or isinstance(one.default, list | tuple) else one.default
    return {
        "name": one.name,
        "label": one.name.replace("_", " "),
        "option": option(one),
        "help": one.metadata["help"],
        "kind": "choice" if choices else kind,
        "choices": list(choices),
        "suggestions": list(SUGGESTIONS.get(one.name, ())),
        "default": default,
        "first": one.name in first,
    }


def option(one: Field[Any]) -> str:
    """The option of the command line that a field is."""
    return "--" + (one.metadata.get("option") or one.name).replace("_", "-")


def typed_options(kind: type[Any], values: Mapping[str, Any]) -> list[str]:
    """Settings as they are typed on a command line; None and what is off are left out.

    Examples
    --------
    >>> typed_options(ReadingOptions, {"time": "t", "inputs": ("u", "v"), "sheet": None})
    ['--inputs', 'u,v', '--time', 't']
    """
    found = list[str]()
    for one in fields(kind):
        value = values.get(one.name)
        if value is not None and value is not False:
            found += [option(one)] if value is True else [option(one), typed_value(value)]
    return found


def read_settings(kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a form, as text or as JSON, by field; what is empty or the default is left out.

    Examples
    --------
    >>> read_settings(Plan, {"order": "50,100", "epsilon": "0.1", "beta": "1e-7", "law": "", "quick": False})
    {'order': (50, 100), 'epsilon': 0.1}
    >>> read_settings(Plan, {"networks": "many"})
    Traceback (most recent call last):
        ...
    echobound.errors.InputError: networks must be a whole number, got 'many'
    """
    known = {one["name"]: one["kind"] for group in form() for one in group["fields"]}
    known |= {one["name"]: one["kind"] for one in reading_form()}
    found: dict[str, Any] = {}
    for one in fields(kind):
        value = given.get(one.name)
        if one.name not in known or value is None or (isinstance(value, str) and not value.strip()):
            continue
        read = _read(one, known[one.name], value)
        if read != one.default:
            found[one.name] = read
    unknown = set(given) - {one.name for one in fields(kind)}
    if unknown:
        raise InputError(f"unknown setting {min(unknown)!r}")
    return found


def _read(one: Field[Any], kind: str, value: Any) -> Any:
    text = value.strip() if isinstance(value, str) else value
    if kind == "flag":
        if not isinstance(value, bool):
            raise InputError(f"{one.name} is on or off, got {value!r:.40}")
        return value
    try:
        if one.metadata.get("text") == "numbers":
            return tuple(int(word) for word in str(text).split(",") if word.strip())
        if one.metadata.get("text") == "words":
            return tuple(word.strip() for word in str(text).split(",") if word.strip())
        if kind == "integer":
            return int(text)
        if kind == "number":
            return float(text)
    except (TypeError, ValueError):
        wanted = {"integer": "a whole number", "number": "a number"}.get(kind, "whole numbers separated by commas")
        raise InputError(f"{one.name} must be {wanted}, got {value!r:.40}") from None
    return str(text)


def typed_value(value: Any) -> str:
    """A value as it is typed on a command line."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else f"{value}"
