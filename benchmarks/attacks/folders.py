"""Run folders that were damaged, or made to deceive: every command opens them, or refuses in one sentence."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from unittest.mock import patch

import numpy as np

from attacks.commands import outcome
from attacks.mutations import VALUES, changed, mutated, said_in_one_line
from echobound import generalise, identify, ph_experiment, verify
from echobound.errors import EchoboundError
from echobound.files import digest, jsonable, write_npz

OPTIONS = {"law": "paper", "order": 4, "networks": 12, "epsilon": None, "beta": 0.05, "washout": 20, "committee": 3}
FOREIGN = (
    "CREATE TRIGGER t AFTER INSERT ON rows BEGIN DELETE FROM rows; END",
    "CREATE VIEW v AS SELECT * FROM rows",
    "CREATE TABLE sqlite_more (a)",
    "DROP TABLE progress",
    "DROP TABLE about; CREATE VIEW about AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    " SELECT i AS name, i AS value FROM n WHERE i < 0",
    "DELETE FROM rows WHERE number = 3",
    "UPDATE rows SET number = number + 100",
    "INSERT INTO rows SELECT 7, 7, number, status, ordr, ridge, score_0, seconds, origin FROM rows",
)
DRAWING, PAGES = ("identify", "verify", "generalise"), 10  # commands that write the page, and how often they may
RECORDS = ph_experiment(samples=(150, 120, 90, 90))
COMMANDS = {  # and how often each is tried
    "show RUN --json": 6,
    "show RUN": 3,
    "show RUN --rank": 1,
    "watch RUN --json": 2,
    "audit RUN --json": 2,
    "verify RUN --fresh 2 --json --quiet": 1,
    "report RUN": 0.1,
    "figures RUN": 0.1,
    "generalise RUN --json": 2,
    "simulate RUN INPUTS --json": 2,
    "predict RUN INPUTS --horizon 3 --json": 2,
    "compare RUN WHOLE INPUTS": 2,
    "compare WHOLE RUN/network.npz INPUTS --json": 1,
    "adapt RUN INPUTS --output NEW --json": 2,
    "export RUN --to c --output NEW --json": 1,
    "export RUN --to st --output NEW": 1,
    "export RUN/model.npz --to matlab --output NEW --json": 1,
    "control RUN --reference INPUTS --horizon 3 --iterations 2 --output NEW --json --quiet": 1,
    "renew RUN INPUTS --quiet --run NEW": 1,
    "resume": 1,  # the same plan again, by the library
    "inspect RUN/data.npz --json": 1,
}


def prepare(folder: Path) -> None:
    """Make the run that is damaged."""
    run = folder / "whole"
    _search(run)
    verify(run, fresh=3)
    generalise(run)
    (run / "report.html").unlink()
    rows = "\n".join(f"{u!r},{y!r}" for u, y in np.c_[RECORDS[1].u, RECORDS[1].y].tolist())
    (folder / "inputs.csv").write_text(f"q3,pH\n{rows}\n")


def _search(run: Path) -> None:
    training, validation, *test = RECORDS
    identify(training, validation, test=test, **OPTIONS, run=run)


def damage(run: Path, chance: random.Random) -> None:
    """One change of one file."""
    path = run / chance.choice(
        sorted(file.name for file in run.iterdir() if file.is_file() and not file.is_symlink()) or ["plan.json"]
    )
    if not path.exists():
        return
    kind = chance.randrange(12)
    if kind == 0:
        path.unlink()
    elif kind == 1:
        path.rename(run.parent / "moved")
        path.symlink_to(run.parent / "moved")
    elif kind == 2:
        other = chance.choice(sorted(one for one in run.iterdir() if one.is_file()))
        path.write_bytes(other.read_bytes())
    elif kind == 3 or path.suffix not in (".json", ".npz", ".sqlite"):
        path.write_bytes(mutated(path.read_bytes(), chance))
    elif path.suffix == ".json":
        try:
            content = json.loads(path.read_bytes())
        except ValueError:
            return  # damaged already
        content = changed(content, chance)
        if path.name == "plan.json" and isinstance(content, dict) and chance.random() < 0.9:
            with suppress(TypeError, ValueError, RecursionError):
                content["digest"] = digest({name: value for name, value in content.items() if name != "digest"})
        path.write_bytes(json.dumps(content, ensure_ascii=chance.random() < 0.5).encode(errors="surrogatepass"))
    elif path.suffix == ".npz":
        _damage_arrays(path, chance)
    else:
        _damage_ledger(path, chance)


def _damage_arrays(path: Path, chance: random.Random) -> None:
    """Another header, or other arrays, with the digest that they should have."""
    try:
        with np.load(path) as archive:
            arrays = dict(archive)
        header = json.loads(arrays.pop("header").tobytes())
        header.pop("digest")
    except Exception:
        return  # damaged already
    if chance.random() < 0.6 or not arrays:
        header = changed(header, chance)
    else:
        name = chance.choice(sorted(arrays))
        shapes = ((0,), (), (1, 1, 1), (3, 2), (0, 5), (1, 200))
        value = chance.choice((0.0, np.nan, np.inf, 1e308, -1.0))
        shape, dtype = chance.choice((arrays[name].shape, *shapes)), chance.choice(["f8", "f4", "i8", "u1", "?"])
        with np.errstate(all="ignore"):
            arrays[name] = np.full(shape, value).astype(dtype)
        if chance.random() < 0.2:
            del arrays[name]
    with suppress(TypeError, ValueError, RecursionError, AttributeError, UnicodeError):
        write_npz(path, jsonable(header), arrays)


def _damage_ledger(path: Path, chance: random.Random) -> None:
    try:
        db = sqlite3.connect(path)
    except sqlite3.Error:
        return
    try:
        if chance.random() < 0.4:
            db.executescript(chance.choice(FOREIGN))
        else:
            table = chance.choice(("rows", "rows", "about", "origins", "progress"))
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            value = chance.choice([one for one in VALUES if isinstance(one, int | float | str | None)] + [b"x"])
            where = (
                f"WHERE rowid = {chance.randrange(4)}"
                if table in ("about", "origins") and chance.random() < 0.5
                else ""
            )
            db.execute(f"UPDATE {table} SET {chance.choice(columns)} = ? {where}", (value,))
        db.commit()
    except (sqlite3.Error, OverflowError, UnicodeError):
        pass  # SQLite itself refuses to store it
    finally:
        db.close()


def attempt(folder: Path, number: int) -> str:
    """Damage a copy, and use it."""
    chance, tried = random.Random(number), folder / "tried"
    run = tried / "run"
    shutil.rmtree(tried, ignore_errors=True)
    shutil.copytree(folder / "whole", run)
    shutil.copyfile(folder / "searches.jsonl", tried / "searches.jsonl")
    for _ in range(chance.choice((1, 1, 1, 2))):
        damage(tried if chance.random() < 0.05 else run, chance)  # the journal of searches, or what is in the folder
    places = {"RUN": run, "WHOLE": folder / "whole", "INPUTS": folder / "inputs.csv", "NEW": tried / "new"}
    command = chance.choices(list(COMMANDS), list(COMMANDS.values()))[0]
    for name, path in places.items():
        command = command.replace(name, str(path))
    with ExitStack() as stack:
        # Pages take most of the time, and `report` writes them, too.
        for module in () if number % PAGES == 0 else DRAWING:
            stack.enter_context(patch.object(sys.modules[f"echobound.{module}"], "write_page", lambda _: None))
        if command != "resume":
            return outcome(command.split())
        try:
            _search(run)
        except EchoboundError as refusal:
            return said_in_one_line(refusal)
        return "resumed"
