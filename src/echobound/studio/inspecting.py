"""Inspecting: what is said about a data file before anything is chosen, as `echobound inspect` says it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from echobound.data import inspect_file
from echobound.data.facts import ColumnFacts
from echobound.studio.tables import Tables

MISSING = (
    ("", "refuse them"),
    ("interpolate:3", "fill gaps of up to 3 samples"),
    ("split", "split the record there"),
    ("interpolate:3,split", "fill short gaps, split at longer ones"),
)


def inspected(tables: Tables, name: str, sheet: str | None) -> dict[str, Any]:
    """Columns with units, ranges and missing values, what they probably are, and what is suspected of the plant."""
    found = inspect_file(tables.space.file(name), sheet=sheet)
    times = Counter(one.name for one in found.columns)
    columns = []
    for one in found.columns:
        key = one.name if times[one.name] == 1 and is_plain(one.name) else str(one.number)
        columns.append({
            "key": key, "name": one.name, "unit": one.unit, "kind": one.kind, "low": one.least, "high": one.greatest,
            "missing": one.missing, "role": _role(one, key, found.inputs, found.outputs, found.time),
        })  # fmt: skip
    guessed = [f"inputs and outputs: {found.guessed}"] if found.inputs and found.outputs else []
    return {
        "name": name,
        "rows": found.samples,
        "columns": columns,
        "notes": [*guessed, *found.notes, *(f"suspected: {hint}" for hint in found.hints)],
        "sampling_time": found.sampling_time,
        "missing_choices": MISSING,
    }


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
