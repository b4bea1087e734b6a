"""Statements of C from the matrices of a step: loops over tables, laid out so that a compiler can vectorise them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Matrix, Vector
from echobound.network.equations import Equations, Sparse

RUN = 6  # columns in a row from which on a product is a loop over a table
ONE = 20.0  # an activation from which on tanh is 1
TERMS = 24  # tables that one loop runs over: enough to keep the sum in a register, few enough for its addresses


@dataclass
class Writer:
    """C source in the making: constant tables, and the statements of one function."""

    prefix: str  # of the names of the tables
    real: str  # the type of all numbers
    single: bool
    tables: list[str] = field(default_factory=list)
    size: int = 0  # of the tables, in bytes

    def number(self, value: float) -> str:
        """A number as C writes it, without loss."""
        text = f"{np.float32(value)!s}F" if self.single else repr(float(value))
        return f"({text})" if text.startswith("-") else text

    def table(self, name: str, values: NDArray[np.float64]) -> str:
        """Add a constant table and return its name."""
        full = f"{self.prefix}_{name}"
        size = "".join(f"[{n}]" for n in values.shape)
        self.size += values.size * (4 if self.single else 8)
        self.tables.append(f"static const {self.real} {full}{size} = {self._braces(values)};")
        return full

    def index_table(self, name: str, values: Iterable[int]) -> str:
        """Add a constant table of indices."""
        numbers = [f"{value}U" for value in values]
        self.size += 4 * len(numbers)
        full = f"{self.prefix}_{name}"
        self.tables.append(f"static const uint32_t {full}[{len(numbers)}] = {{\n{wrapped(numbers)}\n}};")
        return full

    def _braces(self, values: NDArray[np.float64]) -> str:
        if values.ndim > 1:
            return "{\n" + ",\n".join(self._braces(row) for row in values) + "\n}"
        return "{\n" + wrapped([self.number(value).strip("()") for value in values]) + "\n}"

    def row(self, name: str, columns: NDArray[np.int64], values: Vector, source: str = "w") -> list[str]:
        """The terms of one row of a matrix times the vector `source`: products over tables where columns are a run."""
        terms = []
        cuts = np.flatnonzero(np.diff(columns) != 1) + 1
        for number, (run, numbers) in enumerate(zip(np.split(columns, cuts), np.split(values, cuts), strict=True)):
            if len(run) >= RUN:
                table = self.table(f"{name}_{number}", numbers)
                terms.append(f"{self.real_prefix}_dot({table}, &{source}[{run[0]}], {len(run)}U)")
            else:
                for column, value in zip(run, numbers, strict=True):
                    plain = f"{source}[{column}]"
                    terms.append(plain if value == 1.0 else f"({self.number(value)} * {plain})")
        return terms

    @property
    def real_prefix(self) -> str:
        """The model's own prefix, of functions that its members share."""
        return self.prefix.rsplit("_", 1)[0]


def far(single: bool) -> float:
    """The largest activation for which the exported tanh does not overflow."""
    return 40.0 if single else 300.0


def wrapped(items: list[str], width: int = 112) -> str:
    """Items with commas, on lines of a readable length."""
    lines, line = [], "   "
    for number, item in enumerate(items):
        piece = f" {item}{',' if number + 1 < len(items) else ''}"
        if len(line) + len(piece) > width:
            lines.append(line)
            line = "   "
        line += piece
    return "\n".join([*lines, line])


def rows_of(matrix: Sparse) -> list[tuple[NDArray[np.int64], Vector]]:
    """Columns and values of each row."""
    ends = matrix.indptr
    return [
        (matrix.indices[first:last].astype(np.int64), matrix.data[first:last])
        for first, last in itertools.pairwise(ends)
    ]


@dataclass(frozen=True, eq=False)
class Activation:
    """The matrix of the units, taken apart by what a compiler can vectorise."""

    offsets: list[int]  # of cyclic diagonals among the first states, as many of these as units
    diagonals: Matrix  # (diagonal, unit)
    columns: list[int]  # of columns that are full
    dense: Matrix  # (column, unit)
    rest: Sparse  # all other entries


