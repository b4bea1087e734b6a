"""Displays: how objects look in a session, as a line and as a small table in a notebook."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any


def html_table(title: str, facts: Mapping[str, Any]) -> str:
    """A small table for notebooks, with everything escaped.

    Examples
    --------
    >>> html_table("Record", {"samples": 5, "inputs": "a<b"})
    '<table><caption>Record</caption><tr><th>samples</th><td>5</td></tr><tr><th>inputs</th><td>a&lt;b</td></tr></table>'
    """
    rows = "".join(f"<tr><th>{html.escape(n)}</th><td>{html.escape(str(v))}</td></tr>" for n, v in facts.items())
    return f"<table><caption>{html.escape(title)}</caption>{rows}</table>"


def one_line(title: str, facts: Mapping[str, Any]) -> str:
    """The same on a line.

    Examples
    --------
    >>> one_line("Record", {"samples": 5, "inputs": "u1"})
    '<Record: samples 5, inputs u1>'
    """
    return f"<{title}: {', '.join(f'{name} {value}' for name, value in facts.items())}>"


def few(names: tuple[str, ...] | list[str], most: int = 4) -> str:
    """Names, the first few of them.

    Examples
    --------
    >>> few(["a", "b", "c", "d", "e", "f"])
    'a, b, c, d and 2 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
