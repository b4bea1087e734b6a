"""`inspect`: what is in a file, before anything is identified from it."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from echobound.cli.options import Options
from echobound.cli.reading import PANEL, Reading
from echobound.cli.terminal import AsJson, Quiet, console, print_json, print_lines, spinner
from echobound.data import Inspection, inspect_file
from echobound.data.facts import ColumnFacts

BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 24  # characters of a small plot
LOOKING = Options(
    PANEL,
    only=("inputs", "outputs", "sampling_time", "time", "time_unit", "dates", "header_row", "skip_rows", "sheet"),
    help={"inputs": "Input columns, if known already.", "outputs": "Output columns, if known already."},
)


def inspect(
    data: Annotated[list[str], typer.Argument(metavar="FILE", help="CSV, Parquet, .mat, NPZ or Excel.")],
    reading: Annotated[Reading, LOOKING],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Look at a file: columns, units, sampling time, gaps and ranges, with a small plot of each column.

    Which columns are inputs and outputs is guessed, and so is the delay between them; data that look integrated, or
    recorded in closed loop, are said to. The last line is the `identify` command to type.
    """
    found = []
    for file in data:
        with spinner(f"reading {file}", quiet):
            found.append(look_at(file, reading))
    if as_json:
        print_json(found[0].to_dict() if len(found) == 1 else {"files": [one.to_dict() for one in found]})
        return
    for number, one in enumerate(found):
        if number:
            print()
        print_inspection(one)


def look_at(file: str, reading: Reading) -> Inspection:
    """What is in a file, read as the options say."""
    names = ("sheet", "header_row", "skip_rows", "dates", "time", "time_unit", "sampling_time", "inputs", "outputs")
    given: dict[str, Any] = {name: getattr(reading, name) or None for name in names}
    return inspect_file(file, **given | {"header_row": reading.header_row})


def print_inspection(found: Inspection) -> None:
    """Print what was found: a table of the columns, what is suspected, and the command to type."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    every = "" if found.sampling_time is None else f", every {found.sampling_time:.6g} s"
    print_lines([f"{found.path}: {found.samples} samples{every}, {len(found.columns)} columns"], style="bold")
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    shown = {"missing": any(_missing(one) for one in found.columns), "unit": any(one.unit for one in found.columns)}
    heads = [head for head in ("", "column", "unit", "is", "range", "missing", "in time") if shown.get(head, True)]
    for head in heads:
        justify: Any = "right" if head in ("", "missing") else "left"
        table.add_column(head, justify=justify, no_wrap=head != "column", overflow="fold")
    roles = dict.fromkeys(found.inputs, "input?") | dict.fromkeys(found.outputs, "output?")
    if found.guessed == "as given":
        roles = {name: role.rstrip("?") for name, role in roles.items()}
    for one in found.columns:
        role = roles.get(one.name) or roles.get(str(one.number)) or ("" if one.kind == "number" else one.kind)
        cells = {"": str(one.number), "column": _plain(one.name), "unit": _plain(one.unit), "is": role}
        cells |= {"range": _range(one), "missing": _missing(one), "in time": sketch(one)}
        table.add_row(*(cells[head] for head in heads))
    console().print(table)
    lines = [f"inputs and outputs: {found.guessed}"] if found.inputs and found.outputs else []
    print_lines([*lines, *found.notes, *(f"suspected: {hint}" for hint in found.hints)])
    print_lines([f"next: {found.command}"], style="bold")


def _plain(text: str) -> str:
    """A text in which square brackets are not markup."""
    return text.replace("[", "\\[")


def _range(one: ColumnFacts) -> str:
    if one.least is None or one.greatest is None:
        return ""
    return f"{one.least:.4g}" if one.least == one.greatest else f"{one.least:.4g} to {one.greatest:.4g}"


def _missing(one: ColumnFacts) -> str:
    return str(one.missing) if one.missing and one.kind != "text" else ""


def sketch(one: ColumnFacts, width: int = WIDTH) -> str:
    """A small plot of a column on one line; a blank where values are missing.

    Examples
    --------
    >>> sketch(ColumnFacts(1, "y", "", "number", means=(0.0, 1.0, None, 7.0)))
    '▁▂ █'
    """
    count = min(width, len(one.means))
    if not count or one.kind in ("text", "empty", "counter"):
        return ""
    cut = [one.means[i * len(one.means) // count : (i + 1) * len(one.means) // count] for i in range(count)]
    known = [[mean for mean in part if mean is not None] for part in cut]
    levels = [math.fsum(part) / len(part) if part else None for part in known]
    low, high = (end(level for level in levels if level is not None) for end in (min, max))
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if v is None else BLOCKS[round((v - low) * scale)] for v in levels)
