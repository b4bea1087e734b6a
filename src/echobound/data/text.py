"""Text tables: encoding, separator and header are found by looking at the file."""

from __future__ import annotations

import codecs
import csv
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from echobound.data.cells import Row, RowSource, table_of_rows
from echobound.data.layout import HEAD, find_layout, is_number
from echobound.data.table import Table
from echobound.errors import DataError

TEXT_CONTROLS = b"\t\n\r\f\x1a"  # the control characters of text files; \x1a ended them under DOS
CHUNK = 1 << 20  # bytes examined together
DECLARED = re.compile(r'"?sep=(.)"?', re.IGNORECASE)


def read_text(path: Path, skip: int = 0, header_row: int | None = None, dates: str | None = None) -> Table:
    """Read a text table; see `read_table`."""
    encoding, length, underscores, commas = _survey(path)
    start, comment, lines, separator = _head(path, encoding, skip)

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

    source = RowSource(path.name, rows, length - start, plain=False, decimal_comma=separator != ",", dates=dates)
    named = next(csv.reader([comment.lstrip("#% \t").strip()], delimiter=separator, skipinitialspace=True), None)
    if named is not None and (len(named) < 2 or any(is_number(cell, separator != ",") for cell in named)):
        named = None
    layout = find_layout(path.name, source.head(), separator != ",", header_row, named, exact=separator == " ")
    # Underscores and decimal commas need a check of each cell; a file that has them only above its samples needs none.
    above = lines[: layout.first - 1]
    plain = underscores == sum(line.count("_") for line in above) and (
        separator == "," or commas == sum(line.count(",") for line in above)
    )
    return table_of_rows(replace(source, plain=plain), layout)


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


def _head(path: Path, encoding: str, skip: int) -> tuple[int, str, list[str], str]:
    """Return the lines before the table, the last comment among them, its first lines, and what separates cells."""
    with path.open(encoding=encoding, errors="replace") as file:
        lines = [line for line, _ in zip(file, range(max(skip, 0) + 2 * HEAD), strict=False)]
        start, comment, separator = min(skip, len(lines)), "", None
        while start < len(lines):
            line = lines[start].strip()
            if line and line[0] not in "#%":
                declared = DECLARED.fullmatch(line)  # Excel's own way to name the separator
                if declared is None:
                    break
                separator = declared[1]
            comment = line if line else comment
            start += 1
            if start == len(lines):  # many lines of comments
                lines += [line for line, _ in zip(file, range(HEAD), strict=False)]
    filled = [line for line in lines[start:] if line.strip()]
    return start, comment, lines, separator or _separator(filled[len(filled) // 2 :])


def _separator(lines: Sequence[str]) -> str:
    """Return what separates cells, judged by rows that are likely to be samples: names may hold anything."""
    samples = [re.sub(r'"[^"]*"', "", line) for line in lines]
    for candidate in ";\t,":
        if 2 * sum(candidate in sample for sample in samples) > len(samples):
            return candidate
    # With a single number in the row there is one column, whose name may hold spaces.
    return " " if 2 * sum(len(sample.split()) > 1 for sample in samples) > len(samples) else ","
