"""Dates: time stamps as people write them, in seconds.

ISO 8601 (with or without a zone), dates as written in Europe (31.12.2024, 31/12/2024) and in America (12/31/2024),
dates with the month in letters (31-Dec-2024), and times of day alone (12:30:00). Whether 05/04/2024 is in April or in
May, a day beyond the twelfth somewhere in the column decides; if there is none, the user is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Literal

import numpy as np

from echobound.arrays import Vector
from echobound.errors import DataError

DATES = ("european", "american")
DAY = 86400.0
Order = Literal["european", "american"]
_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS = {m: i for i, m in enumerate(_NAMES.split(), start=1)}
_NUMERIC = re.compile(r"(\d{1,4})([/.-])(\d{1,2})\2(\d{2,4})(?:(?:\s+|T|,\s*)(\S.*))?")
_NAMED = re.compile(r"(\d{1,2})[-. ]+([A-Za-z]{3,9})[-. ,]+(\d{2,4})(?:(?:\s+|T|,\s*)(\S.*))?")
_NAMED_FIRST = re.compile(r"([A-Za-z]{3,9})[ .]+(\d{1,2}),?\s+(\d{4})(?:[\s,]+(\S.*))?")
_CLOCK = re.compile(
    r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?\s*([AaPp]\.?[Mm]\.?)?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
)


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time stamp: microseconds since 1970, or since midnight for a time of day alone."""

    micros: int  # whole numbers, since a double cannot tell 0.1 us apart in this century
    dated: bool
    zoned: bool


def stamp(cell: str, order: Order = "european") -> Stamp | None:
    """Parse a time stamp; None if the cell is none. ``20240501`` is a number.

    Examples
    --------
    >>> stamp("31.12.2024 13:00:00") == stamp("12/31/2024 1:00 PM", "american")
    True
    >>> stamp("2024-07-01T14:00:00+02:00") == stamp("2024-07-01 12:00:00 UTC")
    True
    >>> stamp("20240501"), stamp("12:30").dated
    (None, False)
    """
    cell = cell.strip()
    if "-" not in cell[1:] and ":" not in cell and "/" not in cell and cell.count(".") < 2 and " " not in cell:
        return None
    if cell[4:5] == "-":
        try:
            return _of_datetime(datetime.fromisoformat(cell))
        except ValueError:
            pass  # such as 2024-05-01 12:00:00 UTC
    date = _date(cell, order)
    if date is None:
        return _of_clock(cell, None)
    day, rest = date
    return _of_datetime(day) if rest is None else _of_clock(rest, day)


def is_stamp(cell: str) -> bool:
    """Whether a cell is a time stamp, in whatever order its day and month are."""
    return stamp(cell) is not None or stamp(cell, "american") is not None


def _date(cell: str, order: Order) -> tuple[datetime, str | None] | None:
    """The day that a cell begins with, and the text behind it; None if it does not begin with one."""
    found: re.Match[str] | None
    try:
        if found := _NUMERIC.fullmatch(cell):
            first, mark, second, third, rest = found.groups()
            if len(first) == 4:
                return datetime(int(first), int(second), int(third)), rest
            day, month = (first, second) if order == "european" or mark == "." else (second, first)
            return datetime(_year(third), int(month), int(day)), rest
        if found := _NAMED.fullmatch(cell):
            name, day, year, rest = found[2], found[1], found[3], found[4]
        elif found := _NAMED_FIRST.fullmatch(cell):
            name, day, year, rest = found[1], found[2], found[3], found[4]
        else:
            return None
        return datetime(_year(year), _MONTHS[name[:3].lower()], int(day)), rest
    except (ValueError, KeyError):
        return None


def _year(digits: str) -> int:
    return int(digits) if len(digits) > 2 else int(digits) + (2000 if int(digits) < 70 else 1900)


def _of_clock(text: str, day: datetime | None) -> Stamp | None:
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    hour, minute, second, fraction, half, zone = found.groups()
    hours = int(hour) % 12 + 12 * (half[0] in "pP") if half else int(hour)
    if hours > 23 or int(minute) > 59 or int(second or 0) > 60:
        return None
    since = 1_000_000 * (3600 * hours + 60 * int(minute) + int(second or 0)) + int(f"{fraction or 0:0<6}"[:6])
    if day is None:
        return Stamp(since, dated=False, zoned=False)
    of_day = _of_datetime(day.replace(tzinfo=_zone(zone)) if zone is not None else day)
    return Stamp(of_day.micros + since, True, of_day.zoned)


def _zone(text: str) -> timezone:
    if text in ("Z", "UTC", "GMT"):
        return UTC
    sign, digits = (-1 if text[0] == "-" else 1), text[1:].replace(":", "")
    return timezone(sign * timedelta(hours=int(digits[:2]), minutes=int(digits[2:])))


def _of_datetime(found: datetime) -> Stamp:
    zoned = found.tzinfo is not None
    since = (found if zoned else found.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return Stamp(since // timedelta(microseconds=1), True, zoned)


def order_of(cells: Iterable[str], label: str, given: str | None = None) -> Order:
    """In what order the days and months of a column are written, by the first cell that shows it.

    Where every cell could be read both ways, and it makes a difference, the column is refused.

    Examples
    --------
    >>> order_of(["05/04/2024", "13/04/2024"], "time"), order_of(["05/04/2024", "05/13/2024"], "time")
    ('european', 'american')
    >>> order_of(["05/04/2024 12:00", "05/04/2024 13:00"], "time")  # one day: both give the same steps
    'european'
    >>> order_of(["05/04/2024", "06/04/2024"], "time")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    echobound.errors.DataError: time holds dates such as 05/04/2024, which is in April in Europe and in May in ...
    """
    if given is not None:
        if given not in DATES:
            raise DataError(f"dates must be one of {', '.join(DATES)}, got {given!r}: 31/12/2024 is european")
        return "european" if given == "european" else "american"
    seen: dict[str, tuple[int, int]] = {}  # dates that could be both, with their first two numbers
    for cell in cells:
        found = _NUMERIC.fullmatch(cell.strip())
        if found is None or len(found[1]) == 4:
            continue
        if found[2] == "." or int(found[1]) > 12:
            return "european"
        if int(found[3]) > 12:
            return "american"
        seen.setdefault(found[0][: found.end(4)], (int(found[1]), int(found[3])))
    example = next((text for text, (first, second) in seen.items() if first != second), None)
    if len(seen) > 1 and example is not None:
        months = [datetime(2000, month, 1).strftime("%B") for month in reversed(seen[example])]
        raise DataError(
            f"{label} holds dates such as {example}, which is in {months[0]} in Europe and in {months[1]} in America,"
            " and no day beyond the twelfth tells which: give dates='european' or 'american' (--dates european, --dates"
            " american)"
        )
    return "european"


def over_midnight(times: Vector) -> Vector:
    """Times of day as seconds that go on over midnight.

    Examples
    --------
    >>> over_midnight(np.array([86390.0, 86395.0, 0.0, 5.0])).tolist()
    [86390.0, 86395.0, 86400.0, 86405.0]
    """
    back = np.diff(times, prepend=times[:1]) < -DAY / 2
    return np.asarray(times + DAY * np.cumsum(back))
