"""The network that is kept: drawn again from its index and trained as its row was."""

from __future__ import annotations

import numpy as np

from echobound.arrays import Signal
from echobound.kernels.base import Kernel
from echobound.kernels.problem import Problem
from echobound.network.model import EchoStateNetwork
from echobound.network.reservoir import draw_reservoir

__all__ = ["train_network"]


def train_network(kernel: Kernel, problem: Problem, index: int) -> tuple[EchoStateNetwork, list[Signal]]:
    """Return draw `index` of a problem as a model, with its simulated outputs on the scored samples of each fold.

    Of a hold-out, the model is the network that was scored. Of blocks there is no such network: one for each block
    was scored, and the model is the same draw trained once more, on all of the training data and with the ridge that
    was best over the blocks.
    """
    trial = kernel.trial(problem, index)
    ridge, _ = trial.pick(problem)
    simulated = trial.simulated(ridge)
    law = problem.law
    if len(problem.folds) > 1:
        problem = problem.refitted(law.ridges[ridge])
        trial, ridge = kernel.trial(problem, index), 0
    segments = problem.folds[0].training
    first = problem.records[segments[0].record]
    model = EchoStateNetwork(
        reservoir=draw_reservoir(
            law, problem.inputs, problem.outputs, problem.seed, problem.stream, problem.family, index
        ),
        readout=trial.readouts[0][ridge],
        scaling=problem.scaled(0, trial.hyper.scaling).scaling,
        washout=segments[0].washout,
        padding=law.padding,
        sampling_time=first.sampling_time,
        input_names=first.input_names,
        output_names=first.output_names,
        input_units=first.input_units,
        output_units=first.output_units,
        training_mean=np.concatenate([problem.signals(segment)[1] for segment in segments]).mean(axis=0),
        origin={
            "law": law.to_dict(),
            "seed": problem.seed,
            "stream": problem.stream,
            "family": problem.family,
            "index": index,
            "ridge": float(trial.ridges[ridge]),
        },
    )
    return model, simulated
