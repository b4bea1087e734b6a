"""Reading: files, frames and arrays to records."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from echobound.data.columns import Column
from echobound.data.formats import read_table
from echobound.data.frames import is_frame, table_of_array, table_of_frame
from echobound.data.record import Record, as_records, require_alike
from echobound.data.rows import Ranges, parse_ranges
from echobound.data.sampling import Reading
from echobound.data.table import Table
from echobound.errors import DataError


def read_records(
    source: Any,
    inputs: Column | Iterable[Column] | None = None,
    outputs: Column | Iterable[Column] | None = None,
    *,
    sampling_time: float | None = None,
    time: Column | None = None,
    missing: str = "error",
    shortest: int = 2,
    resample: float | None = None,
    decimate: int | None = None,
    sheet: str | None = None,
    rows: str | Ranges | None = None,
    header_row: int | None = None,
    skip_rows: int | None = None,
    dates: str | None = None,
    time_unit: str | None = None,
) -> tuple[Record, ...]:
    """Read records from files, frames or arrays; each of several is an experiment.

    Parameters
    ----------
    source
        A file (text, Parquet, MATLAB .mat, NPZ, Excel: see `read_table`), a frame of pandas or polars, an array
        ``(time, column)``, or a list of these; all of them need `inputs` and `outputs`. Or what `as_records` takes: a
        pair ``(u, y)``, an object that unpacks to ``u, y``, or a list of these.
    inputs, outputs
        Columns by name (with or without a unit in brackets), by number from 1 or by a range of numbers (``"2-4"``), one
        or several; for .mat and .npz files, variables.
    sampling_time
        Seconds between samples. If neither this nor `time` is given, a single number ``Ts`` (``dt``, or ``fs`` for a
        rate) in a .mat or .npz file counts; otherwise 1.0 is assumed, and the user should be told.
    time
        Column of sample times, as numbers or as time stamps; they must be regular unless `resample` is given.
    missing
        ``"error"`` refuses missing values; ``"interpolate:3"`` fills gaps of at most three samples by straight lines,
        in values and in sample times; ``"split"`` splits the data at gaps and makes a record of each piece;
        ``"interpolate:3,split"`` splits at longer gaps. What was filled is said in the record's `note`.
    shortest
        Records with fewer samples are refused; pieces with fewer samples are left out, with a warning.
    resample
        New sampling time in seconds: irregular samples are interpolated, and a filter prevents aliasing.
    decimate
        Keep every k-th sample, after an anti-aliasing filter.
    sheet
        Sheet of an Excel file.
    rows
        Ranges of rows to use, each an experiment, by the numbers that rows have in the file: ``"2-701,1102-"``. In text
        and Excel files the header is a row too; elsewhere the first sample is row 1.
    header_row, skip_rows, dates
        As in `read_table`.
    time_unit
        Unit of the numbers in the time column, such as ``"ms"``; by default the one in the file, or seconds.

    Examples
    --------
    >>> data = np.array([[0, 1, 5.0], [1, 2, 5.5], [2, 2, np.nan], [3, 2, 6.0], [4, 1, 6.5]])
    >>> pieces = read_records(data, inputs=2, outputs=3, time=1, missing="split")
    >>> [(piece.name, len(piece)) for piece in pieces]
    [('ndarray (rows 1 to 2)', 2), ('ndarray (rows 4 to 5)', 2)]
    >>> u, y = np.random.default_rng(0).normal(size=(2, 50))
    >>> [slow] = read_records((u, y), decimate=5)
    >>> len(slow), slow.sampling_time
    (10, 5.0)
    """
    ranges = parse_ranges(rows) if isinstance(rows, str) else tuple(rows or ())
    reading = Reading(sampling_time, time, missing, shortest, resample, decimate, ranges, time_unit)
    layout = {"sheet": sheet, "header_row": header_row, "skip_rows": skip_rows, "dates": dates}
    sources = _with_columns(source)
    records = [] if sources else _from_pairs(source, inputs, outputs, reading)
    for number, one in enumerate(sources, start=1):
        table = _table(one, f"{type(one).__name__} {number}" if len(sources) > 1 else type(one).__name__, layout)
        if inputs is None or outputs is None:
            raise DataError(
                f"say which columns are inputs and which are outputs: {table.source} has"
                f" {', '.join(table.columns[:30])}"
            )
        records += table.records(inputs, outputs, reading)
    return checked(records, shortest)


def checked(records: Sequence[Record], shortest: int = 2) -> tuple[Record, ...]:
    """Refuse records that do not fit together or are too short, and warn of inputs that never change."""
    require_alike(records)
    for record in records:
        if len(record) < shortest:
            raise DataError(
                f"{record.name} has {len(record)} samples, fewer than the {shortest} needed: shorten the washout or"
                " give more data"
            )
    for channel, name in enumerate(records[0].input_names):
        first = records[0].u[0, channel]
        if all((record.u[:, channel] == first).all() for record in records) and sum(map(len, records)) > 1:
            data = records[0].name if len(records) == 1 else f"all {len(records)} experiments"
            # Probably the wrong column, or a unit in which all values round to one.
            warnings.warn(
                f"input {name!r} is {first:g} in all samples of {data}: nothing can be learned from it, so check the"
                " column and its unit",
                stacklevel=3,  # the caller of read_records
            )
    return tuple(records)


def read_csv(
    path: str | os.PathLike[str],
    inputs: Column | Iterable[Column],
    outputs: Column | Iterable[Column],
    *,
    sampling_time: float | None = None,
    time: Column | None = None,
    name: str | None = None,
) -> Record:
    r"""Read one record from a file of any kind that `read_table` opens; `read_records` has more options.

    Parameters
    ----------
    path
        The file.
    inputs, outputs, sampling_time, time
        As in `read_records`; `sampling_time` and `time` must agree if both are given.
    name
        What to call the experiment; the file's name if not given.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "tank.csv"
    ...     _ = path.write_text("pump;level\n1,5;0\n2;0,25\n")
    ...     record = read_csv(path, inputs="pump", outputs=["level"], sampling_time=4.0)
    >>> record.name, record.output_names, record.u.ravel().tolist()
    ('tank.csv', ('level',), [1.5, 2.0])
    """
    [record] = read_table(path).records(inputs, outputs, Reading(sampling_time, time), name)
    return record


def _with_columns(source: Any) -> list[Any]:
    """Return sources that have columns as a list; an empty one for pairs of inputs and outputs."""
    if _has_columns(source):
        return [source]
    # Two arrays in a tuple are a pair (u, y), two arrays in a list are two experiments.
    pair = isinstance(source, tuple) and len(source) == 2 and all(isinstance(one, np.ndarray) for one in source)
    several = isinstance(source, list | tuple) and all(_has_columns(one) for one in source)
    return list(source) if several and not pair else []


def _has_columns(source: Any) -> bool:
    return isinstance(source, str | os.PathLike | np.ndarray) or is_frame(source)


def _table(source: Any, name: str, layout: dict[str, Any]) -> Table:
    if isinstance(source, np.ndarray):
        return table_of_array(source, name)
    return table_of_frame(source, name) if is_frame(source) else read_table(source, **layout)


def _from_pairs(source: Any, inputs: Any, outputs: Any, reading: Reading) -> list[Record]:
    other = reading.time is not None or reading.missing != "error" or reading.rows
    if inputs is not None or outputs is not None or other:
        raise DataError(
            "inputs, outputs, time, rows and missing apply to files, frames and arrays with columns; a pair (u, y) has"
            " none: leave them out"
        )
    period = reading.sampling_time
    return [reading.resampled(r if period is None else replace(r, sampling_time=period)) for r in as_records(source)]
