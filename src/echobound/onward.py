"""Onward: what objects do by rooms to their right, known here by name and imported on first use.

So a record has a `plot` without knowing a plotting library, and a model an `export` without knowing a target.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
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


def on_first_use(package: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose modules are imported when one of their names is first used.

    Whoever draws networks needs neither models in use nor what reads files, and should not wait for them.

    Examples
    --------
    >>> find = on_first_use("echobound", {"files": ("digest",)})
    >>> find("digest").__module__
    'echobound.files'
    """
    modules = {name: module for module, names in homes.items() for name in names}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
