"""`generalise`: the second certificate, on new data."""

from __future__ import annotations

from typing import Annotated

import typer

from echobound.cli.reading import Columns, Decimate, Resample, SamplingTime, Sheet, Time, read_like
from echobound.cli.runs import Run
from echobound.cli.show import print_facts, second_facts
from echobound.cli.terminal import AsJson, Quiet, print_json, spinner

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: echobound generalise runs/plant day1.csv day2.csv --criterion 'fit>80'")(generalise)


def generalise(
    run: Run,
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Test data, each file an episode; those of the run if not given."),
    ] = None,
    criterion: Annotated[
        str | None, typer.Option(help="What an episode has to keep, settled beforehand: fit>80, rmse<0.1.")
    ] = None,
    beta: Annotated[float, typer.Option(help="1 - confidence of each statement.")] = 0.05,
    discarded: Annotated[int, typer.Option(help="Largest errors to set aside, settled beforehand.")] = 0,
    blocks: Annotated[
        int | None, typer.Option(help="For one long record: blocks to cut it into. Needs --gap and --mixing.")
    ] = None,
    gap: Annotated[int | None, typer.Option(help="Samples to leave out between two blocks.")] = None,
    mixing: Annotated[
        float | None, typer.Option(help="Mixing coefficient over the gap: an assumption, which is not tested.")
    ] = None,
    inputs: Columns = None,
    outputs: Columns = None,
    sampling_time: SamplingTime = None,
    time: Time = None,
    resample: Resample = None,
    decimate: Decimate = None,
    sheet: Sheet = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say what the models of a run are worth on new data: error limits, failure rate, band of the free run.

    Each file is an independent episode that nothing was chosen by. Test data can be opened once: the same command gives
    the same answer again, another one on the same data is refused. The second certificate is written into the run
    folder, and its page shows it.
    """
    from echobound.generalise import generalise as run_generalise
    from echobound.runs.folder import RunFolder

    records, folder = None, RunFolder(run)
    if data:
        _ = folder.certificate  # no file is read for a run that is not one, or not finished
        records = read_like(
            folder.experiments.training[0],
            data,
            inputs,
            outputs,
            sampling_time=sampling_time,
            time=time,
            resample=resample,
            decimate=decimate,
            sheet=sheet,
        )
    with spinner("running the models over the test data", quiet):
        second = run_generalise(
            run,
            records,
            criterion=criterion,
            beta=beta,
            discarded=discarded,
            blocks=blocks,
            gap=gap,
            mixing=mixing,
        )
    content = {"run": str(run), "generalisation": second.to_dict()}
    if as_json:
        print_json(content)
        return
    print_facts(
        [
            *second_facts(content["generalisation"]),  # type: ignore[arg-type]  # the one that is an object
            *(("not stated", sentence) for sentence in second.not_stated),
            ("certificate", str(run / "generalisation.json")),
            ("page", str(run / "report.html")),
        ]
    )
