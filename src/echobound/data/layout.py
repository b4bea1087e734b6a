"""Layout: where the names, the units and the samples of a table of cells are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mode

from echobound.data.dates import is_stamp
from echobound.data.units import are_units, bare_unit
from echobound.errors import DataError

HEAD = 100
"""Rows that are looked at."""
WORDS_FOR_MISSING = frozenset(("", "nan", "na", "n/a", "#n/a", "null", "none", "missing", "?", "-", "--"))


@dataclass(frozen=True)
class Layout:
    """Names and units of the columns, and the row of the first sample."""

    columns: tuple[str, ...]
    units: tuple[str, ...]
    first: int
    header: bool  # whether the columns have names of their own


def one_line(name: str) -> str:
    """Return a name without the line breaks that spreadsheets put into names, which would break messages and axes."""
    return " ".join(name.split())


def is_missing(cell: str) -> bool:
    """Whether a cell is empty, or says that a value is missing."""
    return cell.strip().lower() in WORDS_FOR_MISSING


def is_number(cell: str, comma: bool) -> bool:
    """Whether a cell is a number (NaN and infinities count)."""
    try:
        float(cell.replace(",", ".") if comma else cell)
    except ValueError:
        return False
    return "_" not in cell  # Python's float accepts 1_000, which is not a number in a file


def _kind(cell: str, comma: bool) -> str:
    """``n`` for a number or a time stamp, ``m`` for a missing value, ``t`` for other text."""
    if is_number(cell, comma) or is_stamp(cell):
        return "n"
    return "m" if is_missing(cell) else "t"


def find_layout(
    source: str,
    head: Sequence[tuple[list[str], int]],
    comma: bool,
    header_row: int | None = None,
    named: Sequence[str] | None = None,
    exact: bool = False,
) -> Layout:
    """Find names, units and samples in the first rows of a table, whose cells are stripped.

    Names are in the last row of text before the first row of numbers; a row of units between them gives these, and what
    stands above is a title. A row that mixes text and numbers is neither, unless names stand above it: then it is a
    sample, and is refused when its column is used.

    Parameters
    ----------
    source
        What messages call the table.
    head
        The first rows that are not blank, with their numbers.
    comma
        Whether 1,5 may be a number.
    header_row
        The row that has the names, if it is given; 0 if none has.
    named
        Names from a comment before the table, for columns that have no others.
    exact
        Whether a row of names has exactly as many cells as a row of samples, as where blanks separate cells.

    Examples
    --------
    >>> rows = [["Run 7", "2024"], ["t", "u"], ["s", "V"], ["0", "1.5"], ["1", "2"]]
    >>> find_layout("run.csv", [(row, i) for i, row in enumerate(rows, start=1)], comma=False)
    Layout(columns=('t', 'u'), units=('s', 'V'), first=4, header=True)
    """
    if not head:
        raise DataError(f"{source} is empty: rows of numbers are needed")
    kinds = ["".join(_kind(cell, comma) for cell in cells) for cells, _ in head]
    numeric = _numeric_columns(kinds[len(kinds) // 2 :])
    width = mode([len(cells) for cells, _ in head[len(head) // 2 :]])

    def text(i: int) -> int:
        """How many of the columns of numbers hold text in a row."""
        return sum(kinds[i][c] == "t" for c in numeric if c < len(kinds[i]))

    def is_header(i: int) -> bool:
        fits = len(head[i][0]) == width if exact else True
        return "n" not in kinds[i] and fits and 2 * text(i) >= len(numeric)

    if header_row is not None:
        return _given(source, head, kinds, header_row, width)
    clear = [
        2 * sum(kinds[i][c : c + 1] == "n" for c in numeric) >= len(numeric) > text(i) == 0 for i in range(len(head))
    ]
    first = clear.index(True) if True in clear else 0 if "n" in kinds[0] else 1
    names = [i for i in range(first) if is_header(i)] if numeric else list(range(first))
    if not names:
        mixed = next((i for i in range(first + 1) if i < len(head) and {"n", "t"} <= set(kinds[i])), None)
        if mixed is not None and mixed <= first and not (first > mixed and clear[first] and _only_titles(kinds, first)):
            raise DataError(
                f"row {head[mixed][1]} of {source} mixes text and numbers, so it is neither a header nor a sample: say"
                f" which row has the names (header_row={head[mixed][1]}, --header-row {head[mixed][1]}), or how many"
                f" rows to skip (skip_rows={head[mixed][1]}, --skip-rows {head[mixed][1]}); if each row is a channel,"
                " transpose the table"
            )
        start = head[first if first < len(head) and clear[first] else 0][1]
        return _layout(named if named is not None and len(named) == width else None, (), start, width)
    last, units = names[-1], ()
    following = head[last + 1][1] if last + 1 < len(head) else head[last][1] + 1
    above = [i for i in names if i == last - 1 and len(_filled(head[i][0])) >= len(_filled(head[last][0]))]
    if above and are_units(head[last][0]):
        return _layout(head[above[0]][0], tuple(head[last][0]), following, width)
    return _layout(head[last][0], units, following, width)


def _only_titles(kinds: Sequence[str], first: int) -> bool:
    """Whether rows before the first sample have far fewer cells than it: titles, of which some hold numbers."""
    return all(2 * sum(k != "m" for k in row) <= len(kinds[first]) for row in kinds[:first]) and len(kinds[first]) > 2


def _given(
    source: str, head: Sequence[tuple[list[str], int]], kinds: Sequence[str], header_row: int, width: int
) -> Layout:
    """The layout with the names in a given row."""
    if header_row == 0:
        first = next((row for (_, row), kind in zip(head, kinds, strict=True) if "n" in kind and "t" not in kind), None)
        return _layout(None, (), head[0][1] if first is None else first, width)
    at = next((i for i, (_, row) in enumerate(head) if row == header_row), None)
    if at is None:
        found = ", ".join(str(row) for _, row in head[:8])
        raise DataError(
            f"{source} has no cells in row {header_row} to take names from: its first rows are {found}, ..."
        )
    after = at + 1
    units: tuple[str, ...] = ()
    if after < len(head) and "n" not in kinds[after] and are_units(head[after][0]):
        units, after = tuple(head[after][0]), after + 1
    following = head[after][1] if after < len(head) else head[-1][1] + 1
    return _layout(head[at][0], units, following, width)


def _numeric_columns(kinds: Sequence[str]) -> list[int]:
    """Columns in which most rows hold numbers, by the later rows of the head."""
    width = max(map(len, kinds))
    columns = [[row[c] for row in kinds if c < len(row)] for c in range(width)]
    return [c for c, cells in enumerate(columns) if cells.count("n") > cells.count("t")]


def _filled(cells: Sequence[str]) -> list[str]:
    return [cell for cell in cells if cell]


def _layout(names: Sequence[str] | None, units: Sequence[str], first: int, width: int) -> Layout:
    given = list(names or ())
    count = len(given) if names is not None else width
    columns = tuple(one_line(given[i]) if i < len(given) and given[i] else f"column {i + 1}" for i in range(count))
    padded = tuple(bare_unit(units[i]) if i < len(units) else "" for i in range(count))
    return Layout(columns, padded, first, header=names is not None)
