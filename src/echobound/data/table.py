"""Table: named columns of a file or a frame, which become records; every refusal names the column and the row.

Each file format, frame and array is a way to make a `Table`: the names of its columns, and a function that loads some
of them as numbers. Nothing is loaded until columns are asked for, and then only those.
"""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from echobound.arrays import Signal, Vector
from echobound.data.record import Record
from echobound.data.sampling import Column, Reading, TimeColumn, pieces
from echobound.errors import DamagedFile, DataError, MissingExtra

NAMED = 5  # rows with faults that a message lists


class RowNumbers:
    """Row of each sample in its file; only the jumps of the count are stored."""

    def __init__(self) -> None:
        self._samples, self._rows = array("q"), array("q")

    def add(self, sample: int, row: int) -> None:
        """Record that `sample` is in row `row`, and that rows count on from there until the next call."""
        if not self._samples or row - sample != self._rows[-1] - self._samples[-1]:
            self._samples.append(sample)
            self._rows.append(row)

    def __getitem__(self, sample: int) -> int:
        if not self._samples:
            return sample + 1
        at = bisect.bisect_right(self._samples, sample) - 1
        return self._rows[at] + sample - self._samples[at]


@dataclass
class Faults:
    """The cells of one column that are not finite numbers: how many, where the first ones are, and what they hold.

    A cell is *missing* if it is empty or says so (``NA``), otherwise it is *wrong* (text, an infinity).
    """

    samples: list[int] = field(default_factory=list)
    count: int = 0
    first: tuple[int, str] = (0, "")
    wrong: tuple[int, str] | None = None

    def add(self, sample: int, text: str, missing: bool, count: int = 1) -> None:
        """Add a cell, or `count` cells of which this is the first."""
        if not self.count or sample < self.first[0]:
            self.first = sample, text
        self.count += count
        if len(self.samples) < NAMED:
            self.samples.append(sample)
        if not missing and (self.wrong is None or sample < self.wrong[0]):
            self.wrong = sample, text

    @classmethod
    def among(cls, values: Vector) -> Faults:
        """Return the faults of a column that was loaded as numbers."""
        faults = cls()
        with np.errstate(over="ignore", invalid="ignore"):
            total = values.sum()
        if not np.isfinite(total):  # the sum needs no array as long as the column, unlike the search
            bad = np.flatnonzero(~np.isfinite(values))
            for sample in dict.fromkeys([*bad[:NAMED], *bad[np.isinf(values[bad])][:1]]):
                faults.add(int(sample), str(values[sample]), bool(np.isnan(values[sample])))
            faults.count = len(bad)
        return faults


Groups = Sequence[Sequence[int]]  # positions of the columns of each array
Target = tuple[int, Vector, bool]  # position of a column, the array to write it into, whether it is the time


@dataclass(frozen=True, eq=False)
class Loaded:
    """Columns as numbers, with NaN for cells that are not: an array for each group, times, faults and row numbers."""

    signals: list[Signal]
    times: Vector | None
    faults: dict[int, Faults]
    rows: RowNumbers


