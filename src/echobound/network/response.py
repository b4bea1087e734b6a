"""Response: a model's outputs beside the measured ones, record by record."""

from __future__ import annotations

from collections.abc import Sequence

from echobound.arrays import Signal
from echobound.data.record import Record
from echobound.network import dynamics as plain_dynamics
from echobound.network.committee import Committee
from echobound.network.dynamics import Dynamics
from echobound.network.model import EchoStateNetwork

__all__ = ["respond"]


def respond(
    model: EchoStateNetwork | Committee,
    records: Sequence[Record],
    horizon: int | None = None,
    *,
    washout: int | None = None,
    dynamics: Dynamics = plain_dynamics,
) -> list[tuple[Signal, Signal]]:
    """Measured and simulated outputs of each record after its washout.

    Without a horizon in free run, else predicted so many samples ahead.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(400, 300))
    >>> model = identify(training, validation, law="paper", order=10, networks=20, washout=100).model
    >>> [(measured, simulated)] = respond(model, [validation])
    >>> measured.shape == simulated.shape == (200, 1)
    True
    """
    pairs = []
    for record in records:
        if horizon is None:
            run = model.simulate(record, washout=washout, dynamics=dynamics)
        else:
            run = model.predict(record, horizon, washout, dynamics=dynamics)
        pairs.append((record.y[run.first :], run.y))
    return pairs
