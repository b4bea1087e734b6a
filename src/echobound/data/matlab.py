"""MATLAB files of the versions 4 to 7, read by their published layout and nothing else.

Every size is compared with what is there before anything is read or allocated: a general reader of such files can be
made to read beyond its memory by a type that a damaged file states. What cannot be a signal is named and skipped.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Vector

CLASSES = (
    *("", "cell", "struct", "object", "char", "sparse", "double", "single", "int8", "uint8", "int16", "uint16"),
    *("int32", "uint32", "int64", "uint64", "function", "opaque"),
)
NUMBERS = CLASSES[6:16]
TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
MATRIX, COMPRESSED = 14, 15
OLD_TYPES = ("f8", "f4", "i4", "i2", "u2", "u1")  # of version 4
CHUNK = 1 << 16  # bytes unpacked, or numbers converted, together
DEEPEST = 16  # structures in structures
LONGEST = 1 << 16  # bytes of a name, or of all dimensions
MOST = 100_000  # variables and fields of a file

Wanted = Sequence[tuple[int, Vector]]  # columns of a variable and the arrays to write them into
Bytes = Callable[[int], bytes]  # reads so many bytes, or fewer at the end


@dataclass(frozen=True, eq=False)
class Found:
    """A variable, or a field of a structure: what it is, and, while the file is read, its numbers."""

    name: str
    shape: tuple[int, ...]
    kind: str  # as MATLAB calls its class
    complex: bool = False
    fill: Callable[[Wanted], None] | None = None  # valid until the next one is asked for


def matlab_variables(path: Path) -> Iterator[Found]:
    """Variables and fields of structures, in the order of the file; ValueError where it is damaged."""
    size = path.stat().st_size
    with path.open("rb") as file:
        header = file.read(128)
        if header[126:128] in (b"IM", b"MI"):
            yield from _version_5(file, size, "<" if header[126:128] == b"IM" else ">")
        elif header.startswith(b"MATLAB"):
            raise ValueError("its header does not end as that of a MATLAB file")
        else:
            file.seek(0)
            yield from _version_4(file, size)


def _version_4(file: IO[bytes], size: int) -> Iterator[Found]:
    while file.tell() < size:
        raw = file.read(20)
        if len(raw) < 20:
            raise ValueError("it ends within the header of a variable")
        order = "<" if 0 <= struct.unpack("<i", raw[:4])[0] <= 5000 else ">"
        code, rows, columns, imaginary, length = struct.unpack(f"{order}5i", raw)
        number, kind = code // 10 % 10, code % 10
        known = 0 <= code <= 5000 and code // 100 % 10 == 0 and number < len(OLD_TYPES) and kind < 3
        if not known or imaginary not in (0, 1) or rows < 0 or columns < 0 or not 0 < length < LONGEST:
            raise ValueError("it is of no version that is known")
        dtype = np.dtype(order + OLD_TYPES[number])
        name = file.read(length).rstrip(b"\0").decode("latin-1")
        start, content = file.tell(), rows * columns * dtype.itemsize
        if start + content * (1 + imaginary) > size:
            raise ValueError(f"variable {name[:40]!r} of {rows}x{columns} numbers goes beyond its end")
        shape = (rows, columns)
        if kind == 0:
            yield Found(name, shape, "double", bool(imaginary), _filler(file.read, shape, dtype))
        else:
            yield Found(name, shape, "char" if kind == 1 else "sparse")
        file.seek(start + content * (1 + imaginary))


def _version_5(file: IO[bytes], size: int, order: str) -> Iterator[Found]:
    while (start := file.tell()) + 8 <= size:
        kind, length = struct.unpack(f"{order}2I", file.read(8))
        if start + 8 + length > size:
            raise ValueError("a variable goes beyond its end")
        if kind == COMPRESSED:
            stream = _Part(_unpacking(file, length), 1032 * length + 1024, order)  # no more can be packed into that
            kind, inside = stream.numbers("2I")
        else:
            stream, inside = _Part(file.read, length, order), length
        if kind == MATRIX:
            yield from stream.part(inside).matrix(None, 0)
        elif kind not in TYPES:
            raise ValueError(f"an element has the unknown type {kind}")
        file.seek(start + 8 + length)


def _unpacking(file: IO[bytes], length: int) -> Bytes:
    """Read what is packed in the next bytes of a file, which nobody else may read meanwhile."""
    unpacked, left, rest = zlib.decompressobj(), length, b""

    def read(count: int) -> bytes:
        nonlocal left, rest
        found = []
        while count > 0:
            if not rest and left:
                rest = file.read(min(CHUNK, left))
                left -= len(rest)
            part = unpacked.decompress(rest, min(count, CHUNK))
            if not part and not unpacked.unconsumed_tail and not left:
                break
            rest = unpacked.unconsumed_tail
            found.append(part)
            count -= len(part)
        return b"".join(found)

    return read


class _Part:
    """Some bytes of a file, of which no more than there are can be read."""

    def __init__(self, read: Bytes, size: int, order: str) -> None:
        self._read, self.left, self.order = read, size, order

    def read(self, count: int) -> bytes:
        if count > self.left:
            raise ValueError("an element is longer than what it is in")
        found = self._read(count)
        if len(found) < count:
            raise ValueError("it ends within an element")
        self.left -= count
        return found

    def skip(self, count: int) -> None:
        while count > 0:
            count -= len(self.read(min(count, CHUNK)))

    def numbers(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack(self.order + layout, self.read(struct.calcsize(self.order + layout)))

    def part(self, size: int) -> _Part:
        if size > self.left:
            raise ValueError("an element is longer than what it is in")
        return _Part(self.read, size, self.order)

    def element(self, most: int | None = None) -> tuple[int, _Part, int]:
        """Type, content and padding of the next element, of `most` bytes."""
        [first] = self.numbers("I")
        if first >> 16:  # a small one: its bytes are in the tag
            kind, size, padding = first & 0xFFFF, first >> 16, 4 - (first >> 16)
            if padding < 0:
                raise ValueError("a small element has more than 4 bytes")
        else:
            kind, [size] = first, self.numbers("I")
            padding = -size % 8
        if most is not None and size > most:
            raise ValueError(f"an element of {size} bytes stands where a short one is expected")
        return kind, self.part(size), padding

    def short(self, *kinds: int) -> bytes:
        """The content of a short element of one of these types."""
        kind, content, padding = self.element(LONGEST)
        if kind not in kinds:
            raise ValueError(f"an element has the type {kind}, which it cannot have there")
        found = content.read(content.left)
        self.skip(min(padding, self.left))
        return found

    def matrix(self, name: str | None, depth: int) -> Iterator[Found]:
        """A variable, or the fields of a structure; `name` is that of the field which it is."""
        flags = self.short(6)
        if len(flags) != 8:
            raise ValueError("a variable does not say what it is")
        [word] = struct.unpack(f"{self.order}I", flags[:4])
        code = word & 0xFF
        if not 0 < code < len(CLASSES):
            raise ValueError(f"a variable is of the unknown class {code}")
        kind, shape = CLASSES[code], (1, 1)
        if kind != "opaque":
            raw = self.short(5)
            shape = struct.unpack(f"{self.order}{len(raw) // 4}i", raw[: len(raw) // 4 * 4])
            if len(shape) < 2 or min(shape) < 0:
                raise ValueError("a variable has impossible dimensions")
        own = self.short(1, 2, 16).decode("latin-1")
        name = own if name is None else name
        if not name:  # what objects of the file share
            return
        if kind in NUMBERS:
            yield self._signal(name, shape, kind, bool(word & 0x800))
        elif kind == "struct" and shape == (1, 1) and depth < DEEPEST:
            yield from self._fields(name, depth)
        else:
            yield Found(name, shape, kind)

    def _signal(self, name: str, shape: tuple[int, ...], kind: str, complex_: bool) -> Found:
        stored, content, _ = self.element()
        if stored not in TYPES:
            raise ValueError(f"variable {name[:40]!r} is stored as the unknown type {stored}")
        dtype = np.dtype(self.order + TYPES[stored])
        if math.prod(shape) * dtype.itemsize != content.left:
            raise ValueError(f"variable {name[:40]!r} of {'x'.join(map(str, shape))} numbers has {content.left} bytes")
        return Found(name, shape, kind, complex_, _filler(content.read, shape, dtype))

    def _fields(self, name: str, depth: int) -> Iterator[Found]:
        [width] = struct.unpack(f"{self.order}i", self.short(5)[:4].ljust(4, b"\0"))
        raw = self.short(1)
        if not 0 < width <= LONGEST or len(raw) % width or len(raw) // width > MOST:
            raise ValueError(f"structure {name[:40]!r} has impossible names of fields")
        names = [raw[at : at + width].split(b"\0")[0].decode("latin-1") for at in range(0, len(raw), width)]
        for field in names:
            kind, content, padding = self.element()
            if kind != MATRIX:
                raise ValueError(f"field {field[:40]!r} has the type {kind}, which it cannot have there")
            if content.left:
                yield from content.matrix(f"{name}.{field}", depth + 1)
                content.skip(content.left)
            self.skip(min(padding, self.left))


def _filler(read: Bytes, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Callable[[Wanted], None]:
    """Write columns of what comes next, which is stored column by column, into arrays."""

    def numbers(count: int) -> NDArray[Any]:
        raw = read(count * dtype.itemsize)
        if len(raw) < count * dtype.itemsize:
            raise ValueError("it ends within a variable")
        return np.frombuffer(raw, dtype=dtype)

    def fill(wanted: Wanted) -> None:
        vector = 1 in shape
        length, width = (max(shape), 1) if vector else (shape[0], shape[1])
        for column in range(width):
            into = [array for at, array in wanted if at == column]
            for start in range(0, length, CHUNK):
                part = numbers(min(CHUNK, length - start))
                for array in into:
                    array[start : start + len(part)] = part

    return fill
