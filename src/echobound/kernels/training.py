"""The network that is kept: drawn again from its index and trained as its row was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from echobound.arrays import Signal
from echobound.errors import InputError
from echobound.kernels.base import Kernel
from echobound.kernels.problem import Fold, Problem, Segment
from echobound.network.model import CHANNELS, EchoStateNetwork


def final_fit(problem: Problem, alternative: int) -> Problem:
    """The problem whose single trained network is the model, once an alternative of the training was chosen.

    For a hold-out it is trained on the same data, for blocks in turn on all of them.
    """
    law = replace(problem.law, training=problem.law.training.chosen(alternative))
    if len(problem.folds) == 1:
        return replace(problem, law=law)
    washout = problem.folds[0].scored[0].washout
    whole = tuple(Segment(number, 0, len(record), washout) for number, record in enumerate(problem.records))
    # A problem needs something to score; what this fit scores on its own training data is used by nobody.
    return replace(problem, law=law, folds=(Fold(whole, whole),))


def train_network(kernel: Kernel, problem: Problem, index: int) -> tuple[EchoStateNetwork, list[Signal]]:
    """Return draw `index` of a problem as a model, with its simulated outputs on the scored samples of each fold.

    For a hold-out, the model is the network that was scored. For blocks in turn there is no such network: one for each
    block was scored, and the model is the same draw trained once more, on all of the training data and with the
    alternative (the ridge) that was best over the blocks.
    """
    trial = kernel.trial(problem, index)
    best, _ = trial.pick(problem)
    simulated = trial.simulated(best)
    law = problem.law  # as it was drawn from: the origin names all alternatives, and the setting that was chosen
    if len(problem.folds) > 1:
        problem = final_fit(problem, best)
        trial, best = kernel.trial(problem, index), 0
        if len(trial.trained[0]) > 1:
            raise InputError(f"training by {law.training.kind} has several alternatives: its `chosen` must leave one")
    segments, trained = problem.folds[0].training, trial.trained[0][best]
    first = problem.records[segments[0].record]
    model = EchoStateNetwork(
        # Drawn by NumPy and not taken from the kernel: the weights of a model then do not depend on the kernel.
        reservoir=trained.reservoir or trial.draw.reservoir,
        readout=trained.readout,
        scaling=problem.scaled(0, trial.hyper.scaling).scaling,
        washout=segments[0].washout,
        padding=law.padding,
        **{name: getattr(first, name) for name in CHANNELS},
        training_mean=np.concatenate([problem.signals(segment)[1] for segment in segments]).mean(axis=0),
        origin={
            "law": law.to_dict(),
            **{name: getattr(trial.draw, name) for name in ("seed", "stream", "family", "index")},
            "ridge": float(trained.setting),
        },
    )
    return model, simulated
