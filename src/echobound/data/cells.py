"""Cells to numbers: rows of text, from a text file or a spreadsheet, become arrays a chunk at a time.

Numbers are parsed by Python's ``float``, which rounds correctly, so the digest of a record does not depend on the
version of a parser. Only the result and one chunk are in memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import numpy as np

from echobound.data.table import Faults, Groups, Loaded, RowNumbers, Table, one_line
from echobound.errors import DataError

CHUNK = 8192  # rows
WORDS_FOR_MISSING = frozenset(("", "nan", "na", "n/a", "#n/a", "null", "none", "missing", "?", "-"))
Row = tuple[list[str], int]  # its cells and its number


@dataclass(frozen=True, eq=False)
class RowSource:
    """Rows of cells that can be read any number of times."""

    name: str
    rows: Callable[[], Iterable[Row]]  # starts a pass over the rows
    expected: int  # approximate number of rows
    plain: bool  # whether no cell holds a decimal comma or an underscore (which Python accepts in numbers)
    decimal_comma: bool  # whether 1,5 may be a number


def table_of_rows(source: RowSource) -> Table:
    """Return rows as a table; the first row is a header if none of its cells is a number or a time stamp."""
    first, row = next(((stripped, n) for cells, n in source.rows() if any(stripped := _stripped(cells))), ([], 0))
    if not first:
        raise DataError(f"{source.name} is empty: rows of numbers are needed")
    numeric = [_is_number(cell, source.decimal_comma) or _stamp(cell) is not None for cell in first if cell]
    if any(numeric) and not all(numeric):
        raise DataError(
            f"row {row} of {source.name} mixes text and numbers, so it is neither a header nor a sample: give every"
            " column a name there, or make all cells numbers; if each row is a channel, transpose the table"
        )
    header = not any(numeric)
    columns = tuple(one_line(cell) if header and cell else f"column {i}" for i, cell in enumerate(first, start=1))

    def load(groups: Groups, time: int | None) -> Loaded:
        return _Loading(source, len(columns), header, groups, time).result()

    return Table(source.name, columns, load, header=header)


def _stripped(cells: Iterable[str]) -> list[str]:
    """Return cells without blanks around them, and without the empty cells at the end of the row."""
    stripped = [cell.strip("\x1a \t\n") for cell in cells]
    while len(stripped) > 1 and not stripped[-1]:
        stripped.pop()
    return stripped


def _is_number(cell: str, comma: bool) -> bool:
    """Whether a cell is a number (NaN and infinities count)."""
    try:
        float(cell.replace(",", ".") if comma else cell)
    except ValueError:
        return False
    return "_" not in cell  # Python's float accepts 1_000, which is not a number in a file


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in WORDS_FOR_MISSING


def _stamp(cell: str) -> datetime | None:
    """Parse a time stamp of ISO 8601 that has a date; ``20240501`` is a number."""
    try:
        return datetime.fromisoformat(cell) if "-" in cell[1:] else None
    except ValueError:
        return None


class _Clock:
    """Cells of a time column to seconds: numbers as they are, time stamps since the first one."""

    def __init__(self) -> None:
        self._read: Callable[[str], float] | None = None

    def __call__(self, cell: str) -> float:
        """Return seconds; raise ValueError for a cell that is neither, or not of the first cell's kind."""
        if self._read is None:
            origin = _stamp(cell.strip())
            self._read = float if origin is None else partial(_seconds_since, origin)
        return self._read(cell)


def _seconds_since(origin: datetime, cell: str) -> float:
    found = _stamp(cell.strip())
    if found is None or (found.tzinfo is None) != (origin.tzinfo is None):
        raise ValueError(cell)
    return (found - origin).total_seconds()


