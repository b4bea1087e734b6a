"""Where compiled code is kept between processes.

Numba compiles a function again when its own file changes, but not when one that it calls in another file does. So the
cache lies in a folder named after all sources of this room: after any change it is a new one.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numba

__all__ = ["cached_beside_sources"]

HERE = Path(__file__).parent
NAME = "numba-"


@contextmanager
def cached_beside_sources() -> Iterator[None]:
    """Keep code that is compiled by functions defined inside in the folder of these sources; others are removed.

    Where that folder cannot be written, Numba's own choice stands.
    """
    sources = hashlib.sha256()
    for path in sorted(HERE.glob("*.py")):
        sources.update(path.read_bytes())
    folder = HERE / "__pycache__" / f"{NAME}{sources.hexdigest()[:16]}"
    before = numba.config.CACHE_DIR
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for other in folder.parent.glob(f"{NAME}*"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
        numba.config.CACHE_DIR = str(folder)
    except OSError:
        pass
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before
