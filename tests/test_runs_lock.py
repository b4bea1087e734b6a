"""One writer for a folder, and who it is."""

import os
import subprocess
import sys

import pytest

from echobound.errors import DamagedFile, RunError
from echobound.runs.lock import NAME, holder, lock


def test_the_holder_is_named_and_the_file_goes_with_it(tmp_path):
    assert holder(tmp_path) is None
    release = lock(tmp_path)
    about = holder(tmp_path)
    assert (about["pid"], about["host"]) == (os.getpid(), os.uname().nodename)
    with pytest.raises(RunError, match=rf"in use by process {os.getpid()} on host {os.uname().nodename} since 20"):
        lock(tmp_path)
    release()
    release()
    assert holder(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    lock(tmp_path)()


def test_what_a_killed_process_left_locks_nothing(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from echobound.runs.lock import lock;"
        "lock(Path(sys.argv[1])); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 9
    assert (tmp_path / NAME).exists()
    assert holder(tmp_path) is None
    release = lock(tmp_path)
    assert holder(tmp_path)["pid"] == os.getpid()
    release()


def test_a_file_that_says_nothing(tmp_path):
    release = lock(tmp_path)
    (tmp_path / NAME).write_text("{")
    assert holder(tmp_path) == {"pid": None, "host": None, "since": None}
    with pytest.raises(RunError, match="in use by another process"):
        lock(tmp_path)
    release()


def test_the_lock_of_a_file_that_is_gone_does_not_count(tmp_path):
    """The holder removes the file and lets go; whoever had opened it before must not take that for the lock."""
    first = lock(tmp_path)
    (tmp_path / NAME).unlink()
    second = lock(tmp_path)  # another file of that name
    assert holder(tmp_path) is not None
    second()
    first()


def test_a_file_system_without_locks_is_refused(tmp_path, monkeypatch):
    import fcntl

    def no_locks(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(RunError, match=r"has no locks \(Function not implemented\).*put the run folder on another"):
        lock(tmp_path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(RunError, match="cannot write in"):
        lock(tmp_path / "none")


def test_a_link_is_not_followed(tmp_path):
    mine = tmp_path / "mine"
    mine.write_text("precious")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / NAME).symlink_to(mine)
    with pytest.raises(DamagedFile, match="a link, which is not followed"):
        lock(folder)
    assert holder(folder) is None
    (folder / NAME).unlink()
    (folder / NAME).hardlink_to(mine)
    with pytest.raises(DamagedFile, match="a small file of its own"):
        lock(folder)
    assert mine.read_text() == "precious"


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / NAME)
    with pytest.raises(DamagedFile, match="a small file of its own"):
        lock(tmp_path)
    assert holder(tmp_path) is None


def test_the_lock_of_a_successor_stays(tmp_path):
    first = lock(tmp_path)
    (tmp_path / NAME).unlink()  # by somebody who thought that it was left over
    second = lock(tmp_path)
    first()
    with pytest.raises(RunError, match="in use by process"):
        lock(tmp_path)
    second()
    assert not (tmp_path / NAME).exists()


def test_what_the_holder_says_of_itself_cannot_steer_a_terminal(tmp_path):
    release = lock(tmp_path)
    (tmp_path / NAME).write_text('{"pid": 1, "host": "\\u001b[2J", "since": "now"}')
    assert holder(tmp_path) == {"pid": 1, "host": r"\u001b[2J", "since": "now"}
    (tmp_path / NAME).write_text('{"pid": [], "host": 1, "since": null}')
    assert holder(tmp_path) == {"pid": None, "host": None, "since": None}
    release()
