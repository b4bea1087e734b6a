"""Reading text tables: separators and header found by looking, every refusal with its column and row.

`read_table` knows about files, `Table` about columns; a further file format is another way to make a `Table`. The
numbers are those of Python's ``float``, correctly rounded, so the digest of a record does not depend on the
version of a parser.
"""

from __future__ import annotations

import codecs
import csv
import itertools
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from echobound.data.record import Record, Signal
from echobound.errors import DataError

__all__ = ["Table", "read_csv", "read_table"]

Column = str | int  # by name, or by number from 1

TEXT_CONTROLS = b"\t\n\r\f\x1a"  # the control characters of text files; \x1a ended them under DOS
JITTER = 1e-3
"""Tolerance of a time step, relative; also between a time column and a given sampling time."""
PRINTED = 0.05
"""A time column's last decimal may move a step, if it is at most this fraction of it (0, 0.333, 0.667, 1)."""


@dataclass(frozen=True, eq=False)
class Table:
    """The cells of a file, not yet numbers: only the columns that are used must be.

    Parameters
    ----------
    source
        What to call the file in messages.
    columns
        Their names: the header, or ``column 1``, ``column 2``, ... without one.
    cells
        The text of each column.
    rows
        Number of each sample's row in the file, from 1, header and blank lines counted, as an editor shows it.
    decimal_comma
        Whether ``1,5`` may be a number.

    Examples
    --------
    >>> table = Table("tank.csv", ("t", "u", "y"), [["0", "10"], ["1.5", "2"], ["0", "4e-1"]], [2, 3])
    >>> table.signal(["u", 3]).tolist()
    [[1.5, 0.0], [2.0, 0.4]]
    >>> table.record(inputs="u", outputs="y", time="t").sampling_time
    10.0
    """

    source: str
    columns: tuple[str, ...]
    cells: Sequence[Sequence[str]]
    rows: Sequence[int]
    decimal_comma: bool = False

    def names(self, columns: Column | Iterable[Column]) -> tuple[str, ...]:
        """Return the names of columns given by name or by number from 1."""
        return tuple(self.columns[self._index(column)] for column in _listed(columns))

    def signal(self, columns: Column | Iterable[Column]) -> Signal:
        """Return columns as numbers, ``(time, channel)``; refuse text, NaN, infinities and empty cells in them."""
        return np.stack([self._numbers(self._index(column)) for column in _listed(columns)], axis=1)

    def record(
        self,
        inputs: Column | Iterable[Column],
        outputs: Column | Iterable[Column],
        *,
        sampling_time: float | None = None,
        time: Column | None = None,
        name: str | None = None,
    ) -> Record:
        """Return a record; the parameters are those of `read_csv`."""
        inputs, outputs = _listed(inputs), _listed(outputs)
        for side, columns in (("input", inputs), ("output", outputs)):
            if not columns:
                raise DataError(f"a record needs at least one {side} column: {self._there_are()}")
        used = [self._index(column) for column in (*inputs, *outputs, *(() if time is None else (time,)))]
        twice = [self.columns[i] for i in used if used.count(i) > 1]
        if twice:
            raise DataError(
                f"column {twice[0]!r} of {self.source} is asked for twice: each is an input, an output or the time"
            )
        if time is not None:
            sampling_time = self._sampling_time(self._index(time), sampling_time)
        return Record(
            u=self.signal(inputs),
            y=self.signal(outputs),
            sampling_time=1.0 if sampling_time is None else sampling_time,
            input_names=self.names(inputs),
            output_names=self.names(outputs),
            name=name or self.source,
        )

    def _there_are(self) -> str:
        shown = ", ".join(self.columns[:30])
        more = f" and {len(self.columns) - 30} more" if len(self.columns) > 30 else ""
        return f"{self.source} has the columns {shown}{more}"

    def _index(self, column: Column) -> int:
        name = _one_line(str(column))
        same = [i for i, known in enumerate(self.columns) if known == name and not isinstance(column, int)]
        if len(same) > 1:
            numbers = " and ".join(str(i + 1) for i in same)
            raise DataError(f"{self.source} has several columns named {name!r}: say which by its number, {numbers}")
        if same:
            return same[0]
        if name.isdecimal() and 1 <= int(name) <= len(self.columns):
            return int(name) - 1
        raise DataError(f"there is no column {name!r}: {self._there_are()}; give a name or a number from 1")

    def _numbers(self, index: int) -> NDArray[np.float64]:
        cells = self.cells[index]
        # A column with points in it has decimal points, so a comma there is something else.
        comma = self.decimal_comma and not any("." in cell for cell in cells)
        values = [_number(cell, comma) for cell in cells]
        bad = [i for i, value in enumerate(values) if value is None or not math.isfinite(value)]
        if bad:
            cell = cells[bad[0]].strip()
            found = f"holds {cell[:40]!r}" if cell else "is empty"
            more = f" ({len(bad)} such cells in all)" if len(bad) > 1 else ""
            raise DataError(
                f"column {self.columns[index]!r} of {self.source} {found} in row {self.rows[bad[0]]}{more}:"
                " finite numbers are needed everywhere, so repair the file or cut it there"
            )
        return np.array(values, dtype=np.float64)

    def _sampling_time(self, index: int, given: float | None) -> float:
        time, name = self._numbers(index), f"time column {self.columns[index]!r} of {self.source}"
        if len(time) < 2:
            raise DataError(f"{name} has one row: two are needed to know the sampling time")
        steps = np.diff(time)
        typical = float(np.median(steps))
        if typical <= 0:
            raise DataError(f"{name} must increase from row to row, but its typical step is {typical:g}: sort the rows")
        decimal = next((10.0**-d for d in range(10) if (np.round(time, d) == time).all()), 0.0)
        tolerance = max(JITTER * typical, decimal if decimal <= PRINTED * typical else 0.0)
        # A last bit of a time may be more than the tolerance: 1e9 s in steps of 1e-4 s.
        tolerance = tolerance * (1 + 1e-9) + 2 * float(np.spacing(np.abs(time).max()))
        irregular = np.flatnonzero(np.abs(steps - typical) > tolerance)
        if len(irregular):
            at = int(irregular[0])
            raise DataError(
                f"{name} is irregular at row {self.rows[at + 1]}: the step expected is {typical:g}, found"
                f" {steps[at]:g}: resample the data to one sampling time, or cut the file there into records"
            )
        # 12 digits, so that 0.1 is 0.1 again after the subtraction.
        measured = float(f"{(time[-1] - time[0]) / (len(time) - 1):.12g}")
        if given is not None and not math.isclose(given, measured, rel_tol=JITTER):
            raise DataError(
                f"the sampling time given is {given:g} s, but {name} has steps of {measured:g}: leave one of them out"
            )
        return measured if given is None else given


