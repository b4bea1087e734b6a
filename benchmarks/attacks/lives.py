"""Commands in processes of their own, copies of this one, so that nothing is loaded or compiled again."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from echobound import identify, ph_experiment
from echobound.runs.folder import RunFolder

sys.modules["echobound.identify"].write_page = lambda _: None  # type: ignore[attr-defined]  # `report` makes it, too
NETWORKS = 120
SETTINGS = {"law": "paper", "order": 4, "beta": 0.05, "washout": 20, "committee": 3}
RECORDS = ph_experiment(samples=(150, 120, 90, 90))


def search(run: Path, **settings: object) -> None:
    """Identify in a folder, with test data."""
    training, validation, *test = RECORDS
    identify(training, validation, test=test, run=run, **{**SETTINGS, "networks": NETWORKS, **settings})  # type: ignore[arg-type]


def started(work: Callable[[], object], log: Path | None = None) -> int:
    """Start work in a copy of this process; it ends with 0, or with 1 and the error in its log."""
    # A signal before the handlers stand would let the copy go on as if it were this process.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return child
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        work()
        code = 0
    except BaseException:
        if log is not None:
            log.write_text(traceback.format_exc())
    finally:
        os._exit(code)


def rows_of(run: Path) -> dict[tuple[int, int], tuple[float, ...]]:
    """Scores of all rows, by stream and index, without the checks of echobound."""
    if not (run / "ledger.sqlite").exists():
        return {}
    db = sqlite3.connect(run / "ledger.sqlite")
    try:
        found = db.execute("SELECT stream, number, status, score_0 FROM rows").fetchall()
    except sqlite3.OperationalError:  # before there were tables
        return {}
    finally:
        db.close()
    return {(stream, number): tuple(rest) for stream, number, *rest in found}


def identity(run: Path) -> tuple[object, ...]:
    """What a finished run must have, bit for bit; opening it derives its certificate again."""
    folder = RunFolder(run)
    return folder.certificate.to_dict()["digest"], folder.model.digest, len(folder.fresh)
