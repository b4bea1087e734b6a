"""Rows: ranges of them, as they are typed, by the numbers that rows have in the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from echobound.errors import DataError

Ranges = tuple[tuple[int, int | None], ...]  # first and last row, both included; None is the end of the file
ROLES = ("training", "validation", "test")
_RANGE = re.compile(r"(\d+)\s*(?:-|–|\.\.|:)\s*(\d*)")
SAMPLE = "--rows training=2-701,1102-1701,validation=702-1101"


def parse_ranges(text: str) -> Ranges:
    """Read ranges of rows such as ``2-701,1102-`` (to the end).

    Examples
    --------
    >>> parse_ranges("2-701, 1102-")
    ((2, 701), (1102, None))
    """
    return parse_roles(text).get("", ())


def parse_roles(text: str) -> dict[str, Ranges]:
    """Read ranges of rows by role: ``training=2-701,1102-1701,validation=702-1101``; without a role under ``""``.

    Examples
    --------
    >>> parse_roles("training=2-701,1102-1701,test=702-1101")
    {'training': ((2, 701), (1102, 1701)), 'test': ((702, 1101),)}
    """
    found: dict[str, list[tuple[int, int | None]]] = {}
    role = ""
    for word in re.split(r"[,;\s]+", text.strip()):
        if "=" in word:
            role, word = word.split("=", 1)
            if role not in ROLES:
                raise DataError(f"rows can be given for {', '.join(ROLES)}, not for {role!r}: as in {SAMPLE}")
        match = _RANGE.fullmatch(word)
        first, last = (int(match[1]), int(match[2]) if match[2] else None) if match else (0, None)
        if first < 1 or (last is not None and last < first):
            raise DataError(f"rows must be ranges of row numbers from 1, first to last, got {word!r}: as in {SAMPLE}")
        found.setdefault(role, []).append((first, last))
    if "" in found and len(found) > 1:
        raise DataError(f"say for all ranges of rows what they are for, or for none of them: as in {SAMPLE}")
    used = sorted((first, last) for ranges in found.values() for first, last in ranges)
    for (_, last), (following, _) in pairwise(used):
        if last is None or following <= last:
            raise DataError(f"row {following} is in two of the ranges {text!r}: each row can be used once")
    return {role: tuple(ranges) for role, ranges in found.items()}


def bounds_of(ranges: Ranges, samples: int, row_of: Callable[[int], int], source: str) -> list[tuple[int, int]]:
    """Return the first sample of each range and the one after its last; ranges must hold samples."""
    if not ranges:
        return [(0, samples)]
    bounds = []
    for first, last in ranges:
        start = _at_least(first, samples, row_of)
        stop = samples if last is None else _at_least(last + 1, samples, row_of)
        if start >= stop:
            raise DataError(
                f"{source} has no samples in rows {first} to {'its end' if last is None else last}: give rows that it"
                " has, counted from its first line, where a header is row 1"
            )
        bounds.append((start, stop))
    return bounds


def _at_least(row: int, samples: int, row_of: Callable[[int], int]) -> int:
    """The first sample in this row or after it, by bisection."""
    low, high = 0, samples
    while low < high:
        middle = (low + high) // 2
        if row_of(middle) < row:
            low = middle + 1
        else:
            high = middle
    return low


def inside(ranges: Sequence[tuple[int, int | None]], row: int) -> bool:
    """Whether a row is in one of the ranges."""
    return any(first <= row and (last is None or row <= last) for first, last in ranges)