def read_csv(
    path: str | os.PathLike[str],
    inputs: Column | Iterable[Column],
    outputs: Column | Iterable[Column],
    *,
    sampling_time: float | None = None,
    time: Column | None = None,
    name: str | None = None,
) -> Record:
    r"""Read a record from a text table; see `read_table` for what such a table may look like.

    Parameters
    ----------
    path
        The file.
    inputs, outputs
        Columns by name or by number from 1; one or several.
    sampling_time
        Seconds between samples. If neither this nor `time` is given it is 1.0, which the caller should say.
    time
        Column of sample times in seconds; they must be regular, and agree with `sampling_time` where that is given.
    name
        What to call the experiment; the file's name if not given.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "tank.csv"
    >>> _ = path.write_text("pump;level\n1,5;0\n2;0,25\n")
    >>> record = read_csv(path, inputs="pump", outputs=["level"], sampling_time=4.0)
    >>> record.name, record.output_names, record.u.ravel().tolist()
    ('tank.csv', ('level',), [1.5, 2.0])
    >>> folder.cleanup()
    """
    return read_table(path).record(inputs, outputs, sampling_time=sampling_time, time=time, name=name)


def read_table(path: str | os.PathLike[str]) -> Table:
    r"""Read a text table: comma, semicolon, tab or white space between cells, with or without a header row.

    The first row is a header if none of its cells is a number. Lines that start with ``#`` or ``%`` before it are
    skipped, blank lines everywhere; a comma may be the decimal mark where it does not separate cells. Encodings:
    UTF-8, UTF-16 with its mark, else Latin-1.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "arm.dat"
    >>> _ = path.write_text("  0.5   1e-3\n  0.6   2e-3\n")
    >>> table = read_table(path)
    >>> table.columns, table.signal([2]).tolist()
    (('column 1', 'column 2'), [[0.001], [0.002]])
    >>> folder.cleanup()
    """
    source = Path(path).name
    lines = _text(Path(path)).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    start = next((i for i, line in enumerate(lines) if line.strip() and line.lstrip()[0] not in "#%"), len(lines))
    separator = _separator([line for line in lines[start : start + 100] if line.strip()][:2])
    comma = separator != ","
    try:
        table = [(start + row, cells) for row, cells in _rows(lines[start:], separator)]
    except csv.Error as error:
        raise DataError(f"{source} is not a table of numbers ({error}): give a CSV file") from None
    while table and not any(table[-1][1]):  # rows of separators only, as spreadsheets leave at the end
        table.pop()
    if not table:
        raise DataError(f"{source} is empty: rows of numbers are needed")
    first = table[0][1]
    numeric = [_number(cell, comma) is not None for cell in first if cell]
    if any(numeric) and not all(numeric):
        raise DataError(
            f"row {table[0][0]} of {source} mixes text and numbers, so it is neither a header nor a sample:"
            " name every column there, or make all its cells numbers"
        )
    header = not any(numeric)
    columns = tuple(_one_line(cell) if header and cell else f"column {i}" for i, cell in enumerate(first, start=1))
    samples = table[header:]
    if not samples:
        raise DataError(f"{source} has a header and no samples: rows of numbers are needed")
    for row, cells in samples:
        if len(cells) > len(columns):
            raise DataError(
                f"row {row} of {source} has {len(cells)} cells, but its first row has {len(columns)}:"
                " every column needs a place in the first row"
            )
    by_column = list(
        itertools.islice(itertools.zip_longest(*(cells for _, cells in samples), fillvalue=""), len(columns))
    )
    by_column += [("",) * len(samples)] * (len(columns) - len(by_column))
    return Table(source, columns, by_column, [row for row, _ in samples], comma)


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"there is no file {path}: check its name and folder") from None
    except OSError as error:
        raise DataError(f"cannot read {path} ({error.strerror}): a readable CSV file is needed") from None
    try:
        if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return raw.decode("utf-16")
        if raw.translate(None, delete=TEXT_CONTROLS + bytes(range(32, 256))):
            raise DataError(f"{path.name} is a binary file: a text table such as CSV is needed, so export it as one")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _separator(lines: Sequence[str]) -> str:
    """Return what separates cells, judged by a sample where there is one: names may hold anything."""
    sample = re.sub(r'"[^"]*"', "", lines[-1]) if lines else ""
    for candidate in ";\t,":
        if candidate in sample:
            return candidate
    # A single column: its header may hold spaces.
    return " " if len(sample.split()) > 1 else ","


def _rows(lines: Sequence[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not blank: its number from 1, and its cells without the empty ones at the end."""
    if separator == " ":
        lines = [line.strip().replace("\t", " ") for line in lines]
    reader = csv.reader((line + "\n" for line in lines), delimiter=separator, skipinitialspace=True)
    for cells in reader:
        stripped = [cell.strip("\x1a \t\n") for cell in cells]
        if any(stripped) or len(stripped) > 1:
            while len(stripped) > 1 and not stripped[-1]:
                stripped.pop()
            yield reader.line_num, stripped


def _number(cell: str, comma: bool) -> float | None:
    try:
        # Python's float takes 1_000 as well, which in a file is no number.
        return None if "_" in cell else float(cell.replace(",", ".") if comma else cell)
    except ValueError:
        return None


def _one_line(name: str) -> str:
    """Spreadsheets put line breaks into names; messages and axes are better without."""
    return " ".join(name.split())


def _listed(columns: Column | Iterable[Column]) -> tuple[Column, ...]:
    return (columns,) if isinstance(columns, str | int) else tuple(columns)
