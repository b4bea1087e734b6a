"""Sampling: the time column, gaps, resampling and decimation."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NoReturn

import numpy as np

from echobound.arrays import Signal, Vector
from echobound.data.record import Record
from echobound.errors import DataError

__all__ = ["Column", "Reading", "RowOf", "decimated", "pieces", "resampled", "sampling_time_of"]

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


def pieces(
    u: Signal,
    y: Signal,
    times: Vector | None,
    row_of: RowOf,
    reading: Reading,
    *,
    name: str,
    times_name: str,
    input_names: tuple[str, ...],
    output_names: tuple[str, ...],
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
        period = _common_step(times, bounds, row_of, times_name, reading.sampling_time)
    records = []
    for start, stop in bounds:
        whole = stop - start == len(u)
        signals = (u, y) if whole else (u[start:stop].copy(), y[start:stop].copy())
        if times is not None and reading.resample is not None:
            row_in_piece = _from(row_of, start)
            signals, period = _on_grid(signals, times[start:stop], row_in_piece, times_name, reading.resample)
        for signal in signals:
            signal.flags.writeable = False
        part = name if whole else f"{name} (rows {row_of(start)} to {row_of(stop - 1)})"
        records.append(reading.resampled(Record(*signals, period, input_names, output_names, name=part)))
    return _long_enough(records, reading.shortest, len(found), name) if split else tuple(records)


def _from(row_of: RowOf, start: int) -> RowOf:
    """Row numbers of a piece that begins at sample `start`."""
    return lambda sample: row_of(start + sample)


def _common_step(
    times: Vector, bounds: list[tuple[int, int]], row_of: RowOf, times_name: str, given: float | None
) -> float:
    """Return the sampling time of all pieces, each of which must be regular; the longest gives the best estimate."""
    longest = max(bounds, key=lambda b: b[1] - b[0])
    usual = 0.0
    for start, stop in sorted(bounds, key=lambda b: b != longest):
        row_in_piece = _from(row_of, start)
        step = sampling_time_of(times[start:stop], row_in_piece, times_name, None if usual else given)
        usual = usual or step
        if not math.isclose(step, usual, rel_tol=PRINTED):
            _refuse_irregular((1, step, usual), row_in_piece, times_name)
    return usual


def _on_grid(
    signals: tuple[Signal, Signal], times: Vector, row_of: RowOf, times_name: str, target: float
) -> tuple[tuple[Signal, Signal], float]:
    """Return signals at regular times and their sampling time; only irregular samples are interpolated."""
    found = _irregular(times, times_name)
    if found is None:
        return signals, _mean_step(times)
    _require_bridgeable(times, row_of, times_name, found[2])
    return _interpolated(signals, times, target, found[2])


def _long_enough(records: list[Record], shortest: int, found: int, name: str) -> tuple[Record, ...]:
    """Return the pieces of at least `shortest` samples, and warn of those left out."""
    kept = tuple(record for record in records if len(record) >= shortest)
    if not kept:
        longest = max(map(len, records))
        raise DataError(
            f"{name} has at most {longest} samples in a row without missing values, fewer than the {shortest} needed:"
            " shorten the washout or repair the data"
        )
    if len(kept) < found:
        warnings.warn(
            f"{name}: {found - len(kept)} of {found} pieces between missing values are shorter than {shortest} samples"
            " and were left out",
            stacklevel=5,  # the caller of read_records
        )
    return kept


def sampling_time_of(times: Vector, row_of: RowOf, times_name: str, given: float | None = None) -> float:
    """Return the sampling time of regular times; irregular ones are refused and the row is named.

    Examples
    --------
    >>> sampling_time_of(np.array([0.0, 0.1, 0.2, 0.3]), lambda sample: sample + 2, "time column 't'")
    0.1
    >>> sampling_time_of(np.array([0.0, 10.0, 20.0, 40.0]), lambda sample: sample + 2, "time column 't'")
    Traceback (most recent call last):
        ...
    echobound.errors.DataError: time column 't' is irregular at row 5: a step of 10 was expected, found 20: resample the
    data to one sampling time (resample=10, --resample 10), split them at gaps (missing='split', --missing split), or
    cut them there
    """
    if len(times) < 2:
        raise DataError(f"{times_name} has one row: two are needed to tell the sampling time")
    found = _irregular(times, times_name)
    if found is not None:
        _refuse_irregular(found, row_of, times_name)
    measured = _mean_step(times)
    if given is not None and not math.isclose(given, measured, rel_tol=JITTER):
        raise DataError(
            f"the given sampling time is {given:g} s, but {times_name} has steps of {measured:g}: leave one of them out"
        )
    return measured if given is None else given


def _refuse_irregular(found: tuple[int, float, float], row_of: RowOf, times_name: str) -> NoReturn:
    sample, step, typical = found
    gap = " split them at gaps (missing='split', --missing split)," if step > GAP * typical else ""
    raise DataError(
        f"{times_name} is irregular at row {row_of(sample)}: a step of {typical:g} was expected, found {step:g}:"
        f" resample the data to one sampling time (resample={typical:g}, --resample {typical:g}),{gap} or cut them"
        " there"
    )


def resampled(record: Record, sampling_time: float) -> Record:
    """Return a record at another sampling time; if that is longer, a zero-phase filter prevents aliasing.

    Examples
    --------
    >>> record = Record(u=np.ones(30), y=np.sin(0.05 * np.arange(30)), sampling_time=0.1)
    >>> slow = resampled(record, 0.2)
    >>> len(slow), slow.sampling_time, bool(abs(slow.y[5] - record.y[10]) < 0.01)
    (15, 0.2, True)
    """
    ratio = _ratio(record.sampling_time, sampling_time)
    if ratio is None:
        # No ratio of small integers: interpolate to the new grid, or to a finer one that contains it.
        signals, fine = _interpolated((record.u, record.y), record.time, sampling_time, record.sampling_time)
        return resampled(replace(record, u=signals[0], y=signals[1], sampling_time=fine), sampling_time)
    if ratio == 1:
        return record
    u, y = (_filtered(signal, ratio.numerator, ratio.denominator) for signal in (record.u, record.y))
    return replace(record, u=u, y=y, sampling_time=sampling_time)


def decimated(record: Record, factor: int) -> Record:
    """Return every `factor`-th sample, after a zero-phase low-pass filter that prevents aliasing.

    Examples
    --------
    >>> record = Record(u=np.ones(100), y=np.arange(100.0), sampling_time=0.5)
    >>> slow = decimated(record, 10)
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


