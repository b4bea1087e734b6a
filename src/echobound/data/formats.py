"""Files of any kind as tables; the kind is told by the first bytes of a file, not by its name."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from echobound.data.cells import Row, RowSource, table_of_rows
from echobound.data.frames import read_parquet
from echobound.data.layout import HEAD, find_layout
from echobound.data.table import Table, reading_as
from echobound.data.text import read_text
from echobound.data.variables import read_mat, read_npy, read_npz
from echobound.errors import DataError, MissingExtra

KINDS = {".parquet": "Parquet", ".pq": "Parquet", ".mat": "MATLAB", ".npz": "NPZ", ".npy": "NPY"}
KINDS |= {".xlsx": "Excel", ".xlsm": "Excel"}
"""What the end of a name promises; a file that is something else is refused rather than read as text."""


def read_table(
    path: str | os.PathLike[str],
    sheet: str | None = None,
    *,
    header_row: int | None = None,
    skip_rows: int | None = None,
    dates: str | None = None,
) -> Table:
    r"""Open a file as a table: text (CSV and the like), Parquet, MATLAB .mat, NPZ, NPY or Excel .xlsx.

    Cells of text files are separated by commas, semicolons, tabs or white space. Names are in the last row of text
    above the first row of numbers, or in the last comment before it; a row of units may stand under them, or a unit in
    brackets behind a name. What stands above is a title. Lines before the table that start with ``#`` or ``%`` are
    skipped, and blank lines everywhere. A comma may be the decimal mark if it does not separate cells. Encodings:
    UTF-8, UTF-16 with a byte-order mark, otherwise Latin-1.

    Variables of .mat and .npz files are columns by name: a matrix ``u`` stands for ``u[1]``, ``u[2]``, ...; fields of a
    structure are ``name.field``. Numbers are loaded when columns are asked for, and only those columns.

    Parameters
    ----------
    path
        The file.
    sheet
        Sheet of an Excel file; needed if several hold something.
    header_row
        The row that has the names, if it is not found; 0 if none has. Text and Excel files.
    skip_rows
        Rows at the top to pass over. Text and Excel files.
    dates
        ``"european"`` (31/12/2024) or ``"american"`` (12/31/2024), where the dates themselves do not tell.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "arm.dat"
    ...     _ = path.write_text("  0.5   1e-3\n  0.6   2e-3\n")
    ...     read_table(path).signal([2]).tolist()
    [[0.001], [0.002]]
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # opening a pipe would wait for its other end
            raise DataError(f"{path} is a pipe or a device: give a data file, saved on a disk")
        with path.open("rb") as file:
            start = file.read(16)
    except FileNotFoundError:
        raise DataError(f"there is no file {path}: check its name and folder") from None
    except OSError as error:
        raise DataError(f"cannot read {path} ({error.strerror}): give a data file that can be read") from None
    found, promised = _kind(path, start), KINDS.get(path.suffix.lower())
    if promised and not start:
        raise DataError(f"{path.name} is empty: {promised} data were expected, so save or export it again")
    if promised and found != promised and not (promised == "MATLAB" and found == "text"):
        raise DataError(
            f"{path.name} is not the {promised} file that its name promises (it begins like {found}): check that it is"
            " complete and has the right name"
        )
    if sheet is not None and found != "Excel":
        raise DataError(f"{path.name} has no sheets: leave sheet={sheet!r} out")
    cells = {"header_row": header_row, "skip_rows": skip_rows}
    for option, value in cells.items():
        if value is not None and found not in ("text", "Excel"):
            raise DataError(
                f"{path.name} has no rows above its data: leave out {option} (--{option.replace('_', '-')})"
            )
        if value is not None and value < 0:
            raise DataError(f"{option} must be a number of rows, 0 or more, got {value}")
    if promised == "MATLAB" or found == "MATLAB":
        return read_mat(path)  # by its name as well: version 4 of the format has no signature
    if found == "Excel":
        return _read_excel(path, sheet, skip_rows or 0, header_row, dates)
    if found == "text":
        return read_text(path, skip_rows or 0, header_row, dates)
    if found not in READERS:
        raise DataError(f"{path.name} is {found}, which cannot be read here: {_REMEDIES[found]}")
    return READERS[found](path)


