"""Outcome: how a model that came out of a search does on validation and test data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from echobound.data.record import Record, Signal
from echobound.kernels import compiled_dynamics
from echobound.kernels.problem import Problem
from echobound.network.committee import Committee, median_of
from echobound.network.model import EchoStateNetwork
from echobound.network.response import respond
from echobound.scenario import ErrorLimit, Optimism
from echobound.scores import mean_summary, rmse, summary

__all__ = ["NOT_COVERED", "Outcome", "committee_outputs", "episodes_of", "outcome_of"]

NOT_COVERED = (
    "The committee is the pointwise median of the best networks, each in its own free run. The certificate, which is"
    " about single networks, does not cover it."
)


FEWEST_EPISODES = 20  # fewer say next to nothing: 19 alone leave epsilon = 0.146
EPISODE_BETA = 0.05


@dataclass(frozen=True, eq=False)
class Outcome:
    """Scores of a model, and what can be said about new episodes.

    Parameters
    ----------
    scores
        FIT and RMSE under ``validation`` (of blocks: their mean) and, where there are test data, ``test``.
    episodes
        What the RMSE in the test records says about new ones; None of fewer than 20.
    optimism
        The picked network's score on test data beside validation data; None of a committee, or without test data.
    """

    scores: dict[str, Any]
    episodes: ErrorLimit | None
    optimism: Optimism | None = None


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
    >>> sorted(outcome.scores), outcome.episodes
    (['test', 'validation'], None)
    """
    names = model.output_names
    folds = [summary(measured, one, names) for measured, one in zip(problem.measured, outputs, strict=True)]
    scores = {"validation": mean_summary(folds)}
    if not test:
        return Outcome(scores, None)
    pairs = respond(model, test, problem.horizon, dynamics=compiled_dynamics())
    measured, simulated = (np.concatenate(side) for side in zip(*pairs, strict=True))
    scores["test"] = summary(measured, simulated, names)
    if isinstance(model, Committee):
        return Outcome(scores, _limit(pairs))
    score = problem.scores[0]
    seen = np.mean([score(*pair) for pair in zip(problem.measured, outputs, strict=True)])
    optimism = Optimism.of(
        float(seen), float(score(measured, simulated)), score=score.name, direction=score.direction, unit=score.unit
    )
    return Outcome(scores, _limit(pairs), optimism)


def episodes_of(
    model: EchoStateNetwork | Committee, test: Sequence[Record], horizon: int | None = None
) -> ErrorLimit | None:
    """What the RMSE in the test records says about new ones; None of fewer than 20."""
    if len(test) < FEWEST_EPISODES:
        return None
    return _limit(respond(model, test, horizon, dynamics=compiled_dynamics()))


def _limit(pairs: Sequence[tuple[Signal, Signal]]) -> ErrorLimit | None:
    enough = len(pairs) >= FEWEST_EPISODES
    return ErrorLimit.of([rmse(*pair) for pair in pairs], beta=EPISODE_BETA) if enough else None


def committee_outputs(outputs: Sequence[Sequence[Signal]]) -> list[Signal]:
    """Outputs of a committee on each fold, from those of its members.

    Examples
    --------
    >>> committee_outputs([[np.array([1.0])], [np.array([5.0])], [np.array([2.0])]])[0].tolist()
    [2.0]
    """
    return [median_of(list(fold)) for fold in zip(*outputs, strict=True)]
