"""A ledger opens again after any kill, and one from somebody else does nothing but hold rows."""

import os
import sqlite3
import time

import numpy as np
import pytest

from echobound.errors import DamagedFile, RunError
from echobound.kernels.base import row_dtype
from echobound.runs import database
from echobound.runs.ledger import Ledger, latest_progress


def written(path, count=300):
    """A ledger as a finished run leaves it."""
    rows = np.zeros(count, dtype=row_dtype(1))
    rows["index"] = np.arange(count)
    with Ledger(path, "p", ["fit"]) as ledger:
        ledger.begin(range(count), "max")
        ledger.append(rows)


def read(path):
    with Ledger(path, "p", ["fit"], write=False) as ledger:
        return len(ledger.rows())


def hot_journal(path):
    """Leave what a kill leaves while pages are being written with a rollback journal, as on opening and closing."""
    child = os.fork()
    if not child:
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA cache_size=1")
        db.execute("BEGIN")
        db.execute("UPDATE rows SET seconds = 1")
        db.execute("UPDATE rows SET number = number + 1000000")
        os._exit(9)
    os.waitpid(child, 0)
    assert path.with_name("ledger.sqlite-journal").stat().st_size > 0


def test_a_hot_journal_is_played_back_by_whoever_reads_first(tmp_path):
    path = tmp_path / "ledger.sqlite"
    written(path)
    hot_journal(path)
    assert latest_progress(path)[2].done == 300
    hot_journal(path)
    assert read(path) == 300
    assert not path.with_name("ledger.sqlite-journal").exists()


def test_a_hot_journal_where_we_may_not_write_is_played_back_in_a_copy(tmp_path, monkeypatch):
    path = tmp_path / "ledger.sqlite"
    written(path)
    hot_journal(path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    monkeypatch.setattr(database.os, "access", lambda *_: False)
    assert read(path) == 300
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_an_empty_file_is_a_run_that_has_not_begun(tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.touch()
    with pytest.raises(RunError, match=r"no rows yet.*start it again") as found:
        read(path)
    assert not isinstance(found.value, DamagedFile)
    written(path)
    assert read(path) == 300


def test_a_journal_that_names_another_file_is_refused(tmp_path):
    """SQLite would remove the file that it names."""
    path, mine = tmp_path / "ledger.sqlite", tmp_path / "mine.txt"
    written(path)
    hot_journal(path)
    mine.write_bytes(b"precious\0")
    name = str(mine).encode()
    journal = path.with_name("ledger.sqlite-journal")
    sector = -(-journal.stat().st_size // 512) * 512
    end = b"\0\0\0\0" + name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + database._OF_SEVERAL
    journal.write_bytes(journal.read_bytes().ljust(sector, b"\0") + end)
    for opened in (lambda: read(path), lambda: Ledger(path, "p", ["fit"]), lambda: latest_progress(path)):
        with pytest.raises(DamagedFile, match="names another file"):
            opened()
    assert mine.exists()


@pytest.mark.parametrize("end", ["", "-journal", "-wal", "-shm"])
def test_links_are_not_followed(tmp_path, end):
    path, mine = tmp_path / "ledger.sqlite", tmp_path / "mine"
    written(mine if end == "" else path)
    mine.touch()
    before = mine.read_bytes()
    (tmp_path / f"ledger.sqlite{end}").symlink_to(mine)
    for opened in (lambda: read(path), lambda: Ledger(path, "p", ["fit"])):
        with pytest.raises(DamagedFile, match="a link"):
            opened()
    assert mine.read_bytes() == before


FOREIGN = {
    "trigger": "CREATE TRIGGER t AFTER INSERT ON rows BEGIN UPDATE rows SET score_0 = 0; END",
    "view": "CREATE VIEW more AS SELECT * FROM rows",
    "index": "CREATE INDEX i ON rows (score_0)",
    "table": "CREATE TABLE more (a)",
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_anything_but_our_tables_is_refused(tmp_path, kind):
    path = tmp_path / "ledger.sqlite"
    written(path)
    with sqlite3.connect(path) as db:
        db.execute(FOREIGN[kind])
    db.close()
    for write in (False, True):
        with pytest.raises(DamagedFile, match=f"tables|{kind}"):
            Ledger(path, "p", ["fit"], write=write)


def test_a_table_made_in_another_way_is_refused(tmp_path):
    path = tmp_path / "ledger.sqlite"
    written(path)
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE rows")
        columns = "status, ordr, ridge, score_0, seconds, origin"
        db.execute(f"CREATE TABLE rows (stream, family, number, {columns})")
    db.close()
    with pytest.raises(DamagedFile, match="table rows"):
        read(path)


NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
ENDLESS = f"{NUMBERS} SELECT i AS name, i AS value FROM n WHERE i < 0"


@pytest.mark.parametrize("name", ["about", "progress"])
def test_a_view_that_never_ends_is_not_waited_for(tmp_path, monkeypatch, name):
    path = tmp_path / "ledger.sqlite"
    written(path)
    with sqlite3.connect(path) as db:
        db.execute(f"DROP TABLE {name}")
        db.execute(f"CREATE VIEW {name} AS {ENDLESS}")
    db.close()
    monkeypatch.setattr(database, "SECONDS", 0.2)
    start = time.monotonic()
    with pytest.raises(DamagedFile):
        read(path)
    if name == "progress":
        with pytest.raises(DamagedFile):
            latest_progress(path)
    assert time.monotonic() - start < 60  # it would be for ever


def test_a_ledger_that_is_removed_while_it_is_written_is_noticed_at_once(tmp_path):
    path = tmp_path / "ledger.sqlite"
    rows = np.zeros(1, dtype=row_dtype(1))
    with Ledger(path, "p", ["fit"]) as ledger:
        ledger.append(rows)
        for file in tmp_path.glob("ledger.sqlite*"):
            file.unlink()
        with pytest.raises(RunError, match="was removed or replaced while it was in use"):
            ledger.append(rows)


@pytest.mark.parametrize("value", [1e300, 0.5, b"x", "x", 2.0**40])
def test_whole_numbers_are_whole(tmp_path, value):
    path = tmp_path / "ledger.sqlite"
    written(path, 3)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE rows SET status = ? WHERE number = 1", (value,))
    db.close()
    with pytest.raises(DamagedFile, match="table rows"):
        read(path)