def taken_apart(one: Equations) -> Activation:
    """The activation matrix of a member as diagonals, full columns and the rest."""
    n = one.units
    rest = one.activation.tocoo()
    rows, columns, values = rest.row.astype(np.int64), rest.col.astype(np.int64), rest.data
    used = np.zeros(len(values), dtype=bool)
    offsets: list[int] = []
    if one.states >= n:
        square = columns < n
        offset = (columns - rows) % n
        for candidate in np.unique(offset[square]):
            there = square & (offset == candidate)
            if there.sum() > n // 2:
                offsets.append(int(candidate))
                used |= there
        if (used != square).any():  # a few diagonals of a scattered matrix are no gain
            offsets, used = [], np.zeros(len(values), dtype=bool)
    diagonals = np.zeros((len(offsets), n))
    for number, candidate in enumerate(offsets):
        there = used & ((columns - rows) % n == candidate)
        diagonals[number, rows[there]] = values[there]
    full = [c for c in np.unique(columns[~used]).tolist() if ((columns == c) & ~used).sum() > n // 2]
    dense = np.zeros((len(full), n))
    for number, column in enumerate(full):
        there = (columns == column) & ~used
        dense[number, rows[there]] = values[there]
        used |= there
    from scipy.sparse import coo_array

    left = coo_array((values[~used], (rows[~used], columns[~used])), shape=one.activation.shape).tocsr()
    return Activation(offsets, diagonals, full, dense, left)


def unit_statements(writer: Writer, one: Equations) -> list[str]:
    """W's units from the rest of w: a = A w + b, then tanh."""
    n, parts = one.units, taken_apart(one)
    first = one.parts[3].start
    lines = []
    terms = [f"({writer.table('bias', one.bias)}[i])"]
    if parts.columns:
        table = writer.table("columns", parts.dense)
        terms += [f"({table}[{number}][i] * w[{column}])" for number, column in enumerate(parts.columns)]
    if parts.offsets:
        table = writer.table("diagonals", parts.diagonals)
        wrap = f"x[{n}U + i]"
        lines += [f"for (i = 0U; i < {n}U; i++) {{", "    x[i] = w[i];", f"    {wrap} = w[i];", "}"]
        terms += [f"({table}[{number}][i] * x[i + {offset}U])" for number, offset in enumerate(parts.offsets)]
    for start in range(0, len(terms), TERMS):
        head = "a[i] =" if start == 0 else "a[i] +="
        some = terms[start : start + TERMS]
        lines += [f"for (i = 0U; i < {n}U; i++) {{", f"    {head} {some[0]}"]
        lines += [f"        + {term}" for term in some[1:]]
        lines[-1] += ";"
        lines.append("}")
    if parts.rest.nnz:
        ends = writer.index_table("row_ends", parts.rest.indptr.tolist())
        where = writer.index_table("row_columns", parts.rest.indices.tolist())
        table = writer.table("row_values", parts.rest.data)
        lines += [
            f"for (i = 0U; i < {n}U; i++) {{",
            f"    {writer.real} sum = a[i];",
            f"    for (j = {ends}[i]; j < {ends}[i + 1U]; j++) {{",
            f"        sum += {table}[j] * w[{where}[j]];",
            "    }",
            "    a[i] = sum;",
            "}",
        ]
    # Seen by one sum, which costs less than to look at each: hardly ever is one so large.
    high, low, most = (writer.number(value) for value in (ONE, -ONE, far(writer.single) ** 2))
    lines += [
        f"if (!({writer.real_prefix}_dot(a, a, {n}U) <= {most})) {{ /* where tanh is 1, and ours overflows */",
        f"    for (i = 0U; i < {n}U; i++) {{",
        f"        a[i] = (a[i] > {high}) ? {high} : ((a[i] < {low}) ? {low} : a[i]);",
        "    }",
        "}",
    ]
    return [*lines, f"for (i = 0U; i < {n}U; i++) {{", f"    w[{first}U + i] = {writer.real_prefix}_tanh(a[i]);", "}"]


def output_statements(writer: Writer, one: Equations) -> list[str]:
    """The own outputs y[] from w, clipped."""
    lines = []
    for output, (columns, values) in enumerate(rows_of(one.readout)):
        terms = [writer.number(one.constant[output]), *writer.row(f"readout_{output}", columns, values)]
        lines.append(f"y[{output}] = {summed(terms)};")
        if one.limits is not None:
            low, high = (writer.number(end[output]) for end in (one.limits.low, one.limits.high))
            lines.append(f"y[{output}] = {writer.real_prefix}_clip(y[{output}], {low}, {high});")
    return lines


def next_statements(writer: Writer, one: Equations) -> list[str]:
    """The next state s[] from w."""
    rows, h = rows_of(one.next_state), one.parts[3].start
    keep, leak = np.zeros(one.units), np.zeros(one.units)
    leaky = one.states >= one.units
    for unit, (columns, values) in enumerate(rows[: one.units] if leaky else []):
        known = dict(zip(columns.tolist(), values.tolist(), strict=True))
        keep[unit], leak[unit] = known.pop(unit, 0.0), known.pop(h + unit, 0.0)
        leaky = leaky and not known
    lines, done = [], 0
    if leaky:
        done = one.units
        new = f"w[{h}U + i]" if (leak == 1.0).all() else f"({writer.table('leak', leak)}[i] * w[{h}U + i])"
        old = f"({writer.table('keep', keep)}[i] * w[i]) + " if keep.any() else ""
        lines += [f"for (i = 0U; i < {one.units}U; i++) {{", f"    s[i] = {old}{new};", "}"]
    for state, (columns, values) in enumerate(rows[done:], done):
        lines.append(f"s[{state}] = {summed(writer.row(f'next_{state}', columns, values), writer)};")
    return lines


def start_statements(writer: Writer, one: Equations) -> list[str]:
    """The state s[] at rest, from w with u and y in their places."""
    lines = []
    shift = one.states  # u and y follow each other in w
    for state, (columns, values) in enumerate(rows_of(one.at_rest)):
        if len(columns):
            lines.append(f"s[{state}] = {summed(writer.row(f'rest_{state}', columns + shift, values))};")
    return [f"for (i = 0U; i < {one.states}U; i++) {{", f"    s[i] = {writer.number(0.0)};", "}", *lines]


def settled_statements(writer: Writer, one: Equations) -> list[str]:
    """What the units add to the state at rest."""
    first = one.parts[3].start
    return [
        f"s[{state}] += {summed(writer.row(f'settled_{state}', columns + first, values))};"
        for state, (columns, values) in enumerate(rows_of(one.settled))
        if len(columns)
    ]


def summed(terms: list[str], writer: Writer | None = None) -> str:
    """Terms with plus signs, four a line."""
    if not terms and writer is not None:
        return writer.number(0.0)
    lines = [" + ".join(terms[start : start + 4]) for start in range(0, len(terms), 4)]
    return "\n        + ".join(lines)
