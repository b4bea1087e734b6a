"""Provenance: where, when and with what a run was computed; kept with a certificate, outside its digest."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from echobound.errors import DamagedFile, RunError
from echobound.typed import shortened

COMPARED = ("echobound", "numpy")  # what rows depend on, and what data travel by
PACKAGES = ("echobound", "numpy", "scipy", "numba")


@dataclass(frozen=True, slots=True)
class Place:
    """A machine and the versions on it: rows from two equal places are the same bit for bit."""

    host: str
    machine: str
    processor: str
    python: str
    echobound: str
    numpy: str


@cache
def here() -> Place:
    """The place of this process."""
    machine, python = f"{platform.system()} {platform.machine()}", platform.python_version()
    return Place(platform.node(), machine, _processor(), python, _version("echobound"), _version("numpy"))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # run from its sources
        return "unknown"


def _processor() -> str:
    """Model of the processor; BLAS chooses its code by it, so that kinds of machines differ in the last bits."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def require_same_versions(host: str, theirs: Mapping[str, str]) -> None:
    """Refuse a worker whose versions differ from those here: its rows might too.

    Examples
    --------
    >>> require_same_versions("node 7", {"echobound": here().echobound, "numpy": "1.0"})
    Traceback (most recent call last):
        ...
    echobound.errors.RunError: the worker on node 7 has numpy 1.0, but here it is ...
    """
    for name in COMPARED:
        ours = getattr(here(), name)
        if theirs[name] != ours:
            raise RunError(
                f"the worker on {host} has {name} {theirs[name]}, but here it is {ours}: install the same version on"
                " both, and start again to resume"
            )


PARTS: dict[str, type] = {"versions": Mapping, "ran": list}  # of a provenance, beside texts


def require_provenance(content: Any, path: Path) -> None:
    """Refuse what a certificate says of its origin if it is not of the kinds that `provenance` returns.

    Nothing is derived from it, but it is printed.
    """
    for name, kind in {**dict.fromkeys(("finished", "host", "machine", "python", "kernel"), str), **PARTS}.items():
        if name in content and not isinstance(content[name], kind):
            raise DamagedFile(path, f"provenance.{name}", f"{shortened(repr(content[name]))} was found there")
    if not all(isinstance(one, Mapping) for one in content.get("ran", [])):
        raise DamagedFile(path, "provenance.ran", "objects were expected")


def provenance(**more: Any) -> dict[str, Any]:
    """Host, time and versions, and whatever else is given.

    Examples
    --------
    >>> sorted(provenance(kernel="cpu"))
    ['finished', 'host', 'kernel', 'machine', 'python', 'versions']
    """
    place = {name: getattr(here(), name) for name in ("host", "machine", "python")}
    versions = {name: _version(name) for name in PACKAGES}
    return {"finished": datetime.now(UTC).isoformat(timespec="seconds"), **place, "versions": versions, **more}
