"""Options at the edges: every option of every command, with values that nobody means."""

from __future__ import annotations

import io
import random
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import typer

from attacks import folders
from attacks.mutations import said_in_one_line
from echobound.cli.main import app
from echobound.errors import EchoboundError

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
    "simulate": ["whole", "inputs.csv"],
    "verify": ["whole", "--fresh", "1", "--quiet"],
    "show": ["whole"],
    "generalise": ["whole"],
    "renew": ["whole", "inputs.csv", "--quiet", "--run", "renewed"],
    "audit": ["whole", "--quiet"],
    "watch": ["whole", "--json"],
    "report": ["whole"],
    "figures": ["whole"],
}


def prepare(folder: Path) -> None:
    """A run, and data."""
    folders.prepare(folder)


def _options(command: Any) -> list[str]:
    return [one.opts[0] for one in command.params if one.opts[0].startswith("--") and not getattr(one, "is_flag", 0)]


def attempt(folder: Path, number: int) -> str:
    """Give one or two options of a command values at their edges."""
    chance = random.Random(number)
    name = chance.choice(sorted(BASE))
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    words = [name, *BASE[name]]
    for option in chance.sample(_options(command), min(len(_options(command)), chance.choice((1, 1, 2)))):
        values = chance.choice((TEXTS, WHOLE, NUMBERS))
        if option in ("--scheduler", "--engine", "--open", "--every"):
            values = ("x", "")
        words += [f"{option}={chance.choice(values)}"]
    said = io.StringIO()
    try:
        with chdir(folder), warnings.catch_warnings(), redirect_stdout(said), redirect_stderr(said):
            warnings.simplefilter("ignore")
            code = app(words, standalone_mode=False)
    except EchoboundError as refusal:
        return said_in_one_line(refusal)
    except SystemExit as end:
        code = end.code
    except OSError:
        return "refused by the system"  # `main` says so in one sentence
    except Exception as error:
        if not hasattr(error, "format_message"):  # of the parser of the command line
            error.args = (f"{' '.join(words)[:200]}: {error}",)
            raise
        return "refused"
    assert "\x1b" not in said.getvalue(), "a control character reached the terminal"
    return {0: "done", None: "done", 1: "the answer is no"}.get(code, "refused")  # type: ignore[arg-type]
