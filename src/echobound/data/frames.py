"""Frames and arrays as tables: pandas, polars, Arrow and Parquet, NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Vector
from echobound.data.dates import order_of, stamp
from echobound.data.table import Table, Target, load_columns, one_line, reading_as
from echobound.errors import DataError, MissingExtra

LIBRARIES = ("pandas", "polars", "pyarrow")
BATCH = 16384  # rows of a Parquet file decoded together


def is_frame(data: object) -> bool:
    """Whether `data` is a table of pandas, polars or Arrow; told by its type's module, so that none is imported."""
    return type(data).__module__.split(".")[0] in LIBRARIES and hasattr(type(data), "columns")


def table_of_array(values: NDArray[Any], name: str = "array") -> Table:
    """Return an array ``(time, channel)`` as a table whose columns have numbers instead of names."""
    array = values[:, None] if values.ndim == 1 else values
    if array.ndim != 2 or not array.size:
        raise DataError(f"{name} must be a non-empty array (time, channel), got shape {values.shape}")
    if array.dtype.kind not in "fiub":
        raise DataError(f"{name} must hold real numbers, but is of type {array.dtype}: convert it first")

    def fill(targets: Sequence[Target]) -> None:
        for position, into, _ in targets:
            into[:] = array[:, position]

    names = tuple(f"column {i}" for i in range(1, array.shape[1] + 1))
    return Table(name, names, partial(load_columns, len(array), fill), header=False)


def table_of_frame(frame: Any, name: str = "frame") -> Table:
    """Return a frame of pandas, polars or Arrow as a table; a named pandas index is a column as well."""
    library = type(frame).__module__.split(".")[0]
    values_of: Callable[[Any, str, bool], NDArray[Any]]
    if library == "polars":
        if not hasattr(frame, "to_series"):
            raise DataError(f"{name} is a {type(frame).__name__}, which holds no numbers yet: collect() it first")
        names, get, values_of = list(frame.columns), frame.to_series, _polars
    elif library == "pyarrow":
        names, get, values_of = list(frame.column_names), frame.column, _arrow
    else:
        index, values_of = frame.index, _pandas
        named = [index.name] if getattr(index, "nlevels", 1) == 1 and index.name is not None else []
        names = [one_line(str(name)) for name in (*frame.columns, *named)]

        def get(position: int) -> Any:
            return frame.iloc[:, position] if position < len(frame.columns) else index.to_series()

    if not len(frame):
        raise DataError(f"{name} has no rows: rows of numbers are needed")

    def fill(targets: Sequence[Target]) -> None:
        for position, into, is_time in targets:
            label = f"column {names[position]!r} of {name}"
            into[:] = _numbers(values_of(get(position), label, is_time), label, is_time)

    return Table(name, tuple(names), partial(load_columns, len(frame), fill))


# Each of the next three returns a column as doubles or as time stamps, and refuses anything else.


def _pandas(series: Any, label: str, is_time: bool) -> NDArray[Any]:
    kind = getattr(series.dtype, "kind", "O")
    if kind == "M":
        # In UTC: local times jump by an hour twice a year.
        stamps = series.dt.tz_convert(None) if getattr(series.dtype, "tz", None) is not None else series
        return np.asarray(stamps.to_numpy(dtype="datetime64[ns]"))
    if kind == "c":
        raise DataError(f"{label} is complex: real numbers are needed, so give real and imaginary parts as two columns")
    if kind not in "fiub":
        values = list(series)
        if all(isinstance(value, int | float) for value in values):
            return np.array(values, dtype=np.float64)
        if not all(isinstance(value, str) for value in values):
            other = next(value for value in values if not isinstance(value, int | float | str))
            raise _unusable(label, f"{type(other).__name__} objects")
        return _stamps(values, label, is_time, str(series.dtype))
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))


def _polars(series: Any, label: str, is_time: bool) -> NDArray[Any]:
    import polars

    if series.dtype in (polars.Datetime, polars.Date):
        return np.asarray(series.cast(polars.Datetime("ns")).to_numpy(), dtype="datetime64[ns]")
    if series.dtype == polars.String:
        return _stamps(series, label, is_time, "String")
    if not (series.dtype.is_numeric() or series.dtype == polars.Boolean):
        raise _unusable(label, str(series.dtype))
    return np.asarray(series.cast(polars.Float64).to_numpy(), dtype=np.float64)