READERS = {"Parquet": read_parquet, "NPZ": read_npz, "NPY": read_npy}


_REMEDIES = {
    "an old Excel file": "save it as .xlsx",
    "an HDF5 file that MATLAB did not write": "save its data as CSV, NPZ or Parquet",
    "a ZIP archive": "unpack it and give the files in it",
}
_SIGNATURES = {
    b"PAR1": "Parquet",
    b"MATLAB": "MATLAB",
    b"\x93NUMPY": "NPY",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"\x89HDF": "an HDF5 file that MATLAB did not write",  # MATLAB puts a header of its own before HDF5
    b"PK\x03\x04": "a ZIP archive",
}


def _kind(path: Path, start: bytes) -> str:
    kind = next((kind for signature, kind in _SIGNATURES.items() if start.startswith(signature)), "text")
    if kind == "a ZIP archive":  # Excel and NPZ files are archives, told apart by what is in them
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            raise DataError(f"{path.name} is a damaged ZIP archive: is the file complete? Save it again") from None
        if "xl/workbook.xml" in names:
            return "Excel"
        return "NPZ" if names and all(name.endswith(".npy") for name in names) else kind
    return kind


ROWS = 1 << 20  # of an Excel sheet, at most
PACKED = 400  # bytes that one byte of an Excel file unpacks to, at most; zeros in all cells reach 200


def _require_unpackable(path: Path) -> None:
    """Refuse an archive that claims to unpack to far more than tables do."""
    with reading_as(path, "an Excel file"), zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.file_size > PACKED * info.compress_size + (1 << 20):
                raise DataError(
                    f"{path.name} claims that {info.compress_size} bytes unpack to {info.file_size}, which no sheet"
                    " does: save it again"
                )


def _read_excel(path: Path, sheet: str | None, skip: int, header_row: int | None, dates: str | None) -> Table:
    """Read one sheet row by row; formulas have the values that were saved with them."""
    try:
        import openpyxl
    except ImportError:
        raise MissingExtra("reading Excel files", extra="files") from None
    _require_unpackable(path)

    @contextmanager
    def opened() -> Iterator[Any]:
        # Not by its path: openpyxl refuses a name that does not end in .xlsx.
        with path.open("rb") as file, reading_as(path, "an Excel file"):
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            yield book
            book.close()

    with opened() as book:
        names = list(book.sheetnames)
        if sheet is not None and sheet not in names:
            raise DataError(f"{path.name} has no sheet {sheet!r}: it has {', '.join(names)}")
        filled = names if sheet is not None or len(names) == 1 else [name for name in names if _holds_cells(book[name])]
        if sheet is None and len(filled) > 1:
            quoted = f'"{filled[0]}"' if " " in filled[0] else filled[0]
            raise DataError(
                f"{path.name} has the sheets {', '.join(filled)}: say which one to read (sheet='{filled[0]}', --sheet"
                f" {quoted})"
            )
        chosen = sheet or (filled or names)[0]
        expected = min(getattr(book[chosen], "max_row", None) or 1, ROWS)
        blank = [""] * min(getattr(book[chosen], "max_column", None) or 2, 2)

    def rows() -> Iterator[Row]:
        with opened() as book:
            sheet = book[chosen]
            sheet.reset_dimensions()  # or each row would be filled up to the width that the sheet claims
            found = sheet.iter_rows(max_row=ROWS + 1, values_only=True, min_row=skip + 1)
            for number, cells in enumerate(found, start=skip + 1):
                if number > ROWS:  # rows that are left out are filled in, however many they are
                    raise DataError(f"{path.name} has more than {ROWS} rows, which Excel does not: save it again")
                # As text, in which numbers keep every bit.
                texts = ["" if c is None else c.isoformat() if isinstance(c, date) else str(c) for c in cells]
                yield texts or blank, number

    source = RowSource(path.name, rows, expected, plain=False, decimal_comma=False, dates=dates)
    return table_of_rows(source, find_layout(path.name, source.head(), False, header_row))


def _holds_cells(sheet: Any) -> bool:
    """Whether a sheet has anything in its first rows; a new workbook of older versions has two empty ones."""
    rows = sheet.iter_rows(values_only=True, max_row=HEAD) if hasattr(sheet, "iter_rows") else ()
    return any(cell is not None for row in rows for cell in row)
