"""`watch`: a running campaign from another terminal, by its ledger alone."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from echobound.cli.runs import Run
from echobound.cli.terminal import AsJson, print_json, progress, say, stop
from echobound.runs.progress import SteadyRate, status_line
from echobound.runs.status import CampaignStatus, status_of


def watch(
    run: Run,
    once: Annotated[bool, typer.Option("--once", help="Look once and stop.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between looks.", min=0.1)] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Show the progress of a running campaign: networks done, speed, time left, best and worst score, failures.

    It only reads the ledger, so it can be started and stopped (Ctrl-C) at any time, on the machine where the campaign
    was started. It ends with the campaign. With --json it looks once.
    """
    status = status_of(run)
    if as_json:
        names = ("done", "planned", "best", "worst", "failures", "rate", "remaining")
        known: dict[str, Any] = {name: getattr(status.progress, name, None) for name in names}
        campaign = {"run": str(run), "running": status.running, "holder": status.holder, "what": status.what}
        print_json(campaign | known)
        return
    steady = SteadyRate()
    try:
        with progress(str(run), quiet=once or not status.running) as tell:
            while tell is not None and status.running:
                if status.progress is not None:
                    tell(steady(status.progress))
                time.sleep(every)
                status = status_of(run)
    except KeyboardInterrupt:
        # Only the look at it ends: the campaign is another process.
        stop(f"no longer watching {run}: {_words(status)}; the campaign goes on", 130)
    say(f"{run}: {_words(status)}")


def _words(status: CampaignStatus) -> str:
    if status.progress is None:
        return "nothing was drawn yet"
    what = f"{status_line(status.progress)} ({status.what})"
    if status.holder is not None:
        return f"{what}, written by process {status.holder['pid']} on host {status.holder['host']}"
    if status.progress.done < status.progress.planned:
        return f"{what}, not running: the command that started it resumes it"
    return f"{what}, all drawn"
