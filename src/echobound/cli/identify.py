"""`identify` and `demo`: from data to a certified model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from echobound.cli.show import print_result
from echobound.cli.terminal import AsJson, Device, Quiet, print_json, progress, words

if TYPE_CHECKING:
    from echobound.identify import Identification

__all__ = ["register"]

Workers = Annotated[int | None, typer.Option(help="Networks trained at the same time; all cores if not given.")]
Seed = Annotated[int, typer.Option(help="With its index, it names each network.")]
RunDir = Annotated[Path | None, typer.Option("--run", help="Run folder.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: echobound demo")(demo)
    app.command(epilog="Example: echobound identify plant.csv --inputs valve,load --outputs level --sampling-time 10")(
        identify
    )


def demo(
    order: Annotated[int, typer.Option(help="Number of states of each network.")] = 200,
    networks: Annotated[int | None, typer.Option(help="Number of networks; 645 by the paper's bound.")] = None,
    seed: Seed = 0,
    workers: Workers = None,
    device: Device = "cpu",
    run: RunDir = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Identify the built-in pH plant, with a certificate, a saved model and a page: the whole method in a minute.

    The data and the settings are those of the paper: 5000 training and 3000 validation samples with noise of
    0.05 pH, networks of 200 states, epsilon = 0.05 and beta = 1e-7, so 645 networks by the explicit bound.
    """
    from echobound.identify import identify as run_identify
    from echobound.plants import ph_experiment

    training, validation = ph_experiment()
    target = new_folder("demo") if run is None else run
    with progress(f"networks of order {order}", quiet) as show:
        result = run_identify(
            training,
            validation,
            law="paper",
            order=order,
            networks=networks,
            bound="explicit",
            seed=seed,
            workers=workers,
            kernel=device,
            run=target,
            on_progress=show,
        )
    _finish(result, as_json, [f"data: pH plant, {len(training)} training and {len(validation)} validation samples"])


def identify(
    data: Annotated[list[str], typer.Argument(metavar="DATA.csv", help="Text table; several are several experiments.")],
    inputs: Annotated[str, typer.Option(help="Input columns, by name or number from 1, separated by commas.")],
    outputs: Annotated[str, typer.Option(help="Output columns, likewise.")],
    sampling_time: Annotated[float | None, typer.Option(help="Seconds between samples.")] = None,
    time: Annotated[str | None, typer.Option(help="Column of sample times in seconds.")] = None,
    validation: Annotated[str | None, typer.Option(help="File(s) to pick the best network on.")] = None,
    test: Annotated[str | None, typer.Option(help="File(s) opened once, at the very end.")] = None,
    law: Annotated[str, typer.Option(help="What is drawn: broad or paper.")] = "broad",
    order: Annotated[int | None, typer.Option(help="Number of states, instead of the law's.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Violation probability; 0.05 if nothing else is given.")] = None,
    beta: Annotated[float, typer.Option(help="1 - confidence.")] = 1e-7,
    networks: Annotated[int | None, typer.Option(help="Number of networks; epsilon follows from it.")] = None,
    bound: Annotated[str, typer.Option(help="exact, or explicit as in the paper.")] = "exact",
    washout: Annotated[int, typer.Option(help="Samples at the start of each record that do not count.")] = 100,
    seed: Seed = 0,
    workers: Workers = None,
    device: Device = "cpu",
    run: RunDir = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Identify a system from a table of its inputs and outputs, and certify the result.

    Without --validation, the last 25 % of the data are held out to pick the best network on. The run folder holds the
    plan, the data, every network's scores, the model, the certificate and a page; the same command goes on with an
    interrupted run.
    """
    from echobound.data import read_csv
    from echobound.identify import identify as run_identify

    def read(files: list[str]) -> list[Any]:
        return [read_csv(file, words(inputs), words(outputs), sampling_time=sampling_time, time=time) for file in files]

    training = read(data)
    chosen = []
    if sampling_time is None and time is None:
        chosen.append("no --sampling-time and no --time: one second between samples was assumed")
    if validation is None:
        chosen.append(f"no --validation: the last 25 % of {training[-1].name} were held out to pick the network on")
    with progress("networks", quiet) as show:
        result = run_identify(
            training,
            read(words(validation)) if validation else None,
            test=read(words(test)),
            law=law,
            order=order,
            epsilon=epsilon,
            beta=beta,
            networks=networks,
            bound=bound,  # type: ignore[arg-type]  # checked where it is used
            washout=washout,
            seed=seed,
            workers=workers,
            kernel=device,
            run=Path("runs") / f"{Path(data[0]).stem}-{{plan}}" if run is None else run,
            on_progress=show,
        )
    _finish(result, as_json, chosen)


def _finish(result: Identification, as_json: bool, chosen: Sequence[str]) -> None:
    content = {
        "run": str(result.run),
        "chosen": list(chosen),
        "certificate": result.certificate.to_dict(),
        "scores": result.scores,
        "stability": None if result.model is None else result.model.stability.to_dict(),
    }
    if as_json:
        print_json(content)
    else:
        print_result(content, result.table["scores"][:, 0])
    if result.model is None:
        raise typer.Exit(1)


def new_folder(name: str) -> Path:
    """The first of runs/name-1, runs/name-2, ... that is not there yet."""
    number = 1
    while (path := Path("runs") / f"{name}-{number}").exists():
        number += 1
    return path
