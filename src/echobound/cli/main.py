"""The entry point: commands by name, errors as one sentence, exit codes.

0: done. 1: done, and the answer is no (all networks diverged; a verification that speaks against its certificate).
2: bad input. 130: interrupted.
"""

from __future__ import annotations

import io
import sys
import warnings
from typing import Annotated

import typer

from echobound.errors import EchoboundError

__all__ = ["app", "main"]

app = typer.Typer(
    name="echobound",
    help="Identify nonlinear dynamical systems with echo state networks, and certify the result.",
    epilog="Start with: echobound demo",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"echobound {version('echobound')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


# Each module registers its commands with `app`; none of them imports anything slow before its command runs.
from echobound.cli import identify, pages, plan, plant, reproduce, runs  # noqa: E402

for module in (plan, plant, identify, runs, pages, reproduce):
    module.register(app)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a letter must not stop us
    warnings.showwarning = lambda message, *_: print(f"warning: {message}", file=sys.stderr)
    try:
        code = app(standalone_mode=False)
    except EchoboundError as error:
        _stop(str(error), 2)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except Exception as error:
        message = getattr(error, "format_message", None)  # the command-line parser's own errors
        if message is None:
            raise
        _stop(f"{message()} (see echobound --help)".replace("\n", " "), 2)
    if code == 130:
        _stop("interrupted: finished blocks are kept, and the same command with the same --run goes on from there", 130)
    sys.exit(code if isinstance(code, int) else 0)


def _stop(sentence: str, code: int) -> None:
    print(f"echobound: {sentence}", file=sys.stderr)
    sys.exit(code)
