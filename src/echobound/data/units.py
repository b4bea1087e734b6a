"""Units as they stand in files: in a row of their own under the names, or in brackets behind a name."""

from __future__ import annotations

import re
from collections.abc import Sequence

SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0}
SECONDS |= {"second": 1.0, "seconds": 1.0, "min": 60.0, "minutes": 60.0, "h": 3600.0, "hr": 3600.0, "hours": 3600.0}
SECONDS |= {"d": 86400.0, "day": 86400.0, "days": 86400.0}
"""How many seconds a unit of time is."""
_UNITS = (
    "m g t K C F V A W N J Pa Hz bar psi l L mol rad deg ° °C °F ℃ degC degF rpm 1/min Nm Ω ohm Ohm % ‰ ppm ppb pH - –"
    " 1 S T H Wb lm lx cd Bq kgf lb lbs in inch inches ft gal gpm Mol M eV VA var dB count counts cts u.a. a.u. pu p.u."
    " n/a none unitless Volt Volts Ampere Amps Amp Watt Kelvin Celsius mbar"
)
PLAIN = frozenset(SECONDS) | frozenset(_UNITS.split())
PREFIXED = re.compile(r"[kMGTmµμunpcdh](?:m|g|s|K|V|A|W|N|J|Pa|Hz|bar|l|L|mol|rad|Ω|ohm|Ohm|Nm|Wh|VA|T|S|H|F|eV)")
BRACKETED = re.compile(r"(?P<name>.*\S)\s*(?:\[(?P<square>[^\[\]]*)\]|\((?P<round>[^()]*)\))")


def is_unit(text: str) -> bool:
    """Whether a text is a unit, alone or in brackets, or a product or quotient of units.

    Examples
    --------
    >>> [is_unit(text) for text in ("V", "[l/min]", "m3/h", "kg m^2/s", "degC", "%", "valve", "2")]
    [True, True, True, True, True, True, False, False]
    """
    bare = text.strip()
    if len(bare) > 1 and (bare[0], bare[-1]) in (("[", "]"), ("(", ")")):
        bare = bare[1:-1].strip()
    if bare in PLAIN:
        return True
    parts = [part for part in re.split(r"[/*·⋅ ]+|\^?[-⁻]?[0-9²³¹]+", bare) if part]
    return bool(parts) and all(part in PLAIN or PREFIXED.fullmatch(part) for part in parts)


def bare_unit(text: str) -> str:
    """A unit without the brackets around it; empty for a dash, which says that there is none."""
    bare = text.strip()
    if len(bare) > 1 and (bare[0], bare[-1]) in (("[", "]"), ("(", ")")):
        bare = bare[1:-1].strip()
    return "" if bare in ("-", "–", "n/a", "none", "unitless") else bare


def are_units(cells: Sequence[str]) -> bool:
    """Whether a row of text is one of units: most of its cells are, or all stand in square brackets."""
    filled = [cell for cell in cells if cell]
    bracketed = all(cell.startswith("[") and cell.endswith("]") for cell in filled)
    return bool(filled) and (bracketed or 2 * sum(map(is_unit, filled)) > len(filled))


def labels(columns: Sequence[str]) -> list[tuple[str, str]]:
    """Names without the units in brackets behind them, and these; with them where two would become the same.

    Columns of one name get their numbers.

    Examples
    --------
    >>> labels(["t [s]", "flow (l/min)", "T (K)", "T (degC)", "x (1)"])
    [('t', 's'), ('flow', 'l/min'), ('T (K)', 'K'), ('T (degC)', 'degC'), ('x (1)', '')]
    """
    split = []
    for column in columns:
        found = BRACKETED.fullmatch(column)
        unit = (found["square"] or found["round"] or "") if found else ""
        known = found is not None and is_unit(unit) and unit.strip() != "1"
        split.append((found["name"], bare_unit(unit)) if known and found else (column, ""))
    bare, made = [name for name, _ in split], list[tuple[str, str]]()
    for number, ((name, unit), column) in enumerate(zip(split, columns, strict=True), start=1):
        whole = (
            column if columns.count(column) == 1 else f"{column} (column {number})"
        )  # a record needs different names
        made.append((name if bare.count(name) == 1 else whole, unit))
    return made
