"""`generalise`: the second certificate, on new data."""

from __future__ import annotations

from typing import Annotated

import typer

import echobound
from echobound.cli.reading import ColumnsOfRun
from echobound.cli.runs import Run
from echobound.cli.show import print_facts, second_facts
from echobound.cli.terminal import AsJson, Quiet, print_json, spinner
from echobound.runs import RunFolder


def generalise(
    run: Run,
    reading: ColumnsOfRun,
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Test data, each file an episode; those of the run if not given."),
    ] = None,
    criterion: Annotated[
        str | None, typer.Option(help="What each episode must satisfy, settled beforehand: fit>80, rmse<0.1.")
    ] = None,
    beta: Annotated[float, typer.Option(help="1 - confidence of each statement.")] = 0.05,
    discarded: Annotated[int, typer.Option(help="Largest errors to set aside, settled beforehand.")] = 0,
    blocks: Annotated[
        int | None, typer.Option(help="For one long record: blocks to cut it into. Needs --gap and --mixing.")
    ] = None,
    gap: Annotated[int | None, typer.Option(help="Samples to leave out between two blocks.")] = None,
    mixing: Annotated[float | None, typer.Option(help="Mixing coefficient over the gap, an assumption.")] = None,
    sure_band: Annotated[
        bool, typer.Option("--sure-band", help="Also a band with a confidence for this very one, not on average.")
    ] = False,
    window: Annotated[
        int | None, typer.Option(help="Also such a band over so many consecutive samples, of longer runs too.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """State what the models of a run are worth on new data: error limits, failure rate, band around the free run.

    Each file is an independent episode that was not used for any choice. Test data can be opened only once: the same
    command gives the same answer again, another one on the same data is refused. The second certificate is written to
    the run folder and appears on its page.
    """
    records, folder = None, RunFolder(run)
    if data:
        _ = folder.certificate  # no file is read for a folder that is not a run, or for one that is not finished
        records = reading.read_like(folder.experiments.training[0], data)
    with spinner("running the models over the test data", quiet):
        second = echobound.generalise(
            run, records, criterion=criterion, beta=beta, discarded=discarded, blocks=blocks, gap=gap, mixing=mixing,
            sure_band=sure_band, window=window,
        )  # fmt: skip
    content = second.to_dict()
    if as_json:
        print_json({"run": str(run), "generalisation": content})
        return
    files = [("certificate", str(run / "generalisation.json")), ("page", str(run / "report.html"))]
    print_facts([*second_facts(content), *(("not stated", sentence) for sentence in second.not_stated), *files])
