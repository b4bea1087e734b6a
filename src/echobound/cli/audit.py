"""`audit`: a certificate derived again by somebody else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import echobound
from echobound.audit import Audit
from echobound.cli.computing import ComputingOptions
from echobound.cli.reading import ColumnsOfRun, Reading
from echobound.cli.runs import Run
from echobound.cli.terminal import AsJson, Quiet, print_json, print_lines, progress, words
from echobound.data import Record
from echobound.errors import InputError
from echobound.runs import RunFolder
from echobound.runs.faults import Faults

SEED = "Chooses them; if not given, it comes from the operating system, so that nobody can foresee it."


def audit(
    run: Run,
    reading: ColumnsOfRun,
    computing: ComputingOptions,
    data: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Original data of the run; may be given several times.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Train all networks again.")] = False,
    sample: Annotated[int, typer.Option(help="Networks to train again of those that carry no claim.")] = 20,
    seed: Annotated[int | None, typer.Option(help=SEED)] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Derive the certificate of a run again: digests, data, law, every bound, and networks trained again.

    The picked network, the worst one and the committee are always trained again, and a sample of the others; the audit
    says how likely that sample was to include a forged network. With a second certificate, the models run over the test
    data again. With --data, the data of the run are compared with the original files; give the same reading options as
    to identify. Nothing in the folder is changed.

    Exits with code 1 if anything was found, and with code 3 if nothing was found but some numbers cannot be confirmed:
    rounding changes these runs visibly, but not to what is recorded.
    """
    files = [file for part in data or () for file in words(part)]
    originals = _originals(run, files, reading) if files else None
    with progress("networks trained again", quiet) as show:
        outcome = echobound.audit(
            run, data=originals, everything=everything, sample=sample, seed=seed, computing=computing, on_progress=show
        )
    if as_json:
        print_json(outcome.to_dict())
    else:
        _print(outcome)
    if not outcome.passed:
        raise typer.Exit(1 if outcome.findings else 3)


def _originals(run: Path, files: list[str], reading: Reading) -> list[Record] | None:
    """The original files, read with the names and the sampling time of the run where none are given."""
    folder = RunFolder(run, Faults(run, collect=True))  # where plan or data cannot be read, the audit says so
    if folder.faults.attempt("plan.json", lambda: folder.stores_data) is False:
        nothing = "there is nothing to compare with the files"
        raise InputError(f"{run} does not store its data, so {nothing}: leave out --data")
    experiments = folder.faults.attempt("data.npz", lambda: folder.experiments)
    return reading.read_like(experiments.training[0], files) if experiments and experiments.training else None


def _print(outcome: Audit) -> None:
    print_lines(f"- {finding}" for finding in outcome.findings)
    print_lines([outcome.statement], style="bold" if outcome.passed else "bold red")
    print_lines(f"cannot be confirmed: {sentence}" for sentence in outcome.unconfirmed)
    print_lines(f"sensitive: {sentence}" for sentence in outcome.sensitive)
    print_lines(f"note: {note}" for note in outcome.notes)
    if not outcome.retrained:
        return
    sampled = outcome.retrained - outcome.claimed
    others = f"{sampled} of {outcome.others} others (chosen with --seed {outcome.seed})"
    print_lines([f"trained again: all {outcome.claimed} networks that carry a claim, and {others}"])
    if sampled < outcome.others:
        print_lines(
            f"had {row['share']:.0%} of the others ({row['forged']}) been forged, one would have been trained again"
            f" (and found, or not confirmed) with probability {row['probability']:.4g}"
            for row in outcome.detection
        )
