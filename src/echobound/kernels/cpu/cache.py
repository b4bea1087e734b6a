"""Where compiled code is kept between processes.

Numba recompiles a function when its own file changes, but not when a function that it calls in another file does. So
the cache is in a folder named after the content of all sources here: any change leads to a new folder.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numba

HERE = Path(__file__).parent
NAME = "numba-"


@contextmanager
def cached_beside_sources() -> Iterator[None]:
    """Cache the code of functions that are defined inside beside these sources, and remove what is outdated.

    If the folder cannot be written, Numba chooses one.
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
