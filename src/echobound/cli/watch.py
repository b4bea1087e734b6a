"""`watch`: a running campaign from another terminal, by its ledger alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from echobound.cli.runs import Run
from echobound.cli.terminal import AsJson, bar, lines, print_json, status_line
from echobound.runs.progress import Progress
from echobound.runs.status import CampaignStatus, status_of

__all__ = ["watch"]


def watch(
    run: Run,
    once: Annotated[bool, typer.Option("--once", help="Look once and stop.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between looks.", min=0.1)] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Show how far a running campaign is: networks done, speed, time left, best and worst score, failures.

    It only reads the ledger, so it can be started and stopped (Ctrl-C) at any time, on the machine where the campaign
    was started. It ends with the campaign. With --json it looks once.
    """
    status = status_of(run)
    if as_json:
        print_json(_json(run, status))
        return
    if status.running and not once:
        if sys.stderr.isatty():
            with bar(str(run)) as show:
                status = _follow(run, status, show, every)
        else:
            status = _follow(run, status, lines(str(run)), every)
    print(f"{run}: {_words(status)}")


def _follow(run: Path, status: CampaignStatus, show: Callable[[Progress], None], every: float) -> CampaignStatus:
    while status.running:
        if status.progress is not None:
            show(status.progress)
        time.sleep(every)
        status = status_of(run)
    return status


def _words(status: CampaignStatus) -> str:
    if status.progress is None:
        return "nothing was drawn yet"
    what = f"{status_line(status.progress)} ({status.what})"
    if status.running:
        return f"{what}, written by process {status.holder['pid']} on host {status.holder['host']}"
    if status.progress.done < status.progress.planned:
        return f"{what}, not running: the command that started it resumes it"
    return f"{what}, all drawn"


def _json(run: Path, status: CampaignStatus) -> dict[str, Any]:
    names = ("done", "planned", "best", "worst", "failures", "rate", "remaining")
    return {
        "run": str(run),
        "running": status.running,
        "holder": status.holder or None,
        "what": status.what,
        **{name: getattr(status.progress, name, None) for name in names},
    }
