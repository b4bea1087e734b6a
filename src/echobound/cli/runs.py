"""`verify` and `show`: what a run folder is worth, and what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from echobound.cli.computing import Device, EngineName, Scheduler, Workers, chosen_engine
from echobound.cli.show import committee_facts, print_result
from echobound.cli.terminal import AsJson, Quiet, console, print_json, progress

__all__ = ["register"]

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")]
IMPLAUSIBLE = 1e-4  # a count of violations this improbable speaks against the certificate


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: echobound verify runs/demo-1 --fresh 500")(verify)
    app.command(epilog="Example: echobound show runs/demo-1")(show)


def verify(
    run: Run,
    fresh: Annotated[
        int, typer.Option(help="Fresh networks to draw (of each family), beyond those of earlier verifications.")
    ] = 500,
    workers: Workers = None,
    device: Device = "cpu",
    engine: EngineName = "threads",
    scheduler: Scheduler = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Put a certificate to the test: draw fresh networks and count those that violate it.

    Ends with exit code 1 if so many violations are less probable than 1 in 10,000 under the theory.
    """
    from echobound.verify import verify as run_verify

    with progress("fresh networks", quiet) as tell, chosen_engine(engine, scheduler, workers) as crew:
        outcome = run_verify(run, fresh, workers=workers, kernel=device, engine=crew, on_progress=tell)
    if as_json:
        print_json(outcome)
    else:
        console().print(outcome["statement"], markup=False)
        console().print(outcome["worst"]["statement"], markup=False)
    if min(outcome["p_value"], outcome["worst"]["p_value"]) < IMPLAUSIBLE:
        raise typer.Exit(1)


def show(
    run: Run,
    rank: Annotated[
        int | None, typer.Option(help="Also: what holds if this rank, chosen after a look, is the threshold.")
    ] = None,
    quantile: Annotated[
        float | None, typer.Option(help="Also: where this quantile of all networks' scores lies; 0.5 is the median.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the certificate of a run, after deriving every number of it again from the ledger."""
    from echobound.runs.folder import RunFolder
    from echobound.runs.ranks import ranks_and_quantiles
    from echobound.runs.verification import verification_of

    folder = RunFolder(run)
    certificate = folder.certificate
    content: dict[str, Any] = {"run": str(run), "certificate": certificate.to_dict()}
    if certificate.winner is not None:
        content["stability"] = folder.model.stability.to_dict()
        content["order"] = folder.model.order
    if folder.committee is not None:
        content["committee"] = committee_facts(folder.committee, certificate)
    if (second := folder.generalisation) is not None:
        content["generalisation"] = second.to_dict()
    if len(folder.fresh):
        content["verification"] = verification_of(folder)
    content |= ranks_and_quantiles(folder, rank, quantile)
    if as_json:
        print_json(content)
    else:
        print_result(content, folder.search["scores"][:, 0])
