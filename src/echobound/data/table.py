"""Table: named columns of a file or a frame, which become records; every refusal names the column and the row.

Each file format, frame and array is a way to make a `Table`: the names of its columns, and a function that loads some
of them as numbers. Nothing is loaded until columns are asked for, and then only those.
"""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from echobound.arrays import Signal, Vector
from echobound.data.columns import Column, Names
from echobound.data.layout import one_line
from echobound.data.record import Record
from echobound.data.room import require_room
from echobound.data.rows import Ranges, bounds_of
from echobound.data.sampling import Reading, TimeColumn
from echobound.data.stretches import pieces
from echobound.data.units import SECONDS
from echobound.errors import DamagedFile, DataError, MissingExtra

__all__ = ["Faults", "Groups", "Loaded", "RowNumbers", "Table", "Target", "load_columns", "one_line", "reading_as"]

NAMED = 5  # rows with faults that a message lists
SHORT = 20  # missing samples in a row that a message proposes to fill
PERIODS = frozenset(("ts", "dt", "sampling time", "sampling_time", "sample time", "sample_time"))


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
    def among(cls, values: Vector, bounds: Sequence[tuple[int, int]] = ()) -> Faults:
        """Return the faults of a column that was loaded as numbers; only those within `bounds`, if there are any."""
        faults = cls()
        if bounds:
            outside = np.ones(len(values), dtype=bool)
            for start, stop in bounds:
                outside[start:stop] = False
            values = np.where(outside, 0.0, values)
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
    stamped: bool = False  # whether times were written as time stamps, whose unit is known

    def rows_without(self, positions: Iterable[int]) -> str | None:
        """The rows, as ranges to type, that have numbers in all of these columns; None where too many have not."""
        faults = [self.faults[position] for position in positions]
        if not any(one.count for one in faults) or any(one.count > len(one.samples) for one in faults):
            return None
        bad = sorted({sample for one in faults for sample in one.samples})
        ends = zip([-1, *bad], [*bad, len(self.signals[0])], strict=True)
        parts = [(self.rows[left + 1], self.rows[right - 1]) for left, right in ends if right - left > 2]
        return ",".join(f"{first}-{last}" for first, last in parts) or None


