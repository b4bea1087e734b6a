"""`adapt`: the readout of a run's model follows new data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from echobound.cli.reading import Columns, Decimate, Missing, Resample, SamplingTime, Sheet, Time, read_like
from echobound.cli.runs import Run
from echobound.cli.show import print_facts
from echobound.cli.terminal import AsJson, Quiet, print_json, spinner, words

if TYPE_CHECKING:
    from echobound.data import Record
    from echobound.network import EchoStateNetwork

__all__ = ["register"]

NOT_COVERED = (
    "The adapted network is not the one that the certificate speaks of: test it in free run before you use it."
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: echobound adapt runs/plant new.csv --test later.csv --output adapted.npz")(adapt)


def adapt(
    run: Run,
    data: Annotated[list[str], typer.Argument(metavar="FILE", help="New data, one file after the other.")],
    output: Annotated[Path, typer.Option(help="Model file to write.")],
    forgetting: Annotated[
        float, typer.Option(help="Weight of the past at each new sample; 1 forgets nothing and does not watch.")
    ] = 0.999,
    test: Annotated[str | None, typer.Option(help="File(s) to compare both models on, in free run.")] = None,
    inputs: Columns = None,
    outputs: Columns = None,
    sampling_time: SamplingTime = None,
    time: Time = None,
    resample: Resample = None,
    decimate: Decimate = None,
    missing: Missing = "error",
    sheet: Sheet = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Let the readout of a run's model follow new data, by recursive least squares with forgetting.

    The reservoir stays as it is. Where the prediction errors show that the plant has moved, older data count for little
    from then on. The certificate does not cover the adapted model; `renew` certifies on new data.
    """
    from echobound.network import Adaptation
    from echobound.runs.folder import RunFolder

    folder = RunFolder(run)
    model, training = folder.model, folder.experiments.training

    def read(files: list[str]) -> list[Record]:
        return read_like(
            training[0],
            files,
            inputs,
            outputs,
            sampling_time=sampling_time,
            time=time,
            resample=resample,
            decimate=decimate,
            missing=missing,
            sheet=sheet,
        )

    records, tests = read(data), read(words(test)) if test else []
    with spinner("adapting", quiet):
        adaptation = Adaptation(model, training, forgetting)
        for record in records:
            adaptation.restart()
            adaptation.update(record.u, record.y)
        adapted = adaptation.model
    scores = {name: _scores(one, tests) for name, one in (("before", model), ("adapted", adapted))} if tests else None
    adapted.save(output)
    content: dict[str, Any] = {
        "run": str(run),
        "samples": adaptation.samples,
        "changes": list(adaptation.changes),
        "scores": scores,
        "output": str(output),
        "statement": NOT_COVERED,
    }
    if as_json:
        print_json(content)
        return
    moved = ", ".join(f"after {count} of them" for count in adaptation.changes)
    facts = [("learnt", f"{adaptation.samples} new samples; the plant was seen to move {moved or 'never'}")]
    for name, one in (scores or {}).items():
        facts.append((f"test, {name}", f"FIT {one['fit']:.5g} %, RMSE {one['rmse']:.5g}"))
    print_facts([*facts, ("not covered", NOT_COVERED), ("model", str(output))])


def _scores(model: EchoStateNetwork, tests: list[Record]) -> dict[str, Any]:
    """FIT and RMSE of the free run over all test records."""
    import numpy as np

    from echobound.kernels import compiled_dynamics
    from echobound.network import respond
    from echobound.scores import summary

    pairs = respond(model, tests, dynamics=compiled_dynamics())
    measured, simulated = (np.concatenate(side) for side in zip(*pairs, strict=True))
    return summary(measured, simulated, model.output_names)
