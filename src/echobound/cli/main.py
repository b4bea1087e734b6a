"""The entry point: commands by name, errors as one sentence, exit codes.

0: done. 1: done, and the answer is no (all networks diverged; a verification that speaks against its certificate; an
audit that found something). 2: bad input. 130, 143: stopped by SIGINT (Ctrl-C) or SIGTERM.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any

import typer

from echobound.cli.options import with_options
from echobound.cli.terminal import say, stop
from echobound.errors import EchoboundError

# In the order of the overview: the module of each command in this room, and an example.
COMMANDS: dict[str, tuple[str, str]] = {
    "plan": ("bounds", "--epsilon 0.05 --beta 1e-7, or: echobound plan --stop patience:200"),
    "simulate-plant": ("paper", "--samples 8000 --output ph.csv"),
    "demo": ("identify", ""),
    "inspect": ("inspect", "plant.csv"),
    "studio": ("studio", "measurements"),
    "identify": ("identify", "plant.csv --inputs valve,load --outputs level --sampling-time 10"),
    "simulate": ("simulate", "runs/demo-1 inputs.csv --output simulated.csv"),
    "predict": ("simulate", "runs/demo-1 new.csv --horizon 10"),
    "compare": ("compare", "runs/first runs/second new.csv"),
    "control": ("control", "runs/demo-1 --reference set-points.csv --plant ph --page loop.html"),
    "verify": ("runs", "runs/demo-1 --fresh 500"),
    "show": ("runs", "runs/demo-1"),
    "generalise": ("generalise", "runs/plant day1.csv day2.csv --criterion 'fit>80'"),
    "renew": ("renew", "runs/plant new.csv --open-loop --updates 12"),
    "adapt": ("adapt", "runs/plant new.csv --test later.csv --output adapted.npz"),
    "export": ("export", "runs/plant --to c --output plant --check"),
    "audit": ("audit", "runs/plant --data plant.csv"),
    "watch": ("watch", "runs/demo-1"),
    "report": ("runs", "runs/demo-1 --open"),
    "figures": ("runs", "runs/demo-1 --format pdf"),
    "reproduce": ("paper", "--orders 10,50,200"),
}
RESUMED = {"identify", "demo", "renew", "verify", "reproduce"}  # commands whose work is kept when they are stopped


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"echobound {version('echobound')}")
        raise typer.Exit


def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        say(context.get_help())


def commands(names: Iterable[str]) -> typer.Typer:
    """The command line with some of the commands; what a command needs is imported here."""
    made = typer.Typer(
        name="echobound",
        help="Identify nonlinear dynamical systems with echo state networks, and certify the result.",
        epilog="Start with: echobound demo",
        invoke_without_command=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        rich_markup_mode="markdown",
    )
    made.callback()(_options)
    for name in names:
        module, arguments = COMMANDS[name]
        command = getattr(import_module(f"echobound.cli.{module}"), name.replace("-", "_"))
        made.command(name, epilog=f"Example: echobound {name} {arguments}".rstrip())(with_options(command))
    return made


def __getattr__(name: str) -> Any:
    """`app`: the command line with all commands, made when it is asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made = commands(COMMANDS)
    return made


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a letter must not stop us
    warnings.showwarning = lambda message, *_: say(f"warning: {message}", error=True)
    signal.signal(signal.SIGTERM, _terminated)
    try:
        # What another command needs is not imported: a command answers sooner.
        asked = [name for name in sys.argv[1:2] if name in COMMANDS]
        code = commands(asked or COMMANDS)(standalone_mode=False)
        sys.stdout.flush()  # here, where a full disk can be told
    except EchoboundError as error:
        stop(str(error), 2)
    except _Terminated:
        code = 143
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except BrokenPipeError:  # whoever read our output has enough
        _drop_output()
        code = 128 + signal.SIGPIPE
    except OSError as error:
        _drop_output()
        where = f"{error.filename}: " if error.filename else ""
        why = f"{where}{error.strerror or error}"
        stop(f"the system refused to read or write ({why}): free some space or repair the permissions", 2)
    except MemoryError:
        stop("there is not enough memory for that: give less data, a smaller order or fewer workers", 2)
    except Exception as error:
        message = getattr(error, "format_message", None)  # the command-line parser's own errors
        if message is None:
            raise
        stop(f"{message()} (see echobound --help)".replace("\n", " "), 2)
    if code in (130, 143):
        kept = "what was finished is kept, and the same command with the same --run resumes it"
        stop(f"stopped: {kept}" if set(sys.argv[1:2]) & RESUMED else "stopped", code)
    sys.exit(code if isinstance(code, int) else 0)


def _drop_output() -> None:
    """Let go of what could not be printed: Python would try again at the end, and complain."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Terminated(BaseException):
    """SIGTERM outside a campaign; within one, batches in progress are finished first."""


def _terminated(*_: object) -> None:
    raise _Terminated
