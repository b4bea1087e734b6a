"""`verify`, `show`, `report` and `figures`: what a run folder is worth, and what is in it."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

import echobound
from echobound.cli.options import ComputingOptions
from echobound.cli.show import committee_facts, print_result
from echobound.cli.terminal import AsJson, Quiet, console, print_json, print_lines, progress, words
from echobound.errors import RunError
from echobound.network import EchoStateNetwork
from echobound.report import write_figures, write_page
from echobound.runs import RunFolder
from echobound.runs.ranks import ranks_and_quantiles
from echobound.runs.verification import verification_of
from echobound.scenario.words import noun

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")]
IMPLAUSIBLE = 1e-4  # a count of violations this improbable speaks against the certificate


def stored_model(folder: RunFolder) -> EchoStateNetwork:
    """The picked network of a run; one that stores none is refused with the reason."""
    if not folder.stores_data:
        drawn = folder.plan.law[0].name
        stored = f"{folder.path} has no stored model, only the scores of what it drew ({drawn})"
        raise RunError(f"{stored}: use best_estimator_ of the search in Python")
    if not folder.has("model.npz"):
        raise RunError(f"{folder.path} has no stored model: it is not finished yet, or all its networks diverged")
    return folder.model


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
    as_json: AsJson = False,
) -> None:
    """Print the certificate of a run, after deriving each of its numbers again from the ledger."""
    folder = RunFolder(run)
    certificate, models = folder.certificate, folder.models
    content: dict[str, Any] = {"run": str(run), "certificate": certificate.to_dict()}
    if isinstance(model := models.get("model"), EchoStateNetwork):
        content |= {"stability": model.stability.to_dict(), "order": model.order}
    if "committee" in models and folder.committee is not None:
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