def load_columns(length: int, fill: Callable[[Sequence[Target]], None], groups: Groups, time: int | None) -> Loaded:
    """Load columns that are numbers already: `fill` writes them into the arrays that it is given.

    Only the result is allocated here; what reading needs beyond it is up to `fill`.
    """
    signals = [np.empty((length, len(group))) for group in groups]
    times = None if time is None else np.empty(length)
    targets = [(p, s[:, c], False) for group, s in zip(groups, signals, strict=True) for c, p in enumerate(group)]
    if time is not None and times is not None:
        targets.append((time, times, True))
    fill(targets)
    return Loaded(signals, times, {p: Faults.among(into) for p, into, _ in targets}, RowNumbers())


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name, loaded as numbers when they are used; columns that are not used may hold anything.

    Examples
    --------
    >>> from echobound.data.frames import table_of_array
    >>> table = table_of_array(np.array([[0.0, 1.5, 0.0], [10.0, 2.0, 0.4], [20.0, 2.5, 0.6]]), "tank")
    >>> table.signal([2, "column 3"]).tolist()
    [[1.5, 0.0], [2.0, 0.4], [2.5, 0.6]]
    """

    source: str  # what messages call it
    columns: tuple[str, ...]  # names from the header; without one, "column 1", "column 2", ...
    load: Callable[[Groups, int | None], Loaded]  # from groups of positions, and the position of the time column
    several: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # names of matrices, which are several columns
    others: Mapping[str, str] = field(default_factory=dict)  # names of what cannot be a column, and what it is
    kind: str = "column"  # what messages call a column: "column" or "variable"
    header: bool = True  # whether the columns have names of their own

    def signal(self, columns: Column | Iterable[Column]) -> Signal:
        """Return columns as numbers, ``(time, channel)``; text, NaN, infinities and empty cells are refused."""
        positions = self._positions(columns)
        loaded = self.load([positions], None)
        self._require_numbers(positions, loaded, missing="error")
        return loaded.signals[0]

    def records(
        self,
        inputs: Column | Iterable[Column],
        outputs: Column | Iterable[Column] | None,
        reading: Reading = Reading(),  # noqa: B008 (frozen)
        name: str | None = None,
    ) -> tuple[Record, ...]:
        """Return one record, or several if it is split at missing values.

        If `outputs` is None, as for a simulation, the inputs take their place.
        """
        sides = {"input": self._positions(inputs)}
        if outputs is not None:
            sides["output"] = self._positions(outputs)
        for side, found in sides.items():
            if not found:
                raise DataError(f"a record needs at least one {side} column: {self._available()}")
        clock = None if reading.time is None else self._position(reading.time)
        used = [*(i for found in sides.values() for i in found), *([] if clock is None else [clock])]
        twice = [self.columns[i] for i in used if used.count(i) > 1]
        if twice:
            raise DataError(
                f"{self.kind} {twice[0]!r} of {self.source} is used twice: each can be an input, an output or the time,"
                " so name it once"
            )
        # Inputs and outputs are separate arrays, so that a record can take them over without a copy.
        loaded = self.load(list(sides.values()), clock)
        u, y = loaded.signals[0], loaded.signals[-1]
        if not self.header and len(self.columns) > len(u):
            raise DataError(
                f"{self.source} has {len(u)} rows and {len(self.columns)} columns without names: one row per sample and"
                " one column per channel are needed, so transpose it"
            )
        self._require_numbers(used, loaded, reading.missing)
        names = [tuple(self.columns[i] for i in found) for found in sides.values()]
        row_of, times = loaded.rows.__getitem__, None
        if clock is not None and loaded.times is not None:
            label = f"time {self.kind} {self.columns[clock]!r} of {self.source}"
            times = TimeColumn(loaded.times, label, row_of)
        return pieces(u, y, times, row_of, reading, name or self.source, (names[0], names[-1]))

    def _positions(self, columns: Column | Iterable[Column]) -> list[int]:
        """Return the positions of columns given by name or by number from 1; a matrix has several."""
        found: list[int] = []
        for column in (columns,) if isinstance(columns, str | int) else columns:
            whole = self.several.get(column) if isinstance(column, str) else None
            found += [self._position(column)] if whole is None else whole
        return found

    def _position(self, column: Column) -> int:
        name = one_line(str(column))
        same = [i for i, known in enumerate(self.columns) if known == name and not isinstance(column, int)]
        if len(same) > 1:
            numbers = " and ".join(str(i + 1) for i in same)
            raise DataError(
                f"{self.source} has several {self.kind}s named {name!r}: say which by its number, {numbers}"
            )
        if same:
            return same[0]
        if name in self.others:
            raise DataError(
                f"{self.kind} {name!r} of {self.source} is {self.others[name]}: one real number per sample is needed"
            )
        if name.isdecimal() and 1 <= int(name) <= len(self.columns):
            return int(name) - 1
        raise DataError(f"there is no {self.kind} {name!r}: {self._available()}; give a name or a number from 1")

    def _available(self) -> str:
        shown = ", ".join(self.columns[:30])
        more = f" and {len(self.columns) - 30} more" if len(self.columns) > 30 else ""
        text = f"{self.source} has the {self.kind}s {shown}{more}" if self.columns else f"{self.source} has none"
        if self.others:
            unusable = ", ".join(f"{name} ({what})" for name, what in list(self.others.items())[:10])
            text += f"; not usable as a signal: {unusable}"
        return text

    def _require_numbers(self, positions: Iterable[int], loaded: Loaded, missing: str) -> None:
        rows = loaded.rows
        for position in positions:
            fault = loaded.faults[position]
            if not fault.count or (missing == "split" and fault.wrong is None):
                continue
            sample, text = fault.first if missing == "error" or fault.wrong is None else fault.wrong
            found = f"holds {text[:40]!r}" if text else "is empty"
            more, remedy = "", "repair the data or cut them there"
            if fault.count > 1 and missing == "error":
                shown = ", ".join(str(rows[s]) for s in sorted(fault.samples))
                dots = ", ..." if fault.count > len(fault.samples) else ""
                more = f" ({fault.count} such cells in all: rows {shown}{dots})"
            if fault.wrong is None:
                remedy += ", or split the record at missing values (missing='split', --missing split)"
            raise DataError(
                f"{self.kind} {self.columns[position]!r} of {self.source} {found} in row {rows[sample]}{more}:"
                f" finite numbers are needed everywhere, so {remedy}"
            )


def one_line(name: str) -> str:
    """Return a name without the line breaks that spreadsheets put into names, which would break messages and axes."""
    return " ".join(name.split())


@contextmanager
def reading_as(path: Path, kind: str, *errors: type[Exception]) -> Iterator[None]:
    """Refuse a file whose parser raises one of `errors`; any error if none are given, since some raise anything."""
    caught = errors or (Exception,)
    try:
        yield
    except (DataError, MissingExtra):
        raise
    except caught as error:
        reason = f"{error.part}: {error.why}" if isinstance(error, DamagedFile) else " ".join(str(error).split())
        raise DataError(
            f"{path.name} cannot be read as {kind} ({reason[:120] or type(error).__name__}): is the file complete? Save"
            " or export it again"
        ) from None
