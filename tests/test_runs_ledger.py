import sqlite3

import numpy as np
import pytest

from echobound.draws import VERIFICATION
from echobound.errors import DamagedFile, RunError
from echobound.kernels import row_dtype
from echobound.runs.ledger import Ledger, rows_digest


def some_rows(indices, stream=0, family=0, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.zeros(len(indices), dtype=row_dtype(2))
    rows["stream"], rows["family"], rows["index"] = stream, family, indices
    rows["order"], rows["ridge"] = 20, 1e-8
    rows["scores"] = rng.normal(size=(len(indices), 2))
    rows["seconds"] = rng.random(len(indices))
    return rows


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite", plan="p", scores=["fit", "rmse"]) as ledger:
        yield ledger


def test_rows_come_back_bit_for_bit_and_in_order(ledger):
    rows = some_rows([3, 0, 2, 1])
    rows["scores"][1] = [-np.inf, np.inf]
    rows["status"][1] = 1
    ledger.append(rows[:2])
    ledger.append(rows[2:])
    back = ledger.rows()
    expected = rows[np.argsort(rows["index"])]
    for name in rows.dtype.names:
        assert (back[name] == expected[name]).all(), name


def test_streams_and_families_are_apart(ledger):
    ledger.append(some_rows([0, 1]))
    ledger.append(some_rows([0, 1, 2], stream=VERIFICATION))
    ledger.append(some_rows([5], family=200))
    assert [len(ledger.rows(*key)) for key in ((0, 0), (VERIFICATION, 0), (0, 200), (1, 200))] == [2, 3, 1, 0]
    assert list(ledger.missing(range(4))) == [2, 3]
    assert list(ledger.missing(range(1, 4), VERIFICATION)) == [3]


def test_a_row_is_written_once(ledger):
    first = some_rows([0, 1], seed=1)
    ledger.append(first)
    ledger.append(some_rows([1, 2], seed=2))
    assert (ledger.rows()["scores"][:2] == first["scores"]).all()
    assert len(ledger.rows()) == 3


def test_reopening_goes_on_and_another_plan_is_refused(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger(path, "p", ["fit", "rmse"]) as ledger:
        ledger.append(some_rows([0]))
    assert [p.name for p in tmp_path.iterdir()] == ["ledger.sqlite"], "one plain file is left"
    with Ledger(path, "p", ["fit", "rmse"]) as ledger:
        assert list(ledger.missing(range(2))) == [1]
    with pytest.raises(RunError, match="another plan"):
        Ledger(path, "q", ["fit", "rmse"])
    with Ledger(path, "p", ["fit", "rmse"], write=False) as ledger:
        assert len(ledger.rows()) == 1
        with pytest.raises(RunError):
            ledger.append(some_rows([1]))


def test_damage_is_found(tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"this is not a database, but long enough to look like one" * 100)
    with pytest.raises(DamagedFile, match="database"):
        Ledger(path, "p", ["fit"], write=False)
    with pytest.raises(RunError, match="missing"):
        Ledger(tmp_path / "none.sqlite", "p", ["fit"], write=False)


def test_a_page_of_garbage_is_found(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger(path, "p", ["fit", "rmse"]) as ledger:
        ledger.append(some_rows(range(2000)))
    content = bytearray(path.read_bytes())
    content[8192:12288] = b"\xff" * 4096
    path.write_bytes(content)
    with pytest.raises(DamagedFile), Ledger(path, "p", ["fit", "rmse"], write=False) as ledger:
        ledger.rows()


def test_a_changed_table_is_refused(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger(path, "p", ["fit", "rmse"]):
        pass
    with sqlite3.connect(path) as db:
        db.execute("UPDATE about SET value = 'mae' WHERE name = 'scores'")
    db.close()
    with pytest.raises(DamagedFile, match="about"):
        Ledger(path, "p", ["fit", "rmse"])


def test_a_missing_table_is_damage(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger(path, "p", ["fit"]):
        pass
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE about")
    db.close()
    with pytest.raises(DamagedFile, match="tables"):
        Ledger(path, "p", ["fit"], write=False)


def test_text_in_a_number_is_damage(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger(path, "p", ["fit", "rmse"]) as ledger:
        ledger.append(some_rows([0, 1]))
    with sqlite3.connect(path) as db:
        db.execute("UPDATE rows SET score_0 = 'abc' WHERE number = 1")
    db.close()
    with pytest.raises(DamagedFile, match="rows"), Ledger(path, "p", ["fit", "rmse"], write=False) as ledger:
        ledger.rows()


def test_a_second_writer_is_refused_at_once_and_readers_are_not(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger(path, "p", ["fit", "rmse"]) as ledger:
        ledger.append(some_rows([0]))
        with pytest.raises(RunError, match="in use"):
            Ledger(path, "p", ["fit", "rmse"])
        with Ledger(path, "p", ["fit", "rmse"], write=False) as reader:
            assert len(reader.rows()) == 1
    with Ledger(path, "p", ["fit", "rmse"]) as ledger:
        assert len(ledger.rows()) == 1


def test_rows_that_come_while_one_reads_are_for_the_next_time(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger(path, "p", ["fit", "rmse"]) as ledger, Ledger(path, "p", ["fit", "rmse"], write=False) as reader:
        ledger.append(some_rows(range(10)))

        def more(statement):
            if "ORDER BY" in statement:
                ledger.append(some_rows(range(10, 20)))

        reader._db.set_trace_callback(more)
        assert len(reader.rows()) == 10
        reader._db.set_trace_callback(None)
        assert len(reader.rows()) == 20


def test_digest_covers_everything_but_the_seconds():
    rows = some_rows(range(5))
    other = rows.copy()
    other["seconds"] += 1
    assert rows_digest(rows) == rows_digest(other)
    for name in ("status", "order", "ridge", "index"):
        changed = rows.copy()
        changed[name][2] += 1
        assert rows_digest(changed) != rows_digest(rows), name
    changed = rows.copy()
    changed["scores"][3, 1] = np.nextafter(changed["scores"][3, 1], 10)
    assert rows_digest(changed) != rows_digest(rows)
