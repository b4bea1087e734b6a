"""`verify`, `show` and `simulate`: what can be done with a run folder."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Annotated, Any

import typer

from echobound.cli.show import print_result
from echobound.cli.terminal import AsJson, Device, Quiet, console, print_json, progress, words

__all__ = ["register"]

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")]
IMPLAUSIBLE = 1e-4  # a count of violations this improbable speaks against the certificate


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: echobound verify runs/demo-1 --fresh 500")(verify)
    app.command(epilog="Example: echobound simulate runs/demo-1 inputs.csv --output simulated.csv")(simulate)
    app.command(epilog="Example: echobound show runs/demo-1")(show)


def verify(
    run: Run,
    fresh: Annotated[int, typer.Option(help="Fresh networks to draw, beyond those of earlier verifications.")] = 500,
    workers: Annotated[int | None, typer.Option(help="Networks trained at the same time.")] = None,
    device: Device = "cpu",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Put a certificate to the test: draw fresh networks and count those that violate it.

    Ends with exit code 1 if so many violations are less probable than 1 in 10,000 under the theory.
    """
    from echobound.verify import verify as run_verify

    with progress("fresh networks", quiet) as show_progress:
        outcome = run_verify(run, fresh, workers=workers, kernel=device, on_progress=show_progress)
    if as_json:
        print_json(outcome)
    else:
        console().print(outcome["statement"], markup=False)
        console().print(outcome["worst"]["statement"], markup=False)
    if min(outcome["p_value"], outcome["worst"]["p_value"]) < IMPLAUSIBLE:
        raise typer.Exit(1)


def show(run: Run, as_json: AsJson = False) -> None:
    """Print the certificate of a run, after deriving every number of it again from the ledger."""
    from echobound.campaign import RunFolder
    from echobound.campaign.verification import verification_of

    folder = RunFolder(run)
    certificate = folder.certificate
    content: dict[str, Any] = {"run": str(run), "certificate": certificate.to_dict()}
    if certificate.winner is not None:
        content["stability"] = folder.model.stability.to_dict()
        content["order"] = folder.model.order
    if len(folder.verification):
        content["verification"] = verification_of(folder)
    if as_json:
        print_json(content)
    else:
        print_result(content, folder.search["scores"][:, 0])


def simulate(
    run: Run,
    data: Annotated[Path, typer.Argument(metavar="INPUTS.csv", help="Text table with the input columns.")],
    inputs: Annotated[str | None, typer.Option(help="Input columns, if not named as in the run.")] = None,
    outputs: Annotated[
        str | None, typer.Option(help="Columns of measured outputs to start from, if not named as in the run.")
    ] = None,
    from_mean: Annotated[
        bool, typer.Option("--from-mean", help="Start from the training mean even if measured outputs are there.")
    ] = False,
    output: Annotated[Path | None, typer.Option(help="CSV file to write; the terminal if not given.")] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate the model of a run in free run over new inputs.

    If the table has the output columns too, they are fed back during the washout, and FIT and RMSE are reported;
    otherwise the simulation starts from the training mean of the outputs. Which of the two is said.
    """
    from echobound.campaign import RunFolder
    from echobound.data import Record, read_table
    from echobound.errors import InputError
    from echobound.files import write_whole
    from echobound.scores import summary

    model = RunFolder(run).model
    table = read_table(data)
    wanted = words(outputs) or [name for name in model.output_names if name in table.columns]
    if outputs and len(wanted) != len(model.output_names):
        raise InputError(
            f"the model has {len(model.output_names)} outputs ({', '.join(model.output_names)}), but {len(wanted)}"
            " columns were given with --outputs: give one for each"
        )
    u = table.signal(words(inputs) or model.input_names)
    measured = None if from_mean or len(wanted) < len(model.output_names) else table.signal(wanted)
    if measured is None:
        run_of = model.simulate(u)
    else:
        run_of = model.simulate(
            Record(u, measured, 1.0, model.input_names, model.output_names, name=data.name),
        )
    first, y = run_of.first, run_of.y
    result: dict[str, Any] = {"run": str(run), "samples": len(y), "first": first, "start": run_of.start}
    if measured is not None:
        result["scores"] = summary(measured[first:], y, model.output_names)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["sample", *model.output_names])
    writer.writerows([first + k + 1, *map(repr, row)] for k, row in enumerate(y.tolist()))
    if output is not None:
        write_whole(output, text.getvalue().encode())
        result["output"] = str(output)
    if as_json:
        if output is None:
            result["outputs"] = {name: y[:, i] for i, name in enumerate(model.output_names)}
        print_json(result)
        return
    if output is None:
        print(text.getvalue(), end="")
    note = f"{len(y)} samples from sample {first + 1} on: {run_of.start}"
    if measured is not None:
        scores = result["scores"]
        fit = "undefined" if scores["fit"] != scores["fit"] else f"{scores['fit']:.4g} %"
        note += f"; FIT {fit}, RMSE {scores['rmse']:.5g}"
    console(error=output is None).print(note, markup=False)
