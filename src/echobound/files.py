"""Files that are complete or absent, and safe to open.

A file is written under a temporary name beside its target and renamed when it is complete. Reading never runs code:
files are JSON, or NPZ archives of plain numbers, and the header of each array is checked against the bytes that are
there before anything is allocated.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import secrets
import stat
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from echobound.errors import DamagedFile, RunError

HEADER = "header"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears under its name only once it is complete."""
    # Not by `mkstemp`, whose files are private: this one has the permissions that the user's umask leaves it.
    name = path.parent / f".{path.name[:200]}.{secrets.token_hex(4)}"
    try:
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        raise RunError(f"cannot write {path} ({error.strerror}): check the folder and its permissions") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # before the rename, or a power failure could leave an empty file under the name
        name.replace(path)  # atomic, and a link of that name is replaced, not followed
    except BaseException as error:  # an interrupt must not leave the temporary file either
        with suppress(OSError):  # its folder may be gone
            name.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise RunError(f"cannot write {path} ({error.strerror}): free some space or choose another folder") from None


def write_all(contents: Mapping[Path, bytes]) -> None:
    """Write files of one folder, all of them or none; the folder is made, and gone again if nothing came of it.

    They are written aside and take their names when all of them are complete.
    """
    folder = next(iter(contents)).parent
    made: list[Path] = []
    path = folder
    try:
        made += [one for one in (folder, *folder.parents) if not one.exists()]
        if (there := next(one for one in (folder, *folder.parents) if one.exists())).is_file():
            path = there
            raise NotADirectoryError(errno.ENOTDIR, "it is a file, and a folder is needed there")
        folder.mkdir(parents=True, exist_ok=True)
        for path in contents:
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "there is a folder of that name")
        with TemporaryDirectory(prefix=".", dir=folder) as aside:
            for path, content in contents.items():
                with (Path(aside) / path.name).open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            for path in contents:
                (Path(aside) / path.name).replace(path)
    except BaseException as error:
        for empty in made:  # from the inside; one that holds anything stays
            with suppress(OSError):
                empty.rmdir()
        if not isinstance(error, OSError):
            raise
        raise RunError(f"cannot write {path} ({error.strerror}): choose another place, or free some space") from None


def jsonable(value: Any) -> Any:
    """Return a value with NumPy numbers, tuples and arrays as what JSON has for them; NaN and infinities become null.

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
    """Write a JSON file, completely or not at all."""
    text = json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(path, (text + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; anything else is refused."""
    try:
        value = _parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _missing(path) from None
    except OSError as error:
        raise _unreadable(path, error) from None
    except (ValueError, RecursionError) as error:
        raise DamagedFile(path, "content", f"not readable as JSON, {error}") from None
    if not isinstance(value, dict):
        raise DamagedFile(path, "content", "not a JSON object")
    return value


def _missing(path: Path) -> RunError:
    return RunError(f"{path} is missing: check that {path.parent} is a run folder and that its run is finished")


def _unreadable(path: Path, error: OSError) -> RunError:
    return RunError(f"cannot read {path} ({error.strerror or error}): check the file and its permissions")


def require_plain(*paths: Path) -> None:
    """Refuse files that are there and are not files of their own: links, pipes and devices.

    A folder that came from somebody else may hold links to what is ours, and a pipe would have us wait for ever.

    Examples
    --------
    >>> require_plain(Path("no such file"))
    """
    for path in paths:
        try:
            mode = path.lstat().st_mode
        except OSError:  # not there, or not readable: whoever opens it says so
            continue
        if not stat.S_ISREG(mode):
            kind = "a link, which is not followed" if stat.S_ISLNK(mode) else "not a file"
            raise DamagedFile(path, "kind of file", f"a file of its own was expected, this is {kind}")


def _parse_json(text: str | bytes) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not a JSON number")

    return json.loads(text, parse_constant=refuse)


def digest(value: Any) -> str:
    """Return the SHA-256 of arrays, numbers, strings, lists and mappings, whatever their layout and order of keys.

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
        array = np.asarray(value, dtype=value.dtype.newbyteorder("<"))  # and in C order, by tobytes() below
        sha.update(f"A{array.dtype.str}{array.shape};".encode())
        sha.update(array.tobytes())
    else:
        text = json.dumps(jsonable(value), ensure_ascii=True).encode()
        sha.update(b"V%d;" % len(text) + text)


def write_npz(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays, and a JSON header with their digest, as an uncompressed NPZ file."""
    full = dict(jsonable(header), digest=digest([jsonable(header), arrays]))
    text = np.frombuffer(json.dumps(full, allow_nan=False).encode(), dtype=np.uint8)
    for name, array in arrays.items():
        # Not `np.savez(allow_pickle=False)`: before NumPy 2.2 that is an array of this name.
        if np.asarray(array).dtype.hasobject:
            raise ValueError(f"{name} holds Python objects, which would need allow_pickle")
    buffer = io.BytesIO()
    content: dict[str, Any] = {HEADER: text, **arrays}
    np.savez(buffer, **content)
    write_whole(path, buffer.getvalue())


