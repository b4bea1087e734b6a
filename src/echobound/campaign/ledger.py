"""Ledger: every row of a run, in SQLite, appended a block at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echobound.campaign.lock import lock
from echobound.draws import SEARCH
from echobound.errors import DamagedFile, RunError
from echobound.files import digest
from echobound.kernels.base import Rows, row_dtype

__all__ = ["Ledger", "rows_digest"]

SCHEMA = 1
KEY = "stream, family, number"


class Ledger:
    """The score table of a run.

    Rows are keyed by (stream, family, index) and never change. One block is one transaction, so a run that is killed
    loses at most the blocks in hand.

    Parameters
    ----------
    path
        The file; None keeps the table in memory.
    plan
        Digest of the plan: a ledger of another plan is refused.
    scores
        Names of the scores.
    write
        False opens an existing ledger for reading only.

    Examples
    --------
    >>> ledger = Ledger(None, plan="none", scores=["fit"])
    >>> rows = np.zeros(2, dtype=row_dtype(1))
    >>> rows["index"] = [0, 1]
    >>> ledger.append(rows)
    >>> ledger.present(range(4))
    {0, 1}
    """

    def __init__(self, path: Path | None, plan: str, scores: Sequence[str], *, write: bool = True) -> None:
        self.path = path
        self._release = lock(path.parent) if write and path is not None else lambda: None
        self.scores = tuple(scores)
        self._columns = ["status", "ordr", "ridge", *(f"score_{i}" for i in range(len(self.scores))), "seconds"]
        self._write = write
        try:
            self._open(plan)
        except BaseException as error:
            self._release()
            if isinstance(error, sqlite3.OperationalError):
                raise RunError(f"cannot open {path} ({error}): check the folder and its permissions") from None
            if isinstance(error, sqlite3.DatabaseError):
                raise DamagedFile(path or "ledger", "database", str(error)) from None
            raise

    def _open(self, plan: str) -> None:
        if self.path is None:
            self._db = sqlite3.connect(":memory:")
        elif self._write:
            self._db = sqlite3.connect(self.path)
            self._db.execute("PRAGMA journal_mode=WAL")
        else:
            if not self.path.exists():
                raise RunError(f"{self.path} is missing: is {self.path.parent} a run folder?")
            self._db = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
        self._db.execute("PRAGMA trusted_schema=OFF")
        found = self._db.execute("PRAGMA quick_check").fetchone()[0]
        if found != "ok":
            raise DamagedFile(self.path or "ledger", "database", found)
        about = {"schema": str(SCHEMA), "plan": plan, "scores": "\n".join(self.scores)}
        tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables and self._write:
            self._create(about)
        elif tables != {"about", "rows"}:
            raise DamagedFile(self.path or "ledger", "tables", f"about and rows were expected, found {sorted(tables)}")
        stored = dict(self._db.execute("SELECT name, value FROM about"))
        if stored.get("plan") != plan:
            raise RunError(f"{self.path} belongs to another plan: choose another run folder")
        if stored != about:
            raise DamagedFile(self.path or "ledger", "table about", f"unexpected content {stored}")

    def _create(self, about: dict[str, str]) -> None:
        columns = "".join(f", {name} REAL NOT NULL" for name in self._columns)
        with self._db:
            self._db.execute("CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            self._db.executemany("INSERT INTO about VALUES (?, ?)", about.items())
            self._db.execute(
                f"CREATE TABLE rows (stream INTEGER, family INTEGER, number INTEGER{columns},"
                f" PRIMARY KEY ({KEY})) WITHOUT ROWID"
            )

    def append(self, rows: Rows) -> None:
        """Add a block of rows in one transaction; a row that is there already stays as it is."""
        places = ", ".join("?" * (3 + len(self._columns)))
        content = (
            (
                int(row["stream"]),
                int(row["family"]),
                int(row["index"]),
                float(row["status"]),
                float(row["order"]),
                float(row["ridge"]),
                *(float(score) for score in row["scores"]),
                float(row["seconds"]),
            )
            for row in rows
        )
        try:
            with self._db:
                self._db.executemany(f"INSERT OR IGNORE INTO rows VALUES ({places})", content)
        except sqlite3.OperationalError as error:
            raise RunError(
                f"cannot write to {self.path} ({error}): the rows before are safe; free some space or repair the"
                " permissions, and start again to resume"
            ) from None

    def rows(self, stream: int = SEARCH, family: int = 0) -> Rows:
        """All rows of a stream and family, in the order of their index."""
        names = ", ".join(["number", *self._columns])
        query = f"SELECT {names} FROM rows WHERE stream = ? AND family = ? ORDER BY number"
        try:
            table = np.array(self._db.execute(query, (stream, family)).fetchall(), dtype=np.float64)
        except (sqlite3.DatabaseError, TypeError, ValueError) as error:
            raise DamagedFile(self.path or "ledger", "table rows", str(error)) from None
        rows = np.zeros(len(table), dtype=row_dtype(len(self.scores)))
        if len(table):
            rows["stream"], rows["family"] = stream, family
            rows["index"], rows["status"], rows["order"], rows["ridge"] = table[:, :4].T
            rows["scores"], rows["seconds"] = table[:, 4:-1], table[:, -1]
        return rows

    def present(self, indices: range, stream: int = SEARCH, family: int = 0) -> set[int]:
        """Those of the indices that have a row already."""
        query = "SELECT number FROM rows WHERE stream = ? AND family = ? AND number >= ? AND number < ?"
        return {number for (number,) in self._db.execute(query, (stream, family, indices.start, indices.stop))}

    def close(self) -> None:
        """Leave one plain file behind."""
        if self._write and self.path is not None:
            with suppress(sqlite3.OperationalError):  # somebody reads it just now: the journal stays beside it
                self._db.execute("PRAGMA journal_mode=DELETE")
        self._db.close()
        self._release()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def rows_digest(rows: Rows) -> str:
    """SHA-256 over rows in the order of their index, without the seconds they took."""
    names = [name for name in rows.dtype.names or () if name != "seconds"]
    columns: dict[str, NDArray[Any]] = {name: np.ascontiguousarray(rows[name]) for name in names}
    return digest(columns)
