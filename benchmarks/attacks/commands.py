"""A command of the command line, in this process, and what came of it."""

from __future__ import annotations

import io
import warnings
from contextlib import redirect_stderr, redirect_stdout

import typer

from attacks.mutations import said_in_one_line
from echobound.cli.main import app
from echobound.errors import EchoboundError

COMMAND = typer.main.get_command(app)  # made once: it takes longer than most of what is tried


def outcome(words: list[str]) -> str:
    """Carry out a command, and say how it ended; what `main` does not say in one sentence is raised."""
    said = io.StringIO()
    try:
        with warnings.catch_warnings(), redirect_stdout(said), redirect_stderr(said):
            warnings.simplefilter("ignore")
            code = COMMAND.main(words, standalone_mode=False)
    except EchoboundError as refusal:
        return said_in_one_line(refusal)
    except SystemExit as end:
        code = end.code
    except OSError:
        return "refused by the system"  # `main` says so in one sentence
    except MemoryError:
        return "refused for want of memory"  # and so is this
    except Exception as error:
        if not hasattr(error, "format_message"):  # of the parser of the command line
            error.args = (f"{' '.join(words)[:200]}: {error}",)
            raise
        return "refused"
    assert not any(unseen in said.getvalue() for unseen in "\x1b\x07\u202e"), "a control character reached the terminal"
    return {0: "done", None: "done", 1: "the answer is no"}.get(code, "refused")  # type: ignore[arg-type]
