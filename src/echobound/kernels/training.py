"""The network that is kept: drawn again from its index and trained as its row was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from echobound.arrays import Array, Signal
from echobound.errors import InputError
from echobound.kernels.base import Kernel, Run, Trial, final_fit
from echobound.kernels.problem import Problem
from echobound.network.cascade import Cascade
from echobound.network.cascade_model import CascadeModel
from echobound.network.model import EchoStateNetwork
from echobound.network.plant_model import CHANNELS, PlantModel
from echobound.network.training import Trained
from echobound.scores import rmse_per_output


def train_network(kernel: Kernel, problem: Problem, index: int) -> tuple[PlantModel, list[Signal]]:
    """Return draw `index` of a problem as a model, with its simulated outputs on the scored samples of each fold.

    For a hold-out, the model is the network that was scored. For blocks in turn there is no such network: one for each
    block was scored, and the model is the same draw trained once more, on all of the training data and with the
    alternative (the ridge) that was best over the blocks. See `_refit` for what happens if that one does not hold.
    """
    model, run = network_and_run(kernel, problem, index)
    return model, [*run.outputs]


def network_and_run(
    kernel: Kernel, problem: Problem, index: int, trial: Trial | None = None, fitted: Trial | None = None
) -> tuple[PlantModel, Run]:
    """As `train_network`, with all that the draw is scored by.

    What is known of it already may be given: its trial, and that of its last fit to all blocks.
    """
    trial = kernel.trial(problem, index) if trial is None else trial
    table = trial.table(problem)
    best, _ = trial.pick(problem)
    if len(problem.folds) == 1:
        model = _model(problem, trial, problem, 0, trial.trained[0][best])
        whole = kernel.over_training(problem, trial, best) if problem.demanding else None
    else:
        first = table[:, 0] if problem.scores[0].direction == "max" else -table[:, 0]
        # Best first; of equal ones the first, as `pick` does.
        order = [best, *(int(a) for a in np.argsort(-first, kind="stable") if a != best)]
        model, whole = _refit(kernel, problem, index, trial, order, fitted)
    clipped, whole = bool(trial.draw.law.clip), whole if problem.demanding else None
    return model, Run(trial.hyper.order, trial.settings[best], trial.simulated(best), whole, clipped)


def networks_and_runs(kernel: Kernel, problem: Problem, indices: Sequence[int]) -> list[tuple[PlantModel, Run]]:
    """`network_and_run` of several draws; a kernel that has `trials` trains them all at a time."""
    several: Any = getattr(kernel, "trials", None)
    if several is None:
        return [network_and_run(kernel, problem, index) for index in indices]
    trials: list[Trial] = several(problem, indices)
    fitted: dict[int, Trial] = {}
    if len(problem.folds) > 1:
        alike: dict[tuple[int, int], list[int]] = {}
        for position, trial in enumerate(trials):
            alike.setdefault((id(trial.draw.law), trial.pick(problem)[0]), []).append(position)
        for (_, best), positions in alike.items():
            whole = final_fit(problem, best, trials[positions[0]].draw.law)
            fitted |= zip(positions, several(whole, [indices[position] for position in positions]), strict=True)
    return [
        network_and_run(kernel, problem, index, trial, fitted.get(position))
        for position, (index, trial) in enumerate(zip(indices, trials, strict=True))
    ]


def _refit(
    kernel: Kernel, problem: Problem, index: int, trial: Trial, order: list[int], best: Trial | None = None
) -> tuple[PlantModel, Signal]:
    """Train on all data, with the first alternative that does no worse on them than the blocks did.

    Also returned are the outputs over the training data with the first of all alternatives, by which a demanding
    problem scores the draw: what is kept instead of it was not scored.

    The blocks were scored on data that were not trained on, so that a refit that does worse on its own training data
    has gone wrong: typically, its free run drifts off somewhere. Then the next best alternative is tried. If all of
    them fail, what is nearest to the training data is kept, a network that was trained for one of the blocks included.
    """
    measured = np.concatenate(problem.measured)
    spread = measured.std(axis=0)
    folds = _error(measured, np.concatenate(trial.simulated(order[0])), spread)  # as they were scored
    found: list[tuple[float, Problem, Trial, int, Trained]] = []
    runs: list[Signal] = []
    for alternative in order:
        whole = final_fit(problem, alternative, trial.draw.law)
        fitted = best if best is not None and alternative == order[0] else kernel.trial(whole, index)
        if len(fitted.trained[0]) > 1:
            kind = trial.draw.law.training.kind
            raise InputError(f"training by {kind} has several alternatives: its `chosen` must leave one")
        runs.append(fitted.simulated(0)[0])
        # Of a demanding problem the second half has noisy inputs, which no block had.
        end = len(runs[-1]) // 2 if problem.demanding else len(runs[-1])
        error = _error(whole.measured[0][:end], runs[-1][:end], spread)
        if error <= folds and np.isfinite(error):
            return _model(problem, fitted, whole, 0, fitted.trained[0][0]), runs[0]
        found.append((error, whole, fitted, 0, fitted.trained[0][0]))
    for fold, trained in enumerate(trial.trained):
        model = _model(problem, trial, problem, fold, trained[order[0]])
        records = [problem.records[segment.record] for segment in problem.whole.folds[0].training]
        own = [model.simulate(r) if problem.horizon is None else model.predict(r, problem.horizon) for r in records]
        known = np.concatenate([r.y[run.first :] for r, run in zip(records, own, strict=True)])
        error = _error(known, np.concatenate([run.y for run in own]), spread)
        found.append((error, problem, trial, fold, trained[order[0]]))
    _, data, kept, fold, network = min(found, key=lambda one: one[0])
    return _model(problem, kept, data, fold, network), runs[0]


def _error(measured: Array, simulated: Array, spread: Array) -> float:
    """Root-mean-square error in standard deviations of the outputs, over all of them; infinite if diverged."""
    errors = rmse_per_output(measured, simulated) / np.where(spread > 0, spread, 1.0)
    with np.errstate(over="ignore"):  # an error that is too large to be squared is as good as infinite
        return float(np.sqrt(np.mean(np.square(errors))))


def _model(problem: Problem, trial: Trial, data: Problem, fold: int, trained: Trained) -> PlantModel:
    """A trained draw as a model; `data` has the fold that it was trained on."""
    segments, law = data.folds[fold].training, trial.draw.law
    first, scaled = data.records[segments[0].record], data.scaled(fold, trial.hyper.scaling)
    origin: dict[str, Any] = {
        # As it was drawn from: all kinds and alternatives, and the setting that was chosen.
        "law": problem.law.to_dict(),
        **{name: getattr(trial.draw, name) for name in ("seed", "stream", "family", "index")},
        "ridge": float(trained.setting),
    }
    if data is problem and len(problem.folds) > 1:
        origin["fold"] = fold  # one of the networks that were scored, since no fit to all data held
    common: dict[str, Any] = {
        "readout": trained.readout,
        "scaling": scaled.scaling,
        "washout": segments[0].washout,
        "padding": law.padding,
        **{name: getattr(first, name) for name in CHANNELS},
        "training_mean": np.concatenate([data.signals(segment)[1] for segment in segments]).mean(axis=0),
        "limits": scaled.limits if law.clip else None,
        "origin": origin,
    }
    if isinstance(trained.reservoir, Cascade):
        return CascadeModel(cascade=trained.reservoir, drawn=asdict(trial.hyper), **common)
    # Drawn by NumPy and not taken from the kernel: the weights of a model then do not depend on the kernel.
    return EchoStateNetwork(reservoir=trained.reservoir or trial.draw.reservoir, **common)
