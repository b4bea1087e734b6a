"""`simulate`: the model of a run over new inputs."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from echobound.cli.reading import Decimate, Missing, Resample, SamplingTime, Sheet, Time
from echobound.cli.terminal import AsJson, console, print_json, words

if TYPE_CHECKING:
    from echobound.data import Record
    from echobound.network import Committee, EchoStateNetwork, Simulation

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: echobound simulate runs/demo-1 inputs.csv --output simulated.csv")(simulate)


def simulate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")],
    data: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="CSV, Parquet, .mat, NPZ or Excel with the inputs; several are several experiments."
        ),
    ],
    inputs: Annotated[str | None, typer.Option(help="Input columns, if not named as in the run.")] = None,
    outputs: Annotated[
        str | None, typer.Option(help="Columns of measured outputs to start from, if not named as in the run.")
    ] = None,
    sampling_time: SamplingTime = None,
    time: Time = None,
    resample: Resample = None,
    decimate: Decimate = None,
    missing: Missing = "error",
    sheet: Sheet = None,
    from_mean: Annotated[
        bool, typer.Option("--from-mean", help="Start from the training mean even if measured outputs are there.")
    ] = False,
    committee: Annotated[
        bool, typer.Option("--committee", help="Simulate the committee of the best networks instead of the picked one.")
    ] = False,
    model_file: Annotated[
        Path | None, typer.Option("--model", help="A saved model instead of the run's, such as adapt writes.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="CSV file to write; the terminal if not given.")] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate the model of a run in free run over new inputs.

    If a file has the output columns too, they are fed back during the washout, and FIT and RMSE are reported;
    otherwise the simulation starts from the training mean of the outputs. Which of the two is said.
    """
    from echobound.errors import InputError
    from echobound.files import write_whole
    from echobound.network import EchoStateNetwork
    from echobound.runs.folder import RunFolder

    folder = RunFolder(run)
    if committee and model_file is not None:
        raise InputError("--committee and --model were both given: leave out one of them")
    model = folder.committee if committee else folder.model
    if model is None:
        raise InputError(f"{run} has no committee: identify with --committee 10 keeps one")
    if model_file is not None:
        model = EchoStateNetwork.load(model_file)
    sampling: dict[str, Any] = {"sampling_time": sampling_time, "time": time}
    sampling |= {"resample": resample, "decimate": decimate, "missing": missing}
    runs = [
        (record.name, *_simulated(model, record, measured))
        for path in data
        for record, measured in _records(model, path, sheet, words(inputs), words(outputs), from_mean, sampling)
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    several = len(runs) > 1
    writer.writerow([*(["experiment"] if several else []), "sample", *model.output_names])
    for name, done, _ in runs:
        writer.writerows(
            [*([name] if several else []), done.first + k + 1, *map(repr, row)] for k, row in enumerate(done.y.tolist())
        )
    if output is not None:
        write_whole(output, text.getvalue().encode())
    if as_json:
        print_json(_content(run, runs, model.output_names, output))
        return
    if output is None:
        print(text.getvalue(), end="")
    for name, done, scores in runs:
        note = f"{len(done.y)} samples from sample {done.first + 1} on: {done.start}"
        if scores is not None:
            fit = "undefined" if scores["fit"] != scores["fit"] else f"{scores['fit']:.4g} %"
            note += f"; FIT {fit}, RMSE {scores['rmse']:.5g}"
        console(error=output is None).print(f"{name}: {note}" if several else note, markup=False)


Run = tuple[str, "Simulation", dict[str, Any] | None]  # name of the experiment, what was simulated, its scores


def _records(
    model: EchoStateNetwork | Committee,
    path: Path,
    sheet: str | None,
    inputs: list[str],
    outputs: list[str],
    from_mean: bool,
    sampling: dict[str, Any],
) -> list[tuple[Record, bool]]:
    """The experiments of a file, and whether their outputs were measured; they must suit the model."""
    from echobound.data import Reading, read_table
    from echobound.errors import InputError

    table = read_table(path, sheet)
    wanted = outputs or [name for name in model.output_names if name in table.columns]
    if outputs and len(wanted) != len(model.output_names):
        raise InputError(
            f"the model has {len(model.output_names)} outputs ({', '.join(model.output_names)}), but {len(wanted)}"
            " columns were given with --outputs: give one for each"
        )
    measured = not from_mean and len(wanted) == len(model.output_names)
    records = table.records(
        inputs or model.input_names,
        wanted if measured else None,
        Reading(shortest=(model.washout if measured else 0) + 1, **sampling),
    )
    known = sampling["sampling_time"] is not None or sampling["time"] is not None
    if known and not math.isclose(records[0].sampling_time, model.sampling_time, rel_tol=1e-3):
        raise InputError(
            f"{path.name} is sampled every {records[0].sampling_time:g} s, but the model was identified from samples"
            f" every {model.sampling_time:g} s: give --resample {model.sampling_time:g}"
        )
    return [(record, measured) for record in records]


def _simulated(
    model: EchoStateNetwork | Committee, record: Record, measured: bool
) -> tuple[Simulation, dict[str, Any] | None]:
    from echobound.kernels import compiled_dynamics
    from echobound.scores import summary

    done = model.simulate(record if measured else record.u, dynamics=compiled_dynamics())
    return done, summary(record.y[done.first :], done.y, model.output_names) if measured else None


def _content(run: Path, runs: list[Run], names: tuple[str, ...], output: Path | None) -> dict[str, Any]:
    """What --json prints: one experiment at the top, several under a key of their own."""
    experiments = []
    for name, done, scores in runs:
        one: dict[str, Any] = {"name": name, "samples": len(done.y), "first": done.first, "start": done.start}
        if scores is not None:
            one["scores"] = scores
        if output is None:
            one["outputs"] = {channel: done.y[:, i] for i, channel in enumerate(names)}
        experiments.append(one)
    content: dict[str, Any] = {"run": str(run)}
    if len(experiments) == 1:
        content |= {key: value for key, value in experiments[0].items() if key != "name"}
    else:
        content |= {"samples": sum(one["samples"] for one in experiments), "experiments": experiments}
    return content if output is None else {**content, "output": str(output)}
