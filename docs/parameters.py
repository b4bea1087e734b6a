"""How the Python reference reads our docstrings: `low, high` on one line are two parameters, each with its own type.

The parser of NumPy docstrings gives all names of such a line the type and the default of the first.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

HEADING = "\nParameters\n----------\n"
SEVERAL = re.compile(r"^(?P<names>\w+(?:, \w+)+)\n(?P<text>(?:    .*\n|\n(?=    ))+)", re.MULTILINE)


class Parameters(griffe.Extension):
    """Write each of several parameters on a line of its own, with the same text."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each object, once its docstring is known."""
        if obj.docstring is not None and HEADING in obj.docstring.value:
            obj.docstring.value = apart(obj.docstring.value)


def apart(docstring: str) -> str:
    """The docstring with every line of several parameters repeated, a name each."""
    head, mark, tail = docstring.partition(HEADING)
    listed, *rest = re.split(r"(?=\n\w+\n-{3,}\n)", tail, maxsplit=1)
    return head + mark + SEVERAL.sub(_one_each, listed if rest else listed + "\n") + "".join(rest)


def _one_each(found: re.Match[str]) -> str:
    return "".join(f"{name}\n{found['text']}" for name in found["names"].split(", "))
