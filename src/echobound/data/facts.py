"""Facts: what is in each column of a table, with a small picture of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from echobound.arrays import Vector
from echobound.data.guessing import is_counter
from echobound.data.missing import gaps_of
from echobound.data.table import Table

BINS = 60
"""Points of the sketch of a column."""


@dataclass(frozen=True)
class ColumnFacts:
    """What is in a column.

    Parameters
    ----------
    number, name, unit
        Its number from 1, its name without the unit, and the unit.
    kind
        ``"number"``, ``"time"``, ``"counter"`` (of samples), ``"constant"``, ``"text"`` or ``"empty"``.
    missing, gaps, longest_gap
        Values that are missing, in how many gaps, and the length of the longest.
    least, greatest, mean, deviation
        Of its numbers.
    held
        Share of the samples that repeat the one before.
    lows, highs, means
        A small picture: least, greatest and mean value in each of up to 60 equal parts; None where all are missing.
    """

    number: int
    name: str
    unit: str
    kind: str
    missing: int = 0
    gaps: int = 0
    longest_gap: int = 0
    least: float | None = None
    greatest: float | None = None
    mean: float | None = None
    deviation: float | None = None
    held: float | None = None
    lows: tuple[float | None, ...] = ()
    highs: tuple[float | None, ...] = ()
    means: tuple[float | None, ...] = ()


def facts_of(
    i: int, name: str, unit: str, values: Vector | None, table: Table, is_time: bool, text: bool
) -> ColumnFacts:
    """The facts of column `i`, whose values are NaN where there is no number; None if it cannot be loaded."""
    if is_time or values is None:
        finite = np.zeros(0) if values is None else values[np.isfinite(values)]
        ends = (float(finite.min()), float(finite.max())) if len(finite) else (None, None)
        return ColumnFacts(i + 1, name, unit, "time" if is_time else "text", least=ends[0], greatest=ends[1])
    good = values[np.isfinite(values)]
    if not len(good):
        return ColumnFacts(i + 1, name, unit, "text" if text else "empty", missing=len(values))
    gaps = gaps_of(values)
    kind = "constant" if (good == good[0]).all() and len(good) > 1 else "number"
    kind = (
        "counter" if is_counter(name, good, table.header) else "text" if text and 2 * len(good) < len(values) else kind
    )
    return ColumnFacts(
        i + 1,
        name,
        unit,
        kind,
        len(values) - len(good),
        len(gaps),
        max((b - a for a, b in gaps), default=0),
        float(good.min()),
        float(good.max()),
        float(good.mean()),
        float(good.std()),
        float(np.mean(np.diff(good) == 0)) if len(good) > 1 else 0.0,
        *_sketch(values),
    )


def _sketch(values: Vector) -> list[tuple[float | None, ...]]:
    parts = [part[np.isfinite(part)] for part in np.array_split(values, min(BINS, len(values)))]
    return [tuple(float(end(part)) if len(part) else None for part in parts) for end in (np.min, np.max, np.mean)]


def about_missing(facts: list[ColumnFacts], parts: int) -> list[str]:
    """What is to be said about missing values; `parts` is the number of complete parts."""
    gappy = [f for f in facts if f.missing and f.kind == "number"]
    if not gappy:
        return []
    longest = max(f.longest_gap for f in gappy)
    named = ", ".join(f"{f.name} {f.missing}" for f in gappy[:6])
    how = f"--missing interpolate:{longest} fills them, " if longest <= 20 else ""
    split = f"--missing split makes {parts} experiment{'s' * (parts != 1)}"
    return [f"values are missing ({named}), at most {longest} in a row: {how}{split}"]
