"""Onward: what objects do by rooms to their right, known here by name and imported on first use.

So a record has a `plot` without knowing a plotting library, and a model an `export` without knowing a target.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

DONE_BY = {
    "Record.plot": ("echobound.report.figures", "record_figure"),
    "Exportable.export": ("echobound.export.registry", "export_model"),
}
"""Who does what: module and function, by class and method."""


def onward(method: str, *arguments: Any, **options: Any) -> Any:
    """Call what does a method; where that is, is imported now.

    Examples
    --------
    >>> from echobound import Record
    >>> len(onward("Record.plot", Record([1.0, 2.0], [3.0, 4.0], 1.0)).axes)
    2
    """
    module, function = DONE_BY[method]
    return getattr(import_module(module), function)(*arguments, **options)
