"""Variables of MATLAB .mat and NumPy .npz files as tables: a vector is a column, a matrix several."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from echobound.arrays import Vector
from echobound.data.frames import table_of_array
from echobound.data.hdf5 import fill_columns, hdf5_variables
from echobound.data.matlab import MOST, matlab_variables
from echobound.data.room import require_room
from echobound.data.table import Groups, Loaded, Table, Target, load_columns, reading_as
from echobound.errors import DamagedFile, DataError
from echobound.files import Member, npy_member, npz_members

CHUNK = 65536  # samples converted together

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
    return Table(source, names, load, several, others, kind="variable", period=_stated_period(variables))


_PERIODS = {"ts", "dt", "samplingtime", "sampling_time", "sampletime", "sample_time", "tsample"}
_RATES = {"fs", "samplingrate", "sampling_rate", "samplerate", "sample_rate"}


def _stated_period(variables: Sequence[Variable]) -> tuple[str, float] | None:
    """A sampling time that a single number of the file states, and its name; None if there is none, or two disagree."""
    stated = []
    for variable in variables:
        name = variable.name.split(".")[-1].lower()
        if variable.fill is None or name not in _PERIODS | _RATES or max(variable.shape, default=1) != 1:
            continue
        value = np.zeros(1)
        variable.fill([(0, value)])
        if np.isfinite(value[0]) and value[0] > 0:
            stated.append((variable.name, float(value[0] if name in _PERIODS else 1 / value[0])))
    return stated[0] if stated and np.allclose([value for _, value in stated], stated[0][1]) else None


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
    require_room(math.prod(variable.layout), path.name)
    values = np.empty(variable.layout)
    if variable.fill is not None:
        variable.fill(list(enumerate(values.T)))
    return table_of_array(values, path.name)


_KINDS = {"c": "complex numbers", "U": "text", "S": "text", "O": "pickled objects", "V": "a structured array"}
_KINDS |= {"M": "time stamps", "m": "time differences"}


def _variable_of(path: Path, member: Member) -> Variable:
    @reading_as(path, "a NumPy file")  # whose parsers raise errors of many kinds
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
        variables = list(_hdf5_variables(path) if new else _matlab_variables(path))
    return table_of_variables(path.name, variables)


def _matlab_variables(path: Path) -> Iterator[Variable]:
    """Variables of the versions before 7.3; of several of one name, the first."""

    @reading_as(path, "a MATLAB file")
    def fill(name: str, wanted: Wanted) -> None:
        variables = matlab_variables(path)  # has the file open for as long as it is there
        found = next(one for one in variables if one.name == name)
        if found.complex or found.fill is None:
            raise DataError(
                f"variable {name!r} of {path.name} is complex, {'x'.join(map(str, found.shape))}: real numbers are"
                " needed, so save real and imaginary parts as two variables"
            )
        found.fill(wanted)

    names: set[str] = set()
    for found in itertools.islice(matlab_variables(path), MOST):
        if found.name in names:
            continue
        names.add(found.name)
        if found.fill is None:
            yield _other(found.name, found.shape, found.kind)
        else:
            yield Variable(found.name, found.shape, found.kind, partial(fill, found.name))


_MATLAB = {"struct": "a structure array", "cell": "a cell array", "char": "text", "sparse": "a sparse matrix"}
_MATLAB |= {"opaque": "an object, which only MATLAB can read (save its data as arrays)", "function": "a function"}


def _other(name: str, shape: tuple[int, ...], kind: str) -> Variable:
    return Variable(name, shape, _MATLAB.get(kind, f"of the class {kind}"))


def _hdf5_variables(path: Path) -> Iterator[Variable]:
    fill = reading_as(path, "a MATLAB file")(fill_columns)
    for one in hdf5_variables(path):
        name, shape = one["name"], tuple(one["shape"])
        if "class" in one:
            yield _other(name, shape, one["class"])
        else:
            yield Variable(name, shape, one["what"], partial(fill, path, one["dataset"]) if "dataset" in one else None)
