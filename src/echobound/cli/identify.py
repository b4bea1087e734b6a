"""`identify` and `demo`: from data to a certified model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from echobound.cli.computing import Device, EngineName, Scheduler, Workers, chosen_engine
from echobound.cli.reading import Decimate, Missing, Resample, SamplingTime, Sheet, Time, read_files, said_of_reading
from echobound.cli.show import committee_facts, print_result
from echobound.cli.terminal import AsJson, Quiet, numbers, print_json, progress, words

if TYPE_CHECKING:
    from echobound.data import Record
    from echobound.identify import Identification

__all__ = ["RunDir", "finish", "register"]

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
    engine: EngineName = "threads",
    scheduler: Scheduler = None,
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
    with progress(f"networks of order {order}", quiet) as show, chosen_engine(engine, scheduler, workers) as crew:
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
            engine=crew,
            run=target,
            on_progress=show,
        )
    finish(result, as_json, [f"data: pH plant, {len(training)} training and {len(validation)} validation samples"])


def identify(
    data: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="CSV, Parquet, .mat, NPZ or Excel; several are several experiments."),
    ],
    inputs: Annotated[str, typer.Option(help="Input columns, by name or number from 1, separated by commas.")],
    outputs: Annotated[str, typer.Option(help="Output columns, likewise.")],
    sampling_time: SamplingTime = None,
    time: Time = None,
    resample: Resample = None,
    decimate: Decimate = None,
    missing: Missing = "error",
    sheet: Sheet = None,
    validation: Annotated[str | None, typer.Option(help="File(s) to pick the best network on.")] = None,
    blocks: Annotated[
        int | None,
        typer.Option(help="Without --validation: blocks of the data to score in turn; 0 holds out the end of them."),
    ] = None,
    test: Annotated[str | None, typer.Option(help="File(s) opened once, at the very end.")] = None,
    criterion: Annotated[
        str | None, typer.Option(help="What a test file has to keep, settled beforehand: fit>80, rmse<0.1.")
    ] = None,
    law: Annotated[
        str | None,
        typer.Option(help="What is drawn: broad (if not given) or paper; both, by commas, are two families."),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(help="Number of states, instead of the law's; several, as in 50,100,200, are a family each."),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Violation probability; 0.05 if nothing else is given.")] = None,
    beta: Annotated[float, typer.Option(help="1 - confidence.")] = 1e-7,
    networks: Annotated[
        int | None, typer.Option(help="Number of networks (of each family); epsilon follows from it.")
    ] = None,
    bound: Annotated[str, typer.Option(help="exact, or explicit as in the paper.")] = "exact",
    stop: Annotated[
        str | None,
        typer.Option(
            help="Stop by a rule, once epsilon is certified: patience:200 (and the last 200 brought no improvement),"
            " anytime, between:100,10000, looks:100,200,400, mixture. Under all but patience, Ctrl-C ends the search"
            " with a certificate."
        ),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(help="Go on until the best score reaches this; by the rule anytime if none is given."),
    ] = None,
    discarded: Annotated[int, typer.Option(help="Best networks to set aside in a further statement, settled now.")] = 0,
    scores: Annotated[str, typer.Option(help="Scores, by commas: fit, rmse, peak. The first selects.")] = "fit,rmse",
    joint: Annotated[bool, typer.Option("--joint", help="State something about all scores together as well.")] = False,
    washout: Annotated[
        int | None, typer.Option(help="Samples at the start of each record or block that do not count; at most 100.")
    ] = None,
    committee: Annotated[int, typer.Option(help="Best networks to keep as one model as well; 0 for none.")] = 10,
    seed: Seed = 0,
    workers: Workers = None,
    device: Device = "cpu",
    engine: EngineName = "threads",
    scheduler: Scheduler = None,
    run: RunDir = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Identify a system from files of its inputs and outputs, and certify the result.

    The columns are all it needs: what else is not given is chosen by the data, and said with the reason. Short data
    are validated in blocks, of long ones the end is held out. The run folder holds the plan, the data, every network's
    scores, the model, the certificate and a page; the same command goes on with an interrupted run.
    """
    from echobound.identify import identify as run_identify

    sampling: dict[str, Any] = {
        "sampling_time": sampling_time,
        "time": time,
        "resample": resample,
        "decimate": decimate,
    }

    # Pieces between gaps that are all washout are of no use; whole files may be as short as the data allow.
    shortest = washout + 1 if washout is not None else 101 if missing == "split" else 2

    def read(files: list[str]) -> list[Record]:
        return read_files(
            files,
            inputs,
            outputs,
            **sampling,
            missing=missing,
            sheet=sheet,
            shortest=shortest,
        )

    training = read(data)
    chosen = said_of_reading(training, data, **sampling)
    if law is None:
        chosen.append("law: broad, which draws every hyper-parameter from a wide range, since nothing is known better")
    if epsilon is None and networks is None:
        rule = stop or ("anytime" if target is not None else None)
        when = "settled before the first draw" if rule is None else f"by the rule {rule}"
        least = "at least " if target is not None or (rule or "").startswith("patience") else ""
        chosen.append(f"networks: {least}as many as certify epsilon = 0.05 at beta = {beta:g}, {when}")
    with progress("networks", quiet) as show, chosen_engine(engine, scheduler, workers) as crew:
        result = run_identify(
            training,
            read(words(validation)) if validation else None,
            test=read(words(test)) if test else (),
            criterion=criterion,
            law=words(law) if law else "broad",
            order=None if order is None else numbers(order, "--order"),
            epsilon=epsilon,
            beta=beta,
            networks=networks,
            bound=bound,  # type: ignore[arg-type]  # checked where it is used
            stop=stop,
            target=target,
            discarded=discarded,
            scores=words(scores),
            joint=joint,
            blocks=blocks,
            washout=washout,
            committee=committee,
            seed=seed,
            workers=workers,
            kernel=device,
            engine=crew,
            run=Path("runs") / f"{Path(data[0]).stem}-{{plan}}" if run is None else run,
            on_progress=show,
        )
    finish(result, as_json, [*result.chosen, *chosen])


def finish(result: Identification, as_json: bool, chosen: Sequence[str]) -> None:
    """Print what came out; exit code 1 if all networks diverged."""
    second = result.generalisation
    content = {
        "run": str(result.run),
        "chosen": list(chosen),
        "certificate": result.certificate.to_dict(),
        "scores": result.scores,
        "stability": None if result.model is None else result.model.stability.to_dict(),
        "optimism": None if result.optimism is None else result.optimism.to_dict(),
        "episodes": None if result.episodes is None else result.episodes.to_dict(),
        "generalisation": None if second is None else second.to_dict(),
        "committee": None,
    }
    if result.committee is not None and result.committee_scores is not None:
        limit = None if second is None else second.limit("committee")
        content["committee"] = {
            **committee_facts(result.committee, result.certificate),
            "scores": result.committee_scores,
            "episodes": None if limit is None else limit.to_dict(),
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
