"""`compare`: models of several runs on the same data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from echobound.cli.options import Options
from echobound.cli.reading import NAMED, PANEL, Reading
from echobound.cli.runs import stored_model
from echobound.cli.simulate import records_for
from echobound.cli.terminal import AsJson, Quiet, console, print_json, print_lines, spinner
from echobound.compare import Compared
from echobound.compare import compare as compare_models
from echobound.data import Record
from echobound.errors import EchoboundError, InputError
from echobound.network import load_model
from echobound.runs import RunFolder


def compare(
    what: Annotated[
        list[Path], typer.Argument(metavar="RUN... FILE...", help="Run folders or model files, then data.")
    ],
    reading: Annotated[Reading, Options(PANEL, help=NAMED)],
    horizon: Annotated[
        int | None, typer.Option(help="Compare predictions so many samples ahead instead of free runs.", min=1)
    ] = None,
    washout: Annotated[
        int | None, typer.Option(help="Samples that are fed back and not scored; the longest washout if not given.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare the models of several runs on the same samples of the same data: FIT and RMSE of each output.

    Run folders and model files (.npz) come first, data files after them. The best model of each output is marked.
    """
    models, files = _told_apart(what)
    first = next(iter(models.values()))
    for name, model in models.items():
        if (model.input_names, model.output_names) != (first.input_names, first.output_names):
            ours, theirs = (f"{', '.join(m.input_names)} -> {', '.join(m.output_names)}" for m in (first, model))
            raise InputError(f"{name} has other channels ({theirs}) than the first model ({ours}): compare it apart")
    with spinner("running the models", quiet):
        records = [record for file in files for record in _measured(first, file, reading)]
        scores = compare_models(records, models, horizon=horizon, washout=washout)
    if as_json:
        print_json({"models": scores, "files": [str(file) for file in files], "horizon": horizon})
        return
    _print(scores, first, len(records), horizon)


def _told_apart(what: list[Path]) -> tuple[dict[str, Any], list[Path]]:
    """Models by name, and data files."""
    models: dict[str, Any] = {}
    files: list[Path] = []
    for path in what:
        if path.is_dir():
            folder = RunFolder(path)
            _ = folder.plan  # raises if this is not a run folder
            models[_unused(path.resolve().name, models)] = stored_model(folder)
        elif (model := _model_file(path)) is not None:
            models[_unused(path.name, models)] = model
        else:
            files.append(path)
    if not models or not files:
        lacking = "run folders or model files to compare" if not models else "data to compare them on"
        raise InputError(f"there are no {lacking} among {', '.join(map(str, what))}: give RUN1 RUN2 ... FILE")
    return models, files


def _model_file(path: Path) -> Any:
    """The model in a file; None if it is a file of data."""
    if path.suffix != ".npz" or not path.exists():
        return None
    try:
        return load_model(path)
    except EchoboundError:
        return None  # an NPZ file of data: if it is neither, its reader will say so


def _unused(name: str, taken: dict[str, Any]) -> str:
    number = 2
    given = name
    while name in taken:
        name, number = f"{given} ({number})", number + 1
    return name


def _measured(model: Any, file: Path, reading: Reading) -> list[Record]:
    found = records_for(model, file, reading, from_mean=False)
    if not all(measured for _, measured in found):
        raise InputError(f"{file.name} has no columns of the outputs ({', '.join(model.output_names)}): give --outputs")
    return [record for record, _ in found]


def _print(scores: dict[str, Compared], like: Any, records: int, horizon: int | None) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    how = "free run" if horizon is None else f"prediction {horizon} samples ahead"
    print_lines(
        [f"{how} over {records} record{'s' * (records != 1)}, on the same samples for all models"], style="bold"
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for head in ("output", "model", "FIT", "RMSE", ""):
        table.add_column(head, justify="right" if head in ("FIT", "RMSE") else "left", overflow="fold")
    for output, unit in zip(like.output_names, like.output_units, strict=True):
        best = max(scores, key=lambda name: scores[name]["per_output"][output]["fit"])
        for name, one in scores.items():
            each = one["per_output"][output]
            error = f"{each['rmse']:.5g}{' ' + unit if unit else ''}"
            mark = "best" if name == best and len(scores) > 1 else ""
            table.add_row(output.replace("[", "\\["), name.replace("[", "\\["), f"{each['fit']:.4g} %", error, mark)
    console().print(table)
    print_lines(f"{name}: {note}" for name, one in scores.items() for note in one["notes"])
