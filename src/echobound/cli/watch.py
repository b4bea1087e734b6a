"""`watch`: a running campaign from another terminal, by its ledger alone."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from echobound.cli.terminal import AsJson, bar, lines, print_json, standing

if TYPE_CHECKING:
    from echobound.runs.status import CampaignStatus

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: echobound watch runs/demo-1")(watch)


def watch(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")],
    once: Annotated[bool, typer.Option("--once", help="Look once and stop.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between looks.", min=0.1)] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Show how far a running campaign is: what is done, how fast, how long still, best and worst, failures.

    It reads the ledger and nothing else, so it can be started and stopped (Ctrl-C) at any time, on the machine where
    the campaign was started. It ends with the campaign. With --json it looks once.
    """
    from echobound.runs.status import status_of

    seen = status_of(run)
    if as_json:
        print_json(_json(run, seen))
        return
    if seen.running and not once:
        if sys.stderr.isatty():
            with bar(str(run)) as show:
                seen = _follow(run, seen, show, every)
        else:
            seen = _follow(run, seen, lines(str(run)), every)
    print(f"{run}: {_words(seen)}")


def _follow(run: Path, seen: CampaignStatus, show: Any, every: float) -> CampaignStatus:
    from echobound.runs.status import status_of

    while seen.running:
        if seen.progress is not None:
            show(seen.progress)
        time.sleep(every)
        seen = status_of(run)
    return seen


def _words(seen: CampaignStatus) -> str:
    if seen.progress is None:
        return "nothing was drawn yet"
    what = f"{standing(seen.progress)} ({seen.what})"
    if seen.running:
        return f"{what}, written by process {seen.holder['pid']} on host {seen.holder['host']}"
    if seen.progress.done < seen.progress.planned:
        return f"{what}, not running: the command that started it goes on from there"
    return f"{what}, all drawn"


def _json(run: Path, seen: CampaignStatus) -> dict[str, Any]:
    event = seen.progress
    names = ("done", "planned", "best", "worst", "failures", "rate", "remaining")
    return {
        "run": str(run),
        "running": seen.running,
        "holder": seen.holder or None,
        "what": seen.what,
        **{name: None if event is None else getattr(event, name) for name in names},
    }
