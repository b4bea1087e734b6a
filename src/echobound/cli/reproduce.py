"""`reproduce`: the paper's experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from echobound.cli.identify import new_folder
from echobound.cli.options import ComputingOptions
from echobound.cli.terminal import AsJson, Quiet, console, numbers, print_json, progress
from echobound.reproduce import PAPER_ORDERS, reproduce_paper

__all__ = ["reproduce"]


def reproduce(
    computing: ComputingOptions,
    orders: Annotated[
        str | None, typer.Option(help="Orders, separated by commas; the paper's 21 if not given.")
    ] = None,
    networks: Annotated[int, typer.Option(help="Networks of each order to pick from.")] = 645,
    fresh: Annotated[int, typer.Option(help="Fresh networks of each order to test with.")] = 500,
    seed: Annotated[int, typer.Option(help="Seed of the networks.")] = 0,
    data_seed: Annotated[
        int | None, typer.Option(help="Seed of the data; if not given, a rule chooses it that looks at the data alone.")
    ] = None,
    run: Annotated[Path | None, typer.Option("--run", help="Folder to write to.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Repeat the paper's experiment: 21 orders, 645 networks each, tested by 500 fresh ones.

    Writes the table beside the paper's, the scores of every network as CSV, and the paper's figures as PNG and SVG.
    """
    with progress("networks", quiet) as show:
        outcome = reproduce_paper(
            PAPER_ORDERS if orders is None else numbers(orders, "--orders"),
            networks=networks,
            fresh=fresh,
            seed=seed,
            data_seed=data_seed,
            folder=new_folder("reproduce") if run is None else run,
            computing=computing,
            on_progress=show,
        )
    if as_json:
        print_json(outcome.to_dict())
    else:
        console().print(outcome.text(), markup=False, soft_wrap=True)
