"""Files that are whole or not there, and safe to open.

Writing goes to a temporary name beside the target and is renamed when complete. Reading never runs code: JSON, and
NPZ whose members are plain numbers, with every header checked against the bytes that are really there before
anything is allocated.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from echobound.errors import DamagedFile, RunError

__all__ = [
    "Member",
    "digest",
    "jsonable",
    "npy_member",
    "npz_members",
    "read_json",
    "read_npz",
    "write_json",
    "write_npz",
    "write_whole",
]

HEADER = "header"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it appears under its name only when it is complete."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise RunError(f"cannot write {path} ({error.strerror}): check the folder and its permissions") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)  # noqa: PTH101 (mkstemp made it private; a run folder is shared like other files)
        os.replace(name, path)  # noqa: PTH105 (the atomic rename is the point)
    except BaseException as error:  # an interrupt must not leave the temporary file either
        Path(name).unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise RunError(f"cannot write {path} ({error.strerror}): free some space or choose another folder") from None


def jsonable(value: Any) -> Any:
    """Turn NumPy numbers, tuples and non-finite floats into what JSON can hold (non-finite becomes null).

    Examples
    --------
    >>> jsonable({"a": (1.0, float("inf")), "n": np.int64(3)})
    {'a': [1.0, None], 'n': 3}
    """
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist())
    if isinstance(value, np.bool_ | bool):
        return bool(value)
    if isinstance(value, np.integer | int):
        return int(value)
    if isinstance(value, np.floating | float):
        return float(value) if math.isfinite(value) else None
    return value


def write_json(path: Path, value: Any) -> None:
    """Write JSON, whole or not at all."""
    text = json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(path, (text + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object, refusing anything else."""
    try:
        value = _parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path} is missing: is {path.parent} a run folder, and is its run finished?") from None
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedFile(path, "content", f"not readable as JSON, {error}") from None
    if not isinstance(value, dict):
        raise DamagedFile(path, "content", "not a JSON object")
    return value


def _parse_json(text: str | bytes) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not a JSON number")

    return json.loads(text, parse_constant=refuse)


def digest(value: Any) -> str:
    """SHA-256 of a value made of arrays, numbers, strings, lists and mappings, independent of layout and order of keys.

    Examples
    --------
    >>> digest({"a": np.zeros(3), "b": 1}) == digest({"b": 1, "a": np.zeros(3)})
    True
    >>> digest(np.zeros(3)) == digest(np.zeros((3, 1)))
    False
    """
    sha = hashlib.sha256()
    _feed(sha, value)
    return sha.hexdigest()


def _feed(sha: Any, value: Any) -> None:
    if isinstance(value, Mapping):
        sha.update(b"{%d;" % len(value))
        for key in sorted(value):
            _feed(sha, str(key))
            _feed(sha, value[key])
    elif isinstance(value, list | tuple):
        sha.update(b"[%d;" % len(value))
        for item in value:
            _feed(sha, item)
    elif isinstance(value, np.ndarray):
        array = np.asarray(value, dtype=value.dtype.newbyteorder("<"))  # tobytes() below puts it in C order
        sha.update(f"A{array.dtype.str}{array.shape};".encode())
        sha.update(array.tobytes())
    else:
        text = json.dumps(jsonable(value), ensure_ascii=True).encode()
        sha.update(b"V%d;" % len(text) + text)


