"""What is on disk: the run folder, its ledger and lock, where it came from, and what follows from it.

The public names are imported when they are first used: whoever only asks who writes in a folder waits for nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echobound.runs.folder import RunFolder
    from echobound.runs.ledger import Ledger, rows_digest
    from echobound.runs.progress import Progress

__all__ = ["Ledger", "Progress", "RunFolder", "rows_digest"]
_HOMES = {"Ledger": "ledger", "Progress": "progress", "RunFolder": "folder", "rows_digest": "ledger"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
