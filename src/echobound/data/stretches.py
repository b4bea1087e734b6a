"""Stretches: columns of numbers become records, at ranges of rows, at gaps, and with short gaps filled."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from echobound.arrays import Signal
from echobound.data.missing import Missing, fill_short, gaps_of
from echobound.data.record import Record
from echobound.data.sampling import GAP, PRINTED, Reading, RowOf, TimeColumn
from echobound.errors import DataError

Channels = tuple[
    tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]
]  # names of both sides, units of both


@dataclass(frozen=True, eq=False)
class Stretch:
    """Samples in a row, with the rows of the file that they come from."""

    u: Signal
    y: Signal
    times: TimeColumn | None
    row_of: RowOf
    filled: int = 0  # samples in which something was interpolated

    def __len__(self) -> int:
        return len(self.u)

    def part(self, start: int, stop: int) -> Stretch:
        """Samples `start` to `stop` (exclusive); the same arrays if these are all."""
        if (start, stop) == (0, len(self)):
            return self
        times = None if self.times is None else self.times.part(start, stop)
        return replace(
            self,
            u=self.u[start:stop].copy(),
            y=self.y[start:stop].copy(),
            times=times,
            row_of=lambda sample: self.row_of(start + sample),
        )

    @property
    def rows(self) -> str:
        """As in "rows 2 to 701"."""
        return f"rows {self.row_of(0)} to {self.row_of(len(self) - 1)}"


def pieces(
    u: Signal,
    y: Signal,
    times: TimeColumn | None,
    row_of: RowOf,
    reading: Reading,
    name: str,
    channels: Channels,
    bounds: Sequence[tuple[int, int]],
) -> list[tuple[Record, ...]]:
    """Make the records of each range of samples: short gaps filled, cut at missing values, resampled, as is asked for.

    Where nothing is cut the record takes over the arrays without a copy, so the caller must not write to them again.
    """
    if reading.resample is not None and times is None and reading.sampling_time is None:
        raise DataError(
            f"{name} cannot be resampled to {reading.resample:g} s because its own sampling time is unknown: give the"
            " sampling time or the time column"
        )
    missing, whole = Missing.parse(reading.missing), Stretch(u, y, times, row_of)
    found: list[list[Stretch]] = []
    for start, stop in bounds:
        one = whole.part(start, stop)
        if missing.longest:
            one = _filled(one, missing.longest, name)
            if not missing.split:
                _require_filled(one, missing.longest, name, channels)
        found.append([one.part(*ends) for ends in _complete(one, name)] if missing.split else [one])
    # A single sample has no sampling time. One is kept if there is nothing else, so that the refusal can count it.
    kept = [[one for one in each if len(one) > 1] or each[:1] for each in found]
    period = 1.0 if reading.sampling_time is None else reading.sampling_time
    if times is not None and reading.resample is None:
        period = _common_step([one.times for each in kept for one in each if one.times], reading.sampling_time)
    return [
        _long_enough([_record(one, reading, period, name, channels, len(u)) for one in each], len(all_), reading, name)
        for each, all_ in zip(kept, found, strict=True)
    ]


def _record(one: Stretch, reading: Reading, period: float, name: str, channels: Channels, total: int) -> Record:
    signals = one.u, one.y
    if one.times is not None and reading.resample is not None:
        signals, period = one.times.on_grid(signals, reading.resample)
    for signal in signals:
        signal.flags.writeable = False
    part = name if len(one) - one.filled >= total else f"{name} ({one.rows})"
    note = f"{one.filled} sample{'s' * (one.filled > 1)} interpolated in {one.rows} of {name}" if one.filled else ""
    return reading.resampled(Record(*signals, period, *channels, name=part, note=note))


def _long_enough(records: list[Record], found: int, reading: Reading, name: str) -> tuple[Record, ...]:
    """Leave out pieces that are too short to be of use, and say so; whole ranges are kept as they are."""
    if not Missing.parse(reading.missing).split:
        return tuple(records)
    kept = tuple(record for record in records if len(record) >= reading.shortest)
    if not kept:
        raise DataError(
            f"{name} has at most {max(map(len, records))} samples in a row without missing values, fewer than the"
            f" {reading.shortest} needed: shorten the washout or repair the data"
        )
    if len(kept) < found:
        warnings.warn(
            f"{name}: {found - len(kept)} of {found} pieces between missing values are shorter than"
            f" {reading.shortest} samples and were left out",
            stacklevel=7,  # the caller of read_records
        )
    return kept


def _filled(one: Stretch, longest: int, name: str) -> Stretch:
    """Fill short gaps: missing values within rows, and rows that the time column shows to be missing."""
    u, y = one.u.copy(), one.y.copy()
    times = None if one.times is None else one.times.values.copy()
    before = int((~(np.isfinite(u).all(axis=1) & np.isfinite(y).all(axis=1))).sum())
    for signal in (u, y) if times is None else (u, y, times[:, None]):
        fill_short(signal, longest)
    after = int((~(np.isfinite(u).all(axis=1) & np.isfinite(y).all(axis=1))).sum())
    row_of, count = one.row_of, before - after
    if times is not None and one.times is not None and np.isfinite(times).all() and len(times) > 2:
        steps = np.diff(times)
        usual = float(np.median(steps))
        jumps = np.rint(steps / usual).astype(int) if usual > 0 else np.ones(len(steps), int)
        short = (jumps > 1) & (jumps - 1 <= longest) & (np.abs(steps - jumps * usual) <= PRINTED * usual)
        if short.any():
            # Where each sample goes, and which sample the inserted ones stand behind.
            place = np.concatenate([[0], np.cumsum(np.where(short, jumps, 1))])
            grid = np.arange(place[-1] + 1)
            u, y = (np.stack([np.interp(grid, place, c) for c in s.T], axis=1) for s in (u, y))
            times = np.interp(grid, place, times)
            behind = np.searchsorted(place, grid, side="right") - 1
            count += len(grid) - len(place)
            row_of = lambda sample: one.row_of(int(behind[sample]))  # noqa: E731
    clock = None if times is None or one.times is None else TimeColumn(times, one.times.name, row_of)
    return Stretch(u, y, clock, row_of, count)


def _require_filled(one: Stretch, longest: int, name: str, channels: Channels) -> None:
    """Refuse what is still missing where records may not be split."""
    for signal, names in ((one.u, channels[0]), (one.y, channels[1])):
        for column, channel in zip(signal.T, names, strict=True):
            gaps = gaps_of(column)
            if not gaps:
                continue
            start, stop = gaps[0]
            first, last = one.row_of(start), one.row_of(stop - 1)
            whole = gaps_of(np.where(np.isfinite(one.u).all(axis=1) & np.isfinite(one.y).all(axis=1), 0.0, np.nan))
            if start == 0 or stop == len(column):
                low = one.row_of(whole[0][1]) if whole[0][0] == 0 else one.row_of(0)
                high = one.row_of(whole[-1][0] - 1 if whole[-1][1] == len(column) else len(column) - 1)
                remedy = f"leave the end out (rows='{low}-{high}', --rows {low}-{high})"
                where = f"is missing at the {'start' if start == 0 else 'end'}, in rows {first} to {last}"
            else:
                most = max(b - a for a, b in gaps)
                remedy = f"fill longer gaps (missing='interpolate:{most}', --missing interpolate:{most})"
                where = (
                    f"has a gap of {stop - start} samples, in rows {first} to {last}, and at most {longest} are filled"
                )
            raise DataError(
                f"{channel} of {name} {where}: {remedy}, or split there (missing='interpolate:{longest},split',"
                f" --missing interpolate:{longest},split)"
            )


def _complete(one: Stretch, name: str) -> list[tuple[int, int]]:
    """Return the bounds (start, stop) of each piece without missing values and without gaps in time."""
    good = np.asarray(np.isfinite(one.u).all(axis=1) & np.isfinite(one.y).all(axis=1))
    if one.times is not None:
        good &= np.isfinite(one.times.values)
    edges = np.flatnonzero(np.diff(good, prepend=False, append=False))  # starts and stops in turn
    if not len(edges):
        raise DataError(f"{name} has no row without missing values: give data in which some rows are complete")
    if one.times is not None and good.sum() > 1:
        present = np.flatnonzero(good)
        steps = np.diff(one.times.values[present])
        gaps = np.setdiff1d(present[1:][steps > GAP * np.median(steps)], edges)
        edges = np.sort(np.concatenate([edges, gaps, gaps]))  # at a gap one piece stops and another starts
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]


def _common_step(parts: Sequence[TimeColumn], given: float | None) -> float:
    """Return the sampling time of all pieces, each of which must be regular; the longest gives the best estimate."""
    longest = max(parts, key=lambda part: len(part.values))
    usual = longest.step(given)
    for part in parts:
        if part is not longest and not math.isclose(step := part.step(), usual, rel_tol=PRINTED):
            part.refuse_irregular(1, step, usual)
    return usual
