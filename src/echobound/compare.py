"""Compare models on data, as MATLAB's ``compare`` does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from echobound.data.given import given_records
from echobound.errors import InputError
from echobound.network import Model, holdings
from echobound.scores import Summary, summary

__all__ = ["Compared", "compare"]


class Compared(Summary):
    """FIT and RMSE of a model, and for how long its outputs sit at a limit."""

    held: dict[str, float] | None  # share of the samples for each output by name; None if the model has no limits
    notes: list[str]  # a sentence for each output that sits there too long


def compare(
    data: Any, *models: Model | Mapping[str, Model], horizon: float | None = None, washout: int | None = None
) -> dict[str, Compared]:
    """Score any number of models on the same samples of the same data: FIT as in MATLAB's ``compare``, and RMSE.

    Parameters
    ----------
    data
        A record, a pair ``(u, y)``, a frame with columns of the models' names, or a list of these.
    models
        Models, called ``model 1``, ``model 2``, ...; or mappings from names to models.
    horizon
        None (or infinity) compares free runs, a number k compares predictions k samples ahead.
    washout
        Samples at the start of each record that are fed back and not scored. If not given, it is the longest washout of
        the models, so that all of them are scored on the same samples.

    Returns
    -------
    dict
        For each model by name: ``fit`` (mean over outputs, per cent), ``rmse``, and ``per_output`` with both for each;
        ``held``, the share of the samples at which each output sits at a limit of the model (None if it has none), and
        ``notes``, a sentence for each output that does so too long: the model does not follow there.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(500, 300))
    >>> small, large = (identify(training, validation, law="paper", order=n, networks=20).network for n in (5, 50))
    >>> scores = compare(validation, {"small": small, "large": large})
    >>> list(scores), scores["small"]["fit"] < 100
    (['small', 'large'], True)
    >>> list(compare(validation, small, large, horizon=5))
    ['model 1', 'model 2']
    """
    named: dict[str, Model] = {}
    for model in models:
        named |= model if isinstance(model, Mapping) else {f"model {len(named) + 1}": model}
    if not named:
        raise InputError("give at least one model to compare")
    if horizon is not None and horizon != math.inf and not (horizon >= 1 and horizon == int(horizon)):
        raise InputError(f"the horizon must be a whole number of samples, 1 or more, or infinity, got {horizon}")
    steps = None if horizon is None or horizon == math.inf else int(horizon)
    records = given_records(data, next(iter(named.values())), "compared")
    skipped = max(model.washout for model in named.values()) if washout is None else washout
    scores: dict[str, Compared] = {}
    for name, model in named.items():
        runs = [
            model.simulate(record, washout=skipped) if steps is None else model.predict(record, steps, washout=skipped)
            for record in records
        ]
        measured = np.concatenate([record.y[run.first :] for record, run in zip(records, runs, strict=True)])
        simulated = np.concatenate([run.y for run in runs])
        each = holdings(model, simulated)
        scores[name] = {
            **summary(measured, simulated, records[0].output_names),
            "held": None if each is None else {one.output: one.share for one in each},
            "notes": [one.words for one in each or () if one.too_long],
        }
    return scores
