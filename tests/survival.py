"""A campaign that is killed again and again, and what becomes of it.

Usage: python tests/survival.py KILLS SEED ENGINE; prints what was found as JSON.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory

from echobound.errors import RunError
from echobound.identify import identify
from echobound.plants import ph_experiment
from echobound.runs.folder import RunFolder

NETWORKS = 3000


def campaign(run, engine="threads"):
    training, validation = ph_experiment(samples=(400, 300))
    return identify(training, validation, law="paper", order=8, networks=NETWORKS, washout=60, run=run, engine=engine)


def attempt(run, engine):
    """The campaign in a process of its own; a copy of this one, so that nothing is loaded or compiled again."""
    child = os.fork()
    if child:
        return child
    try:
        campaign(run, engine)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def until_fresh_rows(run, child):
    """Wait until the campaign has written something, or has ended."""
    before, ended = rows_so_far(run).keys(), None
    while ended is None and rows_so_far(run).keys() == before:
        time.sleep(0.01)
        ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)


def rows_so_far(run):
    """Rows by index, without the seconds they took."""
    try:
        rows = RunFolder(run).rows()
    except RunError:  # killed before there was a ledger
        return {}
    return {int(row["index"]): (int(row["status"]), *map(float, row["scores"])) for row in rows}


def kill_until(kills, seed, engine, folder):
    """Kill campaigns at random moments and resume them, until so many kills have hit."""
    chance, run = random.Random(seed), folder / "run"
    uninterrupted = campaign(folder / "uninterrupted")
    found = {"kills": 0, "finished": 0, "lost": 0, "changed": 0, "identical": True, "moments": []}
    longest, before = 0.5, {}
    while found["kills"] < kills or found["moments"][-1] is not None:
        child = attempt(run, engine)
        enough = found["moments"][-1:] == [NETWORKS]  # killed while certifying: once, then it may end
        if found["kills"] < kills and not enough:
            # From the first moments, when the folder is made, to the last, when the certificate is written.
            if chance.random() < 0.5:
                until_fresh_rows(run, child)
            time.sleep(chance.uniform(0, chance.choice((0.05, 0.3, 1.0)) * longest))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status)
        after = rows_so_far(run)
        found["lost"] += len(before.keys() - after.keys())
        found["changed"] += sum(after[index] != row for index, row in before.items() if index in after)
        before = after
        if killed:
            found["kills"] += 1
            found["moments"].append(len(after))
            continue
        assert os.waitstatus_to_exitcode(status) == 0, "it ended by itself, and not well"
        found["moments"].append(None)
        found["finished"] += 1
        found["identical"] &= same(uninterrupted, run)
        shutil.rmtree(run)
        before = {}
    return found


def same(uninterrupted, run):
    """Table, winner, model and certificate, bit for bit; `RunFolder` derives the certificate from the ledger again."""
    folder, table = RunFolder(run), uninterrupted.table
    names = [name for name in table.dtype.names if name != "seconds"]
    return (
        all(folder.search[name].tobytes() == table[name].tobytes() for name in names)
        and folder.certificate == uninterrupted.certificate
        and folder.model.digest == uninterrupted.model.digest
        and not (run / "ledger.sqlite-wal").exists()
    )


def main(kills, seed, engine):
    with TemporaryDirectory() as folder:
        found = kill_until(kills, seed, engine, Path(folder))
    partly = [count for count in found.pop("moments") if count is not None]
    found["killed before the first row"] = partly.count(0)
    found["killed after the last row"] = partly.count(NETWORKS)
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
