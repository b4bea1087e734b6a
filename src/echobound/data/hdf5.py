"""Variables of MATLAB 7.3 files, which are HDF5; a process of its own reads them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from echobound.arrays import Vector
from echobound.data import hdf5_child
from echobound.errors import MissingExtra

SECONDS = 60.0  # to list what is in a file
LISTED = 1 << 26  # bytes of such a list


def hdf5_variables(path: Path) -> list[dict[str, Any]]:
    """What is in a file: ``name``, ``shape``, ``what`` or ``class``, and ``dataset`` where numbers are stored."""
    try:
        import h5py  # noqa: F401 (the process that reads needs it)
    except ImportError:
        raise MissingExtra("reading MATLAB 7.3 files", extra="files") from None
    with _child(path) as child:
        try:
            output, error = child.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise ValueError(f"listing its content takes longer than {SECONDS:g} s") from None
        _require_success(child, error)
    return [json.loads(line) for line in output[:LISTED].splitlines()]


def fill_columns(path: Path, dataset: str, wanted: Sequence[tuple[int, Vector]]) -> None:
    """Write columns of a dataset into arrays."""
    with _child(path, dataset, *(str(column) for column, _ in wanted)) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        for _, into in wanted:
            for start in range(0, len(into), hdf5_child.CHUNK):
                part = into[start : start + hdf5_child.CHUNK]
                raw = child.stdout.read(8 * len(part))
                if len(raw) < 8 * len(part):
                    child.wait()
                    _require_success(child, child.stderr.read())
                    raise ValueError("it holds fewer numbers than it declares")
                part[:] = np.frombuffer(raw, dtype="<f8")


@contextmanager
def _child(*arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """The process that reads; it ends with us, however we leave."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # the packages that we have
    command = [sys.executable, hdf5_child.__file__, *map(str, arguments)]
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, **pipes) as child:
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()


def _require_success(child: subprocess.Popen[bytes], error: bytes) -> None:
    if child.returncode < 0:
        raise ValueError("the library that reads such files crashed on it")
    if child.returncode:
        raise ValueError(" ".join(error.decode(errors="replace").split())[-200:] or "no reason was given")
