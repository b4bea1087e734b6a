"""`renew`: the certificate of a run, on new data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from echobound.cli.computing import Device, EngineName, Scheduler, Workers, chosen_engine
from echobound.cli.identify import RunDir, finish
from echobound.cli.reading import Columns, Decimate, Missing, Resample, SamplingTime, Sheet, Time, read_like
from echobound.cli.runs import Run
from echobound.cli.terminal import AsJson, Quiet, progress, words

if TYPE_CHECKING:
    from echobound.data import Record

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: echobound renew runs/plant new.csv --open-loop --updates 12")(renew)


def renew(
    run: Run,
    data: Annotated[list[str], typer.Argument(metavar="FILE", help="New data; several are several experiments.")],
    validation: Annotated[str | None, typer.Option(help="File(s) to pick the best network on.")] = None,
    blocks: Annotated[
        int | None, typer.Option(help="Without --validation: blocks to score in turn; as the run if not given.")
    ] = None,
    test: Annotated[str | None, typer.Option(help="File(s) opened once, at the very end.")] = None,
    updates: Annotated[
        int | None, typer.Option(help="Renewals that are planned, settled at the first one; all hold together.")
    ] = None,
    closed_loop: Annotated[
        bool | None,
        typer.Option(
            "--closed-loop/--open-loop",
            help="Whether the new data depend on the network in use, as where it controls.",
        ),
    ] = None,
    washout: Annotated[int | None, typer.Option(help="Samples that do not count; as the run if not given.")] = None,
    inputs: Columns = None,
    outputs: Columns = None,
    sampling_time: SamplingTime = None,
    time: Time = None,
    resample: Resample = None,
    decimate: Decimate = None,
    missing: Missing = "error",
    sheet: Sheet = None,
    workers: Workers = None,
    device: Device = "cpu",
    engine: EngineName = "threads",
    scheduler: Scheduler = None,
    into: RunDir = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Renew a certificate on new data: train and score all networks of a run again, and pick the best of them there.

    The networks were drawn without regard to the new data, so the certificate holds afresh, with the same N. Not so
    if the new data depend on the network in use (a loop closed through it): then identify with another seed. To renew
    once more, give the folder of the latest renewal.
    """
    from echobound.renew import renew as run_renew
    from echobound.runs.folder import RunFolder

    folder = RunFolder(run)
    _ = folder.certificate  # no file is read for a run that is not one, or not finished

    def read(files: list[str]) -> list[Record]:
        return read_like(
            folder.experiments.training[0],
            files,
            inputs,
            outputs,
            sampling_time=sampling_time,
            time=time,
            resample=resample,
            decimate=decimate,
            missing=missing,
            sheet=sheet,
        )

    with progress("networks", quiet) as show, chosen_engine(engine, scheduler, workers) as crew:
        result = run_renew(
            run,
            read(data),
            read(words(validation)) if validation else None,
            closed_loop=closed_loop,
            updates=updates,
            test=read(words(test)) if test else (),
            blocks=blocks,
            washout=washout,
            workers=workers,
            kernel=device,
            engine=crew,
            into=Path("runs") / f"{run.resolve().name}-{{plan}}" if into is None else into,
            on_progress=show,
        )
    finish(result, as_json, result.chosen)
