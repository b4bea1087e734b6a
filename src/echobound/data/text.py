"""Text tables: encoding, separator and header are found by looking at the file."""

from __future__ import annotations

import codecs
import csv
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from echobound.data.cells import Row, RowSource, table_of_rows
from echobound.data.table import Table
from echobound.errors import DataError

TEXT_CONTROLS = b"\t\n\r\f\x1a"  # the control characters of text files; \x1a ended them under DOS
CHUNK = 1 << 20  # bytes examined together


def read_text(path: Path) -> Table:
    """Read a text table; see `read_table`."""
    encoding, length, underscores, commas = _survey(path)
    start, first, separator = _head(path, encoding)
    # Underscores and decimal commas need a check of each cell; a file that has them only up to its header needs none.
    plain = underscores == sum(line.count("_") for line in first) and (
        separator == "," or commas == sum(line.count(",") for line in first)
    )

    def rows() -> Iterator[Row]:
        with path.open(encoding=encoding, errors="replace") as file:
            for _ in range(start):
                next(file)
            lines: Iterable[str] = file
            if separator == " ":
                lines = (line.strip().replace("\t", " ") + "\n" for line in file)
            reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
            try:
                for cells in reader:
                    yield cells, start + reader.line_num
            except csv.Error as error:
                raise DataError(f"{path.name} is not a table of numbers ({error}): give a CSV file") from None

    return table_of_rows(RowSource(path.name, rows, length - start, plain, separator != ","))


def _survey(path: Path) -> tuple[str, int, int, int]:
    """Find the encoding, and the numbers of lines, underscores and commas, which make reading fast."""
    with path.open("rb") as file:
        wide = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        file.seek(0)
        encoding = "utf-16" if wide else "utf-8-sig"
        decoder: codecs.IncrementalDecoder = codecs.getincrementaldecoder(encoding)()
        lines = underscores = commas = 0
        carriage_return = False  # whether the chunk before ended with \r, so that a \n now belongs to it
        for raw in itertools.chain(iter(partial(file.read, CHUNK), b""), [b""]):
            if not wide and raw.translate(None, delete=TEXT_CONTROLS + bytes(range(32, 256))):
                raise DataError(
                    f"{path.name} is a binary file of an unknown kind: give a text table, Parquet, MATLAB .mat, NPZ or"
                    " Excel .xlsx, or export it as CSV"
                )
            try:
                text = decoder.decode(raw, final=not raw)  # at the end, no character may be incomplete
            except UnicodeDecodeError:
                if wide:
                    raise DataError(
                        f"{path.name} begins as UTF-16 text but is not UTF-16 to its end: is it complete? Save it again"
                    ) from None
                # The counts so far stay right: the characters counted are ASCII, the same in both encodings.
                encoding, decoder = "latin-1", codecs.getincrementaldecoder("latin-1")()
                text = decoder.decode(raw)
            lines += text.count("\n") + text.count("\r") - text.count("\r\n")
            lines -= carriage_return and text.startswith("\n")
            carriage_return = text.endswith("\r")
            underscores += text.count("_")
            commas += text.count(",")
    return encoding, lines + 1, underscores, commas


def _head(path: Path, encoding: str) -> tuple[int, list[str], str]:
    """Return the number of lines before the table, the lines up to its first row, and what separates its cells."""
    with path.open(encoding=encoding, errors="replace") as file:
        seen: list[str] = []
        for line in file:
            seen.append(line)
            if line.strip() and line.lstrip()[0] not in "#%":
                start = len(seen) - 1
                break
        else:
            start = len(seen)
        following = seen[start : start + 1] + [line for line, _ in zip(file, range(99), strict=False)]
    return start, seen, _separator([line for line in following if line.strip()][:2])


def _separator(lines: Sequence[str]) -> str:
    """Return what separates cells, judged by the first row of numbers if there is one: names may hold anything."""
    sample = re.sub(r'"[^"]*"', "", lines[-1]) if lines else ""
    for candidate in ";\t,":
        if candidate in sample:
            return candidate
    # With a single number in the row there is one column, whose name may hold spaces.
    return " " if len(sample.split()) > 1 else ","
