"""The entry point: commands by name, errors as one sentence, exit codes.

0: done. 1: done, and the answer is no (all networks diverged; a verification that speaks against its certificate; an
audit that found something). 2: bad input. 130, 143: stopped by SIGINT (Ctrl-C) or SIGTERM.
"""

from __future__ import annotations

import io
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Annotated

import typer

from echobound.cli.adapt import adapt
from echobound.cli.audit import audit
from echobound.cli.bounds import plan
from echobound.cli.generalise import generalise
from echobound.cli.identify import demo, identify
from echobound.cli.options import with_options
from echobound.cli.paper import reproduce, simulate_plant
from echobound.cli.renew import renew
from echobound.cli.runs import figures, report, show, verify
from echobound.cli.simulate import simulate
from echobound.cli.terminal import stop
from echobound.cli.watch import watch
from echobound.errors import EchoboundError

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


# In the order of the overview, each with an example.
COMMANDS: dict[Callable[..., None], str] = {
    plan: "--epsilon 0.05 --beta 1e-7, or: echobound plan --stop patience:200",
    simulate_plant: "--samples 8000 --output ph.csv",
    demo: "",
    identify: "plant.csv --inputs valve,load --outputs level --sampling-time 10",
    simulate: "runs/demo-1 inputs.csv --output simulated.csv",
    verify: "runs/demo-1 --fresh 500",
    show: "runs/demo-1",
    generalise: "runs/plant day1.csv day2.csv --criterion 'fit>80'",
    renew: "runs/plant new.csv --open-loop --updates 12",
    adapt: "runs/plant new.csv --test later.csv --output adapted.npz",
    audit: "runs/plant --data plant.csv",
    watch: "runs/demo-1",
    report: "runs/demo-1 --open",
    figures: "runs/demo-1 --format pdf",
    reproduce: "--orders 10,50,200",
}
for command, arguments in COMMANDS.items():
    name = command.__name__.replace("_", "-")
    app.command(name, epilog=f"Example: echobound {name} {arguments}".rstrip())(with_options(command))


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
        stop("stopped: what was finished is kept, and the same command with the same --run resumes it", code)
    sys.exit(code if isinstance(code, int) else 0)


class _Terminated(BaseException):
    """SIGTERM outside a campaign; within one, batches in progress are finished first."""


def _terminated(*_: object) -> None:
    raise _Terminated
