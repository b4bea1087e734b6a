"""Ledger: every row of a run, in SQLite, appended a batch at a time."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from echobound.arrays import Rows
from echobound.draws import SEARCH
from echobound.errors import DamagedFile, RunError
from echobound.files import digest
from echobound.kernels.base import Status, row_dtype
from echobound.runs.database import connect, require_schema, tables_of, time_limit
from echobound.runs.lock import lock
from echobound.runs.progress import Progress
from echobound.runs.provenance import Place
from echobound.scores import Direction
from echobound.typed import shortened

SCHEMA = 2
KEY = "stream, family, number"
TABLES = {
    "about": "(name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "rows": f"(stream INTEGER, family INTEGER, number INTEGER{{columns}}, origin INTEGER NOT NULL DEFAULT 0,"
    f" PRIMARY KEY ({KEY})) WITHOUT ROWID",
    # Where rows were computed, as JSON; a row refers to it by number, 0 is not known.
    "origins": "(number INTEGER PRIMARY KEY, content TEXT NOT NULL UNIQUE)",
    # What is being done, counted in the transactions that add the rows, so that watching costs nothing.
    "progress": "(stream INTEGER, family INTEGER, planned INTEGER NOT NULL, direction TEXT NOT NULL,"
    " before INTEGER NOT NULL, started REAL NOT NULL, done INTEGER NOT NULL, low REAL, high REAL,"
    " failures INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY (stream, family))",
}
PROGRESS = "planned, direction, before, started, done, low, high, failures, at"
WINDOW = 1 << 18  # indices looked through at once
CHUNK = 1 << 13  # rows read at once: as Python objects they take ten times the memory


class Ledger:
    """The score table of a run.

    Rows are keyed by (stream, family, index) and never change. A batch is one transaction, so a run that is killed
    loses at most the batches in hand. No path keeps the table in memory; a ledger of a plan with another digest is
    refused; `write=False` opens an existing one for reading only. `release` lets go of the lock of its folder when the
    ledger is closed; it is taken here if not given.

    Examples
    --------
    >>> ledger = Ledger(None, plan="none", scores=["fit"])
    >>> rows = np.zeros(2, dtype=row_dtype(1))
    >>> rows["index"] = [0, 2]
    >>> ledger.append(rows)
    >>> list(ledger.missing(range(4)))
    [1, 3]
    """

    def __init__(
        self,
        path: Path | None,
        plan: str,
        scores: Sequence[str],
        *,
        write: bool = True,
        release: Callable[[], None] | None = None,
    ) -> None:
        self.path, self._name = path, path or "ledger"
        if release is None:
            release = lock(path.parent) if write and path is not None else lambda: None
        self._release = release
        self.scores = tuple(scores)
        self._columns = ["status", "ordr", "ridge", *(f"score_{i}" for i in range(len(self.scores))), "seconds"]
        self._write, self._prepared = write, False
        self._origins: dict[str, int] = {}
        try:
            with _sqlite_errors(self._name):
                self._open(plan)
        except BaseException:
            with suppress(AttributeError):
                self._db.close()
            self._release()
            raise

    def _open(self, plan: str) -> None:
        self._db = connect(self.path, write=self._write)
        self._opened = None if self.path is None else self.path.lstat()
        about = {"plan": plan, "scores": "\n".join(self.scores), "schema": str(SCHEMA)}
        tables = tables_of(self._db)
        if not tables and self._write:
            self._create(about)
            return
        if not tables and self.path is not None:  # a killed process leaves an empty file
            raise RunError(f"{self.path} has no rows yet: the run was stopped before the first; start it again")
        stored = self._about() if "about" in tables else {}
        schema = stored.get("schema", "")
        if isinstance(schema, str) and schema.isdecimal() and int(schema) > SCHEMA:
            raise RunError(
                f"{self.path} was written by a newer echobound (ledger schema {schema}, this one knows {SCHEMA}):"
                " nothing was changed; install that version to use it"
            )
        if tables != set(TABLES):
            names = ", ".join(sorted(TABLES))
            raise DamagedFile(self._name, "tables", f"{names} were expected, found {shortened(sorted(tables))}")
        require_schema(self._db, self._definitions, self._name)
        with time_limit(self._db, self.path):  # nothing but our own tables is read by then
            found = self._db.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if found != "ok":
            raise DamagedFile(self._name, "database", " ".join(found.split()))
        if stored.get("plan") != plan:
            raise RunError(f"{self.path} belongs to another plan: nothing was changed; choose another run folder")
        if stored != about:
            raise DamagedFile(self._name, "table about", f"unexpected content {shortened(stored)}")

    def _about(self) -> dict[Any, Any]:
        """What the ledger says of itself; a view of that name may run for ever, and tables are checked only later."""
        with time_limit(self._db, self.path):
            return dict(self._db.execute("SELECT name, value FROM about LIMIT 100").fetchall())

    @property
    def _definitions(self) -> dict[str, str]:
        """How each table is made."""
        columns = "".join(f", {name} REAL NOT NULL" for name in self._columns)
        return {name: f"CREATE TABLE {name} {content.format(columns=columns)}" for name, content in TABLES.items()}

    def _create(self, about: dict[str, str]) -> None:
        with self._writing():
            for definition in self._definitions.values():
                self._db.execute(definition)
            self._db.executemany("INSERT INTO about VALUES (?, ?)", about.items())

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        """All or nothing, also for a process that is killed."""
        self._db.execute(f"BEGIN {kind}")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite may have rolled back itself
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction that changes the file, which must still be there: SQLite would write on without its name."""
        if self.path is not None and self._opened is not None:
            try:
                there = os.path.samestat(self._opened, self.path.lstat())
            except OSError:
                there = False
            if not there:
                raise RunError(
                    f"{self.path} was removed or replaced while it was in use: what it held since then is lost; put it"
                    " back, or start the run again in another folder"
                )
        with _sqlite_errors(self._name):
            # Here, not on opening: whoever is refused before the first row leaves every byte as it was.
            if self._write and not self._prepared:
                self._db.execute("PRAGMA journal_mode=WAL")
                self._prepared = True
            with self._transaction():
                yield

    def begin(self, indices: range, direction: Direction, stream: int = SEARCH, family: int = 0) -> Progress:
        """Record what is about to be drawn, and return how much of it is there already."""
        query = (
            "SELECT count(*), min(score_0), max(score_0), coalesce(sum(status = ?), 0) FROM rows"
            " WHERE stream = ? AND family = ? AND number >= ? AND number < ?"
        )
        with self._writing():
            values = (int(Status.DIVERGED), stream, family, indices.start, indices.stop)
            done, low, high, failures = self._db.execute(query, values).fetchone()
            now = time.time()
            self._db.execute(
                "INSERT OR REPLACE INTO progress VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (stream, family, len(indices), direction, done, now, done, low, high, failures, now),
            )
        return self.progress(stream, family)

    def progress(self, stream: int = SEARCH, family: int = 0) -> Progress:
        """Progress of the latest campaign on a stream and family."""
        query = f"SELECT {PROGRESS} FROM progress WHERE stream = ? AND family = ?"
        return _progress(self._db.execute(query, (stream, family)).fetchone())

    def append(self, rows: Rows, **origin: Any) -> None:
        """Add a batch of rows of one stream and family in one transaction; a row that is there stays as it is.

        `origin` says where they were computed: ``place`` and whatever else is worth recording.
        """
        if not len(rows):
            return
        columns = [rows[name].tolist() for name in ("stream", "family", "index", "status", "order", "ridge")]
        columns += [*rows["scores"].T.tolist(), rows["seconds"].tolist()]
        places = ", ".join("?" * (len(columns) + 1))
        first, failures = rows["scores"][:, 0], int((rows["status"] == Status.DIVERGED).sum())
        counted = {"stream": columns[0][0], "family": columns[1][0], "failures": failures, "at": time.time()}
        counted |= {"low": float(first.min()), "high": float(first.max())}
        with self._writing():
            columns.append([self._origin(origin)] * len(rows))
            before = self._db.total_changes
            insert = f"INSERT INTO rows VALUES ({places}) ON CONFLICT ({KEY}) DO NOTHING"
            self._db.executemany(insert, zip(*columns, strict=True))
            self._db.execute(
                "UPDATE progress SET done = done + :new, failures = failures + :failures, at = :at,"
                " low = min(coalesce(low, :low), :low), high = max(coalesce(high, :high), :high)"
                " WHERE stream = :stream AND family = :family",
                counted | {"new": self._db.total_changes - before},
            )

    def _origin(self, origin: dict[str, Any]) -> int:
        """The number that rows refer to an origin by."""
        if not origin:
            return 0
        place = origin.pop("place", None)
        content = json.dumps(origin | (asdict(place) if isinstance(place, Place) else {}), sort_keys=True)
        if content not in self._origins:
            self._db.execute("INSERT OR IGNORE INTO origins (content) VALUES (?)", (content,))
            [number] = self._db.execute("SELECT number FROM origins WHERE content = ?", (content,)).fetchone()
            self._origins[content] = number
        return self._origins[content]

    def origins(self, stream: int = SEARCH, family: int = 0) -> list[dict[str, Any]]:
        """Where the rows of a stream and family were computed, each with its number of networks."""
        query = (
            "SELECT content, count(*) FROM rows LEFT JOIN origins ON origins.number = rows.origin"
            " WHERE stream = ? AND family = ? GROUP BY origin ORDER BY origin"
        )
        with _sqlite_errors(self._name):
            found = self._db.execute(query, (stream, family)).fetchall()
        try:
            return [{**json.loads(content or "{}"), "networks": count} for content, count in found]
        except (ValueError, TypeError, RecursionError):
            raise DamagedFile(self._name, "table origins", "JSON objects were expected") from None

    def counts(self) -> dict[tuple[int, int], int]:
        """How many rows there are of each stream and family."""
        query = "SELECT stream, family, count(*) FROM rows GROUP BY stream, family"
        with _sqlite_errors(self._name, "table rows"):
            return {(stream, family): count for stream, family, count in self._db.execute(query)}

    def rows(self, stream: int = SEARCH, family: int = 0, indices: range | None = None) -> Rows:
        """Rows of a stream and family, all or those of some indices, in the order of their index."""
        table, key = "FROM rows WHERE stream = ? AND family = ?", [stream, family]
        if indices is not None:
            table, key = f"{table} AND number >= ? AND number < ?", [*key, indices.start, indices.stop]
        names = ["number", *self._columns]
        # In a transaction, so that all of it is one state of the table.
        with _sqlite_errors(self._name, "table rows"), self._transaction("DEFERRED"):
            [count] = self._db.execute(f"SELECT count(*) {table}", key).fetchone()
            rows = np.zeros(count, dtype=row_dtype(len(self.scores)))
            rows["stream"], rows["family"] = stream, family
            cursor = self._db.execute(f"SELECT {', '.join(names)} {table} ORDER BY number", key)
            start = 0
            while part := cursor.fetchmany(CHUNK):
                try:
                    flat = np.fromiter(chain.from_iterable(part), dtype=np.float64, count=len(part) * len(names))
                except (TypeError, ValueError) as error:
                    raise DamagedFile(self._name, "table rows", str(error)) from None
                values, into = flat.reshape(-1, len(names)), rows[start : start + len(part)]
                whole = values[:, :3]  # index, status and order
                if not ((whole == np.floor(whole)) & (np.abs(whole) < 2**31)).all():
                    raise DamagedFile(self._name, "table rows", "a number that should be a whole one is not")
                into["index"], into["status"], into["order"], into["ridge"] = values[:, :4].T
                into["scores"], into["seconds"] = values[:, 4:-1], values[:, -1]
                start += len(part)
        return rows

    def missing(self, indices: range, stream: int = SEARCH, family: int = 0) -> Iterator[int]:
        """The indices that have no row yet, in order."""
        query = "SELECT number FROM rows WHERE stream = ? AND family = ? AND number >= ? AND number < ?"
        for start in range(indices.start, indices.stop, WINDOW):
            stop = min(start + WINDOW, indices.stop)
            absent = np.ones(stop - start, dtype=bool)
            with _sqlite_errors(self._name, "table rows"):
                found = self._db.execute(query, (stream, family, start, stop))
                absent[np.fromiter((number for (number,) in found), dtype=np.int64) - start] = False
            yield from (start + np.flatnonzero(absent)).tolist()

    def close(self) -> None:
        """Leave one plain file behind."""
        for _ in range(10 if self._prepared and self.path is not None else 0):
            try:
                self._db.execute("PRAGMA journal_mode=DELETE")
                break
            except sqlite3.Error:  # somebody reads it at this moment, or the disk is full: then the journal stays
                time.sleep(0.01)
        self._db.close()
        self._release()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _progress(row: Sequence[Any]) -> Progress:
    planned, direction, before, started, done, low, high, failures, at = row
    if not all(one is None or isinstance(one, int | float) for one in (*row[:1], *row[2:])):
        raise TypeError("progress is counted in numbers")
    best, worst = (high, low) if direction == "max" else (low, high)
    return Progress(done, planned, best, worst, failures, seconds=max(0.0, at - started), fresh=done - before)


