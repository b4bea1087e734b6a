"""Database: a SQLite file opened with care, whoever wrote it and however the process that did so ended.

A process that is killed while SQLite changes the way it keeps its journal leaves a *hot* one, which must be played back
before anything can be read; that needs a connection that may write. A folder from somebody else may hold anything:
links, triggers, views, and journals that name files to be removed.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from echobound.errors import DamagedFile, RunError
from echobound.files import require_plain
from echobound.typed import shortened

BESIDE = ("-journal", "-wal", "-shm")  # what SQLite keeps beside a file while it is in use, or after a kill
LONGEST = 1 << 24  # bytes of one value; ours are far shorter
STEPS = 100_000  # of SQLite's machine between two looks at the clock
SECONDS, SECONDS_PER_MIB = 4.0, 1.0  # generous: a ledger is read in a tenth of that
_OF_SEVERAL = bytes.fromhex("d9d505f920a163d7")  # ends a journal that names a journal of several files


def connect(path: Path | None, *, write: bool) -> sqlite3.Connection:
    """Open a database, or one in memory; a hot journal is played back first, also where only reading was asked for."""
    if path is None:
        return _careful(sqlite3.connect(":memory:", isolation_level=None))
    require_plain(path, *(beside(path, end) for end in BESIDE))
    if not write and not path.exists():
        raise RunError(f"{path} is missing: is {path.parent} a run folder?")
    _require_own_journal(path)
    db = _open(path, "rwc" if write else "ro")
    if write:
        return db
    try:
        tables_of(db)
        return db
    except sqlite3.OperationalError as error:
        db.close()
        if not _needs_recovery(path, error):
            raise
    return _recovered(path)


def beside(path: Path, end: str) -> Path:
    """A file that SQLite keeps beside a database."""
    return path.with_name(path.name + end)


def _open(path: Path, mode: str) -> sqlite3.Connection:
    return _careful(sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None))


def _careful(db: sqlite3.Connection) -> sqlite3.Connection:
    db.execute("PRAGMA trusted_schema=OFF")
    db.execute("PRAGMA cell_size_check=ON")
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
    return db


def _needs_recovery(path: Path, error: sqlite3.OperationalError) -> bool:
    """Whether a database could not be read only because a connection that may not write cannot put it in order."""
    left = any(beside(path, end).exists() for end in BESIDE)
    return left and error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def _recovered(path: Path) -> sqlite3.Connection:
    """Let SQLite put a database in order, then open it for reading; where we may not write, do so with a copy of it."""
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        with closing(_open(path, "rw")) as db:
            tables_of(db)
        return _open(path, "ro")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        for end in ("", *BESIDE[:2]):  # the third is made anew
            if beside(path, end).exists():
                shutil.copyfile(beside(path, end), beside(copy, end))
                beside(copy, end).chmod(0o600)
        db = _careful(sqlite3.connect(":memory:", isolation_level=None))
        with closing(_open(copy, "rw")) as there:
            there.backup(db)
    db.execute("PRAGMA query_only=ON")
    return db


def _require_own_journal(path: Path) -> None:
    """Refuse a journal that names another one: SQLite would remove the file of that name, whatever it is.

    It writes such a journal for a transaction over several databases, and a ledger is never part of one.
    """
    try:
        with beside(path, "-journal").open("rb") as file:
            if file.seek(0, os.SEEK_END) >= len(_OF_SEVERAL):
                file.seek(-len(_OF_SEVERAL), os.SEEK_END)
                if file.read() == _OF_SEVERAL:
                    raise DamagedFile(beside(path, "-journal"), "end", "it names another file, which ours never does")
    except OSError:  # there is none, as nearly always
        return


def tables_of(db: sqlite3.Connection) -> set[str]:
    """Names of the tables and views of a database, from its schema alone."""
    return {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}


def require_schema(
    db: sqlite3.Connection, expected: Mapping[str, str], path: Path | str, *, others: bool = False
) -> None:
    """Refuse a database that holds anything but tables made in exactly this way: no triggers, views or other indices.

    `others` allows other tables beside them, which are then not read.
    """
    for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        if kind == "table" and name in expected and sql == expected[name]:
            continue
        if kind == "table" and others and name not in expected:
            continue
        if kind == "index" and sql is None:  # SQLite's own, of a key
            continue
        raise DamagedFile(path, f"{kind} {shortened(str(name))}", "the ledger of a run has no such part")


@contextmanager
def time_limit(db: sqlite3.Connection, path: Path | None) -> Iterator[None]:
    """Interrupt what takes longer than reading a file of this size can take."""
    size = 0 if path is None else path.stat().st_size
    end = time.monotonic() + SECONDS + SECONDS_PER_MIB * size / 2**20
    db.set_progress_handler(lambda: time.monotonic() > end, STEPS)
    try:
        yield
    finally:
        db.set_progress_handler(None, 0)
