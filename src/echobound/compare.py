"""Compare models on data, as MATLAB's ``compare`` does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from echobound.data import as_records
from echobound.errors import InputError
from echobound.network import Model
from echobound.scores import Summary, summary

__all__ = ["compare"]


def compare(
    data: Any, *models: Model | Mapping[str, Model], horizon: float | None = None, washout: int | None = None
) -> dict[str, Summary]:
    """Score any number of models on the same samples of the same data: FIT as in MATLAB's ``compare``, and RMSE.

    Parameters
    ----------
    data
        A record, several records, or anything else that `as_records` takes.
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
        For each model by name: ``fit`` (mean over outputs, per cent), ``rmse``, and ``per_output`` with both for each.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(500, 300))
    >>> small, large = (identify(training, validation, law="paper", order=n, networks=20).model for n in (5, 50))
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
    records = as_records(data, "compared")
    skipped = max(model.washout for model in named.values()) if washout is None else washout
    scores = {}
    for name, model in named.items():
        runs = [
            model.simulate(record, washout=skipped) if steps is None else model.predict(record, steps, washout=skipped)
            for record in records
        ]
        measured = np.concatenate([record.y[run.first :] for record, run in zip(records, runs, strict=True)])
        scores[name] = summary(measured, np.concatenate([run.y for run in runs]), records[0].output_names)
    return scores
