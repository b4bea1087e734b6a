"""Frames and arrays as tables: pandas, polars, Arrow and Parquet, NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Vector
from echobound.data.table import Groups, Loaded, Table, Target, load_columns, one_line, unreadable
from echobound.errors import DataError, MissingExtra

__all__ = ["is_frame", "read_parquet", "table_of_array", "table_of_frame"]

LIBRARIES = ("pandas", "polars", "pyarrow")
BATCH = 16384  # rows of a Parquet file decoded together


def is_frame(data: object) -> bool:
    """Whether `data` is a table of pandas, polars or Arrow; told by its type's module, so that none is imported."""
    return type(data).__module__.split(".")[0] in LIBRARIES and hasattr(type(data), "columns")


def table_of_array(values: NDArray[Any], name: str = "array") -> Table:
    """Return an array ``(time, channel)`` as a table whose columns have numbers instead of names.

    Examples
    --------
    >>> table_of_array(np.zeros((5, 2)), "tank").columns
    ('column 1', 'column 2')
    """
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
    """Return a frame of pandas, polars or Arrow as a table; a named pandas index is a column as well.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"pump": [1.0, 2.0, 2.0], "level": [0.0, 0.1, 0.3]})
    >>> table_of_frame(frame).record(inputs="pump", outputs="level").u.ravel().tolist()
    [1.0, 2.0, 2.0]
    """
    library = type(frame).__module__.split(".")[0]
    numbers: Callable[[Any, str, bool], Vector]
    if library == "polars":
        if not hasattr(frame, "to_series"):
            raise DataError(f"{name} is a {type(frame).__name__}, which holds no numbers yet: collect() it first")
        names, get, numbers = list(frame.columns), frame.to_series, _polars
    elif library == "pyarrow":
        names, get, numbers = list(frame.column_names), frame.column, _arrow
    else:
        index = frame.index
        names, numbers = [one_line(str(c)) for c in frame.columns], _pandas
        named = [index.name] if getattr(index, "nlevels", 1) == 1 and index.name is not None else []
        names += [one_line(str(n)) for n in named]

        def get(position: int) -> Any:
            return frame.iloc[:, position] if position < len(frame.columns) else index.to_series()

    if not len(frame):
        raise DataError(f"{name} has no rows: rows of numbers are needed")

    def fill(targets: Sequence[Target]) -> None:
        for position, into, is_time in targets:
            into[:] = numbers(get(position), f"column {names[position]!r} of {name}", is_time)

    return Table(name, tuple(names), partial(load_columns, len(frame), fill))


def _pandas(series: Any, label: str, is_time: bool) -> Vector:
    kind = getattr(series.dtype, "kind", "O")
    if kind == "M":
        stamps = series.dt.tz_localize(None) if getattr(series.dtype, "tz", None) is not None else series
        return _seconds(stamps.to_numpy(dtype="datetime64[ns]"), label, is_time)
    if kind == "c":
        raise DataError(f"{label} is complex: real numbers are needed, so give real and imaginary parts as two columns")
    if kind not in "fiub":
        values = list(series)
        if all(isinstance(value, int | float) for value in values):
            return np.array(values, dtype=np.float64)
        if not all(isinstance(value, str) for value in values):
            other = next(value for value in values if not isinstance(value, int | float | str))
            raise _unusable(label, f"{type(other).__name__} objects")
        return _seconds(_stamps(values, label, is_time, str(series.dtype)), label, is_time)
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))


def _polars(series: Any, label: str, is_time: bool) -> Vector:
    import polars

    if series.dtype.is_temporal() and series.dtype in (polars.Datetime, polars.Date):
        return _seconds(series.cast(polars.Datetime("ns")).to_numpy().astype("datetime64[ns]"), label, is_time)
    if series.dtype == polars.String:
        texts = ["NaT" if text is None else text for text in series]
        return _seconds(_stamps(texts, label, is_time, "String"), label, is_time)
    if not (series.dtype.is_numeric() or series.dtype == polars.Boolean):
        raise _unusable(label, str(series.dtype))
    return np.asarray(series.cast(polars.Float64).to_numpy(), dtype=np.float64)