def write_npz(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays and a JSON header with their digest as an uncompressed NPZ."""
    full = dict(jsonable(header), digest=digest([jsonable(header), arrays]))
    text = np.frombuffer(json.dumps(full, allow_nan=False).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{HEADER: text}, **dict(arrays))
    write_whole(path, buffer.getvalue())


def read_npz(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what `write_npz` wrote, refusing whatever is not exactly that.

    Parameters
    ----------
    path
        The file.
    kind
        The header's ``kind`` that is expected, such as ``"model"``.

    Returns
    -------
    header, arrays
        The header without its digest, and the arrays by name.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = {info.filename.removesuffix(".npy"): _member(path, archive, info) for info in archive.infolist()}
    except FileNotFoundError:
        raise RunError(f"{path} is missing: is {path.parent} a run folder, and is its run finished?") from None
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise DamagedFile(path, "archive", str(error)) from None
    try:
        header = _parse_json(arrays.pop(HEADER).tobytes())
        stored = header.pop("digest")
        found = digest([header, arrays])
    except (KeyError, ValueError, AttributeError, TypeError, RecursionError):
        raise DamagedFile(path, "header", f"no JSON header of a {kind}") from None
    if header.get("kind") != kind:
        raise DamagedFile(path, "header", f"a {kind} was expected, found {header.get('kind')!r:.60}")
    if stored != found:
        raise DamagedFile(path, "digest", "the content does not have the digest that was stored with it")
    return header, arrays


def _member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """Read one array after checking that its header promises exactly the bytes that are there."""
    part = f"array {info.filename.removesuffix('.npy')}"
    # Stored members cannot be larger than the file itself, so no small file can ask for a large allocation.
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise DamagedFile(path, part, "compressed, which echobound never writes")
    raw = io.BytesIO(archive.read(info))
    shape, fortran, dtype = _array_header(path, part, raw)
    if dtype.hasobject or dtype.kind not in "fiub":
        raise DamagedFile(path, part, f"numbers were expected, found {dtype}")
    size = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or size != info.file_size - raw.tell():
        raise DamagedFile(path, part, f"its header promises {size} bytes, {info.file_size - raw.tell()} are there")
    array = np.frombuffer(raw.getvalue(), dtype=dtype, offset=raw.tell()).copy()
    try:
        return array.reshape(shape, order="F" if fortran else "C")
    except (ValueError, OverflowError):  # (0, 2**62): no elements, and still too large
        raise DamagedFile(path, part, f"impossible shape {shape}") from None


def _array_header(path: Path, part: str, raw: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(raw)
        if version != (1, 0):
            raise ValueError(f"format version {version}")
        return np.lib.format.read_array_header_1_0(raw)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError, tokenize.TokenError) as error:
        raise DamagedFile(path, part, f"bad header, {error}") from None


@dataclass(frozen=True, eq=False)
class Member:
    """An array in a NumPy file that anybody may have written: what its header says, and how to open its content.

    Parameters
    ----------
    name, shape, dtype, fortran
        From the header, which agrees with the bytes that are there.
    open
        A stream of the array's bytes; nothing is allocated before they are read.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    open: Callable[[], IO[bytes]]


def npz_members(path: Path) -> list[Member]:
    """List the arrays of an NPZ file, compressed or not, with only their headers read; none is unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [_listed(path, archive, info) for info in archive.infolist() if info.filename.endswith(".npy")]
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, zlib.error) as error:
        raise DamagedFile(path, "archive", str(error)) from None


def npy_member(path: Path) -> Member:
    """The array of an NPY file, with only its header read."""
    with path.open("rb") as stream:
        return _checked(path, "array", stream, path.stat().st_size, lambda: path.open("rb"))


def _listed(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    def reopen() -> IO[bytes]:
        return zipfile.ZipFile(path).open(info.filename)

    # Deflate cannot pack more than 1032 bytes into one: what promises more is no array, but a trap.
    if info.file_size > 1032 * info.compress_size + 1024:
        raise DamagedFile(path, f"array {info.filename}", f"{info.file_size} bytes cannot come out of it")
    with archive.open(info) as stream:
        return _checked(path, info.filename.removesuffix(".npy"), stream, info.file_size, reopen)


def _checked(path: Path, name: str, stream: IO[bytes], size: int, reopen: Callable[[], IO[bytes]]) -> Member:
    shape, fortran, dtype = _array_header(path, f"array {name}", stream)
    start = stream.tell()
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize != size - start:
        raise DamagedFile(
            path,
            f"array {name}",
            f"its header promises {math.prod(shape) * dtype.itemsize} bytes, {size - start} are there",
        )

    def content() -> IO[bytes]:
        opened = reopen()
        opened.read(start)
        return opened

    return Member(name, shape, dtype, fortran, content)
