"""`verify`, `show`, `report` and `figures`: what a run folder is worth, and what is in it."""

from __future__ import annotations

import webbrowser
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import echobound
from echobound.cli.computing import ComputingOptions
from echobound.cli.show import assessment_facts, model_facts, print_result
from echobound.cli.terminal import AsJson, Quiet, console, print_json, print_lines, progress, words
from echobound.errors import InputError, RunError
from echobound.network import PlantModel
from echobound.report import write_figures, write_page
from echobound.runs import RunFolder
from echobound.runs.holding import ended
from echobound.runs.journal import look_at
from echobound.runs.ranks import ranks_and_quantiles
from echobound.runs.verification import verification_of
from echobound.scenario.words import noun
from echobound.typed import to_json

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")]
IMPLAUSIBLE = 1e-4  # a count of violations this improbable speaks against the certificate


class Which(StrEnum):
    """A model of a run by its name."""

    NETWORK = "network"
    COMMITTEE = "committee"


def stored_model(folder: RunFolder, which: str | None = None) -> Any:
    """The model that a run delivers, or its ``network`` or ``committee``; one that it has not is refused."""
    if not folder.stores_data:
        drawn = folder.plan.law[0].name
        stored = f"{folder.path} has no stored model, only the scores of what it drew ({drawn})"
        raise RunError(f"{stored}: use best_estimator_ of the search in Python")
    if not folder.has("model.npz"):
        raise RunError(f"{folder.path} has no stored model: it is not finished yet, or all its networks diverged")
    if which is None:
        return folder.model
    found = {"network": folder.network, "committee": folder.committee}[which]
    if found is None and which == "committee":
        raise InputError(f"{folder.path} has no committee: identify with --committee 10 keeps one")
    if found is None:
        raise InputError(f"{folder.path} has no picked network, since it drew committees: leave out --model network")
    return found


def verify(
    run: Run,
    computing: ComputingOptions,
    fresh: Annotated[
        int, typer.Option(help="Fresh networks to draw (of each family), in addition to those drawn before.")
    ] = 500,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Put a certificate to the test: draw fresh networks and count those that violate it.

    Exits with code 1 if the theory gives so many violations a probability below 1 in 10,000.
    """
    with progress(f"fresh {noun(RunFolder(run).plan.members).many}", quiet) as tell:
        outcome = echobound.verify(run, fresh, computing=computing, on_progress=tell)
    if as_json:
        print_json(outcome)
    else:
        print_lines([outcome["statement"], outcome["worst"]["statement"]])
    if min(outcome["p_value"], outcome["worst"]["p_value"]) < IMPLAUSIBLE:
        raise typer.Exit(1)


def show(
    run: Run,
    rank: Annotated[
        int | None, typer.Option(help="Also state what holds if this rank, chosen after a look, is the threshold.")
    ] = None,
    quantile: Annotated[
        float | None, typer.Option(help="Also state where this quantile of all scores lies; 0.5 is the median.")
    ] = None,
    details: Annotated[bool, typer.Option("--details", help="Everything: diagnostics, statements, scores.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say what the model of a run is worth, after deriving each number of its certificate again from the ledger."""
    folder = RunFolder(run)
    certificate = folder.certificate
    content: dict[str, Any] = {**assessment_facts(folder.assessment), "run": str(run)}
    look = look_at(folder)
    content |= {"certificate": certificate.to_dict(), "search": None if look is None else look.to_dict()}
    content |= {"ended": ended(folder.search), **model_facts(folder)}
    if isinstance(folder.models.get("model"), PlantModel):
        content |= {"stability": folder.network.stability.to_dict(), "order": folder.network.order}
    if (second := folder.generalisation) is not None:
        content["generalisation"] = second.to_dict()
    if len(folder.fresh):
        content["verification"] = verification_of(folder)
    content |= ranks_and_quantiles(folder, rank, quantile)
    if as_json:
        print_json(content)
    else:
        asked = details or rank is not None or quantile is not None
        if asked and folder.stores_data:
            content["diagnostics"] = [to_json(one) for one in folder.diagnostics.findings]
        print_result(content, folder.search["scores"][:, 0], details=asked)


def report(
    run: Run,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the page of a run again.

    Every run folder has its page already; this writes it anew after an update, or for a folder that came without one.
    """
    page = write_page(RunFolder(run))
    if as_json:
        print_json({"run": str(run), "page": str(page), "bytes": page.stat().st_size})
    else:
        print_lines([str(page)])
    if open_page and not webbrowser.open(page.resolve().as_uri()):
        console(error=True).print(f"no browser was found: open {page} in yours", markup=False)


def figures(
    run: Run,
    output: Annotated[Path | None, typer.Option(help="Folder for the figures; RUN/figures if not given.")] = None,
    kinds: Annotated[str, typer.Option("--format", help="pdf, svg, png, separated by commas.")] = "pdf,svg",
    as_json: AsJson = False,
) -> None:
    """Write the figures of a run for a paper: vector graphics in one style, with a unit on every axis."""
    files = [str(path) for path in write_figures(run, run / "figures" if output is None else output, words(kinds))]
    if as_json:
        print_json({"run": str(run), "figures": files})
    else:
        print_lines(files)
