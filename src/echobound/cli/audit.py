"""`audit`: a certificate derived again by somebody else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from echobound.cli.computing import Device, EngineName, Scheduler, Workers, chosen_engine
from echobound.cli.reading import Columns, Decimate, Missing, Resample, SamplingTime, Sheet, Time, read_like
from echobound.cli.runs import Run
from echobound.cli.terminal import AsJson, Quiet, console, print_json, progress, words

if TYPE_CHECKING:
    from echobound.audit import Audit
    from echobound.data import Record

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: echobound audit runs/plant --data plant.csv")(audit)


def audit(
    run: Run,
    data: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Original data file(s) of the run; may be given repeatedly."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Train all networks again.")] = False,
    sample: Annotated[int, typer.Option(help="Networks to train again of those that carry no claim.")] = 20,
    seed: Annotated[
        int | None, typer.Option(help="Chooses them; from the operating system if not given, so nobody can foresee it.")
    ] = None,
    inputs: Columns = None,
    outputs: Columns = None,
    sampling_time: SamplingTime = None,
    time: Time = None,
    resample: Resample = None,
    decimate: Decimate = None,
    missing: Missing = "error",
    sheet: Sheet = None,
    workers: Workers = None,
    device: Device = "cpu",
    engine: EngineName = "threads",
    scheduler: Scheduler = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Derive the certificate of a run again: digests, data, law, every bound, and networks trained again.

    The picked network, the worst one and the committee always are; of the others a sample, and with what probability
    it would have met a forged one is printed. With a second certificate, the models run over the test data again.
    Nothing in the folder is changed. With --data the run's data are held
    against the original files, read with the same options as in identify.

    Ends with exit code 1 if anything was found.
    """
    from echobound.audit import audit as run_audit

    options: dict[str, Any] = {"sampling_time": sampling_time, "time": time, "resample": resample, "decimate": decimate}
    files = [file for part in data or () for file in words(part)]
    originals = _originals(run, files, inputs, outputs, missing=missing, sheet=sheet, **options) if files else None
    with progress("networks trained again", quiet) as tell, chosen_engine(engine, scheduler, workers) as crew:
        outcome = run_audit(
            run,
            data=originals,
            everything=everything,
            sample=sample,
            seed=seed,
            kernel=device,
            engine=crew,
            on_progress=tell,
        )
    if as_json:
        print_json(outcome.to_dict())
    else:
        _print(outcome)
    if not outcome.passed:
        raise typer.Exit(1)


def _originals(
    run: Path, files: list[str], inputs: str | None, outputs: str | None, **options: Any
) -> list[Record] | None:
    """The original files, read with the names and the sampling time of the run where nothing else is said."""
    from echobound.data.experiments import Experiments
    from echobound.errors import RunError

    try:
        first = Experiments.load(run / "data.npz").training[0]
    except (RunError, IndexError):
        return None  # the audit will say why
    return read_like(first, files, inputs, outputs, **options)


def _print(outcome: Audit) -> None:
    out = console()
    for finding in outcome.findings:
        out.print(f"- {finding}", markup=False)
    out.print(outcome.statement, markup=False, style="bold" if outcome.passed else "bold red")
    for sentence in outcome.sensitive:
        out.print(f"sensitive: {sentence}", markup=False)
    for note in outcome.notes:
        out.print(f"note: {note}", markup=False)
    if not outcome.detection:
        return
    sampled = outcome.retrained - outcome.claimed
    out.print(
        f"trained again: all {outcome.claimed} networks that carry a claim, and {sampled} of {outcome.others} others"
        f" (chosen with --seed {outcome.seed})",
        markup=False,
    )
    for row in outcome.detection if sampled < outcome.others else ():
        share = f"{row['share']:.0%} of the others ({row['forged']})"
        out.print(f"had {share} been forged, one would have been found with probability {row['probability']:.4g}")
