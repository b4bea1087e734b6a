"""Compiled code on disk: never that of other sources, never that of somebody else, and never needed."""

import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from echobound.kernels.cpu import COMPILED, cache
from echobound.kernels.cpu import bidiagonal as compiled_norm

SRC = Path(__file__).parents[1] / "src"
NORM = """
import numpy as np
from echobound.kernels import cpu
from echobound.kernels.cpu.bidiagonal import spectral_norm
values = np.random.default_rng(0).random((3, 40))
columns = np.random.default_rng(1).integers(0, 40, (3, 40))
print(spectral_norm(values, columns), sum(spectral_norm.stats.cache_hits.values()), cpu.NOT_KEPT)
"""


def run(home, code=NORM, source=SRC):
    """Norm, hits of the cache, and why nothing is kept, in a process of its own."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(home), "PYTHONPATH": str(source)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    norm, hits, why = (*done.stdout.strip().split(" ", 2), "")[:3]
    return float(norm), int(hits), why


def test_a_number_from_another_room_is_part_of_what_is_compiled(tmp_path):
    """The convergence of the norm stands in `network/`, not beside the function that it is compiled into."""
    source = tmp_path / "source"
    shutil.copytree(SRC, source, ignore=shutil.ignore_patterns("__pycache__"))
    right, hits, why = run(tmp_path, source=source)
    assert (hits, why) == (0, "")
    assert run(tmp_path, source=source) == (right, 1, ""), "the second process loads it"
    file = source / "echobound" / "network" / "spectral_norm.py"
    before = file.read_text()
    file.write_text(before.replace("CONVERGED = 1e-13", "CONVERGED = 0.5"))
    changed, hits, _ = run(tmp_path, source=source)
    assert hits == 0
    assert changed < 0.9999 * right, "the norm that these sources compute"
    file.write_text(before)
    for kept in tmp_path.rglob("*.nb[ci]"):
        kept.write_bytes(kept.read_bytes()[:50])
    assert run(tmp_path, source=source) == (right, 0, ""), "a damaged file means compiling again"


def test_everything_that_goes_into_the_code_is_in_its_name(monkeypatch, tmp_path):
    known = cache.fingerprint(COMPILED)
    assert cache.fingerprint(COMPILED) == known
    for name, value in (("CONVERGED", 1e-12), ("CHECK_EVERY", 9)):
        with monkeypatch.context() as patch:
            patch.setattr(compiled_norm, name, value)
            assert cache.fingerprint(COMPILED) != known
    with monkeypatch.context() as patch:
        patch.setattr(cache, "version", lambda name: "9.9" if name == "numba" else "1")
        assert cache.fingerprint(COMPILED) != known
    with monkeypatch.context() as patch:
        patch.setattr(cache.llvmlite.binding, "get_host_cpu_name", lambda: "another")
        assert cache.fingerprint(COMPILED) != known
    files = set()
    for function in COMPILED:
        cache._collect(function, files, set(), set())
    compiled = {path for path in (SRC / "echobound/kernels/cpu").glob("*.py") if "@njit" in path.read_text()}
    assert {str(path) for path in compiled} <= files


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_folder_is_the_users_own(home, monkeypatch, tmp_path):
    folder = cache.own_folder()
    assert folder == home / "echobound"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)  # read by others, but written by none of them
    assert stat.S_IMODE(cache.own_folder().stat().st_mode) == 0o700
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, says the standard
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.own_folder() == tmp_path / "home" / ".cache" / "echobound"


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_folder_that_others_can_write_to_is_refused(home, mode):
    cache.own_folder().chmod(mode)
    with pytest.raises(PermissionError, match="written to by others"):
        cache.own_folder()
    assert "written to by others" in cache.keep_compiled([])
    assert not list((home / "echobound").iterdir())


def test_a_folder_of_somebody_else_a_link_and_a_parent_open_to_all_are_refused(home, monkeypatch, tmp_path):
    folder = cache.own_folder()
    with monkeypatch.context() as patch:
        patch.setattr(cache.os, "getuid", lambda: os.geteuid() + 1)
        with pytest.raises(PermissionError, match="belongs to somebody else"):
            cache.own_folder()
    home.chmod(0o777)
    with pytest.raises(PermissionError, match="may rename"):
        cache.own_folder()
    home.chmod(0o1777)  # as /tmp: nobody can rename what is not theirs
    assert cache.own_folder() == folder
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="not a folder"):
        cache.own_folder()


def test_without_a_folder_code_is_kept_in_memory(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    norm, hits, why = run(blocked)
    assert hits == 0
    assert str(blocked) in why
    assert norm > 0


def test_what_no_process_has_used_for_long_is_removed(home):
    old, recent = (cache.own_folder() / f"compiled-{name}" for name in ("old", "recent"))
    for folder, age in ((old, 100), (recent, 10)):
        folder.mkdir()
        os.utime(folder, (time.time() - age * 86400,) * 2)
    assert not cache.keep_compiled([])
    assert not old.exists()
    assert recent.exists()
