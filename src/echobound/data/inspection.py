"""Inspection: what is in a file, before anything is identified from it, and what to type next."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from echobound.arrays import Vector
from echobound.data.facts import ColumnFacts, about_missing, facts_of
from echobound.data.formats import read_table
from echobound.data.guessing import guess_roles, is_counter, quoted, time_column
from echobound.data.hints import Delay, Feedback, Integration, delays, feedback, integration
from echobound.data.record import Record
from echobound.data.sampling import GAP, PRINTED, Reading, TimeColumn
from echobound.data.table import Loaded, Table
from echobound.errors import DataError

MOST = 300
"""Columns that are looked at."""


@dataclass(frozen=True)
class Inspection:
    """What `inspect_file` found.

    Parameters
    ----------
    path, samples
        The file and its number of samples.
    columns
        The facts of each column.
    time, sampling_time
        The time column and the sampling time in seconds; None where they are not known.
    inputs, outputs, guessed
        Columns that are probably inputs and outputs, and by what they were told.
    delays, feedback, integration
        What linear regressions suggest about the guessed inputs and outputs, as in `data.hints`.
    notes
        What else should be known, a sentence each: gaps, irregular times, constant columns.
    options
        What `identify` needs beside the file, as it is typed.
    """

    path: str
    samples: int
    columns: tuple[ColumnFacts, ...]
    time: str | None
    sampling_time: float | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    guessed: str
    delays: tuple[Delay, ...]
    feedback: tuple[Feedback, ...]
    integration: tuple[Integration, ...]
    notes: tuple[str, ...]
    options: tuple[str, ...]

    @property
    def command(self) -> str:
        """The `identify` command to type."""
        return " ".join(["echobound identify", quoted(self.path), *map(quoted, self.options)])

    @property
    def hints(self) -> tuple[str, ...]:
        """What is suspected, a sentence each."""
        said = []
        for one in self.delays:
            if one.samples is not None and one.samples > 1:
                seconds = "" if self.sampling_time is None else f" ({one.samples * self.sampling_time:.4g} s)"
                said.append(one.words + seconds)
        loops = [one.words for one in self.feedback if one.suspected]
        return (*said, *loops, *(one.words for one in self.integration if one.suspected))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self)} | {
            "hints": list(self.hints),
            "command": self.command,
        }


def _plain(value: Any) -> Any:
    return (
        [asdict(one) if hasattr(one, "__dataclass_fields__") else one for one in value]
        if isinstance(value, tuple)
        else value
    )


def inspect_file(
    path: str | os.PathLike[str],
    *,
    sheet: str | None = None,
    header_row: int | None = None,
    skip_rows: int | None = None,
    dates: str | None = None,
    time: str | int | None = None,
    time_unit: str | None = None,
    sampling_time: float | None = None,
    inputs: Any = None,
    outputs: Any = None,
) -> Inspection:
    r"""Look at a file: its columns, units, sampling time, gaps, ranges, probable inputs and outputs, and hints.

    Nothing is decided here: every guess is said to be one, and the command to type has it.

    Parameters
    ----------
    path
        A file of any kind that `read_table` opens.
    sheet, header_row, skip_rows, dates, time, time_unit, sampling_time, inputs, outputs
        As in `read_records`, where they are known already.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> rng = np.random.default_rng(0)
    >>> u, y = np.repeat(rng.normal(size=30), 10), np.zeros(300)
    >>> for k in range(1, 300):
    ...     y[k] = 0.9 * y[k - 1] + 0.1 * u[k - 1]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "tank.csv"
    ...     rows = [f"{k / 2},{u[k]},{y[k]}" for k in range(300)]
    ...     _ = path.write_text("\n".join(["time [s],pump [V],level [m]", *rows]))
    ...     found = inspect_file(path)
    >>> found.inputs, found.outputs, found.sampling_time, found.options[-1]
    (('pump',), ('level',), 0.5, 'time')
    """
    layout = {"sheet": sheet, "header_row": header_row, "skip_rows": skip_rows, "dates": dates}
    table = read_table(path, **layout)  # type: ignore[arg-type]
    values, texts = _load(table)
    given = {"time": time, "time_unit": time_unit, "sampling_time": sampling_time}
    clock, period, notes, remedy = _sampling(table, values, given)
    facts, samples = [], max((len(v) for v in values.values()), default=0)
    for i, (name, unit) in enumerate(table.labels[:MOST]):
        facts.append(facts_of(i, name, unit, values.get(i), table, clock == i, i in texts))
    usable = [f.number - 1 for f in facts if f.kind == "number" and 2 * f.missing < len(values[f.number - 1])]
    signals = {i: values[i] for i in usable if len(values[i]) == samples}
    complete, where = _longest_complete(signals)
    names = {i: _typed(table, i) for i in signals}
    chosen, results, how = _roles(table, {names[i]: v for i, v in complete.items()}, inputs, outputs)
    notes += [
        f"{f.name} is {f.least:g} throughout: nothing can be learned from it" for f in facts if f.kind == "constant"
    ]
    used = [f for f in facts if f.name in chosen + results or str(f.number) in chosen + results]
    wrong = [f for f in used if f.number - 1 in texts]
    if wrong:
        remedy = ["--rows", _rows_without(table, used, clock)]
        notes.append(_about_text(wrong, texts, remedy[1]))
        remedy = remedy if remedy[1] else []
    else:
        notes += about_missing(used, where)
    hints: tuple[Any, Any, Any] = ((), (), ())
    if chosen and results and len(next(iter(complete.values()))) > 1:
        by_name = {name: complete[i] for i, name in names.items()}
        record = Record(
            np.stack([by_name[n] for n in chosen], axis=1),
            np.stack([by_name[n] for n in results], axis=1),
            period or 1.0,
            tuple(table.labels[table.names.position(name)][0] for name in chosen),
            tuple(table.labels[table.names.position(name)][0] for name in results),
        )
        hints = delays(record), feedback(record), integration(record)
    asked = _options(table, chosen, results, clock, given, layout, [] if wrong else used, remedy)
    return Inspection(
        str(path),
        samples,
        tuple(facts),
        None if clock is None else _typed(table, clock),
        period,
        tuple(chosen),
        tuple(results),
        how,
        *hints,
        tuple(notes),
        tuple(asked),
    )


def _load(table: Table) -> tuple[dict[int, Vector], dict[int, str]]:
    """Each column as numbers, with NaN where there is none; and the first text that one of them holds, with its row."""
    count = min(len(table.columns), MOST)
    values: dict[int, Vector] = {}
    texts: dict[int, str] = {}
    together = table.kind == "column" and table.cut is not None  # cells of text: one pass for all
    for group in [list(range(count))] if together else [[i] for i in range(count)]:
        try:
            found: Loaded = table.load([group], None)
        except DataError:
            continue  # a column of time stamps or of objects
        for column, position in enumerate(group):
            values[position] = found.signals[0][:, column]
            if (wrong := found.faults[position].wrong) is not None:
                texts[position] = f"{wrong[1][:20]!r} in row {found.rows[wrong[0]]}"
    return values, texts


def _rows_without(table: Table, used: list[ColumnFacts], clock: int | None) -> str:
    """Rows that hold numbers in every column in use; empty where there are too many others to name."""
    positions = [f.number - 1 for f in used]
    return table.load([positions], clock).rows_without(positions) or ""


def _about_text(wrong: list[ColumnFacts], texts: dict[int, str], rows: str) -> str:
    """What is to be said of cells with text in columns of numbers: no option turns them into numbers."""
    said = ", ".join(f"{f.name} holds {texts[f.number - 1]}" for f in wrong)
    return f"{said}, which is no number: " + (
        f"--rows {rows} leaves such rows out" if rows else "empty such cells, and --missing fills them or splits there"
    )


def _sampling(
    table: Table, values: dict[int, Vector], given: dict[str, Any]
) -> tuple[int | None, float | None, list[str], list[str]]:
    """The time column, the sampling time, and what is to be said about them."""
    wanted = given["time"] if given["time"] is not None else time_column(table)
    clock = None if wanted is None else table.names.position(wanted)
    if clock is None:
        clock = next((i for i in range(min(2, len(table.columns))) if _is_clock(table, i, values.get(i))), None)
    if clock is None:
        period = given["sampling_time"] or (table.stated[1] if table.stated else None)
        said = "" if period is not None else "the sampling time is not known: give --sampling-time, in seconds"
        if table.stated and given["sampling_time"] is None:
            said = f"the sampling time is that of {table.stated[0]} in the file, {table.stated[1]:g} s"
        return None, period, [said] if said else [], []
    loaded = table.load([[i for i in range(len(table.columns)) if i != clock][:1]], clock)
    if loaded.times is None or not np.isfinite(loaded.times).any():
        return None, given["sampling_time"], [f"{table.columns[clock]} holds no times that can be read"], []
    label = f"time {table.kind} {table.columns[clock]!r}"
    times = table.seconds(loaded, clock, Reading(time_unit=given["time_unit"]), label)
    finite = np.isfinite(times)
    steps = np.diff(times[finite])
    usual = float(np.median(steps)) if len(steps) else 0.0
    if usual <= 0:
        return None, given["sampling_time"], [f"{label} does not increase from row to row: it cannot be the time"], []
    try:
        return clock, TimeColumn(times, label, loaded.rows.__getitem__).step() if finite.all() else usual, [], []
    except DataError as refusal:
        gaps = int((steps > GAP * usual).sum())
        even = np.abs(steps[steps <= GAP * usual] - usual) <= PRINTED * usual
        remedy = ["--missing", "split"] if gaps and even.all() else ["--resample", f"{usual:.6g}"]
        wide = f"{gaps} gap{'s' * (gaps != 1)}, the longest of {steps.max():.6g} s" if gaps else "irregular steps"
        advice = str(refusal).split(": ", 2)[-1]
        return clock, usual, [f"{label} has {wide}, at a usual step of {usual:.6g} s: {advice}"], remedy


def _is_clock(table: Table, position: int, values: Vector | None) -> bool:
    """Whether one of the first columns is the time by what it holds: time stamps, or equal steps that do not count."""
    if values is not None and len(values) > 2 and np.isfinite(values).all():
        steps = np.diff(values)
        even = steps[0] > 0 and bool(np.allclose(steps, steps.mean(), rtol=1e-3))
        return even and not is_counter(table.columns[position], values, table.header) and not table.header
    others = [i for i in range(len(table.columns)) if i != position]
    if not others:
        return False
    try:
        loaded = table.load([others[:1]], position)
    except DataError:
        return False
    return loaded.stamped and loaded.times is not None and bool(np.isfinite(loaded.times).mean() > 0.5)


def _longest_complete(signals: dict[int, Vector]) -> tuple[dict[int, Vector], int]:
    """The longest part without missing values, and how many such parts there are."""
    if not signals:
        return {}, 0
    good = np.isfinite(np.stack(list(signals.values()))).all(axis=0)
    edges = np.flatnonzero(np.diff(good, prepend=False, append=False)).reshape(-1, 2)
    if not len(edges):
        return {i: np.nan_to_num(v) for i, v in signals.items()}, 0
    start, stop = edges[int(np.argmax(edges[:, 1] - edges[:, 0]))]
    return {i: v[start:stop] for i, v in signals.items()}, len(edges)


def _roles(table: Table, signals: dict[str, Vector], inputs: Any, outputs: Any) -> tuple[list[str], list[str], str]:
    known = [
        None if side is None else [_typed(table, i) for i in table.names.positions(side)] for side in (inputs, outputs)
    ]
    free = {n: v for n, v in signals.items() if not any(n in (side or ()) for side in known)}
    if known[0] is not None and known[1] is not None:
        return known[0], known[1], "as given"
    if known[0] is not None or known[1] is not None:
        return known[0] or list(free), known[1] or list(free), "the others are given"
    return guess_roles(free, table.header or table.kind == "variable")


def _typed(table: Table, position: int) -> str:
    """How a column is best typed: its name, or its number where the name would not do."""
    name = table.labels[position][0]
    try:
        found = table.names.positions([name]) if table.header and name else []
    except DataError:
        found = []
    return name if found == [position] else str(position + 1)


def _options(
    table: Table,
    inputs: list[str],
    outputs: list[str],
    clock: int | None,
    given: dict[str, Any],
    layout: dict[str, Any],
    facts: list[ColumnFacts],
    remedy: list[str],
) -> list[str]:
    """What `identify` needs to read the file as it was read here."""
    # Where nothing could be guessed, the places to fill in stand there: the command must not look complete.
    asked = ["--inputs", ",".join(inputs) or "COLUMNS", "--outputs", ",".join(outputs) or "COLUMNS"]
    if clock is not None:
        asked += ["--time", _typed(table, clock)]
    known = {**layout, "time_unit": given["time_unit"], "sampling_time": given["sampling_time"]}
    for name, value in known.items():
        if value is not None:
            asked += [f"--{name.replace('_', '-')}", str(value)]
    longest = max((f.longest_gap for f in facts), default=0)
    if longest and "--missing" not in remedy:
        asked += ["--missing", f"interpolate:{longest}" if longest <= 3 else "split"]
    return asked + remedy
