"""Holding: for how long the outputs of the models of a run sit at a limit, on its own data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from echobound.arrays import Rows
from echobound.data.record import Record
from echobound.kernels import Status
from echobound.network import Holding, holdings

if TYPE_CHECKING:
    from echobound.runs.folder import RunFolder

Held: TypeAlias = dict[str, tuple[Holding, ...]]
"""By role of the data, a `Holding` for each output; empty for a model that is not clipped."""


def held_of(folder: RunFolder) -> dict[str, Held]:
    """For how long each output of each model sits at a limit, model by model; nothing if all networks diverged.

    The models run over the validation data and, where there are any, the test data. Where blocks were validated in
    turn, no validation data are left: then it is over the training data.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> held = identify(*ph_experiment(samples=(400, 300)), law="broad", order=10, networks=20).held
    >>> list(held), [one.output for one in held["committee"]["validation"]]
    (['model', 'committee'], ['pH'])
    """
    if not folder.models:
        return {}
    data = folder.experiments
    roles: dict[str, Sequence[Record]] = {"training": data.training} if folder.plan.blocks else {}
    roles |= {role: records for role, records in (("validation", data.validation), ("test", data.test)) if records}
    found: dict[str, Held] = {name: {} for name in folder.models}
    for role, records in roles.items() if any(_clipped(one) for one in folder.models.values()) else ():
        long = [record for record in records if len(record) > folder.plan.washout]
        for name, pairs in folder.respond(long).items() if long else ():
            each = holdings(folder.models[name], np.concatenate([simulated for _, simulated in pairs]))
            found[name] |= {} if each is None else {role: each}
    return found


def _clipped(model: object) -> bool:
    return getattr(model, "bound", None) is not None


def ended(rows: Rows) -> dict[str, int]:
    """How many networks ended in which way: ``ok``, ``diverged`` or ``held`` at a limit.

    Examples
    --------
    >>> ended(np.array([(0,), (2,), (0,), (1,)], dtype=[("status", int)]))
    {'ok': 2, 'diverged': 1, 'held': 1}
    """
    return {status.name.lower(): int((rows["status"] == status).sum()) for status in Status}
