"""`export`: the model of a run as C, an FMU or another thing that runs without echobound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from echobound.cli.runs import Which, stored_model
from echobound.cli.show import print_facts
from echobound.cli.terminal import AsJson, Quiet, print_json, spinner
from echobound.errors import InputError
from echobound.export import TARGETS, export_model, get_target
from echobound.network import load_model
from echobound.runs import RunFolder

TO = "; ".join(f"{name}: {target.title}" for name, target in TARGETS.items())


def export(
    source: Annotated[Path, typer.Argument(metavar="RUN|MODEL.npz", help="Run folder, or a model file.")],
    to: Annotated[str, typer.Option(metavar="|".join(TARGETS), help=f"What to make of the model. {TO}.")],
    output: Annotated[
        Path | None, typer.Option(help="File to write, or folder for several; named after the run if not given.")
    ] = None,
    which: Annotated[
        Which | None,
        typer.Option("--model", help="The picked network or the committee instead of the delivered model."),
    ] = None,
    fmi: Annotated[int, typer.Option(help="Version of the FMI standard of an FMU, 2 or 3.")] = 3,
    precision: Annotated[str, typer.Option(help="double, or float for C on small processors.")] = "double",
    check: Annotated[
        bool, typer.Option("--check", help="Run what was exported against the model; needs what runs it.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Take a model away: as C, an FMU, ONNX, CasADi, python-control, MATLAB or Structured Text.

    What is written carries the digests of model and certificate, the certificate's statement, units, sampling time and
    how to warm it up. With --check it is run against the model, and the largest difference is reported.
    """
    model = _found(source, which)
    target = get_target(to)
    name = None if output is not None else source.resolve().name.removesuffix(".npz")
    path = output if output is not None else Path(f"{name}_{to}" if target.folder else f"{name}{target.suffix}")
    if check:
        target.require_runner()  # before anything is written
    with spinner(f"exporting to {to}", quiet):
        exported = export_model(model, path, to, name=name, precision=precision, fmi=fmi)
        checked = exported.check() if check else None
    files = [str(file) for file in exported.files]
    if as_json:
        found = None if checked is None else checked.largest_difference
        content: dict[str, Any] = {"source": str(source), "target": to, "files": files}
        print_json({**content, "largest_difference": found, "card": exported.card.to_dict()})
        return
    facts = [("written", ", ".join(files)), ("model", f"{exported.card.kind}, SHA-256 {exported.card.model[:16]}...")]
    facts += [("certificate", exported.card.statement), ("warm-up", exported.card.warm_up)]
    print_facts([*facts, *([] if checked is None else [("check", checked.statement)])])


def _found(source: Path, which: Which | None) -> Any:
    """The model of a run, which has its certificate, or that of a file."""
    if source.is_file() or source.suffix == ".npz":
        if which is not None:
            raise InputError("--model chooses among the models of a run folder: leave it out with a model file")
        return load_model(source)
    return stored_model(RunFolder(source), None if which is None else which.value)
