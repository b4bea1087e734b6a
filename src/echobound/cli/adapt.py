"""`adapt`: the readout of a run's model follows new data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from echobound.cli.reading import ColumnsOfRun
from echobound.cli.runs import Run, Which, stored_model
from echobound.cli.show import print_facts
from echobound.cli.simulate import score_words
from echobound.cli.terminal import AsJson, Quiet, print_json, spinner, words
from echobound.data import Record
from echobound.network import Model, respond
from echobound.network.adaptation import adapt_all
from echobound.runs import RunFolder
from echobound.scores import Summary, summary

NOT_COVERED = (
    "The certificate does not cover the adapted model, which is another one: test it in free run before you use it."
)


def adapt(
    run: Run,
    data: Annotated[list[str], typer.Argument(metavar="FILE", help="New data, in the order of time.")],
    output: Annotated[Path, typer.Option(help="Model file to write.")],
    reading: ColumnsOfRun,
    forgetting: Annotated[float, typer.Option(help="Weight of the past at each sample; 1 forgets nothing.")] = 0.999,
    which: Annotated[
        Which | None,
        typer.Option("--model", help="The picked network or the committee instead of the delivered model."),
    ] = None,
    test: Annotated[str | None, typer.Option(help="Files to compare both models on, in free run.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Let the readout of a run's model follow new data, by recursive least squares with forgetting.

    The reservoir stays as it is. Of a committee, each member follows by itself. Once the prediction errors show that
    the plant has changed, older data count for little. The certificate does not cover the adapted model; `renew`
    certifies on new data.
    """
    folder = RunFolder(run)
    model, training = stored_model(folder, None if which is None else which.value), folder.experiments.training
    records = reading.read_like(training[0], data)
    tests = reading.read_like(training[0], words(test)) if test else []
    with spinner("adapting", quiet):
        adapted, adaptation, left_out = adapt_all(model, training, records, forgetting)
    scores = {name: _scores(one, tests) for name, one in (("before", model), ("adapted", adapted))} if tests else None
    adapted.save(output)
    if as_json:
        seen = {"samples": adaptation.samples, "changes": list(adaptation.changes), "scores": scores}
        seen |= {"left_out": left_out}
        print_json({"run": str(run), **seen, "output": str(output), "statement": NOT_COVERED})
        return
    changes = ", ".join(f"after {count} of them" for count in adaptation.changes)
    change = f"the plant was seen to change {changes}" if changes else "no change of the plant was seen"
    facts = [("learnt", f"{adaptation.samples} new samples; {change}")]
    if left_out:
        facts.append(("left out", f"{left_out} members that were not trained by least squares and cannot follow"))
    for name, one in (scores or {}).items():
        facts.append((f"test, {name}", score_words(one, model.output_units)))
    print_facts([*facts, ("not covered", NOT_COVERED), ("model", str(output))])


def _scores(model: Model, tests: list[Record]) -> Summary:
    """FIT and RMSE of the free run over all test records."""
    pairs = respond(model, tests)
    measured, simulated = (np.concatenate(side) for side in zip(*pairs, strict=True))
    return summary(measured, simulated, tests[0].output_names)
