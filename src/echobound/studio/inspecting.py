"""Inspecting: what is said about a data file before anything is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np

from echobound.arrays import Vector
from echobound.studio.tables import Tables

MISSING = (("", "refuse them"), ("split", "split the record there"))


def inspected(tables: Tables, name: str, sheet: str | None) -> dict[str, Any]:
    """Columns with their ranges and missing values, and what they probably are."""
    columns = tables.columns(name, sheet)
    found: list[dict[str, Any]] = []
    for title, values, missing in zip(columns.names, columns.values, columns.missing, strict=True):
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (None, None)
        role = "time" if not found and _counts_up(values) else None
        found.append({"name": title, "unit": "", "low": low, "high": high, "missing": missing, "role": role})
    signals = [one for one in found if one["role"] is None and one["low"] is not None]
    for one in signals:
        one["role"] = "output" if one is signals[-1] and len(signals) > 1 else "input"
    return {
        "name": name,
        "rows": columns.length,
        "columns": found,
        "others": columns.others,
        "notes": ["the roles of the columns are a guess: check them"] if signals else [],
        "sampling_time": None,
        "missing_choices": MISSING,
    }


def _counts_up(values: Vector) -> bool:
    return len(values) > 2 and bool(np.all(np.diff(values) > 0))
