"""Sampling: the time column, gaps, resampling and decimation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NoReturn

import numpy as np

from echobound.arrays import Signal, Vector
from echobound.data.columns import Column
from echobound.data.missing import Missing
from echobound.data.record import Record, require_sampling_time
from echobound.data.room import require_room
from echobound.data.rows import Ranges
from echobound.data.units import SECONDS
from echobound.errors import DataError

RowOf = Callable[[int], int]  # from the number of a sample to its row in the file, for messages
JITTER = 1e-3
"""Tolerance of a time step, relative; also between a time column and a given sampling time."""
PRINTED = 0.05
"""Times are printed to some decimal (0, 0.333, 0.667, 1): steps may differ by one unit of the last decimal, if that is
at most this fraction of a step."""
GAP = 1.5
"""A step of more than this many usual steps is a gap: samples are missing there."""
CHUNK = 65536  # samples examined together, so that a long record needs no second array of its length
LARGEST = 1e12  # samples of a record that anyone could mean
COLUMNS = 4  # arrays of its length, at least, that resampling a record takes
MOST = 1000  # largest numerator and denominator of a ratio of sampling times for which one filter is designed


@dataclass(frozen=True)
class Reading:
    """How columns of numbers become records; `read_records` describes each option.

    Examples
    --------
    >>> Reading(resample=2.0, decimate=4)
    Traceback (most recent call last):
        ...
    echobound.errors.DataError: resample and decimate both change the sampling time: give only one of them
    """

    sampling_time: float | None = None
    time: Column | None = None
    missing: str = "error"
    shortest: int = 2
    resample: float | None = None
    decimate: int | None = None
    rows: Ranges = ()
    time_unit: str | None = None

    def __post_init__(self) -> None:
        Missing.parse(self.missing)
        if self.time_unit is not None and self.time_unit not in SECONDS:
            raise DataError(
                f"the unit of times must be one of {', '.join(SECONDS)}, got {self.time_unit!r}: choose one of them"
            )
        for name, value in (("sampling time", self.sampling_time), ("sampling time to resample to", self.resample)):
            if value is not None:
                require_sampling_time(value, name)
        if self.resample is not None and self.decimate is not None:
            raise DataError("resample and decimate both change the sampling time: give only one of them")

    def every(self, sampling_time: float) -> Reading:
        """The same with a sampling time."""
        return replace(self, sampling_time=sampling_time)

    def resampled(self, record: Record) -> Record:
        """Return a record at the sampling time that is asked for, with a note of it."""
        changed = self._resampled(record)
        if changed.sampling_time == record.sampling_time:
            return changed
        said = (
            f"resampled from {record.sampling_time:g} s to {changed.sampling_time:g} s behind an anti-aliasing filter"
        )
        return replace(changed, note="; ".join(note for note in (record.note, said) if note))

    def _resampled(self, record: Record) -> Record:
        if self.resample is not None:
            return resampled(record, self.resample)
        return record if self.decimate is None else decimated(record, self.decimate)


@dataclass(frozen=True, eq=False)
class TimeColumn:
    """Sample times in seconds, what messages call them, and the row of each sample in the file."""

    values: Vector
    name: str
    row_of: RowOf

    def part(self, start: int, stop: int) -> TimeColumn:
        """Return the times of samples `start` to `stop` (exclusive)."""
        return TimeColumn(self.values[start:stop], self.name, lambda sample: self.row_of(start + sample))

    def step(self, given: float | None = None) -> float:
        """Return the sampling time of regular times; irregular ones are refused and the row is named."""
        if len(self.values) < 2:
            raise DataError(f"{self.name} has one row: two are needed to tell the sampling time")
        found = self._irregular()
        if found is not None:
            self.refuse_irregular(*found)
        measured = self._mean_step()
        if given is not None and not math.isclose(given, measured, rel_tol=JITTER):
            raise DataError(
                f"the given sampling time is {given:g} s, but {self.name} has steps of {measured:g}: leave one of them"
                " out"
            )
        return measured if given is None else given

    def refuse_irregular(self, sample: int, step: float, typical: float) -> NoReturn:
        """Refuse the step to `sample`."""
        gap = " split them at gaps (missing='split', --missing split)," if step > GAP * typical else ""
        raise DataError(
            f"{self.name} is irregular at row {self.row_of(sample)}: a step of {typical:g} was expected, found"
            f" {step:g}: resample the data to one sampling time (resample={typical:g}, --resample {typical:g}),{gap} or"
            " cut them there"
        )

    def on_grid(self, signals: tuple[Signal, Signal], target: float) -> tuple[tuple[Signal, Signal], float]:
        """Return signals at regular times and their sampling time; only irregular samples are interpolated."""
        found = self._irregular()
        if found is None:
            return signals, self._mean_step()
        usual, steps = found[2], np.diff(self.values)
        if steps.min() <= 0:
            row = self.row_of(int(np.flatnonzero(steps <= 0)[0]) + 1)
            raise DataError(
                f"{self.name} must increase from row to row, but does not at row {row}: sort the rows or remove that"
                " one"
            )
        widest = int(np.argmax(steps))
        if steps[widest] > 10 * usual:
            warnings.warn(
                f"{self.name} has a gap of {steps[widest]:g} s before row {self.row_of(widest + 1)}, bridged by a"
                " straight line: use missing='split' (--missing split) to make separate records instead",
                stacklevel=6,  # the caller of read_records
            )
        return _interpolated(signals, self.values, target, usual)

    def _irregular(self) -> tuple[int, float, float] | None:
        """Return the first sample at an irregular time, the step to it and the usual step; None if all are regular."""
        times, last = self.values, len(self.values) - 1
        if last < 1:
            return None
        # In a long record, steps spread over it are enough to tell the usual one without an array of its length.
        some = np.arange(last) if last < CHUNK else np.linspace(0, last - 1, CHUNK).astype(np.int64)
        typical = float(np.sort(times[some + 1] - times[some])[(len(some) - 1) // 2])
        if typical <= 0:
            raise DataError(
                f"{self.name} must increase from row to row, but its typical step is {typical:g}: sort the rows"
            )
        # Each chunk has the first time of the next, so that no step is lost between two.
        chunks = [times[start : start + CHUNK + 1] for start in range(0, last, CHUNK)]
        decimal = next((10.0**-d for d in range(10) if all((np.round(c, d) == c).all() for c in chunks)), 0.0)
        tolerance = max(JITTER * typical, decimal if decimal <= PRINTED * typical else 0.0)
        # The last bit of a time may exceed the tolerance, as for 1e9 s in steps of 1e-4 s.
        tolerance = tolerance * (1 + 1e-9) + 2 * float(np.spacing(max(abs(times.max()), abs(times.min()))))
        for number, chunk in enumerate(chunks):
            step = np.diff(chunk)
            off = np.flatnonzero(np.abs(step - typical) > tolerance)
            if len(off):
                return number * CHUNK + int(off[0]) + 1, float(step[off[0]]), typical
        return None

    def _mean_step(self) -> float:
        """Return the mean step, rounded to 12 digits so that 0.1 stays 0.1 after the subtraction."""
        steps = len(self.values) - 1
        return float(f"{(self.values[-1] - self.values[0]) / steps:.12g}") if steps else 1.0


def resampled(record: Record, sampling_time: float) -> Record:
    """Return a record at another sampling time; if that is longer, a zero-phase filter prevents aliasing.

    Examples
    --------
    >>> record = Record(u=np.ones(30), y=np.sin(0.05 * np.arange(30)), sampling_time=0.1)
    >>> len(resampled(record, 0.2)), resampled(record, 0.2).sampling_time
    (15, 0.2)
    """
    from scipy.signal import resample_poly

    require_sampling_time(sampling_time, "sampling time to resample to")
    _require_samples(len(record) * record.sampling_time / sampling_time, record.name, sampling_time)
    ratio = _ratio(record.sampling_time, sampling_time)
    if ratio is None:
        # No ratio of small integers: interpolate to the new grid, or to a finer one that contains it.
        (u, y), fine = _interpolated((record.u, record.y), record.time, sampling_time, record.sampling_time)
        return resampled(replace(record, u=u, y=y, sampling_time=fine), sampling_time)
    if ratio == 1:
        return record
    # "line": the filter sees a straight line beyond the ends, so an offset or a drift causes no transient there.
    u, y = (resample_poly(s, *ratio.as_integer_ratio(), axis=0, padtype="line") for s in (record.u, record.y))
    return replace(record, u=u, y=y, sampling_time=sampling_time)


def decimated(record: Record, factor: int) -> Record:
    """Return every `factor`-th sample, after a zero-phase low-pass filter that prevents aliasing.

    Examples
    --------
    >>> slow = decimated(Record(u=np.ones(100), y=np.arange(100.0), sampling_time=0.5), 10)
    >>> len(slow), slow.sampling_time, slow.y[3].round(6).tolist()
    (10, 5.0, [30.0])
    """
    if not isinstance(factor, int | np.integer) or factor < 1:
        raise DataError(f"decimate must be a whole number of samples, 1 or more, got {factor!r}")
    if factor > len(record):
        raise DataError(
            f"{record.name} has {len(record)} samples, too few to keep every {factor}th of them: decimate by less"
        )
    return resampled(record, record.sampling_time * int(factor))


def _require_samples(count: float, name: str, step: float) -> None:
    """Refuse to make a record of so many samples, unless there are some and they fit into the memory at hand."""
    if count < 1:
        raise DataError(f"{name} is shorter than one sample of {step:g} s: resample it to a shorter sampling time")
    if not count < LARGEST:
        raise DataError(f"{name} would have {count:.3g} samples of {step:g} s: resample it to a longer sampling time")
    require_room(math.ceil(count) * COLUMNS, f"{name} with {count:.3g} samples of {step:g} s")


def _ratio(old: float, new: float) -> Fraction | None:
    """Return old / new if it is a ratio of small integers, or one over an integer of any size; else None."""
    quotient = old / new
    short = Fraction(quotient).limit_denominator(MOST) if quotient >= 1 / MOST else Fraction(1, round(1 / quotient))
    return short if math.isclose(float(short), quotient, rel_tol=1e-9) and short.numerator <= MOST else None


def _interpolated(
    signals: tuple[Signal, Signal], times: Vector, target: float, usual: float
) -> tuple[tuple[Signal, Signal], float]:
    """Interpolate linearly to a regular grid that is as fine as the data and divides `target`; return its step too."""
    fine = target / max(1, math.ceil(target / usual - JITTER))
    _require_samples((times[-1] - times[0]) / fine, "the record", fine)
    count = math.floor((times[-1] - times[0]) / fine * (1 + 1e-12)) + 1
    grid = times[0] + fine * np.arange(count)
    u, y = (np.stack([np.interp(grid, times, column) for column in signal.T], axis=1) for signal in signals)
    return (u, y), fine
