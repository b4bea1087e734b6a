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
from echobound.data.record import Record
from echobound.errors import DataError

Column = str | int  # by name, or by number from 1
RowOf = Callable[[int], int]  # from the number of a sample to its row in the file, for messages
MISSING = ("error", "split")
JITTER = 1e-3
"""Tolerance of a time step, relative; also between a time column and a given sampling time."""
PRINTED = 0.05
"""Times are printed to some decimal (0, 0.333, 0.667, 1): steps may differ by one unit of the last decimal, if that is
at most this fraction of a step."""
GAP = 1.5
"""A step of more than this many usual steps is a gap: samples are missing there."""
CHUNK = 65536  # samples examined together, so that a long record needs no second array of its length
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

    def __post_init__(self) -> None:
        if self.missing not in MISSING:
            raise DataError(
                f"missing must be one of {', '.join(MISSING)}, got {self.missing!r}: refuse missing values, or split"
                " the data at them"
            )
        if self.resample is not None and not (math.isfinite(self.resample) and self.resample > 0):
            raise DataError(
                f"the sampling time to resample to must be a positive number of seconds, got {self.resample}"
            )
        if self.resample is not None and self.decimate is not None:
            raise DataError("resample and decimate both change the sampling time: give only one of them")

    def resampled(self, record: Record) -> Record:
        """Return a record at the sampling time that is asked for."""
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
                stacklevel=5,  # the caller of read_records
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


def pieces(
    u: Signal,
    y: Signal,
    times: TimeColumn | None,
    row_of: RowOf,
    reading: Reading,
    name: str,
    channels: tuple[tuple[str, ...], tuple[str, ...]],
) -> tuple[Record, ...]:
    """Make records of signals: cut at missing values if that is asked for, then resampled.

    Where nothing is cut the record takes over the arrays without a copy, so the caller must not write to them again.
    """
    if reading.resample is not None and times is None and reading.sampling_time is None:
        raise DataError(
            f"{name} cannot be resampled to {reading.resample:g} s because its own sampling time is unknown: give the"
            " sampling time or the time column"
        )
    split = reading.missing == "split"
    found = _complete(u, y, times, name) if split else [(0, len(u))]
    # A single sample has no sampling time. One is kept if there is nothing else, so that the refusal can count it.
    bounds = [(start, stop) for start, stop in found if stop - start > 1] or found[:1]
    period = 1.0 if reading.sampling_time is None else reading.sampling_time
    if times is not None and reading.resample is None:
        period = _common_step([times.part(*ends) for ends in bounds], reading.sampling_time)
    records = []
    for start, stop in bounds:
        whole = stop - start == len(u)
        signals = (u, y) if whole else (u[start:stop].copy(), y[start:stop].copy())
        if times is not None and reading.resample is not None:
            signals, period = times.part(start, stop).on_grid(signals, reading.resample)
        for signal in signals:
            signal.flags.writeable = False
        part = name if whole else f"{name} (rows {row_of(start)} to {row_of(stop - 1)})"
        records.append(reading.resampled(Record(*signals, period, *channels, name=part)))
    if not split:
        return tuple(records)
    kept = tuple(record for record in records if len(record) >= reading.shortest)
    if not kept:
        raise DataError(
            f"{name} has at most {max(map(len, records))} samples in a row without missing values, fewer than the"
            f" {reading.shortest} needed: shorten the washout or repair the data"
        )
    if len(kept) < len(found):
        warnings.warn(
            f"{name}: {len(found) - len(kept)} of {len(found)} pieces between missing values are shorter than"
            f" {reading.shortest} samples and were left out",
            stacklevel=4,  # the caller of read_records
        )
    return kept


def _complete(u: Signal, y: Signal, times: TimeColumn | None, name: str) -> list[tuple[int, int]]:
    """Return the bounds (start, stop) of each stretch without missing values and without gaps in time."""
    good = np.asarray(np.isfinite(u).all(axis=1) & np.isfinite(y).all(axis=1))
    if times is not None:
        good &= np.isfinite(times.values)
    edges = np.flatnonzero(np.diff(good, prepend=False, append=False))  # starts and stops in turn
    if not len(edges):
        raise DataError(f"{name} has no row without missing values: give data in which some rows are complete")
    if times is not None and good.sum() > 1:
        present = np.flatnonzero(good)
        steps = np.diff(times.values[present])
        gaps = np.setdiff1d(present[1:][steps > GAP * np.median(steps)], edges)
        edges = np.sort(np.concatenate([edges, gaps, gaps]))  # at a gap one stretch stops and another starts
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]


def _common_step(parts: list[TimeColumn], given: float | None) -> float:
    """Return the sampling time of all pieces, each of which must be regular; the longest gives the best estimate."""
    longest = max(parts, key=lambda part: len(part.values))
    usual = longest.step(given)
    for part in parts:
        if part is not longest and not math.isclose(step := part.step(), usual, rel_tol=PRINTED):
            part.refuse_irregular(1, step, usual)
    return usual


def resampled(record: Record, sampling_time: float) -> Record:
    """Return a record at another sampling time; if that is longer, a zero-phase filter prevents aliasing.

    Examples
    --------
    >>> record = Record(u=np.ones(30), y=np.sin(0.05 * np.arange(30)), sampling_time=0.1)
    >>> len(resampled(record, 0.2)), resampled(record, 0.2).sampling_time
    (15, 0.2)
    """
    from scipy.signal import resample_poly

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
    count = math.floor((times[-1] - times[0]) / fine * (1 + 1e-12)) + 1
    grid = times[0] + fine * np.arange(count)
    u, y = (np.stack([np.interp(grid, times, column) for column in signal.T], axis=1) for signal in signals)
    return (u, y), fine
