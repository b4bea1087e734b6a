"""Outcome: how a model that came out of a search does on validation and test data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from echobound.arrays import Signal
from echobound.data.record import Record
from echobound.kernels import compiled_dynamics
from echobound.kernels.problem import Problem
from echobound.network.committee import Committee, median_of
from echobound.network.model import EchoStateNetwork
from echobound.network.response import respond
from echobound.scores import mean_summary, summary

__all__ = ["NOT_COVERED", "Outcome", "committee_outputs", "outcome_of"]

NOT_COVERED = (
    "The committee is the pointwise median of the best networks, each in its own free run. The certificate, which is"
    " about single networks, does not cover it."
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """Scores of a model.

    Parameters
    ----------
    scores
        FIT and RMSE under ``validation`` (of blocks: their mean) and, where there are test data, ``test``.
    """

    scores: dict[str, Any]


def outcome_of(
    model: EchoStateNetwork | Committee, problem: Problem, outputs: Sequence[Signal], test: Sequence[Record] = ()
) -> Outcome:
    """Score a model: `outputs` are its simulated outputs on each fold of the problem; the test records are opened here.

    Examples
    --------
    >>> from echobound import ph_experiment
    >>> from echobound.kernels import get_kernel, hold_out
    >>> from echobound.kernels.training import train_network
    >>> from echobound.network import paper
    >>> from echobound.scores import get_score
    >>> training, validation = ph_experiment(samples=(400, 300))
    >>> problem = hold_out(training, validation, law=paper(10), scores=[get_score("fit")])
    >>> model, outputs = train_network(get_kernel(), problem, 0)
    >>> outcome = outcome_of(model, problem, outputs, test=[validation])
    >>> sorted(outcome.scores)
    ['test', 'validation']
    """
    names = model.output_names
    folds = [summary(measured, one, names) for measured, one in zip(problem.measured, outputs, strict=True)]
    scores = {"validation": mean_summary(folds)}
    if test:
        pairs = respond(model, test, problem.horizon, dynamics=compiled_dynamics())
        measured, simulated = (np.concatenate(side) for side in zip(*pairs, strict=True))
        scores["test"] = summary(measured, simulated, names)
    return Outcome(scores)


def committee_outputs(outputs: Sequence[Sequence[Signal]]) -> list[Signal]:
    """Outputs of a committee on each fold, from those of its members.

    Examples
    --------
    >>> committee_outputs([[np.array([1.0])], [np.array([5.0])], [np.array([2.0])]])[0].tolist()
    [2.0]
    """
    return [median_of(list(fold)) for fold in zip(*outputs, strict=True)]
