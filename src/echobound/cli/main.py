"""The entry point: commands by name, errors as one sentence, exit codes.

0: done. 1: done, and the answer is no (all networks diverged; a verification that speaks against its certificate;
an audit that found something).
2: bad input. 130, 143: stopped by SIGINT (Ctrl-C) or SIGTERM.
"""

from __future__ import annotations

import io
import signal
import sys
import warnings
from typing import Annotated

import typer

from echobound.cli.terminal import stop
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
from echobound.cli import (  # noqa: E402
    adapt,
    audit,
    bounds,
    generalise,
    identify,
    pages,
    plant,
    renew,
    reproduce,
    runs,
    simulate,
    watch,
)

for module in (bounds, plant, identify, simulate, runs, generalise, renew, adapt, audit, watch, pages, reproduce):
    module.register(app)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a letter must not stop us
    warnings.showwarning = lambda message, *_: print(f"warning: {message}", file=sys.stderr)
    signal.signal(signal.SIGTERM, _terminated)
    try:
        code = app(standalone_mode=False)
    except EchoboundError as error:
        stop(str(error), 2)
    except _Terminated:
        code = 143
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except Exception as error:
        message = getattr(error, "format_message", None)  # the command-line parser's own errors
        if message is None:
            raise
        stop(f"{message()} (see echobound --help)".replace("\n", " "), 2)
    if code in (130, 143):
        stop("stopped: what was finished is kept, and the same command with the same --run goes on from there", code)
    sys.exit(code if isinstance(code, int) else 0)


class _Terminated(BaseException):
    """SIGTERM outside a campaign; inside, the blocks in hand end first."""


def _terminated(*_: object) -> None:
    raise _Terminated
