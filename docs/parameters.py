"""An extension for the Python reference: `low, high` on one line are two parameters, each with its own type.

The parser of NumPy docstrings would give all names on such a line the type and the default of the first.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

HEADING = "\nParameters\n----------\n"
SEVERAL = re.compile(r"^(?P<names>\w+(?:, \w+)+)\n(?P<text>(?:    .*\n|\n(?=    ))+)", re.MULTILINE)


class Parameters(griffe.Extension):
    """Writes parameters that share a line on separate lines, with the same text."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of an object; called for each one."""
        if obj.docstring is not None and HEADING in obj.docstring.value:
            obj.docstring.value = apart(obj.docstring.value)


def apart(docstring: str) -> str:
    """The docstring with one line for each parameter."""
    head, mark, tail = docstring.partition(HEADING)
    listed, *rest = re.split(r"(?=\n\w+\n-{3,}\n)", tail, maxsplit=1)
    return head + mark + SEVERAL.sub(_one_each, listed if rest else listed + "\n") + "".join(rest)


def _one_each(found: re.Match[str]) -> str:
    return "".join(f"{name}\n{found['text']}" for name in found["names"].split(", "))
