"""Sampling: the time column, gaps, resampling and decimation."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import NoReturn, Protocol

import numpy as np

from echobound.arrays import Signal, Vector
from echobound.data.record import Record
from echobound.errors import DataError

__all__ = ["decimated", "pieces", "resampled", "sampling_time_of"]


JITTER = 1e-3
"""Tolerance of a time step, relative; also between a time column and a given sampling time."""
PRINTED = 0.05
"""A time column's last decimal may move a step, if it is at most this fraction of it (0, 0.333, 0.667, 1)."""
GAP = 1.5
"""A step of so many usual ones and more is a gap: samples are missing there."""
REPAIR = "repair the data or cut them there"
BLOCK = 65536  # samples looked at together: a long record needs no second array of its length
MOST = 1000  # numerator and denominator of a ratio of sampling times that is filtered as one


class Rows(Protocol):
    """Row number of a sample, for messages."""

    def __getitem__(self, sample: int, /) -> int: ...


def pieces(
    u: Signal,
    y: Signal,
    times: Vector | None,
    rows: Rows,
    *,
    where: str | None,
    split: bool,
    shortest: int,
    sampling_time: float | None,
    resample: float | None,
    decimate: int | None,
    name: str,
    input_names: tuple[str, ...],
    output_names: tuple[str, ...],
) -> tuple[Record, ...]:
    """Make records of signals: cut where values are missing (if `split`), then sampled as asked.

    The arrays are taken over by the record where nothing is to be cut; nobody else may write to them.
    """
    where = where or name
    if resample is not None and not (math.isfinite(resample) and resample > 0):
        raise DataError(f"the sampling time to resample to must be a positive number of seconds, got {resample}")
    if resample is not None and decimate is not None:
        raise DataError("resample and decimate both change the sampling time: give one of them")
    if resample is not None and times is None and sampling_time is None:
        raise DataError(
            f"{name} cannot be resampled to {resample:g} s since its own sampling time is not known: give the sampling"
            " time or the column of times"
        )
    found = _complete(u, y, times, where) if split else [(0, len(u))]
    bounds = [(start, stop) for start, stop in found if stop - start > 1] or found[:1]
    period = 1.0 if sampling_time is None else sampling_time
    if times is not None and resample is None:
        period = _common_step(times, bounds, rows, where, sampling_time)
    records = []
    for start, stop in bounds:
        whole = stop - start == len(u)
        signals = (u, y) if whole else (u[start:stop].copy(), y[start:stop].copy())
        if times is not None and resample is not None:
            signals, period = _on_grid(signals, times[start:stop], _Shifted(rows, start), where, resample)
        for signal in signals:
            signal.flags.writeable = False
        part = name if whole else f"{name} (rows {rows[start]} to {rows[stop - 1]})"
        record = Record(signals[0], signals[1], period, input_names, output_names, name=part)
        if resample is not None:
            record = resampled(record, resample)
        records.append(record if decimate is None else decimated(record, decimate))
    return _long(records, shortest, len(found), name) if split else tuple(records)


def _common_step(times: Vector, bounds: list[tuple[int, int]], rows: Rows, where: str, given: float | None) -> float:
    """Return the sampling time of all pieces, each of which must be regular; the longest one tells it best."""
    longest = max(bounds, key=lambda b: b[1] - b[0])
    usual = 0.0
    for start, stop in sorted(bounds, key=lambda b: b != longest):
        piece, row = times[start:stop], _Shifted(rows, start)
        step = sampling_time_of(piece, row, where, None if usual else given)
        usual = usual or step
        if not math.isclose(step, usual, rel_tol=PRINTED):
            _refuse((1, step, usual), row, where)
    return usual


def _on_grid(
    signals: tuple[Signal, Signal], times: Vector, rows: Rows, where: str, target: float
) -> tuple[tuple[Signal, Signal], float]:
    """Signals at regular times, and their sampling time: as they are where they are regular, else interpolated."""
    found = _irregular(times, where)
    if found is None:
        return signals, _mean_step(times)
    _require_bridgeable(times, rows, where, found[2])
    return _interpolated(signals, times, target, found[2])


