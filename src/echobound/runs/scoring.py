"""Scoring: FIT and RMSE of the models of a run on validation and test data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from echobound.arrays import Signal
from echobound.network.committee import median_of
from echobound.scores import Summary, mean_summary, summary

if TYPE_CHECKING:
    from echobound.runs.folder import RunFolder

NOT_COVERED = (
    "The committee is the pointwise median of the best networks, each run by itself. The certificate is about"
    " single networks and does not cover it."
)
COVERED = (
    "The committee is the pointwise median of its networks, each run by itself. Committees were drawn, and the"
    " certificate is about them."
)


def measured_outputs(folder: RunFolder) -> list[Signal]:
    """The outputs that are scored, fold by fold."""
    records = (*folder.experiments.training, *folder.experiments.validation)
    parts = [[records[s.record].y[s.start + s.washout : s.stop] for s in fold.scored] for fold in folder.plan.folds]
    return [np.concatenate(fold) for fold in parts]


def outputs_of(folder: RunFolder) -> dict[str, list[Signal]]:
    """Outputs of each model on the scored samples of each fold.

    Of a hold-out they are those of the models themselves. Of blocks, the networks that were scored are gone: unless
    they are still at hand from the search, they are trained again.
    """
    if not folder.outputs and folder.plan.blocks is None:
        pairs = folder.respond(folder.experiments.validation)
        folder.outputs = {name: [np.concatenate([y for _, y in each])] for name, each in pairs.items()}
    elif not folder.outputs and folder.models:
        families = {one.family: one for one in folder.candidates()}
        kept = folder.search[folder.kept]
        outputs = [families[row["family"]].make(int(row["index"])).outputs for row in kept]
        folder.outputs = {"model": outputs[0]}
        if folder.best is not None:
            folder.outputs["committee"] = committee_outputs(outputs)
    return folder.outputs


def committee_outputs(outputs: Sequence[Sequence[Signal]]) -> list[Signal]:
    """Outputs of a committee on each fold, from those of its members.

    Examples
    --------
    >>> committee_outputs([[np.array([1.0])], [np.array([5.0])], [np.array([2.0])]])[0].tolist()
    [2.0]
    """
    return [median_of(list(fold)) for fold in zip(*outputs, strict=True)]


def scores_of(folder: RunFolder) -> dict[str, dict[str, Summary]]:
    """For each model: FIT and RMSE under ``validation`` (the mean over blocks) and, with test data, under ``test``."""
    found: dict[str, dict[str, Summary]] = {}
    for name, outputs in outputs_of(folder).items():
        channels, measured = folder.picked.output_names, measured_outputs(folder)
        folds = [summary(y, simulated, channels) for y, simulated in zip(measured, outputs, strict=True)]
        found[name] = {"validation": mean_summary(folds)}
        if folder.experiments.test:
            pairs = folder.respond(folder.experiments.test)[name]
            y, simulated = (np.concatenate(side) for side in zip(*pairs, strict=True))
            found[name]["test"] = summary(y, simulated, channels)
    return found
