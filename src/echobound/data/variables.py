"""Variables of MATLAB .mat and NumPy .npz files as tables: a vector is a column, a matrix several."""

from __future__ import annotations

import itertools
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from echobound.arrays import Vector
from echobound.data.frames import table_of_array
from echobound.data.table import Groups, Loaded, Table, Target, load_columns, reading_as
from echobound.errors import DamagedFile, DataError, MissingExtra
from echobound.files import Member, npy_member, npz_members

CHUNK = 65536  # samples converted together
NUMBERS = ("double", "single", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "logical")

Wanted = Sequence[tuple[int, Vector]]  # columns of a variable and the arrays to write them into


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable of a file: its name, its shape, and how to write its columns into arrays.

    `fill` is None if it cannot be a signal; then `what` says what it is.
    """

    name: str
    shape: tuple[int, ...]
    what: str
    fill: Callable[[Wanted], None] | None = None

    @property
    def layout(self) -> tuple[int, int]:
        """Number of samples and of columns; a row vector is one column, since MATLAB users write signals so."""
        return (max(self.shape), 1) if len(self.shape) == 1 or 1 in self.shape else (self.shape[0], self.shape[1])

    @property
    def obstacle(self) -> str:
        """What it is if it cannot be a signal; empty if it can."""
        size = "x".join(map(str, self.shape))
        if self.fill is None:
            return f"{self.what}, {size}"
        if len(self.shape) > 2:
            return f"an array with {len(self.shape)} axes, {size}"
        if not all(self.shape):
            return "empty"
        if max(self.shape, default=1) == 1:
            return "a single number"
        if len(self.shape) == 2 and self.shape[1] > self.shape[0] > 1:
            return f"a matrix with more channels than samples, {size}: transpose it"
        return ""


def table_of_variables(source: str, variables: Sequence[Variable]) -> Table:
    """Return variables as a table: a matrix ``u`` has the columns ``u[1]``, ``u[2]``, and ``u`` is all of them."""
    usable = [v for v in variables if not v.obstacle]
    matrices = [v for v in usable if v.layout[1] > 1]
    places = [(v, i) for v in usable for i in range(v.layout[1])]
    names = tuple(f"{v.name}[{i + 1}]" if v in matrices else v.name for v, i in places)
    several = {v.name: tuple(p for p, (owner, _) in enumerate(places) if owner is v) for v in matrices}

    def fill(targets: Sequence[Target]) -> None:
        for variable in usable:
            wanted = [(places[p][1], into) for p, into, _ in targets if places[p][0] is variable]
            if wanted and variable.fill is not None:
                variable.fill(wanted)

    def load(groups: Groups, time: int | None) -> Loaded:
        used = [places[p][0] for p in (*(p for group in groups for p in group), *([] if time is None else [time]))]
        samples = used[0].layout[0]
        for other in used[1:]:
            if other.layout[0] != samples:
                raise DataError(
                    f"variables {used[0].name!r} and {other.name!r} of {source} have {samples} and {other.layout[0]}"
                    " samples: give variables of one length"
                )
        return load_columns(samples, fill, groups, time)

    others = {v.name: v.obstacle for v in variables if v.obstacle}
    if not names:
        found = ", ".join(f"{name} ({what})" for name, what in list(others.items())[:10]) or "nothing"
        raise DataError(f"{source} holds no signals: vectors or matrices of numbers are needed, found {found}")
    return Table(source, names, load, several, others, kind="variable")


def read_npz(path: Path) -> Table:
    """Read the arrays of an NPZ file; pickled ones are not opened. See `read_table`."""
    with reading_as(path, "a NumPy file", DamagedFile):
        members = npz_members(path)
    return table_of_variables(path.name, [_variable_of(path, member) for member in members])


def read_npy(path: Path) -> Table:
    """Read the array of an NPY file as a table whose columns have numbers; see `read_table`."""
    with reading_as(path, "a NumPy file", DamagedFile):
        variable = _variable_of(path, npy_member(path))
    if variable.obstacle:
        raise DataError(f"{path.name} holds {variable.obstacle}: an array (time, channel) of real numbers is needed")
    values = np.empty(variable.layout)
    if variable.fill is not None:
        variable.fill(list(enumerate(values.T)))
    return table_of_array(values, path.name)


_KINDS = {"c": "complex numbers", "U": "text", "S": "text", "O": "pickled objects", "V": "a structured array"}
_KINDS |= {"M": "time stamps", "m": "time differences"}


def _variable_of(path: Path, member: Member) -> Variable:
    @reading_as(path, "a NumPy file", OSError, ValueError, zipfile.BadZipFile, EOFError, zlib.error)
    def fill(wanted: Wanted) -> None:
        """Read the array a chunk at a time, and keep the columns that are wanted."""
        samples, width = variable.layout
        together = 1 if member.fortran else width  # columns whose values alternate in the file
        with member.open() as stream:
            for first, start in itertools.product(range(0, width, together), range(0, samples, CHUNK)):
                rows = min(CHUNK, samples - start)
                raw = stream.read(rows * together * member.dtype.itemsize)
                chunk = np.frombuffer(raw, dtype=member.dtype).reshape(rows, together)
                for column, into in wanted:
                    if first <= column < first + together:
                        into[start : start + rows] = chunk[:, column - first]

    if member.dtype.kind not in "fiub":
        return Variable(member.name, member.shape, _KINDS.get(member.dtype.kind, str(member.dtype)))
    variable = Variable(member.name, member.shape, "numbers", fill)
    return variable


def read_mat(path: Path) -> Table:
    """Read the variables of a MATLAB file, versions 4 to 7.3; see `read_table`."""
    with path.open("rb") as file:
        new = file.read(10) == b"MATLAB 7.3"
    with reading_as(path, "a MATLAB file"):
        variables = list(_hdf5_variables(path) if new else _mat5_variables(path))
    return table_of_variables(path.name, variables)


def _mat5_variables(path: Path) -> Iterator[Variable]:
    from scipy.io import loadmat, whosmat

    @reading_as(path, "a MATLAB file")
    def value(name: str) -> Any:
        first, *fields = name.split(".")
        found = loadmat(str(path), variable_names=[first])[first]
        for field in fields:
            found = found[field][0, 0]
        return np.asarray(found)

    def fill(name: str, wanted: Wanted) -> None:
        values = value(name)
        if np.iscomplexobj(values):
            raise DataError(
                f"variable {name!r} of {path.name} is complex, {'x'.join(map(str, values.shape))}: real numbers are"
                " needed, so save real and imaginary parts as two variables"
            )
        for column, into in wanted:
            into[:] = values.reshape(-1) if 1 in values.shape else values[:, column]

    def fields_of(struct: Any, name: str) -> Iterator[Variable]:
        for field in struct.dtype.names or ():
            inner, full = struct[field][0, 0], f"{name}.{field}"
            if inner.dtype.names and inner.shape == (1, 1):
                yield from fields_of(inner, full)
            elif inner.dtype.kind in "fiubc":
                yield Variable(full, inner.shape, "numbers", partial(fill, full))
            else:
                kind = "struct" if inner.dtype.names else "cell" if inner.dtype == object else "char"
                yield _other(full, inner.shape, kind)

    for name, shape, kind in whosmat(str(path)):
        if kind == "struct" and tuple(shape) == (1, 1):
            yield from fields_of(value(name), name)
        elif kind in NUMBERS:
            yield Variable(name, tuple(shape), kind, partial(fill, name))
        else:
            yield _other(name, tuple(shape), kind)


_MATLAB = {"struct": "a structure array", "cell": "a cell array", "char": "text", "sparse": "a sparse matrix"}
_MATLAB |= {"opaque": "an object, which only MATLAB can read (save its data as arrays)", "function": "a function"}


def _other(name: str, shape: tuple[int, ...], kind: str) -> Variable:
    return Variable(name, shape, _MATLAB.get(kind, f"of the class {kind}"))


def _hdf5_variables(path: Path) -> Iterator[Variable]:
    try:
        import h5py
    except ImportError:
        raise MissingExtra("reading MATLAB 7.3 files", extra="files") from None

    def visit(group: Any, prefix: str) -> Iterator[Variable]:
        for key, item in group.items():
            name, kind = prefix + key, item.attrs.get("MATLAB_class", b"")
            kind = kind.decode() if isinstance(kind, bytes) else str(kind)
            if key in ("#refs#", "#subsystem#"):
                continue
            if isinstance(item, h5py.Group):
                yield from visit(item, f"{name}.") if kind in ("", "struct") else [_other(name, (), kind)]
                continue
            shape = tuple(reversed(item.shape))  # MATLAB stores column by column, HDF5 row by row
            if item.attrs.get("MATLAB_empty", 0):
                yield Variable(name, (0, 0), "empty")
            elif item.dtype.names:
                yield Variable(name, shape, "complex numbers")
            elif item.dtype.kind not in "fiub" or kind in ("char", "cell"):
                yield _other(name, shape, kind or str(item.dtype))
            else:
                yield Variable(name, shape, kind, partial(fill, item.name))

    @reading_as(path, "a MATLAB file", OSError, KeyError, RuntimeError)
    def fill(dataset: str, wanted: Wanted) -> None:
        with h5py.File(path, "r") as file:
            data = file[dataset]
            vector = data.ndim == 1 or 1 in data.shape
            along = int(np.argmax(data.shape)) if vector else 1
            for column, into in wanted:
                cut: list[Any] = [0 if vector else column] * data.ndim
                for start in range(0, len(into), CHUNK):
                    cut[along] = slice(start, start + CHUNK)
                    into[start : start + CHUNK] = data[tuple(cut)]

    with h5py.File(path, "r") as file:
        yield from visit(file, "")
