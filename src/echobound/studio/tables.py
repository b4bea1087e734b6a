"""Tables: what there is to see of a data file: its columns, and every channel thinned for the screen."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from echobound.arrays import Vector
from echobound.data.formats import read_table
from echobound.data.table import RowNumbers, Table
from echobound.errors import DataError, InputError
from echobound.studio.drafts import Draft, Records
from echobound.studio.workspace import Workspace

KEPT = 2  # files that are kept in memory
MOST_CELLS = 20_000_000  # of one file: 160 MB
LARGEST = 256 << 20  # bytes of a file that is read here: the server's memory is bounded
CHANNELS = 40  # columns that are drawn
WIDEST = 4000  # points of a curve that are sent


@dataclass(frozen=True, eq=False)
class Columns:
    """All columns of a file as numbers; what is not a number is NaN."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: list[Vector]
    rows: RowNumbers  # of each sample in the file

    @property
    def length(self) -> int:
        """Number of rows."""
        return len(self.values[0]) if self.values else 0

    @property
    def jumps(self) -> list[tuple[int, int]]:
        """Samples before which rows are passed over in the file, the first one included, and the row of each."""
        found, sample, last = list[tuple[int, int]](), 0, self.length - 1
        while sample <= last:
            found.append((sample, self.rows[sample]))
            ahead = self.rows[sample] - sample  # it grows at each jump, and never shrinks
            sample = bisect_right(range(last + 1), ahead, lo=sample, key=lambda k: self.rows[k] - k)
        return found


class Tables:
    """Files of a workspace, read once as long as they stay as they are."""

    def __init__(self, space: Workspace) -> None:
        self.space = space
        self._kept: OrderedDict[tuple[Any, ...], Columns] = OrderedDict()
        self._read: tuple[Any, Records] | None = None

    def file(self, name: str) -> Path:
        """A data file that is read here."""
        path = self.space.file(name)
        if path.stat().st_size > LARGEST:
            raise InputError(
                f"{path.name} is larger than {LARGEST >> 20} MiB, too large for the studio: use echobound identify, and"
                " watch the run here"
            )
        return path

    def columns(self, name: str, layout: Mapping[str, Any] | None = None) -> Columns:
        """The columns of a file; `layout` says where its table stands, as in `read_table`."""
        path, layout = self.file(name), layout or {}
        about = path.stat()
        key = (path, tuple(sorted(layout.items())), about.st_mtime_ns, about.st_size)
        if key not in self._kept:
            self._kept[key] = _load(path, layout)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    def records(self, draft: Draft) -> Records:
        """The records of a draft; they are kept while only its plan changes, as it does while somebody types."""
        names = sorted({name for several in draft.files.values() for name in several})
        stamps = [(name, about.st_mtime_ns, about.st_size) for name in names if (about := self.file(name).stat())]
        key = (stamps, draft.files, draft.inputs, draft.outputs, draft.reading, draft.cut)
        known = self._read
        if known is None or known[0] != key:
            self._read = known = (key, draft.records(self.space))
        return known[1]


def _load(path: Path, layout: Mapping[str, Any]) -> Columns:
    table = read_table(path, **layout)
    count = min(len(table.columns), CHANNELS)
    if not count:
        raise InputError(f"{path.name} has no column that could be a signal")
    values, rows = _values(table, count)
    length = max(map(len, values))
    if length * count > MOST_CELLS:
        raise InputError(f"{path.name} has {length * count} values, more than can be drawn: use echobound identify")
    # Variables of a .mat file may differ in length; what cannot be a signal is drawn as nothing.
    values = [one if len(one) == length else np.full(length, np.nan) for one in values]
    names, units = zip(*table.labels[:count], strict=True)
    return Columns(names, units, values, rows)


def _values(table: Table, count: int) -> tuple[list[Vector], RowNumbers]:
    """Each column as numbers, NaN where there is none: all in one pass, or one by one where some cannot be loaded."""
    try:
        loaded = table.load([list(range(count))], None)
        return [np.ascontiguousarray(loaded.signals[0][:, i]) for i in range(count)], loaded.rows
    except (DataError, ValueError):
        rows, values = RowNumbers(), list[Vector]()
    for position in range(count):
        try:
            loaded = table.load([[position]], None)
            rows = loaded.rows
            values.append(np.ascontiguousarray(loaded.signals[0][:, 0]))
        except DataError:  # time stamps, or objects
            values.append(np.zeros(0))
    return values, rows


def thinned(x: Vector, y: Vector, width: int) -> tuple[list[float], list[float | None]]:
    """A curve for so many pixels: the lowest and the highest of each stretch, so that no peak is lost.

    Examples
    --------
    >>> x, y = thinned(np.arange(1000.0), np.r_[np.zeros(499), 5.0, np.zeros(500)], 20)
    >>> len(x) <= 40, max(y)
    (True, 5.0)
    """
    width = min(max(int(width), 10), WIDEST)
    if len(y) <= 2 * width:
        return x.tolist(), [None if not np.isfinite(v) else float(v) for v in y]
    edges = np.linspace(0, len(y), width + 1).astype(int)
    picked: list[int] = []
    for start, stop in pairwise(edges):
        part = y[start:stop]
        if np.isnan(part).all():
            picked.append(int(start))
            continue
        low, high = start + int(np.nanargmin(part)), start + int(np.nanargmax(part))
        picked += sorted({low, high})
    return x[picked].tolist(), [None if not np.isfinite(v) else float(v) for v in y[picked]]
