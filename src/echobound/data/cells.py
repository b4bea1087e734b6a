"""Cells to numbers: rows of text, from a text file or a spreadsheet, become arrays a chunk at a time.

Numbers are parsed by Python's ``float``, which rounds correctly, so the digest of a record does not depend on the
version of a parser. Only the result and one chunk are in memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from echobound.arrays import Vector
from echobound.data.dates import Order, Stamp, is_stamp, order_of, over_midnight, stamp
from echobound.data.layout import HEAD, Layout, is_missing, is_number
from echobound.data.rows import Ranges, inside
from echobound.data.table import Faults, Groups, Loaded, RowNumbers, Table
from echobound.errors import DataError

CHUNK = 8192  # rows
Row = tuple[list[str], int]  # its cells and its number


@dataclass(frozen=True, eq=False)
class RowSource:
    """Rows of cells that can be read any number of times."""

    name: str
    rows: Callable[[], Iterable[Row]]  # starts a pass over the rows
    expected: int  # approximate number of rows
    plain: bool  # whether no cell of a sample holds a decimal comma or an underscore (which Python accepts in numbers)
    decimal_comma: bool  # whether 1,5 may be a number
    dates: str | None = None  # european or american, if it is given

    def head(self) -> list[Row]:
        """The first rows that are not blank, with stripped cells."""
        stripped = ((_stripped(cells), number) for cells, number in self.rows())
        return list(itertools.islice((row for row in stripped if any(row[0])), HEAD))


def table_of_rows(source: RowSource, layout: Layout, ranges: Ranges = ()) -> Table:
    """Return rows as a table; only those in the ranges, if there are any."""

    def load(groups: Groups, time: int | None) -> Loaded:
        return _Loading(source, layout, ranges, groups, time).result()

    cut = partial(table_of_rows, source, layout)
    return Table(source.name, layout.columns, load, header=layout.header, units=layout.units, cut=cut)


def _stripped(cells: Iterable[str]) -> list[str]:
    """Return cells without blanks around them, and without the empty cells at the end of the row."""
    stripped = [cell.strip("\x1a \t\n\xa0") for cell in cells]
    while len(stripped) > 1 and not stripped[-1]:
        stripped.pop()
    return stripped


class _Clock:
    """Cells of a time column to seconds: numbers as they are, time stamps since 1970 or, without a date, midnight."""

    def __init__(self, cells: Callable[[], Iterable[str]], label: str, dates: str | None) -> None:
        self._cells, self._label, self._dates = cells, label, dates
        self._order: Order = "european"
        self.first: Stamp | None = None  # the first time stamp; None before it, and where times are numbers

    def start(self, cell: str) -> None:
        """Tell from the first cell that is not missing whether times are stamps, and how their dates are written."""
        if not is_number(cell, comma=True) and is_stamp(cell):
            self._order = order_of(self._cells(), self._label, self._dates)
            self.first = stamp(cell, self._order)

    def __call__(self, cell: str) -> float:
        """Return seconds; raise ValueError for a cell that is neither, or not of the first cell's kind."""
        if self.first is None:
            return float(cell)
        one = stamp(cell, self._order)
        if one is None or (one.zoned, one.dated) != (self.first.zoned, self.first.dated):
            raise ValueError(cell)
        return (one.micros - (self.first.micros if self.first.dated else 0)) / 1e6

    def finished(self, times: Vector) -> Vector:
        """The times of a whole column: times of day go on over midnight."""
        return times if self.first is None or self.first.dated else over_midnight(times)


class _Loading:
    """One pass over the rows: chunks of nothing but numbers are converted by columns, others cell by cell."""

    def __init__(self, source: RowSource, layout: Layout, ranges: Ranges, groups: Groups, time: int | None) -> None:
        self.source, self.width, self.header, self.time = source, len(layout.columns), layout.header, time
        self.first, self.ranges, self.length = layout.first, ranges, 0
        every = [*groups, *([] if time is None else [[time]])]
        self.arrays = [np.empty((max(source.expected, 1), len(group))) for group in every]
        self.targets = [(p, a, c) for a, group in enumerate(every) for c, p in enumerate(group)]
        label = "" if time is None else f"time column {layout.columns[time]!r} of {source.name}"
        self.rows, self.clock = RowNumbers(), _Clock(self._times, label, source.dates)
        self.faults = {position: Faults() for position, _, _ in self.targets}
        # A column with decimal points has no decimal commas: 1,234.5 and 1,5 cannot both be read.
        self.commas = {position: Faults() for position, _, _ in self.targets}
        self.points: set[int] = set()
        self.pending: list[int] = []  # rows of separators only: samples, unless only such rows follow to the end

    def _samples(self) -> Iterable[Row]:
        """The rows of samples that are asked for."""
        rows = (row for row in self.source.rows() if row[1] >= self.first)
        return (row for row in rows if inside(self.ranges, row[1])) if self.ranges else rows

    def _times(self) -> Iterable[str]:
        """The cells of the time column, in a pass of its own."""
        assert self.time is not None
        return (cells[self.time] for cells, _ in self._samples() if self.time < len(cells))

    def result(self) -> Loaded:
        if self.time is not None and (cell := next((c for c in self._times() if not is_missing(c)), None)):
            self.clock.start(cell.strip())
        rows = iter(self._samples())
        while chunk := list(itertools.islice(rows, CHUNK)):
            self._reserve(len(chunk) + len(self.pending))
            if self.pending or not self.source.plain or not self._by_columns(chunk):
                self._by_cells(chunk)
        if not self.length:
            what = "has no samples in these rows" if self.ranges else "has a header and no samples"
            what = what if self.header or self.ranges else "is empty"
            raise DataError(f"{self.source.name} {what}: rows of numbers are needed")
        for position, commas in self.commas.items():
            if commas.count and position in self.points:
                self.faults[position].add(*commas.first, missing=False, count=commas.count)
        for array in self.arrays:  # in place, without a second array of this size
            array.resize((self.length, array.shape[1]), refcheck=False)
        times = None if self.time is None else self.arrays.pop()[:, 0]
        times = None if times is None else self.clock.finished(times)
        return Loaded(self.arrays, times, self.faults, self.rows, stamped=self.clock.first is not None)

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
                self.faults[position].add(self.length, cell, is_missing(cell))
                value = math.nan
            self.arrays[array][self.length, channel] = value
        self.length += 1

    def _value(self, position: int, cell: str) -> float:
        if "." in cell:
            self.points.add(position)
        try:
            if is_missing(cell) or "_" in cell:
                return math.nan
            if position == self.time and not (
                self.source.decimal_comma and is_number(cell, comma=True) and "," in cell
            ):
                return self.clock(cell)
            if not (self.source.decimal_comma and "," in cell):
                return float(cell)
            value = float(cell.replace(",", "."))
        except ValueError:
            return math.nan
        self.commas[position].add(self.length, cell, missing=True)
        return value
