"""Where, when and with what a run was computed: kept beside a certificate, outside its identity."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

__all__ = ["provenance"]

PACKAGES = ("echobound", "numpy", "scipy", "numba")


def provenance(**more: Any) -> dict[str, Any]:
    """Host, time and versions, and whatever else is given.

    Examples
    --------
    >>> sorted(provenance(kernel="cpu"))
    ['finished', 'host', 'kernel', 'machine', 'python', 'versions']
    """
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        **more,
    }