def _long(records: list[Record], shortest: int, found: int, name: str) -> tuple[Record, ...]:
    """The pieces of at least `shortest` samples; how many are left out is said."""
    kept = tuple(record for record in records if len(record) >= shortest)
    if not kept:
        longest = max(map(len, records))
        raise DataError(
            f"between missing values {name} has at most {longest} samples in a row, fewer than the {shortest} needed:"
            " shorten the washout, or repair the data"
        )
    if len(kept) < found:
        warnings.warn(
            f"{name}: {found - len(kept)} of {found} pieces between missing values are shorter than {shortest} samples"
            " and left out",
            stacklevel=4,
        )
    return kept


def sampling_time_of(times: Vector, rows: Rows, where: str, given: float | None = None) -> float:
    """Return the sampling time of regular times, and refuse irregular ones with their row.

    Examples
    --------
    >>> sampling_time_of(np.array([0.0, 0.1, 0.2, 0.3]), range(2, 6), "time column 't'")
    0.1
    >>> sampling_time_of(np.array([0.0, 10.0, 20.0, 40.0]), range(2, 6), "time column 't'")
    Traceback (most recent call last):
        ...
    echobound.errors.DataError: time column 't' is irregular at row 5: the step expected is 10, found 20: resample the
    data to one sampling time (resample=10, --resample 10), split them at gaps (missing='split', --missing split), or
    cut them there
    """
    if len(times) < 2:
        raise DataError(f"{where} has one row: two are needed to know the sampling time")
    found = _irregular(times, where)
    if found is not None:
        _refuse(found, rows, where)
    measured = _mean_step(times)
    if given is not None and not math.isclose(given, measured, rel_tol=JITTER):
        raise DataError(
            f"the sampling time given is {given:g} s, but {where} has steps of {measured:g}: leave one of them out"
        )
    return measured if given is None else given


def _refuse(found: tuple[int, float, float], rows: Rows, where: str) -> NoReturn:
    at, step, typical = found
    gap = " split them at gaps (missing='split', --missing split)," if step > GAP * typical else ""
    raise DataError(
        f"{where} is irregular at row {rows[at]}: the step expected is {typical:g}, found {step:g}: resample the"
        f" data to one sampling time (resample={typical:g}, --resample {typical:g}),{gap} or cut them there"
    )


def resampled(record: Record, sampling_time: float) -> Record:
    """Return a record at another sampling time, anti-aliased by a zero-phase filter where that is longer.

    Examples
    --------
    >>> record = Record(u=np.ones(30), y=np.sin(0.05 * np.arange(30)), sampling_time=0.1)
    >>> slow = resampled(record, 0.2)
    >>> len(slow), slow.sampling_time, bool(abs(slow.y[5] - record.y[10]) < 0.01)
    (15, 0.2, True)
    """
    ratio = _ratio(record.sampling_time, sampling_time)
    if ratio is None:
        # No short ratio: the new grid, or a finer one that it is part of, is found by interpolation.
        signals, fine = _interpolated((record.u, record.y), record.time, sampling_time, record.sampling_time)
        return resampled(_with(record, signals[0], signals[1], fine), sampling_time)
    if ratio == 1:
        return record
    u, y = (_filtered(signal, ratio.numerator, ratio.denominator) for signal in (record.u, record.y))
    return _with(record, u, y, sampling_time)


def decimated(record: Record, factor: int) -> Record:
    """Return every `factor`-th sample, after a zero-phase low-pass filter that keeps the new rate free of aliases.

    Examples
    --------
    >>> record = Record(u=np.ones(100), y=np.arange(100.0), sampling_time=0.5)
    >>> slow = decimated(record, 10)
    >>> len(slow), slow.sampling_time, slow.y[3].round(6).tolist()
    (10, 5.0, [30.0])
    """
    if not isinstance(factor, int | np.integer) or factor < 1:
        raise DataError(f"decimate must be a whole number of samples from 1 on, got {factor!r}")
    if factor > len(record):
        raise DataError(f"{record.name} has {len(record)} samples, too few to take every {factor}th of them")
    return resampled(record, record.sampling_time * int(factor))


def _with(record: Record, u: Signal, y: Signal, sampling_time: float) -> Record:
    names = (record.input_names, record.output_names, record.input_units, record.output_units)
    return Record(u, y, sampling_time, *names, record.name)


def _filtered(signal: Signal, up: int, down: int) -> Signal:
    from scipy.signal import resample_poly

    # "line": what lies beyond the ends goes on as the record does, so an offset or a drift makes no transient there.
    return np.asarray(resample_poly(signal, up, down, axis=0, padtype="line"), dtype=np.float64)


