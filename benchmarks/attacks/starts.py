"""Starts: two plans at once in one new folder; one of them wins, all of it."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import time
from pathlib import Path

from attacks.lives import search, started
from echobound.runs.folder import RunFolder

STEPS = 3


def prepare(folder: Path) -> None:
    """Compile what is needed."""
    search(folder / "whole", networks=20)


def attempt(folder: Path, number: int) -> str:
    """Start two or three searches with different seeds at the same moment."""
    chance, tried = random.Random(number), folder / "tried"
    shutil.rmtree(tried, ignore_errors=True)
    tried.mkdir()
    run, moment = tried / "run", time.monotonic() + 0.02

    def work(seed: int, delay: float) -> None:
        while time.monotonic() < moment + delay:
            pass
        search(run, seed=seed, networks=20)

    delays = [chance.choice((0.0, chance.uniform(0, 0.01))) for _ in range(chance.choice((2, 2, 3)))]
    children = [started(lambda s=seed, d=delay: work(s, d), tried / f"log{seed}") for seed, delay in enumerate(delays)]
    ended = [os.waitpid(child, 0)[1] for child in children]
    won = [seed for seed, status in enumerate(ended) if status == 0]
    assert len(won) <= 1, f"lost: {len(won)} searches ended in one folder"
    said = " ".join((tried / f"log{s}").read_text()[-200:] for s in range(len(delays)) if s not in won)
    assert won, f"lost: nobody won: {said}"
    for seed in range(len(delays)):
        if seed not in won:
            last = (tried / f"log{seed}").read_text().strip().splitlines()[-1]
            assert "RunError" in last, f"not in a sentence: {last}"
    found = RunFolder(run)
    assert found.plan.seed == won[0], "lost: the plan of another"
    assert found.certificate.to_dict()["seed"] == won[0], "lost: the certificate of another"
    db = sqlite3.connect(run / "ledger.sqlite")
    [[digest]] = db.execute("SELECT value FROM about WHERE name = 'plan'").fetchall()
    db.close()
    assert digest == found.plan.digest, "lost: the ledger of another"
    return "one won"
