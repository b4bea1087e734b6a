"""`simulate-plant` and `reproduce`: the plant of the paper, and its experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from echobound.cli.computing import ComputingOptions
from echobound.cli.identify import new_folder
from echobound.cli.terminal import AsJson, Quiet, console, numbers, print_json, print_lines, progress, words
from echobound.errors import InputError
from echobound.files import write_whole
from echobound.plants import ph_experiment
from echobound.reproduce import PAPER_ORDERS, reproduce_paper


def simulate_plant(
    output: Annotated[str, typer.Option(help="CSV files to write, separated by commas; each is an experiment.")],
    samples: Annotated[str, typer.Option(help="Samples, every 10 s: for all files, or for each file.")] = "5000",
    noise: Annotated[float, typer.Option(help="Standard deviation of the measurement noise, pH.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of excitation and noise.")] = 0,
    period: Annotated[int, typer.Option(help="Switching period of the base flow q3, samples.")] = 100,
    low: Annotated[float, typer.Option(help="Lowest q3, mL/s.")] = 12.7,
    high: Annotated[float, typer.Option(help="Highest q3, mL/s.")] = 16.7,
    levels: Annotated[int | None, typer.Option(help="Number of levels; any value between if not given.")] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate the pH neutralisation process of the paper under a multilevel signal, and write CSV.

    Columns: time (s), q3 (mL/s), pH.
    """
    paths = [Path(word) for word in words(output)]
    lengths = numbers(samples, "--samples")
    if len(lengths) == 1:
        lengths *= len(paths)
    if not paths or len(lengths) != len(paths):
        got = f"{len(paths)} files but {len(lengths)} lengths were given"
        raise InputError(f"{got}: give one length, or one for each file")
    options = {"period": period, "low": low, "high": high, "levels": levels}
    records = ph_experiment(lengths, noise, seed, **options)  # type: ignore[arg-type]  # options of several types
    for path, record in zip(paths, records, strict=True):
        rows = np.concatenate([record.time[:, None], record.u, record.y], axis=1)
        text = "time,q3,pH\n" + "\n".join(",".join(map(repr, row)) for row in rows.tolist()) + "\n"
        write_whole(path, text.encode())
    if as_json:
        print_json({"files": [str(p) for p in paths], "samples": lengths, "seed": seed, "noise": noise})
        return
    columns = "columns time (s), q3 (mL/s), pH"
    print_lines(f"{path}: {length} samples, {columns}" for path, length in zip(paths, lengths, strict=True))


def reproduce(
    computing: ComputingOptions,
    orders: Annotated[
        str | None, typer.Option(help="Orders, separated by commas; the paper's 21 if not given.")
    ] = None,
    networks: Annotated[int, typer.Option(help="Networks of each order to pick from.")] = 645,
    fresh: Annotated[int, typer.Option(help="Fresh networks of each order to test with.")] = 500,
    seed: Annotated[int, typer.Option(help="Seed of the networks.")] = 0,
    data_seed: Annotated[
        int | None, typer.Option(help="Seed of the data; if not given, it is chosen by looking at the data alone.")
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