def _arrow(column: Any, label: str, is_time: bool) -> NDArray[Any]:
    import pyarrow
    import pyarrow.compute

    kind, types = column.type, pyarrow.types
    if types.is_string(kind) or types.is_large_string(kind):
        return _stamps(column.to_pylist(), label, is_time, str(kind))
    if types.is_timestamp(kind):
        column = column.cast(pyarrow.timestamp("ns", kind.tz))
    elif any(test(kind) for test in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)):
        column = pyarrow.compute.cast(column, pyarrow.float64(), safe=False)
    else:
        raise _unusable(label, str(kind))
    chunked = hasattr(column, "chunks")
    return np.asarray(column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False))  # nulls become NaN


def _numbers(values: NDArray[Any], label: str, is_time: bool, origin: Any = None) -> Vector:
    """Return numbers as they are, and time stamps as seconds since `origin` or the first of them."""
    if values.dtype.kind != "M":
        return values
    if not is_time:
        raise DataError(f"{label} holds time stamps: numbers are needed, so give it as the time column")
    since = (values - (values[0] if origin is None else origin)).astype("timedelta64[ns]")
    return np.where(np.isnat(since), np.nan, since.astype(np.int64) / 1e9)


def _stamps(cells: Iterable[str | None], label: str, is_time: bool, kind: str) -> NDArray[Any]:
    """Parse time stamps written as text; other text is refused."""
    texts = ["NaT" if cell is None else cell for cell in cells]
    if is_time:
        order = order_of(texts, label)
        read = [None if text == "NaT" else stamp(text, order) for text in texts]
        known = [one for one, text in zip(read, texts, strict=True) if one is not None or text != "NaT"]
        if known and all(one is not None and one.zoned == getattr(known[0], "zoned", None) for one in known):
            return np.array([np.datetime64("NaT" if one is None else one.micros, "us") for one in read])
    found = next((text for text in texts if text != "NaT"), "")
    raise DataError(
        f"{label} holds text (type {kind}, such as {found[:40]!r}): numbers are needed"
        f"{' or time stamps such as 2024-05-01T12:00:00' if is_time else ''}, so convert it first"
    )


def _unusable(label: str, kind: str) -> DataError:
    return DataError(f"{label} holds {kind[:80]}: a column of real numbers is needed, so unpack or convert it first")


def read_parquet(path: Path) -> Table:
    """Read a Parquet file, only the columns that are used and a batch at a time; see `read_table`."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("reading Parquet", extra="files") from None
    # Both options keep memory small: by default whole column chunks are read ahead.
    opened = partial(pyarrow.parquet.ParquetFile, path, pre_buffer=False, buffer_size=1 << 16)
    checked = partial(reading_as, path, "a Parquet file")  # pyarrow raises errors of many kinds
    with checked(), opened() as file:
        schema, length, about = file.schema_arrow, file.metadata.num_rows, file.metadata
        rows = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
        if sum(rows) != length or min(rows, default=0) < 0:
            raise DataError(
                f"{path.name} says that it has {length} rows, but its parts have {sum(rows)}: is the file complete?"
                " Save or export it again"
            )
    names = [one_line(name) for name in schema.names]
    if not length:
        raise DataError(f"{path.name} has no rows: rows of numbers are needed")

    @checked()
    def fill(targets: Sequence[Target]) -> None:
        for position, _, _ in targets:
            if schema.names.count(schema.names[position]) > 1:
                raise DataError(
                    f"{path.name} has several columns named {names[position]!r}, which cannot be told apart in a"
                    " Parquet file: rename one of them"
                )
        wanted = sorted({schema.names[position] for position, _, _ in targets})
        start, origin = 0, None
        with opened() as file:
            for batch in file.iter_batches(BATCH, columns=wanted, use_threads=False):
                for position, into, is_time in targets:
                    label = f"column {names[position]!r} of {path.name}"
                    values = _arrow(batch.column(schema.names[position]), label, is_time)
                    if is_time and start == 0:
                        origin = values[0]  # seconds count from the first stamp of the file, not of the batch
                    into[start : start + len(batch)] = _numbers(values, label, is_time, origin)
                start += len(batch)
        if start != length:  # what was not written would be whatever the memory held
            raise DataError(
                f"{path.name} says that it has {length} rows, but {start} are there: is the file complete? Save or"
                " export it again"
            )

    return Table(path.name, tuple(names), partial(load_columns, length, fill))