def _filtered(signal: Signal, up: int, down: int) -> Signal:
    from scipy.signal import resample_poly

    # "line": the filter sees a straight line beyond the ends, so an offset or a drift causes no transient there.
    return np.asarray(resample_poly(signal, up, down, axis=0, padtype="line"), dtype=np.float64)


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


def _require_bridgeable(times: Vector, row_of: RowOf, times_name: str, usual: float) -> None:
    """Refuse times that do not increase, and warn of a gap that interpolation bridges."""
    steps = np.diff(times)
    if steps.min() <= 0:
        row = row_of(int(np.flatnonzero(steps <= 0)[0]) + 1)
        raise DataError(
            f"{times_name} must increase from row to row, but does not at row {row}: sort the rows or remove that one"
        )
    widest = int(np.argmax(steps))
    if steps[widest] > 10 * usual:
        warnings.warn(
            f"{times_name} has a gap of {steps[widest]:g} s before row {row_of(widest + 1)}, bridged by a straight"
            " line: use missing='split' (--missing split) to make separate records instead",
            stacklevel=6,
        )


def _complete(u: Signal, y: Signal, times: Vector | None, name: str) -> list[tuple[int, int]]:
    """Return the bounds (start, stop) of each stretch without missing values and without gaps in time."""
    good = np.asarray(np.isfinite(u).all(axis=1) & np.isfinite(y).all(axis=1))
    if times is not None:
        good &= np.isfinite(times)
    starts = good.copy()
    starts[1:] &= ~good[:-1]
    if times is not None and good.any():
        present = np.flatnonzero(good)
        steps = np.diff(times[present])
        if len(steps):
            usual = float(np.median(steps))
            starts[present[1:][steps > GAP * usual]] = True
    first = np.flatnonzero(starts)
    if not len(first):
        raise DataError(f"{name} has no row without missing values: give data in which some rows are complete")
    stops = []
    for at, following in zip(first, [*first[1:], len(u)], strict=True):
        ends = np.flatnonzero(~good[at:following])
        stops.append(int(at + ends[0]) if len(ends) else int(following))
    return list(zip(first.tolist(), stops, strict=True))


def _irregular(times: Vector, times_name: str) -> tuple[int, float, float] | None:
    """Return the first sample at an irregular time, the step to it and the usual step; None if all are regular."""
    if len(times) < 2:
        return None
    # In a long record, steps spread over it are enough to tell the usual one without an array of its length.
    some = np.arange(len(times) - 1) if len(times) <= CHUNK else np.linspace(0, len(times) - 2, CHUNK).astype(np.int64)
    typical = float(np.sort(times[some + 1] - times[some])[(len(some) - 1) // 2])
    if typical <= 0:
        raise DataError(
            f"{times_name} must increase from row to row, but its typical step is {typical:g}: sort the rows"
        )
    decimal = next((10.0**-d for d in range(10) if all((np.round(c, d) == c).all() for c in _chunks(times))), 0.0)
    tolerance = max(JITTER * typical, decimal if decimal <= PRINTED * typical else 0.0)
    # The last bit of a time may exceed the tolerance, as for 1e9 s in steps of 1e-4 s.
    tolerance = tolerance * (1 + 1e-9) + 2 * float(np.spacing(max(abs(times.max()), abs(times.min()))))
    for start, chunk in zip(itertools.count(0, CHUNK), _chunks(times)):
        step = np.diff(chunk)
        off = np.flatnonzero(np.abs(step - typical) > tolerance)
        if len(off):
            return start + int(off[0]) + 1, float(step[off[0]]), typical
    return None


def _chunks(values: Vector) -> Iterator[Vector]:
    """Yield parts of a vector, each with the first value of the next, so that no step is lost between two."""
    for start in range(0, len(values) - 1, CHUNK):
        yield values[start : start + CHUNK + 1]


def _mean_step(times: Vector) -> float:
    """Return the mean step, rounded to 12 digits so that 0.1 stays 0.1 after the subtraction."""
    return float(f"{(times[-1] - times[0]) / (len(times) - 1):.12g}") if len(times) > 1 else 1.0
