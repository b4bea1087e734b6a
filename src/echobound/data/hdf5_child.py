"""What reads HDF5, in a process of its own: the library can be crashed by a damaged file, and this process with it.

Usage: python hdf5_child.py PATH prints what is in a file, a JSON object a line; with DATASET COLUMN ... it writes these
columns as doubles. It imports nothing of echobound, so that it starts at once. What it refuses is said on stderr.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

DEEPEST, MOST = 16, 100_000  # groups in groups, and objects in a file
CHUNK = 1 << 16  # samples converted together
PACKED = 1032  # bytes that one byte unpacks to, at most
MEMORY = 2 << 30  # bytes: columns are passed on a chunk at a time


def visit(group: Any, prefix: str, seen: set[int], depth: int = 0) -> Iterator[dict[str, Any]]:
    """Say what is in a group; no object is visited twice, and no link leads out of the file."""
    import h5py

    for key in group:
        name = prefix + key
        if key in ("#refs#", "#subsystem#"):
            continue
        if len(seen) > MOST:
            raise ValueError("it holds more objects than any table")
        if not isinstance(group.get(key, getlink=True), h5py.HardLink):
            yield {"name": name, "shape": [], "what": "a link to another place, which is not followed"}
            continue
        item = group[key]
        place = h5py.h5o.get_info(item.id).addr
        if place in seen:
            continue
        seen.add(place)
        kind = item.attrs.get("MATLAB_class", b"")
        kind = kind.decode(errors="replace") if isinstance(kind, bytes) else str(kind)
        if isinstance(item, h5py.Group):
            if kind in ("", "struct") and depth < DEEPEST:
                yield from visit(item, f"{name}.", seen, depth + 1)
            else:
                yield {"name": name, "shape": [], "class": kind}
        elif isinstance(item, h5py.Dataset):
            yield {"name": name, **described(item, kind)}


def described(item: Any, kind: str) -> dict[str, Any]:
    """Say what a dataset is; one of numbers that are in this file has a ``dataset``."""
    shape = list(reversed(item.shape or ()))  # MATLAB stores column by column, HDF5 row by row
    if item.attrs.get("MATLAB_empty", 0) or item.shape is None:
        return {"shape": [0, 0], "what": "empty"}
    if item.external or item.is_virtual:
        return {"shape": shape, "what": "stored in another file, which is not read"}
    if item.dtype.names:
        return {"shape": shape, "what": "complex numbers"}
    if item.dtype.kind not in "fiub" or kind in ("char", "cell"):
        return {"shape": shape, "class": kind or str(item.dtype)}
    if item.nbytes > PACKED * item.id.get_storage_size() + 4096:
        return {"shape": shape, "what": "declared, but not stored"}
    return {"shape": shape, "what": kind, "dataset": item.name}


def columns(data: Any, wanted: list[int]) -> Iterator[bytes]:
    """Columns of a dataset, a chunk at a time."""
    import numpy as np

    if data.external or data.is_virtual:
        raise ValueError("it is stored in another file")
    vector = data.ndim == 1 or 1 in data.shape
    along = int(np.argmax(data.shape)) if vector else 1
    for column in wanted:
        cut: list[Any] = [0 if vector else column] * data.ndim
        for start in range(0, data.shape[along], CHUNK):
            cut[along] = slice(start, start + CHUNK)
            yield np.asarray(data[tuple(cut)], dtype="<f8").tobytes()


def main(path: str, dataset: str = "", *wanted: str) -> None:
    """List a file, or write columns of it."""
    with suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    import h5py

    with h5py.File(path, "r", locking=False) as file:
        if dataset:
            for part in columns(file[dataset], [int(one) for one in wanted]):
                sys.stdout.buffer.write(part)
        else:
            for one in visit(file, "", set()):
                sys.stdout.write(json.dumps(one) + "\n")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
        sys.stdout.flush()
    except Exception as error:
        sys.stderr.write(" ".join((str(error) or type(error).__name__).split())[:200])
        sys.exit(3)