def _ratio(old: float, new: float) -> Fraction | None:
    """Ratio old / new of sampling times, if it is a whole number, one part of one, or short."""
    quotient = old / new
    short = Fraction(quotient).limit_denominator(MOST) if quotient >= 1 / MOST else Fraction(1, round(1 / quotient))
    return short if math.isclose(float(short), quotient, rel_tol=1e-9) and short.numerator <= MOST else None


def _interpolated(
    signals: tuple[Signal, Signal], times: Vector, target: float, usual: float
) -> tuple[tuple[Signal, Signal], float]:
    """Signals on a regular grid by linear interpolation: as fine as the data are, and a whole part of `target`."""
    fine = target / max(1, math.ceil(target / usual - JITTER))
    count = math.floor((times[-1] - times[0]) / fine * (1 + 1e-12)) + 1
    grid = times[0] + fine * np.arange(count)
    u, y = (np.stack([np.interp(grid, times, column) for column in signal.T], axis=1) for signal in signals)
    return (u, y), fine


def _require_bridgeable(times: Vector, rows: Rows, where: str, usual: float) -> None:
    """Refuse times that run back, and warn of a gap that interpolation would bridge."""
    steps = np.diff(times)
    if steps.min() <= 0:
        row = rows[int(np.flatnonzero(steps <= 0)[0]) + 1]
        raise DataError(f"{where} must increase from row to row, but row {row} does not: sort the rows or remove it")
    widest = int(np.argmax(steps))
    if steps[widest] > 10 * usual:
        warnings.warn(
            f"{where} has a gap of {steps[widest]:g} s before row {rows[widest + 1]}, bridged by a straight line:"
            " missing='split' (--missing split) makes separate records instead",
            stacklevel=2,
        )


def _complete(u: Signal, y: Signal, times: Vector | None, where: str) -> list[tuple[int, int]]:
    """First and last (exclusive) sample of each stretch without missing values and without gaps in time."""
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
        raise DataError(f"{where} has no row without missing values: give data in which some rows are complete")
    stops = []
    for at, following in zip(first, [*first[1:], len(u)], strict=True):
        ends = np.flatnonzero(~good[at:following])
        stops.append(int(at + ends[0]) if len(ends) else int(following))
    return list(zip(first.tolist(), stops, strict=True))


def _irregular(times: Vector, where: str) -> tuple[int, float, float] | None:
    """Sample, step and usual step where times are irregular first; None where they are regular."""
    if len(times) < 2:
        return None
    # Of a long record, steps spread over it are enough to tell the usual one, and take no array of its length.
    some = np.arange(len(times) - 1) if len(times) <= BLOCK else np.linspace(0, len(times) - 2, BLOCK).astype(np.int64)
    typical = float(np.sort(times[some + 1] - times[some])[(len(some) - 1) // 2])
    if typical <= 0:
        raise DataError(f"{where} must increase from row to row, but its typical step is {typical:g}: sort the rows")
    decimal = next((10.0**-d for d in range(10) if all((np.round(b, d) == b).all() for b in _blocks(times))), 0.0)
    tolerance = max(JITTER * typical, decimal if decimal <= PRINTED * typical else 0.0)
    # A last bit of a time may be more than the tolerance: 1e9 s in steps of 1e-4 s.
    tolerance = tolerance * (1 + 1e-9) + 2 * float(np.spacing(max(abs(times.max()), abs(times.min()))))
    for start, block in zip(itertools.count(0, BLOCK), _blocks(times)):
        step = np.diff(block)
        off = np.flatnonzero(np.abs(step - typical) > tolerance)
        if len(off):
            return start + int(off[0]) + 1, float(step[off[0]]), typical
    return None


def _blocks(values: Vector) -> Iterator[Vector]:
    """Pieces of a vector, each with the first value of the next."""
    for start in range(0, len(values) - 1, BLOCK):
        yield values[start : start + BLOCK + 1]


def _mean_step(times: Vector) -> float:
    """To 12 digits, so that 0.1 is 0.1 again after the subtraction."""
    return float(f"{(times[-1] - times[0]) / (len(times) - 1):.12g}") if len(times) > 1 else 1.0


class _Shifted:
    """Row numbers of a piece."""

    def __init__(self, rows: Rows, start: int) -> None:
        self._rows, self._start = rows, start

    def __getitem__(self, sample: int, /) -> int:
        return self._rows[self._start + sample]