def load_columns(length: int, fill: Callable[[Sequence[Target]], None], groups: Groups, time: int | None) -> Loaded:
    """Load columns that are numbers already: `fill` writes them into the arrays that it is given.

    Only the result is allocated here; what reading needs beyond it is up to `fill`.
    """
    require_room(length * (sum(map(len, groups)) + (time is not None)), "the data")
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
    units: tuple[str, ...] = ()  # from a row of their own; empty if there is none
    period: tuple[str, float] | None = None  # a sampling time that the file states, and what it is called there
    cut: Callable[[Ranges], Table] | None = None  # the table of some rows alone, where the others may hold anything

    @property
    def names(self) -> Names:
        """What names and numbers stand for."""
        return Names(self.source, self.columns, self.several, self.others, self.kind)

    @property
    def labels(self) -> list[tuple[str, str]]:
        """Name and unit of each column: from a row of units, or in brackets behind the name."""
        units = self.units or ("",) * len(self.columns)
        return [(name, given or unit) for (name, unit), given in zip(self.names.labels, units, strict=True)]

    def signal(self, columns: Column | Iterable[Column]) -> Signal:
        """Return columns as numbers, ``(time, channel)``; text, NaN, infinities and empty cells are refused."""
        positions = self.names.positions(columns)
        loaded = self.load([positions], None)
        self._require_numbers(positions, loaded, Reading())
        return loaded.signals[0]

    def records(
        self,
        inputs: Column | Iterable[Column],
        outputs: Column | Iterable[Column] | None,
        reading: Reading = Reading(),  # noqa: B008 (frozen)
        name: str | None = None,
    ) -> tuple[Record, ...]:
        """Return one record; several if some rows are asked for, or if it is split at missing values.

        If `outputs` is None, as for a simulation, the inputs take their place.
        """
        return tuple(record for each in self.stretches(inputs, outputs, reading, name) for record in each)

    def stretches(
        self,
        inputs: Column | Iterable[Column],
        outputs: Column | Iterable[Column] | None,
        reading: Reading = Reading(),  # noqa: B008 (frozen)
        name: str | None = None,
    ) -> list[tuple[Record, ...]]:
        """Return the records of each range of rows that is asked for; of the whole table if none is."""
        if reading.rows and self.cut is not None:
            part = replace(self.cut(reading.rows), period=self.stated)
            return part._stretches(inputs, outputs, reading, name)
        return self._stretches(inputs, outputs, reading, name)

    def _stretches(
        self, inputs: Column | Iterable[Column], outputs: Column | Iterable[Column] | None, reading: Reading, name: Any
    ) -> list[tuple[Record, ...]]:
        sides = {"input": self.names.positions(inputs)}
        if outputs is not None:
            sides["output"] = self.names.positions(outputs)
        for side, found in sides.items():
            if not found:
                raise DataError(f"a record needs at least one {side} column: {self.names.available()}")
        clock = None if reading.time is None else self.names.position(reading.time)
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
        bounds = bounds_of(reading.rows, len(u), loaded.rows.__getitem__, self.source)
        if reading.rows and self.cut is None:  # columns that were loaded as numbers: only the rows in use count
            parts = {
                p: signal[:, c]
                for found, signal in zip(sides.values(), (u, y), strict=False)
                for c, p in enumerate(found)
            }
            parts |= {} if clock is None or loaded.times is None else {clock: loaded.times}
            loaded.faults.update({p: Faults.among(values, bounds) for p, values in parts.items()})
        self._require_numbers(used, loaded, reading)
        labels = self.labels
        names, units = ([tuple(labels[i][part] for i in found) for found in sides.values()] for part in (0, 1))
        row_of, times = loaded.rows.__getitem__, None
        if clock is not None and loaded.times is not None:
            label = f"time {self.kind} {self.columns[clock]!r} of {self.source}"
            times = TimeColumn(self.seconds(loaded, clock, reading, label), label, row_of)
        elif reading.sampling_time is None and self.stated is not None:
            reading = reading.every(self.stated[1])
        sides_of = (names[0], names[-1], units[0], units[-1])
        return pieces(u, y, times, row_of, reading, name or self.source, sides_of, bounds)

    @cached_property
    def stated(self) -> tuple[str, float] | None:
        """A sampling time that the file states, of its own or in the first row of a column, and what it is called."""
        if self.period is not None:
            return self.period
        for position, (name, _) in enumerate(self.labels):
            if name.lower() in PERIODS and self.kind == "column":
                values = self.load([[position]], None).signals[0][:, 0]
                if values[0] > 0 and not np.isfinite(values[1:]).any():
                    return self.columns[position], float(values[0])
        return None

    def seconds(self, loaded: Loaded, clock: int, reading: Reading, label: str) -> Vector:
        """The times of a column in seconds, by the unit that is given or stands in the file."""
        assert loaded.times is not None
        unit = reading.time_unit or self.labels[clock][1]
        if loaded.stamped:
            if reading.time_unit is not None:
                raise DataError(f"{label} holds time stamps, which need no unit: leave out time_unit (--time-unit)")
            return loaded.times
        if reading.time_unit is None and unit not in SECONDS and len(loaded.times) and loaded.times[0] > 1e11:
            likely = next(u for u, least in (("ns", 1e17), ("us", 1e14), ("ms", 1e11)) if loaded.times[0] > least)
            raise DataError(
                f"{label} begins with {loaded.times[0]:.6g}, which looks like a count of {likely} since 1970: give"
                f" time_unit={likely!r} (--time-unit {likely}), or --time-unit s if these are seconds"
            )
        factor = SECONDS.get(unit, 1.0)
        return loaded.times if factor == 1 else np.asarray(loaded.times * factor)

    def _require_numbers(self, positions: Iterable[int], loaded: Loaded, reading: Reading) -> None:
        rows = loaded.rows
        for position in positions:
            fault, strict = loaded.faults[position], reading.missing == "error"
            if not fault.count or (not strict and fault.wrong is None):
                continue
            sample, text = fault.first if strict or fault.wrong is None else fault.wrong
            found = f"holds {text[:40]!r}" if text else "is empty"
            more = ""
            if fault.count > 1 and strict:
                shown = ", ".join(str(rows[s]) for s in sorted(fault.samples))
                dots = ", ..." if fault.count > len(fault.samples) else ""
                more = f" ({fault.count} such cells in all: rows {shown}{dots})"
            others = loaded.rows_without(positions) or "FIRST-LAST"
            remedy = f"repair the data or use other rows (rows='{others}', --rows {others})"
            if fault.wrong is None:
                longest = _longest_gap(loaded)
                if longest <= SHORT:
                    remedy += f", fill short gaps (missing='interpolate:{longest}', --missing interpolate:{longest})"
                remedy += ", or split the record at missing values (missing='split', --missing split)"
            elif reading.time is not None and self.names.position(reading.time) == position:
                remedy += ", or leave this column out and give the sampling time (--sampling-time)"
            raise DataError(
                f"{self.kind} {self.columns[position]!r} of {self.source} {found} in row {rows[sample]}{more}:"
                f" finite numbers are needed everywhere, so {remedy}"
            )


def _longest_gap(loaded: Loaded) -> int:
    """The longest run of missing values in any column in use."""
    arrays = [*loaded.signals, *([] if loaded.times is None else [loaded.times[:, None]])]
    longest = 0
    for column in (column for one in arrays for column in one.T):
        edges = np.flatnonzero(np.diff(~np.isfinite(column), prepend=False, append=False))
        longest = max(longest, int((edges[1::2] - edges[::2]).max(initial=0)))
    return longest


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
