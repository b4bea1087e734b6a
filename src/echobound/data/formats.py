"""Files of any kind as tables; what a file is, is told by its first bytes, not by its name."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any

from echobound.data.cells import Row, RowSource, table_of_rows
from echobound.data.frames import read_parquet
from echobound.data.table import Table
from echobound.data.text import read_text
from echobound.data.variables import read_mat, read_npy, read_npz_table
from echobound.errors import DataError, MissingExtra

__all__ = ["read_table"]

KINDS = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".mat": "MATLAB",
    ".npz": "NPZ",
    ".npy": "NPY",
    ".xlsx": "Excel",
    ".xlsm": "Excel",
}
"""What a name promises; a file that is something else is refused rather than read as text."""


def read_table(path: str | os.PathLike[str], sheet: str | None = None) -> Table:
    r"""Open a file as a table: text (CSV and the like), Parquet, MATLAB .mat, NPZ, NPY or Excel .xlsx.

    Text may have commas, semicolons, tabs or white space between cells, with or without a header row: the first row is
    a header if none of its cells is a number. Lines that start with ``#`` or ``%`` before it are skipped, blank lines
    everywhere; a comma may be the decimal mark where it does not separate cells. Encodings: UTF-8, UTF-16 with its
    mark, else Latin-1.

    Variables of .mat and .npz files are columns by name: a matrix ``u`` is all of ``u[1]``, ``u[2]``, ...; fields of
    a structure are ``name.field``. Numbers are loaded when columns are asked for, and only theirs.

    Parameters
    ----------
    path
        The file.
    sheet
        Which sheet of an Excel file, if it has several.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "arm.dat"
    >>> _ = path.write_text("  0.5   1e-3\n  0.6   2e-3\n")
    >>> table = read_table(path)
    >>> table.columns, table.signal([2]).tolist()
    (('column 1', 'column 2'), [[0.001], [0.002]])
    >>> folder.cleanup()
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except FileNotFoundError:
        raise DataError(f"there is no file {path}: check its name and folder") from None
    except OSError as error:
        raise DataError(f"cannot read {path} ({error.strerror}): a readable data file is needed") from None
    found, promised = _kind(path, start), KINDS.get(path.suffix.lower())
    if promised and not start:
        raise DataError(f"{path.name} is empty: it holds no {promised} data")
    if promised and found != promised and not (promised == "MATLAB" and found == "text"):
        raise DataError(
            f"{path.name} is not the {promised} file that its name says, it begins like {found}: is it whole, and has"
            " it the right name?"
        )
    if sheet is not None and found != "Excel":
        raise DataError(f"{path.name} has no sheets: leave sheet={sheet!r} out")
    if promised == "MATLAB" or found == "MATLAB":
        return read_mat(path)  # version 4 begins in no way of its own
    if found == "Excel":
        return _read_excel(path, sheet)
    readers = {"Parquet": read_parquet, "NPZ": read_npz_table, "NPY": read_npy, "text": read_text}
    if found not in readers:
        raise DataError(f"{path.name} is {found}, a binary file that cannot be read here: save it as {_ELSE[found]}")
    return readers[found](path)


_ELSE = {
    "an old Excel file": ".xlsx",
    "an HDF5 file not of MATLAB": "CSV, NPZ or Parquet",
    "a ZIP archive": "the files in it, unpacked",
}


def _kind(path: Path, start: bytes) -> str:
    if start.startswith(b"PAR1"):
        return "Parquet"
    if start.startswith(b"MATLAB"):
        return "MATLAB"
    if start.startswith(b"\x93NUMPY"):
        return "NPY"
    if start.startswith(b"\xd0\xcf\x11\xe0"):
        return "an old Excel file"
    if start.startswith(b"\x89HDF"):
        return "an HDF5 file not of MATLAB"
    if start.startswith(b"PK\x03\x04"):
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
        except (zipfile.BadZipFile, OSError, ValueError):
            raise DataError(f"{path.name} is a damaged archive: is the file whole? Save it again") from None
        if "xl/workbook.xml" in names:
            return "Excel"
        return "NPZ" if names and all(name.endswith(".npy") for name in names) else "a ZIP archive"
    return "text"


def _read_excel(path: Path, sheet: str | None) -> Table:
    """One sheet, gone through row by row; formulas count with the values that were saved with them."""
    try:
        import openpyxl
    except ImportError:
        raise MissingExtra("reading Excel files", extra="files") from None

    @contextmanager
    def opened() -> Iterator[Any]:
        with path.open("rb") as file:  # by its content: the name may say something else
            try:
                book = openpyxl.load_workbook(file, read_only=True, data_only=True)
                yield book
                book.close()
            except DataError:
                raise
            except Exception as error:  # damaged files make the parser fail in ways of its own
                raise _damaged(path, error) from None

    with opened() as book:
        names = list(book.sheetnames)
        if sheet is not None and sheet not in names:
            raise DataError(f"{path.name} has no sheet {sheet!r}: it has {', '.join(names)}")
        if sheet is None and len(names) > 1:
            raise DataError(f"{path.name} has the sheets {', '.join(names)}: say which (sheet='{names[0]}', --sheet)")
        chosen = sheet or names[0]
        expected = getattr(book[chosen], "max_row", None) or 1

    def rows() -> Iterator[Row]:
        with opened() as book:
            for number, cells in enumerate(book[chosen].iter_rows(values_only=True), start=1):
                yield [_text(cell) for cell in cells], number

    return table_of_rows(RowSource(path.name, rows, expected, plain=False, decimal_comma=False))


def _text(cell: object) -> str:
    """A cell as text; numbers keep every bit."""
    if cell is None:
        return ""
    return cell.isoformat() if isinstance(cell, date | datetime) else str(cell)


def _damaged(path: Path, error: Exception) -> DataError:
    said = " ".join(str(error).split())[:120] or type(error).__name__
    return DataError(f"{path.name} cannot be read as Excel ({said}): is the file whole? Save it again")