def read_npz(path: Path, kind: str | Collection[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what `write_npz` wrote, if its header is of this kind, or of one of several.

    It returns the header without digest, and the arrays.
    """
    kinds = (kind,) if isinstance(kind, str) else tuple(kind)
    wanted = " or ".join(map(repr, kinds))
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            arrays = {info.filename.removesuffix(".npy"): _own_array(path, archive, info) for info in members}
    except FileNotFoundError:
        raise _missing(path) from None
    except PermissionError as error:
        raise _unreadable(path, error) from None
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise DamagedFile(path, "archive", str(error)) from None
    try:
        header = _parse_json(arrays.pop(HEADER).tobytes())
        stored = header.pop("digest")
        found = digest([header, arrays])
    except (KeyError, ValueError, AttributeError, TypeError, RecursionError):
        raise DamagedFile(path, "header", f"not a JSON header of kind {wanted}") from None
    if header.get("kind") not in kinds:
        raise DamagedFile(path, "header", f"kind {wanted} was expected, found {header.get('kind')!r:.60}")
    if stored != found:
        raise DamagedFile(path, "digest", "the content does not have the digest that was stored with it")
    return header, arrays


def _own_array(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """Read one array of a file of ours."""
    part = f"array {info.filename.removesuffix('.npy')}"
    # An uncompressed member is no larger than the file itself, so no small file can ask for a large allocation.
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise DamagedFile(path, part, "it is compressed, which echobound never writes")
    raw = io.BytesIO(archive.read(info))
    shape, fortran, dtype = _array_header(path, part, raw, info.file_size)
    if dtype.kind not in "fiub":
        raise DamagedFile(path, part, f"numbers were expected, found {dtype}")
    array = np.frombuffer(raw.getvalue(), dtype=dtype, offset=raw.tell()).copy()
    try:
        return array.reshape(shape, order="F" if fortran else "C")
    except (ValueError, OverflowError):  # such as (0, 2**62): no elements, but too large for NumPy
        raise DamagedFile(path, part, f"its shape {shape} is impossible") from None


def _array_header(path: Path, part: str, raw: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read shape, order and type, after checking that they promise exactly the bytes that are there."""
    try:
        version = np.lib.format.read_magic(raw)
        if version != (1, 0):
            raise ValueError(f"format version {version}")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(raw)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError, tokenize.TokenError) as error:
        raise DamagedFile(path, part, f"its header cannot be read, {error}") from None
    promised, there = math.prod(shape) * dtype.itemsize, size - raw.tell()
    # Objects are pickled, in a number of bytes that nothing promises; they are never read.
    if not dtype.hasobject and (promised != there or min(shape, default=0) < 0):
        raise DamagedFile(path, part, f"its header promises {promised} bytes, but {there} are there")
    return shape, fortran, dtype


@dataclass(frozen=True, eq=False)
class Member:
    """An array in a NumPy file that anyone may have written: what its header says, and how to open its content."""

    name: str
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    open: Callable[[], IO[bytes]]  # a stream of the array's bytes; nothing is allocated before they are read


def npz_members(path: Path) -> list[Member]:
    """List the arrays of an NPZ file, compressed or not; only headers are read, and nothing is unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [_npz_member(path, archive, info) for info in archive.infolist() if info.filename.endswith(".npy")]
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, zlib.error) as error:
        raise DamagedFile(path, "archive", str(error)) from None


def npy_member(path: Path) -> Member:
    """Return the array of an NPY file; only its header is read."""
    with path.open("rb") as stream:
        return _member(path, "array", stream, path.stat().st_size, lambda: path.open("rb"))


def _npz_member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DamagedFile(path, f"array {info.filename}", "it is compressed in a way that NumPy never uses")
    # Deflate cannot pack more than 1032 bytes into one: an entry that promises more is not an array but a trap.
    if info.file_size > 1032 * info.compress_size + 1024:
        why = f"it claims {info.file_size} bytes, more than can be compressed into {info.compress_size}"
        raise DamagedFile(path, f"array {info.filename}", why)
    with archive.open(info) as stream:
        name, size = info.filename.removesuffix(".npy"), info.file_size
        return _member(path, name, stream, size, lambda: zipfile.ZipFile(path).open(info.filename))


def _member(path: Path, name: str, stream: IO[bytes], size: int, reopen: Callable[[], IO[bytes]]) -> Member:
    header = _array_header(path, f"array {name}", stream, size)
    start = stream.tell()

    def content() -> IO[bytes]:
        opened = reopen()
        opened.read(start)
        return opened

    return Member(name, *header, content)
