"""Kills: commands end at any moment, and by any signal; the folder opens, nothing is lost, and the end is the same."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np

from attacks.lives import NETWORKS, identity, rows_of, search, started
from echobound import generalise, verify
from echobound.errors import EchoboundError
from echobound.kernels.base import row_dtype
from echobound.report import write_page
from echobound.runs.folder import RunFolder
from echobound.runs.ledger import Ledger

STEPS = 6  # commands that one attempt runs, each of which may take its time
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
# What is killed, and how often: processes, clusters and pages take seconds to start or to write.
COMMANDS = {"search": 30, "verify": 12, "generalise": 12, "ledger": 36, "processes": 4, "report": 4, "dask": 2}


def prepare(folder: Path) -> None:
    """An uninterrupted run, with and without fresh networks."""
    search(folder / "whole")
    shutil.copytree(folder / "whole", folder / "verified")
    verify(folder / "verified", fresh=20)


def attempt(folder: Path, number: int) -> str:
    """Kill a command once, look at the folder, and let the same command end."""
    chance, tried = random.Random(number), folder / "tried"
    shutil.rmtree(tried, ignore_errors=True)
    tried.mkdir()
    [kind], signum = chance.choices(list(COMMANDS), list(COMMANDS.values())), chance.choice(SIGNALS)
    if kind == "ledger":
        return _ledger(tried, chance)
    run = tried / "run"
    if kind not in ("search", "processes", "dask"):
        shutil.copytree(folder / "whole", run)
    engine = {"engine": kind, "workers": 2} if kind in ("processes", "dask") else {}
    work = {
        "verify": lambda: verify(run, fresh=20),
        "generalise": lambda: generalise(run),
        "report": lambda: write_page(RunFolder(run)),
    }.get(kind, lambda: search(run, **engine))
    child = started(work)
    longest = {"processes": 2.0, "dask": 5.0, "report": 0.6}.get(kind, 0.5)
    time.sleep(chance.uniform(0, chance.choice((0.1, 0.5, 1.0)) * longest))
    os.kill(child, signum)
    if signum == signal.SIGKILL:  # its workers are not its business any more
        os.waitpid(child, 0)
        _end_group(child)
    else:
        os.waitpid(child, 0)
    before = _look(run)
    again = started(work, tried / "log")
    _, status = os.waitpid(again, 0)
    said = (tried / "log").read_text()[-400:] if (tried / "log").exists() else ""
    assert status == 0, f"lost: {kind} does not end after {signum.name}: {said}"
    after = rows_of(run)
    assert all(after.get(key) == row for key, row in before.items()), f"lost: rows of {kind} after {signum.name}"
    expected = identity(folder / "whole")[:2]
    assert identity(run)[:2] == expected, f"lost: {kind} ends otherwise after {signum.name}"
    search_rows = sum(stream == 0 for stream, _ in after)
    assert search_rows == NETWORKS, f"lost: {search_rows} rows after {signum.name}"
    return f"{kind} resumed"


def _end_group(child: int) -> None:
    """End the workers of a process that was killed."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        return


def _look(run: Path) -> dict[tuple[int, int], tuple[float, ...]]:
    """What a user would do first: open it. A run that is not finished says so."""
    if run.exists():
        try:
            _ = RunFolder(run).certificate
        except EchoboundError as error:
            _require_said(error, "damaged", "cannot use")
    return rows_of(run)


def _require_said(error: Exception, *never: str, ever: tuple[str, ...] = ("",)) -> None:
    said = str(error)
    assert not any(words in said for words in never), f"lost: {said}"
    assert any(words in said for words in ever), f"lost: {said}"


def _ledger(tried: Path, chance: random.Random) -> str:
    """Aimed: a ledger is opened, written and closed again and again, and killed within milliseconds."""
    path = tried / "ledger.sqlite"

    def work() -> None:
        for start in range(0, 10_000, 5):
            rows = np.zeros(5, dtype=row_dtype(1))
            rows["index"] = np.arange(start, start + 5)
            with Ledger(path, "p", ["fit"]) as ledger:
                ledger.append(rows)

    child = started(work)
    time.sleep(chance.uniform(0, 0.06))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    count = 0
    try:
        with Ledger(path, "p", ["fit"], write=False) as ledger:
            count = len(ledger.rows())
    except EchoboundError as error:
        _require_said(error, ever=("no rows yet", "is missing"))
    assert count % 5 == 0, "lost: half a batch"
    with Ledger(path, "p", ["fit"]) as ledger:
        assert len(ledger.rows()) == count, "lost: rows"
    return "ledger opened"
