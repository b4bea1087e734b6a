"""Missing values: refused, filled where gaps are short, or a reason to split a record."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from echobound.arrays import Signal, Vector
from echobound.errors import DataError

_FILL = re.compile(r"interpolate:(\d+)(,split)?")


@dataclass(frozen=True)
class Missing:
    """What is done about missing values.

    Examples
    --------
    >>> Missing.parse("interpolate:3,split")
    Missing(longest=3, split=True)
    """

    longest: int  # missing samples in a row that are filled by a straight line; 0 fills none
    split: bool  # whether longer gaps split a record

    @classmethod
    def parse(cls, text: str) -> Missing:
        """Read ``error``, ``split``, ``interpolate:3`` or ``interpolate:3,split``."""
        found = _FILL.fullmatch(text.replace(" ", ""))
        if found and int(found[1]) > 0:
            return cls(int(found[1]), found[2] is not None)
        if text not in ("error", "split"):
            raise DataError(
                f"missing must be one of error, split, interpolate:3, got {text!r}: refuse missing values, split the"
                " data at them, or fill gaps of at most 3 samples by a straight line (interpolate:3,split splits at"
                " longer ones)"
            )
        return cls(0, text == "split")


def gaps_of(values: Vector) -> list[tuple[int, int]]:
    """Return the bounds (start, stop) of each run of missing values.

    Examples
    --------
    >>> gaps_of(np.array([np.nan, 1.0, np.nan, np.nan, 2.0]))
    [(0, 1), (2, 4)]
    """
    edges = np.flatnonzero(np.diff(~np.isfinite(values), prepend=False, append=False))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]


def fill_short(signal: Signal, longest: int) -> int:
    """Fill gaps of at most `longest` samples within each channel by straight lines, in place; return how many values.

    Gaps at the ends are left: there is nothing to draw a line to.

    Examples
    --------
    >>> signal = np.array([[1.0], [np.nan], [3.0], [np.nan], [np.nan], [6.0], [np.nan]])
    >>> fill_short(signal, 1), signal.ravel().tolist()
    (1, [1.0, 2.0, 3.0, nan, nan, 6.0, nan])
    """
    count = 0
    for channel in signal.T:
        for start, stop in gaps_of(channel):
            if stop - start <= longest and start > 0 and stop < len(channel):
                channel[start:stop] = np.interp(
                    np.arange(start, stop), [start - 1, stop], [channel[start - 1], channel[stop]]
                )
                count += stop - start
    return count
