"""`renew`: the certificate of a run, on new data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import echobound
from echobound.cli.computing import ComputingOptions
from echobound.cli.identify import PANEL, RunDir, finish
from echobound.cli.options import Options
from echobound.cli.reading import ColumnsOfRun, TestFiles, ValidationFiles
from echobound.cli.runs import Run
from echobound.cli.terminal import AsJson, Quiet, progress, words
from echobound.plan import Plan
from echobound.runs import RunFolder

# The networks are those of the run: only how they are scored can be chosen anew.
SCORED = Options(
    PANEL,
    only=("blocks", "washout"),
    help={
        "blocks": "Without --validation: blocks of the data to score in turn; those of the run if not given.",
        "washout": "Samples at the start of each record or block that do not count; those of the run if not given.",
    },
)


def renew(
    run: Run,
    data: Annotated[list[str], typer.Argument(metavar="FILE", help="New data; several are several experiments.")],
    reading: ColumnsOfRun,
    plan: Annotated[Plan, SCORED],
    computing: ComputingOptions,
    validation: ValidationFiles = None,
    test: TestFiles = None,
    updates: Annotated[
        int | None, typer.Option(help="How many renewals are planned, settled at the first one; all hold together.")
    ] = None,
    closed_loop: Annotated[
        bool | None,
        typer.Option(
            "--closed-loop/--open-loop",
            help="Whether the new data depend on the network in use, for example because it controls the plant.",
        ),
    ] = None,
    into: RunDir = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Renew a certificate: train and score all networks of a run again on new data, and pick the best of them there.

    The networks were drawn without regard to the new data, so the certificate holds afresh with the same N. It does not
    if the new data depend on the network in use (a loop closed through it): then identify with another seed. To renew
    once more, give the folder of the latest renewal.
    """
    folder = RunFolder(run)
    _ = folder.certificate  # no file is read for a folder that is not a run, or for one that is not finished
    like = folder.experiments.training[0]
    with progress("networks", quiet) as show:
        result = echobound.renew(
            run,
            reading.read_like(like, data),
            reading.read_like(like, words(validation)) if validation else None,
            closed_loop=closed_loop,
            updates=updates,
            test=reading.read_like(like, words(test)) if test else (),
            blocks=plan.blocks,
            washout=plan.washout,
            computing=computing,
            into=Path("runs") / f"{run.resolve().name}-{{plan}}" if into is None else into,
            on_progress=show,
        )
    finish(result, as_json, result.chosen)