def latest_progress(path: Path) -> tuple[int, int, Progress] | None:
    """Stream, family and progress of the latest campaign, from the ledger alone; None before the first one."""
    query = f"SELECT stream, family, {PROGRESS} FROM progress ORDER BY at DESC LIMIT 1"
    with _sqlite_errors(path), closing(connect(path, write=False)) as db, time_limit(db, path):
        if "progress" not in tables_of(db):
            return None
        progress = f"CREATE TABLE progress {TABLES['progress']}"
        require_schema(db, {"progress": progress}, path, others=True)
        found = db.execute(query).fetchone()
    if found is None:
        return None
    try:
        return int(found[0]), int(found[1]), _progress(found[2:])
    except (TypeError, ValueError):
        raise DamagedFile(path, "table progress", "numbers were expected") from None


@contextmanager
def _sqlite_errors(path: Path | str, part: str = "database") -> Iterator[None]:
    """Turn errors of SQLite into sentences for the user."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            raise DamagedFile(path, part, "reading it takes longer than any ledger of its size would") from None
        raise RunError(
            f"cannot use {path} ({error}): the rows before are safe; free some space or repair the permissions, and"
            " start again to resume"
        ) from None
    except sqlite3.IntegrityError:
        raise  # a row that cannot be: no fault of the file
    except sqlite3.DatabaseError as error:
        raise DamagedFile(path, part, str(error)) from None


def rows_digest(rows: Rows) -> str:
    """SHA-256 over rows in the order of their index, without the seconds they took."""
    names = [name for name in rows.dtype.names or () if name != "seconds"]
    return digest({name: rows[name] for name in names})
