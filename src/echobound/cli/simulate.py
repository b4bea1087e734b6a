"""`simulate`: the model of a run over new inputs."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from echobound.cli.options import Options
from echobound.cli.reading import NAMED, PANEL, Reading
from echobound.cli.runs import Run, stored_model
from echobound.cli.terminal import AsJson, console, print_json
from echobound.data import Record, read_table
from echobound.errors import InputError
from echobound.files import write_whole
from echobound.kernels import compiled_dynamics
from echobound.network import Holding, Simulation, holdings, load_model
from echobound.runs import RunFolder
from echobound.scores import Summary, summary

FILES = "CSV, Parquet, .mat, NPZ or Excel with the inputs; several are several experiments."
WHICH = "The picked network or the committee of the run instead of the model it delivers, or a model file."
OUTPUTS = "Columns of measured outputs to start from, if not named as in the run."


def simulate(
    run: Run,
    data: Annotated[list[Path], typer.Argument(metavar="FILE", help=FILES)],
    reading: Annotated[Reading, Options(PANEL, help=NAMED | {"outputs": OUTPUTS})],
    from_mean: Annotated[
        bool, typer.Option("--from-mean", help="Start from the training mean even if measured outputs are there.")
    ] = False,
    which: Annotated[str | None, typer.Option("--model", metavar="network|committee|FILE", help=WHICH)] = None,
    committee: Annotated[bool, typer.Option("--committee", help="The same as --model committee.")] = False,
    output: Annotated[Path | None, typer.Option(help="CSV file to write; the terminal if not given.")] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate the model of a run, the one that it delivers, in free run over new inputs.

    If a file has the output columns too, they are fed back during the washout, and FIT and RMSE are reported.
    Otherwise the simulation starts from the training mean of the outputs. The output says which of the two was done.
    """
    model = _model(run, committee, which)
    runs = [_simulated(model, *found) for path in data for found in _records(model, path, reading, from_mean)]
    text, several = io.StringIO(), len(runs) > 1
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*(["experiment"] if several else []), "sample", *model.output_names])
    for one in runs:
        for sample, row in enumerate(one.simulation.y.tolist(), start=one.simulation.first + 1):
            writer.writerow([*([one.name] if several else []), sample, *map(repr, row)])
    if output is not None:
        write_whole(output, text.getvalue().encode())
    if as_json:
        contents = [one.content(model.output_names if output is None else ()) for one in runs]
        experiments = [{"name": one.name, **each} for one, each in zip(runs, contents, strict=True)]
        total = {"samples": sum(each["samples"] for each in contents), "experiments": experiments}
        written = {} if output is None else {"output": str(output)}
        print_json({"run": str(run), **(total if several else contents[0]), **written})
        return
    if output is None:
        print(text.getvalue(), end="")
    for one in runs:
        console(error=output is None).print(f"{one.name}: {one.note}" if several else one.note, markup=False)


@dataclass(frozen=True, eq=False)
class _Run:
    """One experiment: what was simulated and, where outputs were measured, its scores."""

    name: str
    simulation: Simulation
    scores: Summary | None
    held: tuple[Holding, ...] | None  # for how long each output sits at a limit; None of a model without limits

    @property
    def note(self) -> str:
        done = self.simulation
        note = f"{len(done.y)} samples from sample {done.first + 1} on: {done.start}"
        if self.scores is not None:
            fit = self.scores["fit"]
            known = "undefined" if math.isnan(fit) else f"{fit:.4g} %"
            note += f"; FIT {known}, RMSE {self.scores['rmse']:.5g}"
        return "; ".join([note, *self.notes])

    @property
    def notes(self) -> list[str]:
        """A sentence for each output that sits at a limit for too long."""
        return [one.words for one in self.held or () if one.too_long]

    def content(self, outputs: tuple[str, ...]) -> dict[str, Any]:
        """What --json prints of it, with the outputs of these names if there are any."""
        done = self.simulation
        scores = {} if self.scores is None else {"scores": self.scores}
        signals = {"outputs": {name: done.y[:, i] for i, name in enumerate(outputs)}} if outputs else {}
        held = None if self.held is None else {one.output: one.share for one in self.held}
        start = {"samples": len(done.y), "first": done.first, "start": done.start}
        return {**start, "held": held, "notes": self.notes, **scores, **signals}


def _model(run: Path, committee: bool, which: str | None) -> Any:
    folder = RunFolder(run)
    _ = folder.plan  # raises if this is not a run folder
    if committee and which is not None:
        raise InputError("--committee and --model were both given: leave out one of them")
    if which is None or which in ("network", "committee"):
        return stored_model(folder, "committee" if committee else which)
    return load_model(which)


def _records(model: Any, path: Path, reading: Reading, from_mean: bool) -> list[tuple[Record, bool]]:
    """The experiments of a file, and whether their outputs were measured; they must suit the model."""
    table = read_table(path, reading.sheet)
    wanted = reading.outputs or [name for name in model.output_names if name in table.columns]
    if reading.outputs and len(wanted) != len(model.output_names):
        raise InputError(
            f"the model has {len(model.output_names)} outputs ({', '.join(model.output_names)}), but {len(wanted)}"
            " columns were given with --outputs: give one for each"
        )
    measured = not from_mean and len(wanted) == len(model.output_names)
    columns = reading.inputs or model.input_names, wanted if measured else None
    records = reading.records_of(table, *columns, shortest=(model.washout if measured else 0) + 1)
    known = reading.sampling_time is not None or reading.time is not None
    if known and not math.isclose(records[0].sampling_time, model.sampling_time, rel_tol=1e-3):
        raise InputError(
            f"{path.name} is sampled every {records[0].sampling_time:g} s, but the model was identified from samples"
            f" every {model.sampling_time:g} s: give --resample {model.sampling_time:g}"
        )
    return [(record, measured) for record in records]


def _simulated(model: Any, record: Record, measured: bool) -> _Run:
    done = model.simulate(record if measured else record.u, dynamics=compiled_dynamics())
    scores = summary(record.y[done.first :], done.y, model.output_names) if measured else None
    return _Run(record.name, done, scores, holdings(model, done.y))
