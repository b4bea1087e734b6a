"""Whatever happens to a campaign, nothing is lost, and what went wrong is said in one sentence."""

import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_cli import echobound, refused

from echobound.errors import DamagedFile, RunError
from echobound.identify import identify
from echobound.runs.folder import RunFolder
from echobound.runs.ledger import Ledger

HERE = Path(__file__).parent
SMALL = {"law": "paper", "order": 10, "networks": 40, "beta": 1e-3, "washout": 60}
OPTIONS = ["--inputs", "q3", "--outputs", "pH", "--law", "paper", "--order", "10", "--beta", "1e-3"]


@pytest.mark.slow
def test_twenty_random_kills_change_nothing():
    command = [sys.executable, str(HERE / "survival.py"), "20", "1", "threads"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] == 20
    assert found["finished"] >= 1
    assert (found["lost"], found["changed"], found["identical"]) == (0, 0, True)


@pytest.fixture
def desk(tmp_path):
    echobound("simulate-plant", "--samples", "1500", "--output", "d.csv", cwd=tmp_path)
    return tmp_path


def started(desk, *options, rows=20, **how):
    """A long campaign that has written some rows."""
    command = [sys.executable, "-m", "echobound", "identify", "d.csv", *OPTIONS, "--networks", "60000", "--run", "r"]
    process = subprocess.Popen(
        [*command, *options],
        cwd=desk, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        # Background jobs start with SIGINT ignored; a user's do not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler), **how,
    )  # fmt: skip
    for _ in range(1200):
        assert process.poll() is None, process.communicate()
        if (desk / "r" / "ledger.sqlite").exists() and len(rows_of(desk)) >= rows:
            return process
        time.sleep(0.05)
    raise AssertionError("no rows")


def rows_of(desk):
    try:
        return RunFolder(desk / "r").rows()
    except RunError:
        return ()


@pytest.mark.parametrize(
    ("engine", "signum"), [("threads", signal.SIGTERM), ("threads", signal.SIGINT), ("processes", signal.SIGINT)]
)
def test_a_signal_lets_the_batches_in_hand_end(desk, engine, signum):
    process = started(desk, "--engine", engine, "--workers", "2")
    kept = len(rows_of(desk))
    os.killpg(process.pid, signum)  # as a terminal does: workers get it too
    output, error = process.communicate(timeout=120)
    assert process.returncode == 128 + signum
    assert output == ""
    [line] = error.splitlines()
    assert f"stopped by {signal.Signals(signum).name}" in line
    assert "the run folder r resumes from there" in line
    rows = rows_of(desk)
    assert len(rows) > kept, "the batches in hand are there too"
    assert f" at {len(rows)} of 60000 networks" in line
    assert {path.name for path in (desk / "r").iterdir()} == {"plan.json", "data.npz", "ledger.sqlite"}


def test_a_second_signal_does_not_wait(ph_records, tmp_path):
    """Sent from within, so that no moment has to be hit."""

    def impatient(event):
        if event.fresh:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as caught:
        identify(*ph_records, **SMALL, run=tmp_path / "r", on_progress=impatient)
    assert type(caught.value) is KeyboardInterrupt
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert len(identify(*ph_records, **SMALL, run=tmp_path / "r").table) == 40


def test_the_second_process_is_refused_with_pid_and_host(desk):
    process = started(desk)
    try:
        line = refused("identify", "d.csv", *OPTIONS, "--networks", "60000", "--run", "r", cwd=desk)
        assert f"in use by process {process.pid} on host {os.uname().nodename} since" in line
        watched = json.loads(echobound("watch", "r", "--json", cwd=desk).stdout)
        assert watched["running"]
        assert watched["holder"]["pid"] == process.pid
        assert 20 <= watched["done"] < watched["planned"] == 60_000
        assert watched["rate"] > 0
        assert watched["best"] > watched["worst"]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert "not running: the command that started it resumes it" in echobound("watch", "r", cwd=desk).stdout
    (desk / "r" / "ledger.lock").unlink(missing_ok=True)


def test_no_process_outlives_a_killed_one(desk):
    process = started(desk, "--engine", "processes", "--workers", "2")
    children = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    assert len(children) >= 2
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    for _ in range(600):
        if not any(alive(pid) for pid in children):
            break
        time.sleep(0.05)
    assert not any(alive(pid) for pid in children)


def alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1]
    except OSError:
        return False


