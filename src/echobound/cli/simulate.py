"""`simulate` and `predict`: the model of a run over new data."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer

from echobound.cli.options import Options
from echobound.cli.reading import NAMED, PANEL, Reading
from echobound.cli.runs import Run, stored_model
from echobound.cli.terminal import AsJson, console, print_json, say, text_cell
from echobound.data import Record
from echobound.diagnostics.coverage import Excursion, excursions, named_beyond
from echobound.diagnostics.finding import listed
from echobound.diagnostics.verdict import WORDS, level
from echobound.errors import InputError
from echobound.files import write_whole
from echobound.network import Holding, Simulation, holdings, load_model
from echobound.runs import RunFolder
from echobound.scores import Summary, summary
from echobound.typed import to_json

FILES = "CSV, Parquet, .mat, NPZ or Excel with the inputs; several are several experiments."
WHICH = "The picked network or the committee of the run instead of the model it delivers, or a model file."
MOSTLY = 0.5  # share of the samples in which a model extrapolates, or sits at a limit, from which on it is of no use
BEYOND = "beyond training range"  # column of the inputs for which the model extrapolates
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
    model = model_of(run, committee, which)
    known = RunFolder(run).experiments.training
    runs = [_simulated(model, known, *found) for path in data for found in records_for(model, path, reading, from_mean)]
    _report(run, model, runs, output, as_json)


def predict(
    run: Run,
    data: Annotated[list[Path], typer.Argument(metavar="FILE", help=FILES)],
    reading: Annotated[Reading, Options(PANEL, help=NAMED)],
    horizon: Annotated[int, typer.Option(help="Samples to predict ahead.", min=1)] = 1,
    which: Annotated[str | None, typer.Option("--model", metavar="network|committee|FILE", help=WHICH)] = None,
    output: Annotated[Path | None, typer.Option(help="CSV file to write; the terminal if not given.")] = None,
    as_json: AsJson = False,
) -> None:
    """Predict the outputs so many samples ahead, each from the measured outputs up to then, by the model of a run.

    The files need the columns of the outputs too. FIT and RMSE of the predictions are reported.
    """
    model = model_of(run, False, which)
    known, runs = RunFolder(run).experiments.training, []
    for path in data:
        for record, measured in records_for(model, path, reading, from_mean=False):
            if not measured:
                names = ", ".join(model.output_names)
                raise InputError(f"{path.name} has no columns of the outputs ({names}) to predict from: give --outputs")
            done = model.predict(record, horizon)
            scores = summary(record.y[done.first :], done.y, model.output_names)
            runs.append(Response(record, measured, done, scores, training=known))
    _report(run, model, runs, output, as_json, word="predicted")


def _report(
    run: Path, model: Any, runs: list[Response], output: Path | None, as_json: bool, word: str = "simulated"
) -> None:
    """Write and print what models gave."""
    several = len(runs) > 1
    if output is not None:
        write_whole(output, table_of(runs, model, word).encode())
    if as_json:
        contents = [one.content(model.output_names if output is None else ()) for one in runs]
        experiments = [{"name": one.name, **each} for one, each in zip(runs, contents, strict=True)]
        total = {"samples": sum(each["samples"] for each in contents), "experiments": experiments}
        written = {} if output is None else {"output": str(output)}
        print_json({"run": str(run), **(total if several else contents[0]), **written})
        return
    if output is None:
        say(table_of(runs, model, word), end="")
    for one in runs:
        for note in one.lines(model.output_units):
            console(error=output is None).print(f"{one.name}: {note}" if several else note, markup=False)


def table_of(runs: Sequence[Response], model: Any, word: str = "simulated") -> str:
    """CSV of several responses: time in seconds, inputs, measured outputs where there are any, the model's outputs.

    Where inputs leave what the model was trained on, a last column names them: a file travels without its warnings. A
    name that a spreadsheet would take for a formula gets an apostrophe before it.
    """
    text, several, measured = io.StringIO(), len(runs) > 1, any(one.measured for one in runs)
    extrapolated = any(one.beyond for one in runs)
    writer = csv.writer(text, lineterminator="\n")
    heads = [*(["experiment"] if several else []), "sample", "time", *model.input_names]
    heads += [f"{name} (measured)" for name in model.output_names if measured]
    heads += [*(f"{name} ({word})" for name in model.output_names), *([BEYOND] if extrapolated else [])]
    writer.writerow([text_cell(head) for head in heads])
    for one in runs:
        first, record = one.simulation.first, one.record
        empty = [""] * len(model.output_names)
        named = named_beyond(one.training, record.u) if extrapolated else ()
        for k, row in enumerate(one.simulation.y.tolist(), start=first):
            seen = (map(repr, record.y[k].tolist()) if one.measured else empty) if measured else ()
            cells = [k + 1, f"{k * model.sampling_time:.12g}", *map(repr, record.u[k].tolist()), *seen, *map(repr, row)]
            cells += [text_cell(named[k])] if extrapolated else []
            writer.writerow([*([text_cell(one.name)] if several else []), *cells])
    return text.getvalue()


def score_words(scores: Summary, units: Sequence[str]) -> str:
    """FIT and RMSE in words, for each output where there are several: a mean over units would mean nothing.

    Examples
    --------
    >>> each = {"level": {"fit": 90.0, "rmse": 0.1}, "flow": {"fit": 80.0, "rmse": 3.0}}
    >>> score_words({"fit": 85.0, "rmse": 2.1, "per_output": each}, ["m", "l/s"])
    'FIT 85 % (level 90 %, RMSE 0.1 m; flow 80 %, RMSE 3 l/s)'
    """
    pairs = list(zip(scores["per_output"].items(), units, strict=True))
    errors = [f"RMSE {one['rmse']:.5g}{' ' + unit if unit else ''}" for (_, one), unit in pairs]
    if len(pairs) == 1:
        return f"FIT {_percent(scores['fit'])}, {errors[0]}"
    each = [f"{name} {_percent(one['fit'])}, {error}" for ((name, one), _), error in zip(pairs, errors, strict=True)]
    return f"FIT {_percent(scores['fit'])} ({'; '.join(each)})"


def _percent(fit: float) -> str:
    return "undefined" if math.isnan(fit) else f"{fit:.4g} %"


@dataclass(frozen=True, eq=False)
class Response:
    """One experiment: what a model gave and, where outputs were measured, its scores."""

    record: Record
    measured: bool  # whether the record has outputs; otherwise its inputs stand in their place
    simulation: Simulation
    scores: Summary | None
    held: tuple[Holding, ...] | None = None  # for how long each output sits at a limit; None if there are no limits
    training: tuple[Record, ...] = ()  # what the model was trained on

    @cached_property
    def beyond(self) -> list[Excursion]:
        """Inputs that leave the range of the training data."""
        return excursions(self.training, self.record.u)

    @property
    def name(self) -> str:
        """What the experiment is called."""
        return self.record.name

    def lines(self, units: Sequence[str]) -> list[str]:
        """First that it is of no use, if so; what was done and how well it fits; then what else is to be known."""
        done, useless = self.simulation, self.useless
        note = f"{len(done.y)} samples from sample {done.first + 1} on: {done.start}"
        if self.scores is not None:
            note += f"; {score_words(self.scores, units)}"
        return [*([useless] if useless else []), note, *self.notes]

    @property
    def useless(self) -> str:
        """That the result is of no use, with the reasons; empty where nothing says so."""
        most = [f"{one.channel} is beyond its training range" for one in self.beyond if one.share > MOSTLY]
        most += [f"{one.output} sits at a limit" for one in self.held or () if one.too_long and one.share > MOSTLY]
        why = [f"in most samples {listed(most)}"] if most else []
        fit = math.nan if self.scores is None else self.scores["fit"]
        if not math.isnan(fit) and level(fit) == "unusable":
            why.insert(0, f"the FIT is {_percent(fit)}")
        return f"{WORDS['unusable']}: {'; '.join(why)}" if why else ""

    @property
    def notes(self) -> list[str]:
        """A sentence for each input that leaves its training range, and each output at a limit for too long."""
        warned = [f"warning: {one.words}: the model extrapolates there" for one in self.beyond]
        return warned + [one.words for one in self.held or () if one.too_long]

    def content(self, outputs: tuple[str, ...]) -> dict[str, Any]:
        """What --json prints of it, with the outputs of these names if there are any."""
        done = self.simulation
        scores = {} if self.scores is None else {"scores": self.scores}
        signals = {"outputs": {name: done.y[:, i] for i, name in enumerate(outputs)}} if outputs else {}
        held = None if self.held is None else {one.output: one.share for one in self.held}
        start = {"samples": len(done.y), "first": done.first, "start": done.start, "useless": self.useless}
        beyond = [to_json(one) for one in self.beyond]
        return {**start, "extrapolation": beyond, "held": held, "notes": self.notes, **scores, **signals}


def model_of(run: Path, committee: bool, which: str | None) -> Any:
    """The model of a run, by what was asked for."""
    folder = RunFolder(run)
    _ = folder.plan  # raises if this is not a run folder
    if committee and which is not None:
        raise InputError("--committee and --model were both given: leave out one of them")
    if which is None or which in ("network", "committee"):
        return stored_model(folder, "committee" if committee else which)
    return load_model(which)


def records_for(model: Any, path: Path, reading: Reading, from_mean: bool) -> list[tuple[Record, bool]]:
    """The experiments of a file, and whether their outputs were measured; they must suit the model."""
    table = reading.open(path)
    known = {name for name, _ in table.labels} | set(table.columns)
    wanted = reading.outputs or [name for name in model.output_names if name in known]
    count = len(table.names.positions(wanted)) if wanted else 0  # a range, or a matrix, is several columns
    if reading.outputs and count != len(model.output_names):
        raise InputError(
            f"the model has {len(model.output_names)} outputs ({', '.join(model.output_names)}), but {count}"
            " columns were given with --outputs: give one for each"
        )
    measured = not from_mean and count == len(model.output_names)
    columns = reading.inputs or model.input_names, wanted if measured else None
    records = reading.records_of(table, *columns, shortest=(model.washout if measured else 0) + 1)
    timed = reading.sampling_time is not None or reading.time is not None
    if timed and not math.isclose(records[0].sampling_time, model.sampling_time, rel_tol=1e-3):
        raise InputError(
            f"{path.name} is sampled every {records[0].sampling_time:g} s, but the model was identified from samples"
            f" every {model.sampling_time:g} s: give --resample {model.sampling_time:g}"
        )
    return [(record, measured) for record in records]


def _simulated(model: Any, training: tuple[Record, ...], record: Record, measured: bool) -> Response:
    done = model.simulate(record if measured else record.u)
    scores = summary(record.y[done.first :], done.y, model.output_names) if measured else None
    return Response(record, measured, done, scores, holdings(model, done.y), training)
