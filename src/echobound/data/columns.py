"""Columns: which ones are meant by names, numbers and ranges of numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from echobound.data.layout import one_line
from echobound.data.units import labels
from echobound.errors import DataError

Column = str | int  # by name, or by number from 1
RANGE = re.compile(r"(\d+)\s*(?:-|–|\.\.|:)\s*(\d+)")


@dataclass(frozen=True)
class Names:
    """The names of a table's columns, and what they stand for.

    Examples
    --------
    >>> names = Names("plant.csv", ("t [s]", "flow, acid (ml/s)", "load", "pH"))
    >>> names.positions("2-4"), names.positions(["flow", "acid", "load"]), names.position("t")
    ([1, 2, 3], [1, 2], 0)
    """

    source: str
    columns: tuple[str, ...]
    several: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # names of matrices
    others: Mapping[str, str] = field(default_factory=dict)  # names of what cannot be a column, and what it is
    kind: str = "column"

    @cached_property
    def labels(self) -> list[tuple[str, str]]:
        """Names and units, apart where a unit stands in brackets behind a name."""
        return labels(self.columns)

    def positions(self, columns: Column | Iterable[Column]) -> list[int]:
        """Return the positions of columns; a matrix, and a range such as ``2-4``, has several.

        What was split at commas is put together again where a name has commas.
        """
        given = [columns] if isinstance(columns, str | int) else list(columns)
        return self._segmented(given) or [self.position(column) for column in given]

    def _segmented(self, given: Sequence[Column]) -> list[int]:
        """The positions of all that is given, consecutive words taken together where needed; none if it cannot be."""
        if not given:
            return []
        for count in range(1, len(given) + 1):
            parts = given[:count]
            if count > 1 and not all(isinstance(part, str) for part in parts):
                break
            found = self._found(parts[0] if count == 1 else ",".join(str(part) for part in parts))
            if found is None:
                continue
            rest = self._segmented(given[count:])
            if rest or count == len(given):
                return [*found, *rest]
        return []

    def _found(self, column: Column) -> list[int] | None:
        """The positions of one name, number or range; None if there is no such column, or several."""
        if isinstance(column, str) and column in self.several:
            return list(self.several[column])
        same = self._named(column)
        if same:
            return same if len(same) == 1 else None
        text = str(column).strip()
        if text.isdecimal() and 1 <= int(text) <= len(self.columns):
            return [int(text) - 1]
        between = RANGE.fullmatch(text)
        if between and 1 <= int(between[1]) <= int(between[2]) <= len(self.columns):
            return list(range(int(between[1]) - 1, int(between[2])))
        return None

    def _named(self, column: Column) -> list[int]:
        """The columns of a name, with or without the unit behind it; blanks behind commas do not matter."""
        if isinstance(column, int):
            return []
        wanted = _spaced(column)
        exact = [i for i, known in enumerate(self.columns) if _spaced(known) == wanted]
        return exact or [i for i, (name, _) in enumerate(self.labels) if _spaced(name) == wanted]

    def position(self, column: Column) -> int:
        """Return the position of one column."""
        name, same = one_line(str(column)), self._named(column)
        if len(same) > 1:
            numbers = " and ".join(str(i + 1) for i in same)
            raise DataError(
                f"{self.source} has several {self.kind}s named {name!r}: say which by its number, {numbers}"
            )
        if not same and name in self.others:
            raise DataError(
                f"{self.kind} {name!r} of {self.source} is {self.others[name]}: one real number per sample is needed"
            )
        found = self._found(column) or []
        if len(found) > 1:
            raise DataError(f"{name!r} stands for {len(found)} {self.kind}s of {self.source}: one is needed here")
        if found:
            return found[0]
        raise DataError(f"there is no {self.kind} {name!r}: {self.available()}; give a name or a number from 1")

    def available(self) -> str:
        """What there is, in words."""
        shown = ", ".join(self.columns[:30])
        more = f" and {len(self.columns) - 30} more" if len(self.columns) > 30 else ""
        text = f"{self.source} has the {self.kind}s {shown}{more}" if self.columns else f"{self.source} has none"
        if self.others:
            unusable = ", ".join(f"{name} ({what})" for name, what in list(self.others.items())[:10])
            text += f"; not usable as a signal: {unusable}"
        return text


def _spaced(name: str) -> str:
    return re.sub(r"\s*,\s*", ",", one_line(name))