def test_a_full_disk_is_said_and_nothing_is_lost(desk):
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    command = ["identify", "d.csv", *OPTIONS, "--networks", "3000", "--run", "r"]
    done = subprocess.run(
        [sys.executable, "-m", "echobound", *command], cwd=desk, capture_output=True, text=True, preexec_fn=small_files,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    [line] = done.stderr.splitlines()
    assert "ledger.sqlite" in line
    assert "the rows before are safe; free some space" in line
    kept = RunFolder(desk / "r").rows()
    assert 0 < len(kept) < 3000
    echobound(*command, cwd=desk)
    rows = RunFolder(desk / "r").search
    assert len(rows) == 3000
    assert (rows[kept["index"]] == kept).all(), "to the second each network took"


def test_a_full_database_leaves_whole_batches(tmp_path):
    from test_runs_ledger import some_rows

    path = tmp_path / "ledger.sqlite"
    with Ledger(path, "p", ["fit", "rmse"]) as ledger:
        ledger.append(some_rows(range(100)))
        pages = ledger._db.execute("PRAGMA page_count").fetchone()[0]
        ledger._db.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(RunError, match=r"database or disk is full.*free some space"):
            ledger.append(some_rows(range(100, 5000)))
        assert len(ledger.rows()) == 100
    with Ledger(path, "p", ["fit", "rmse"]) as ledger:
        ledger.append(some_rows(range(100, 5000)))
        assert len(ledger.rows()) == 5000


def test_a_folder_that_cannot_be_written(ph_records, tmp_path):
    run = identify(*ph_records, **SMALL, run=tmp_path / "r").run
    (run / "certificate.json").unlink()
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    tmp_path.chmod(0o755)
    run.chmod(0o555)
    code = (
        "import os, sys; os.getuid() or os.setuid(65534)\n"  # nothing is read-only to root
        "from pathlib import Path; from echobound.runs.lock import lock; from echobound.errors import RunError\n"
        "try: lock(Path(sys.argv[1]))\n"
        "except RunError as error: print(error)"
    )
    # Imported first, in case another user may not read the sources.
    code = "import fcntl, echobound.runs.lock\n" + code
    target = tmp_path / "r"
    for parent in [tmp_path, *tmp_path.parents][:3]:
        if os.getuid() == 0 and parent != Path("/tmp"):
            parent.chmod(parent.stat().st_mode | 0o055)
    done = subprocess.run([sys.executable, "-c", code, str(target)], capture_output=True, text=True, check=False)
    run.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert "cannot write in" in done.stdout
    assert "Permission denied" in done.stdout
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_a_damaged_ledger_is_found_before_anything_is_added(ph_records, tmp_path):
    run = identify(*ph_records, **SMALL | {"networks": 2000}, run=tmp_path / "r").run
    (run / "certificate.json").unlink()
    path = run / "ledger.sqlite"
    content = bytearray(path.read_bytes())
    content[5 * 4096 : 6 * 4096] = os.urandom(4096)
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=r"ledger\.sqlite is damaged.*restore it from a copy or repeat the run"):
        identify(*ph_records, **SMALL | {"networks": 2000}, run=run)
    assert path.read_bytes() == content
    assert not (run / "ledger.lock").exists()


def test_a_ledger_of_another_plan_is_refused(ph_records, tmp_path):
    one = identify(*ph_records, **SMALL, run=tmp_path / "one").run
    two = identify(*ph_records, **SMALL, seed=1, run=tmp_path / "two").run
    (two / "certificate.json").unlink()
    shutil.copy(one / "ledger.sqlite", two / "ledger.sqlite")
    content = (two / "ledger.sqlite").read_bytes()
    with pytest.raises(RunError, match=r"ledger\.sqlite belongs to another plan: nothing was changed"):
        identify(*ph_records, **SMALL, seed=1, run=two)
    assert (two / "ledger.sqlite").read_bytes() == content


def test_data_that_changed_since_the_plan(ph_records, tmp_path):
    training, validation = ph_records
    run = identify(training, validation, **SMALL, run=tmp_path / "r").run
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    with pytest.raises(RunError, match=r"the data have changed since the plan .* \(digest \w{8}, now \w{8}\)"):
        identify(training.part(0, 699), validation, **SMALL | {"washout": 60}, run=run)
    changed = type(training)(
        u=training.u, y=training.y + 1e-9, sampling_time=training.sampling_time,
        input_names=training.input_names, output_names=training.output_names, name=training.name,
        input_units=training.input_units, output_units=training.output_units,
    )  # fmt: skip
    with pytest.raises(RunError, match="the data have changed"):
        identify(changed, validation, **SMALL, run=run)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    (run / "certificate.json").unlink()
    shutil.copy(identify(changed, validation, **SMALL, run=tmp_path / "other").run / "data.npz", run / "data.npz")
    with pytest.raises(DamagedFile, match=r"data\.npz.*not the data of plan\.json"):
        identify(training, validation, **SMALL, run=run)


def test_killed_while_the_plan_was_written(ph_records, tmp_path):
    run = tmp_path / "r"
    run.mkdir()
    (run / ".plan.json.x7k2").write_text('{"half')
    assert len(identify(*ph_records, **SMALL, run=run).table) == 40


def test_killed_while_the_ledger_was_made(ph_records, tmp_path, monkeypatch):
    """All tables or none: a process that ends half way leaves a ledger that the next one can use."""
    path = tmp_path / "ledger.sqlite"
    code = (
        "import os, sys; from pathlib import Path; import echobound.runs.ledger as module\n"
        "module.TABLES['origins'] = 'AS SELECT stop()'\n"
        "connect = module.connect\n"
        "def stopping(path, write):\n"
        "    db = connect(path, write=write); db.create_function('stop', 0, lambda: os._exit(9)); return db\n"
        "module.connect = stopping\n"
        "module.Ledger(Path(sys.argv[1]), 'p', ['fit'])"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 9
    assert path.exists()
    with Ledger(path, "p", ["fit"]) as ledger:
        assert len(ledger.rows()) == 0


def test_a_ledger_of_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger(path, "p", ["fit"]):
        pass
    with sqlite3.connect(path) as db:
        db.execute("UPDATE about SET value = '3' WHERE name = 'schema'")
    db.close()
    for write in (True, False):
        with pytest.raises(RunError, match=r"newer echobound \(ledger schema 3, this one knows 2\)"):
            Ledger(path, "p", ["fit"], write=write)
