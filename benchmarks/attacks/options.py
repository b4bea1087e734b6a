"""Options at the edges: every option of every command, with values that nobody means."""

from __future__ import annotations

import random
import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

from attacks import folders
from attacks.commands import COMMAND, outcome

STEPS = 3  # a command that does what was asked may take its time
WHOLE = ("-1", "0", "1", "2147483648", "9223372036854775808", "1000000000000", "1e3", "x", "")
NUMBERS = ("nan", "inf", "-inf", "0", "-0.0", "-1", "1e-320", "1e-17", "0.999999999999", "1", "1e17", "1.7e308", "")
TEXTS = (
    *("", " ", ",", "x", "x" * 300, "a,a", "-1", "0", "1e400", "\u202eabc", "\x1b[2J", "../..", "/dev/full", "{plan}"),
    *("{x}", "%s", "a:b:c", "anytime:-1", "patience:0", "mixture", "fit>nan", "fit>", "paper", "broad", "1:2"),
)
SMALL = "--inputs q3 --outputs pH --law paper --order 4 --networks 12 --beta 0.05 --washout 20 --quiet --run new"
BASE: dict[str, list[str]] = {
    "plan": [],
    "simulate-plant": ["--samples", "60", "--output", "p.csv"],
    "identify": ["inputs.csv", *SMALL.split()],
    "inspect": ["inputs.csv"],
    "simulate": ["run", "inputs.csv"],
    "predict": ["run", "inputs.csv"],
    "compare": ["run", "whole", "inputs.csv"],
    "control": ["run", "--reference", "short.csv", "--iterations", "2", "--horizon", "3", "--quiet"],
    "adapt": ["run", "inputs.csv", "--output", "adapted.npz"],
    "export": ["run", "--to", "c", "--output", "c"],
    "verify": ["run", "--fresh", "1", "--quiet"],
    "show": ["run"],
    "generalise": ["run"],
    "renew": ["run", "inputs.csv", "--quiet", "--run", "new"],
    "audit": ["run", "--quiet"],
    "watch": ["run", "--json"],
    "report": ["run"],
    "figures": ["run"],
}


def prepare(folder: Path) -> None:
    """A run, and data."""
    folders.prepare(folder)
    short = (folder / "inputs.csv").read_text().splitlines()[:25]
    (folder / "short.csv").write_text("\n".join(short) + "\n")


def _options(command: Any) -> list[str]:
    return [one.opts[0] for one in command.params if one.opts[0].startswith("--") and not getattr(one, "is_flag", 0)]


def attempt(folder: Path, number: int) -> str:
    """Give one or two options of a command values at their edges."""
    chance = random.Random(number)
    name = chance.choice(sorted(BASE))
    options = _options(COMMAND.commands[name])  # type: ignore[attr-defined]
    words = [name, *BASE[name]]
    for option in chance.sample(options, min(len(options), chance.choice((1, 1, 2)))):
        values = chance.choice((TEXTS, WHOLE, NUMBERS))
        if option in ("--scheduler", "--engine", "--open", "--every"):
            values = ("x", "")
        words += [f"{option}={chance.choice(values)}"]
    for left in ("new", "run"):  # what an attempt does follows from its number alone
        shutil.rmtree(folder / left, ignore_errors=True)
    shutil.copytree(folder / "whole", folder / "run")
    with chdir(folder):
        return outcome(words)
