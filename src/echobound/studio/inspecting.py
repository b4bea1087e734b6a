"""Inspecting: what is said about a data file before anything is chosen, as `echobound inspect` says it."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from echobound.data import Inspection, inspect_file
from echobound.data.facts import ColumnFacts
from echobound.data.formats import read_table
from echobound.data.options import ReadingOptions
from echobound.studio.form import option, typed_options
from echobound.studio.jobs import typed
from echobound.studio.tables import Tables
from echobound.studio.workspace import as_file

LAYOUT = tuple(name for name in inspect.signature(read_table).parameters if name != "path")
"""What decides where a table stands in its file; columns follow from it."""
CLOCK = ("time", "time_unit", "sampling_time")


def layout_of(reading: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the reading options that opens a file."""
    return {name: value for name, value in reading.items() if name in LAYOUT}


def inspected(
    tables: Tables, name: str, reading: Mapping[str, Any], inputs: Sequence[str] = (), outputs: Sequence[str] = ()
) -> dict[str, Any]:
    """Columns with units, ranges and what is to be said about each; what is to be said of the file; and the command.

    With inputs and outputs, what is suspected of the plant is about these; without, about those that are guessed.
    """
    given = {key: value for key, value in reading.items() if key in (*LAYOUT, *CLOCK)}
    sides: dict[str, Any] = {"inputs": tuple(inputs) or None, "outputs": tuple(outputs) or None}
    found = inspect_file(tables.file(name), **given, **sides)
    times = Counter(one.name for one in found.columns)
    said, rest = _placed(found)
    columns = []
    for one in found.columns:
        key = one.name if times[one.name] == 1 and is_plain(one.name) else str(one.number)
        columns.append({
            "key": key, "name": one.name, "unit": one.unit, "kind": one.kind, "low": one.least, "high": one.greatest,
            "missing": one.missing, "role": _role(one, key, found.inputs, found.outputs, found.time),
            "notes": said[one.number],
        })  # fmt: skip
    guessed = [f"inputs and outputs: {found.guessed}"] if found.inputs and found.outputs and not inputs else []
    asked = {key: list(value) for key, value in sides.items() if value} | given
    command = ["inspect", as_file(name), *typed_options(ReadingOptions, asked)]
    called = ", ".join([repr(name), *(f"{key}={value!r}" for key, value in asked.items())])
    return {
        "name": name,
        "rows": found.samples,
        "columns": columns,
        "notes": [*guessed, *rest],
        "sampling_time": found.sampling_time,
        "proposed": _proposed(found),
        "command": typed(command),
        "python": f"from echobound import inspect_file\n\nprint(inspect_file({called}).notes)",
    }


def _placed(found: Inspection) -> tuple[dict[int, list[str]], list[str]]:
    """What is said of single columns, by their numbers, and the rest."""
    numbers = {one.name: one.number for one in reversed(found.columns)}
    named = sorted(numbers, key=len, reverse=True)
    said, rest = {one.number: list[str]() for one in found.columns}, list[str]()
    clock = next((one.number for one in found.columns if one.kind == "time"), None)
    for note in found.notes:
        column = next((numbers[name] for name in named if name and note.startswith(f"{name} ")), None)
        if column is None and clock is not None and note.startswith("time "):
            column = clock
        (rest if column is None else said[column]).append(note)
    about = [(one.output, one.words) for one in found.delays if one.samples is not None and one.samples > 1]
    about += [(one.input, one.words) for one in found.feedback if one.suspected]
    about += [(one.output, one.words) for one in found.integration if one.suspected]
    for hint in found.hints:  # the words of each, with what depends on the sampling time
        column = next((numbers.get(name) for name, words in about if hint.startswith(words)), None)
        (rest if column is None else said[column]).append(f"suspected: {hint}")
    return said, rest


def _proposed(found: Inspection) -> dict[str, str]:
    """What the command that `inspect` proposes says about reading, beside the columns."""
    names = {option(one): one.name for one in fields(ReadingOptions)}
    pairs = dict(zip(found.options[::2], found.options[1::2], strict=True))
    left_out = ("inputs", "outputs", "time")
    return {names[key]: value for key, value in pairs.items() if key in names and names[key] not in left_out}


def is_plain(name: str) -> bool:
    """Whether a column can be typed by its name: one with a comma, or that looks like a number, goes by its number.

    Examples
    --------
    >>> is_plain("flow in"), is_plain("a,b"), is_plain("2-4")
    (True, False, False)
    """
    return bool(name) and name == name.strip() and "," not in name and not name[0].isdigit()


def _role(
    one: ColumnFacts, key: str, inputs: tuple[str, ...], outputs: tuple[str, ...], time: str | None
) -> str | None:
    names = {one.name, str(one.number), key}
    if time is not None and time in names:
        return "time"
    if names & set(inputs):
        return "input"
    return "output" if names & set(outputs) else None
