"""`control`: the loop closed around a plant, with the model of a run."""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from echobound.cli.runs import Run, stored_model
from echobound.cli.terminal import AsJson, Quiet, console, print_json, print_lines, text_cell, words
from echobound.data import read_table
from echobound.errors import DataError, InputError
from echobound.files import write_whole
from echobound.runs import RunFolder

REFERENCE = "CSV, Parquet, .mat, NPZ or Excel with a column for each output, a row for each sample."
PLANT = "ph, or file.py:function for your own: the function returns an object with start and step (docs/control.md)."
WHICH = "The picked network or the committee instead of the model that the run delivers."
IN_C = "Folder for the same controller in C99, with a self-test; it is checked where there is a C compiler."
SCENARIOS = "Further networks that must keep the output bounds: a number (the best of the ledger) or 'committee'."


def control(
    run: Run,
    reference: Annotated[Path, typer.Option("--reference", metavar="FILE", help=REFERENCE)],
    plant: Annotated[str, typer.Option(help=PLANT)] = "ph",
    horizon: Annotated[int, typer.Option(help="Samples that are predicted.")] = 20,
    preview: Annotated[bool, typer.Option(help="Whether the reference is known ahead.")] = True,
    input_low: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Lower bounds of the inputs; the training range.")
    ] = None,
    input_high: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Upper bounds of the inputs; the training range.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Largest change of each input from sample to sample.")
    ] = None,
    output_low: Annotated[str | None, typer.Option(metavar="NUMBERS", help="Soft lower bounds of the outputs.")] = None,
    output_high: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Soft upper bounds of the outputs.")
    ] = None,
    move_weight: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Weight of changes of the inputs, relative to their range.")
    ] = "0.1",
    scenarios: Annotated[str | None, typer.Option(metavar="N|committee", help=SCENARIOS)] = None,
    beta: Annotated[float, typer.Option(help="1 - confidence of what is said about scenarios.")] = 1e-3,
    which: Annotated[str | None, typer.Option("--model", metavar="network|committee", help=WHICH)] = None,
    noise: Annotated[float, typer.Option(help="Standard deviation of the measurement noise.")] = 0.0,
    disturbance: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Columns of --reference with unmeasured disturbances.")
    ] = None,
    lost: Annotated[float, typer.Option(help="Share of measurements that are lost.")] = 0.0,
    outliers: Annotated[float, typer.Option(help="Share of measurements that are far off.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Which draw of noise and faults.")] = 0,
    iterations: Annotated[int, typer.Option(help="Quadratic programs for each plan, at most.")] = 10,
    pi: Annotated[
        bool, typer.Option("--pi/--no-pi", help="A PI controller beside it, where there is one input.")
    ] = True,
    output: Annotated[Path | None, typer.Option(help="CSV file for the signals.")] = None,
    page: Annotated[Path | None, typer.Option(help="HTML file for the page.")] = None,
    export_c: Annotated[Path | None, typer.Option("--export-c", metavar="FOLDER", help=IN_C)] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Close the loop around a plant: observer and model predictive control by the model of a run.

    Bounds of inputs and rates are never violated, those of outputs as little as possible. A PI controller, tuned by
    Skogestad's rule from the same model, runs beside it without preview.
    """
    from echobound.control import MPC, Effort, Faults, plant_of, require_exportable, simulate_closed_loop

    folder = RunFolder(run)
    _ = folder.plan  # raises if this is not a run folder
    if which not in (None, "network", "committee"):
        raise InputError(f"--model is network or committee, got {which!r}")
    model = stored_model(folder, which)
    trained = np.concatenate([record.u for record in folder.experiments.training])
    given = {
        "input_low": trained.min(axis=0) if input_low is None else _numbers("--input-low", input_low),
        "input_high": trained.max(axis=0) if input_high is None else _numbers("--input-high", input_high),
        "rate": _numbers("--rate", rate),
    }
    others, about = _scenarios(folder, scenarios)
    controller = MPC(
        model,
        horizon,
        **given,
        output_low=_numbers("--output-low", output_low),
        output_high=_numbers("--output-high", output_high),
        move_weight=_numbers("--move-weight", move_weight),
        scenarios=others,
        effort=Effort(iterations=_positive("--iterations", iterations)),
    )
    if not 0 < beta < 1:
        raise InputError(f"--beta must lie between 0 and 1, got {beta:g}")
    if export_c is not None:
        require_exportable(controller)  # before anything takes time
    _require_places(output, page, export_c)
    wanted, unknown = _signals(reference, model.output_names, words(disturbance))
    settings: dict[str, Any] = {"noise": noise, "seed": seed, "faults": Faults(lost, outliers)}
    settings["disturbance"] = unknown if unknown.shape[1] else None
    process = plant_of(plant)
    with _counting("closing the loop", quiet) as show:
        loops = {"MPC": simulate_closed_loop(process, controller, wanted, preview=preview, **settings, on_sample=show)}
    if pi and len(model.input_names) == len(model.output_names) == 1:
        loops |= _baseline(process, model, wanted, given, settings)
    about_loop = f"The loop: {len(wanted)} samples around the plant {plant}, horizon {horizon}, the reference"
    about_loop += f"{'' if preview else ' not'} known ahead, measurement noise of standard deviation {noise:g}."
    sentences = [
        about_loop,
        controller.observer.forgetting,
        *_reach(model, controller, wanted),
        *_stood_in(loops["MPC"]),
    ]
    statement = None
    if about is not None:
        from echobound.control import statement_of

        statement = statement_of(controller, about, beta)
        sentences.append(statement.words)
    _write(output, page, loops, sentences, folder)
    written, difference = _in_c(controller, export_c, folder, sentences)
    if as_json:
        content = {"run": str(run), "plant": plant, "horizon": horizon, "preview": preview, "noise": noise}
        scores = {name: loop.scores for name, loop in loops.items()}
        said = None if statement is None else statement.to_dict()
        files: dict[str, Any] = {
            "output": None if output is None else str(output),
            "page": None if page is None else str(page),
        }
        files |= {"exported": written or None, "largest_difference": difference}
        print_json({**content, "scores": scores, "statements": sentences, "scenarios": said, **files})
        return
    _print(loops, sentences, [*(str(path) for path in (output, page) if path is not None), *written])


def _baseline(process: Any, model: Any, wanted: Any, given: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """A PI controller in the same loop; none where the model rests nowhere near the first reference."""
    from echobound.control import PI, simulate_closed_loop

    try:
        tuned = PI.tuned(model, float(process.start()[1][0]), **given)
        return {"PI": simulate_closed_loop(process, tuned, wanted, preview=False, **settings)}
    except InputError:
        return {}


def _scenarios(folder: RunFolder, asked: str | None) -> tuple[Any, Any]:
    """The further models, and what is known about how they were drawn."""
    if asked is None:
        return (), None
    if asked == "committee":
        from echobound.control import Scenarios

        members = stored_model(folder, "committee").members
        why = "The members of the committee were picked by more than their score, and are not independent draws."
        return members, Scenarios(tuple(members), None, folder.plan.measures[0].name, why)
    from echobound.control import best_networks

    if not asked.isdigit():
        raise InputError(f"--scenarios is a number of networks or 'committee', got {asked!r}")
    found = best_networks(folder, int(asked))
    return found.models, found


def _signals(path: Path, outputs: tuple[str, ...], disturbances: list[str]) -> tuple[Any, Any]:
    table = read_table(path)
    missing = [name for name in (*outputs, *disturbances) if name not in table.columns]
    if missing:
        what = f"each output ({', '.join(outputs)})"
        what += f" and each disturbance ({', '.join(disturbances)})" if disturbances else ""
        raise InputError(f"{path.name} needs a column for {what}: {', '.join(missing)} not found")
    try:
        signals = table.signal([*outputs, *disturbances])
    except DataError as error:
        # What identify offers for holes in its data is no remedy for a reference.
        what, needed, _ = str(error).partition(": finite numbers are needed")
        raise DataError(f"{what}{needed} in a reference: repair the file" if needed else what) from None
    return signals[:, : len(outputs)], signals[:, len(outputs) :]


def _reach(model: Any, controller: Any, wanted: Any) -> list[str]:
    """A sentence if a reference lies outside what the model reaches at the bounds of its input."""
    from echobound.network import operating_point

    if len(model.input_names) != 1 or len(model.output_names) != 1:
        return []
    try:
        ends = [operating_point(model, u=u).y[0] for u in (controller.bounds.low, controller.bounds.high)]
    except InputError:
        return []
    low, high = min(ends), max(ends)
    beyond = wanted[np.isfinite(wanted) & ((wanted < low) | (wanted > high))]
    if not len(beyond):
        return []
    name = model.output_names[0]
    return [
        f"The reference goes to {beyond[np.argmax(np.maximum(beyond - high, low - beyond))]:.4g}, but at the bounds of"
        f" its input the model rests at {name} = {low:.4g} and {high:.4g}: the plant is brought as near as it goes."
    ]


def _stood_in(loop: Any) -> list[str]:
    """What was put in place of something unusable, and at how many samples."""
    counts = Counter(note for _, note in loop.notes)
    return [f"At {count} of {len(loop.y)} samples {note}." for note, count in counts.items()]


def _require_places(output: Path | None, page: Path | None, folder: Path | None) -> None:
    """Refuse what cannot be written to before anything takes time."""
    for path in (output, page):
        if path is not None and not path.parent.is_dir():
            raise InputError(f"cannot write {path}: {path.parent} is not a folder")
    if folder is not None and folder.is_file():
        raise InputError(f"--export-c is a folder for several files, and {folder} is a file: give another name")


def _numbers(option: str, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return [float(word) for word in words(text)]
    except ValueError:
        raise InputError(f"{option} must be numbers separated by commas, got {text!r}") from None


def _positive(option: str, value: int) -> int:
    if value < 1:
        raise InputError(f"{option} must be at least 1, got {value}")
    return value


def _write(output: Path | None, page: Path | None, loops: dict[str, Any], sentences: list[str], folder: Any) -> None:
    if output is not None:
        text, first = io.StringIO(), loops["MPC"]
        writer = csv.writer(text, lineterminator="\n")
        names = [f"{name} {what}" for what in ("reference", "true", "measured") for name in first.output_names]
        writer.writerow(map(text_cell, ["sample", *names, *first.input_names]))
        for k, row in enumerate(np.concatenate([first.reference, first.y, first.measured, first.u], axis=1).tolist()):
            writer.writerow([k + 1, *map(repr, row)])
        write_whole(output, text.getvalue().encode())
    if page is not None:
        from echobound.control.page import write_page

        write_page(page, loops, sentences, f"Closed loop: {folder.path.name}")


def _in_c(controller: Any, path: Path | None, folder: Any, sentences: list[str]) -> tuple[list[str], float | None]:
    """Export the controller where that was asked for: the files, and how far it is from this one."""
    if path is None:
        return [], None
    from echobound.control import export_controller

    exported = export_controller(controller, path, certificate=folder.certificate)
    written, difference = [str(file) for file in exported.files], None
    try:
        difference = exported.check()
        sentences.append(exported.words(difference))
    except InputError as error:
        sentences.append(f"The controller in C was not checked: {error}.")
    return written, difference


def _print(loops: dict[str, Any], sentences: list[str], written: list[str]) -> None:
    from rich.table import Table

    from echobound.control.page import table_of

    tables = {name: table_of(loop) for name, loop in loops.items()}
    shown = Table(box=None, pad_edge=False)
    for column in ("", *tables):
        shown.add_column(column)
    for name in tables["MPC"]:
        shown.add_row(name, *(one[name] for one in tables.values()))
    console().print(shown)
    print_lines(["", *sentences])
    print_lines(f"written: {path}" for path in written)


@contextmanager
def _counting(what: str, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar of samples on a terminal; nothing when piped or quiet."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console(error=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