def _arrow(column: Any, label: str, is_time: bool) -> Vector:
    import pyarrow
    import pyarrow.compute

    stamps = _arrow_stamps(column, label, is_time)
    if stamps is not None:
        return _seconds(stamps, label, is_time)
    kind = column.type
    plain = (pyarrow.types.is_integer, pyarrow.types.is_floating, pyarrow.types.is_boolean, pyarrow.types.is_decimal)
    if pyarrow.types.is_null(kind) or not any(test(kind) for test in plain):
        raise _unusable(label, str(kind))
    return _plain(pyarrow.compute.cast(column, pyarrow.float64(), safe=False))


def _arrow_stamps(column: Any, label: str, is_time: bool) -> NDArray[Any] | None:
    """Return time stamps, also those written as text; None for a column of anything else."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_timestamp(kind):
        return _plain(column.cast(pyarrow.timestamp("ns", kind.tz)))
    if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
        return _stamps(["NaT" if text is None else text for text in column.to_pylist()], label, is_time, str(kind))
    return None


def _plain(column: Any) -> NDArray[Any]:
    """Return an Arrow array, chunked or not, as a NumPy array; nulls become NaN."""
    chunked = hasattr(column, "chunks")
    return np.asarray(column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False))


def _seconds(stamps: NDArray[Any], label: str, is_time: bool, origin: Any = None) -> Vector:
    """Return time stamps as seconds since `origin`, or since the first of them."""
    if not is_time:
        raise DataError(f"{label} holds time stamps: numbers are needed, so give it as the time column")
    since = (stamps - (stamps[0] if origin is None else origin)).astype("timedelta64[ns]")
    seconds = since.astype(np.int64) / 1e9
    return np.where(np.isnat(since), np.nan, seconds)


def _stamps(cells: list[str], label: str, is_time: bool, kind: str) -> NDArray[Any]:
    """Parse time stamps written as text; other text is refused."""
    if is_time:
        try:
            return np.array(cells, dtype="datetime64[ns]")
        except ValueError:
            pass
    found = next((cell for cell in cells if cell != "NaT"), "")
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
    try:
        file = pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16)
        schema, length = file.schema_arrow, file.metadata.num_rows
        file.close()
    except (pyarrow.ArrowException, OSError) as error:
        raise unreadable(path, "a Parquet file", error) from None
    names = [one_line(name) for name in schema.names]
    if not length:
        raise DataError(f"{path.name} has no rows: rows of numbers are needed")

    def fill(targets: Sequence[Target]) -> None:
        for position, _, _ in targets:
            if schema.names.count(schema.names[position]) > 1:
                raise DataError(
                    f"{path.name} has several columns named {names[position]!r}, which cannot be told apart in a"
                    " Parquet file: rename one of them"
                )
        wanted = sorted({schema.names[position] for position, _, _ in targets})
        start, origin = 0, None
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16) as file:
            for batch in file.iter_batches(BATCH, columns=wanted, use_threads=False):
                for position, into, is_time in targets:
                    label = f"column {names[position]!r} of {path.name}"
                    column = batch.column(schema.names[position])
                    stamps = _arrow_stamps(column, label, is_time)
                    if stamps is None:
                        into[start : start + len(batch)] = _arrow(column, label, is_time)
                    else:  # seconds since the first stamp of the file, not of the batch
                        origin = stamps[0] if start == 0 else origin
                        into[start : start + len(batch)] = _seconds(stamps, label, is_time, origin)
                start += len(batch)

    def load(groups: Groups, time: int | None) -> Loaded:
        try:
            return load_columns(length, fill, groups, time)
        except (pyarrow.ArrowException, OSError) as error:
            raise unreadable(path, "a Parquet file", error) from None

    return Table(path.name, tuple(names), load)