class _Loading:
    """One pass over the rows: chunks of nothing but numbers are converted by columns, others cell by cell."""

    def __init__(self, source: RowSource, width: int, header: bool, groups: Groups, time: int | None) -> None:
        self.source, self.width, self.header, self.time = source, width, header, time
        self.length = 0
        every = [*groups, *([] if time is None else [[time]])]
        self.arrays = [np.empty((max(source.expected, 1), len(group))) for group in every]
        self.targets = [(p, a, c) for a, group in enumerate(every) for c, p in enumerate(group)]
        self.rows, self.clock = RowNumbers(), _Clock()
        self.faults = {position: Faults() for position, _, _ in self.targets}
        # A column with decimal points has no decimal commas: 1,234.5 and 1,5 cannot both be read.
        self.commas = {position: Faults() for position, _, _ in self.targets}
        self.points: set[int] = set()
        self.pending: list[int] = []  # rows of separators only: samples, unless only such rows follow to the end

    def result(self) -> Loaded:
        rows = iter(self.source.rows())
        if self.header:
            next((cells for cells, _ in rows if any(_stripped(cells))), None)
        # `plain` leaves out the first row, which is a sample if there is no header: its chunk is then read by cells.
        plain = self.source.plain and self.header
        while chunk := list(itertools.islice(rows, CHUNK)):
            self._reserve(len(chunk) + len(self.pending))
            if self.pending or not plain or not self._by_columns(chunk):
                self._by_cells(chunk)
            plain = self.source.plain
        if not self.length:
            what = "has a header and no samples" if self.header else "is empty"
            raise DataError(f"{self.source.name} {what}: rows of numbers are needed")
        for position, commas in self.commas.items():
            if commas.count and position in self.points:
                self.faults[position].add(*commas.first, missing=False, count=commas.count)
        for array in self.arrays:  # in place, without a second array of this size
            array.resize((self.length, array.shape[1]), refcheck=False)
        times = None if self.time is None else self.arrays.pop()[:, 0]
        return Loaded(self.arrays, times, self.faults, self.rows)

    def _reserve(self, more: int) -> None:
        for array in self.arrays:
            if self.length + more > len(array):
                array.resize((self.length + self.length // 4 + more, array.shape[1]), refcheck=False)

    def _by_columns(self, chunk: Sequence[Row]) -> bool:
        """Take a chunk if all of it is in order; otherwise return False, with nothing changed."""
        first, last = chunk[0][1], chunk[-1][1]
        if last - first != len(chunk) - 1 or max(len(cells) for cells, _ in chunk) > self.width:
            return False
        end = self.length + len(chunk)
        try:
            for position, array, channel in self.targets:
                read = self.clock if position == self.time else float
                into = self.arrays[array][self.length : end, channel]
                into[:] = [read(cells[position]) for cells, _ in chunk]
                if not np.isfinite(into).all():
                    return False
        except (ValueError, IndexError):
            return False
        self.rows.add(self.length, first)
        self.length = end
        return True

    def _by_cells(self, chunk: Iterable[Row]) -> None:
        for cells, number in chunk:
            stripped = _stripped(cells)
            if not any(stripped):
                if len(cells) > 1:
                    self.pending.append(number)
                continue
            if len(stripped) > self.width:
                raise DataError(
                    f"row {number} of {self.source.name} has {len(stripped)} cells, but its first row has"
                    f" {self.width}: the first row must have a cell for every column"
                )
            for blank in self.pending:
                self._sample([], blank)
            self.pending.clear()
            self._sample(stripped, number)

    def _sample(self, cells: Sequence[str], number: int) -> None:
        self._reserve(1)
        self.rows.add(self.length, number)
        for position, array, channel in self.targets:
            cell = cells[position] if position < len(cells) else ""
            value = self._value(position, cell)
            if not math.isfinite(value):
                self.faults[position].add(self.length, cell, _is_missing(cell))
                value = math.nan
            self.arrays[array][self.length, channel] = value
        self.length += 1

    def _value(self, position: int, cell: str) -> float:
        if "." in cell:
            self.points.add(position)
        try:
            if _is_missing(cell) or "_" in cell:
                return math.nan
            if not (self.source.decimal_comma and "," in cell):
                return self.clock(cell) if position == self.time else float(cell)
            value = float(cell.replace(",", "."))
        except ValueError:
            return math.nan
        self.commas[position].add(self.length, cell, missing=True)
        return value
