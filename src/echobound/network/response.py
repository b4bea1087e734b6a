"""Model: what every model can do; respond: its outputs beside the measured ones, record by record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from echobound.arrays import Signal
from echobound.data.record import Record
from echobound.network import dynamics as plain_dynamics
from echobound.network.dynamics import Dynamics
from echobound.network.plant_model import Simulation


class Model(Protocol):
    """What can be scored and compared: a network, a committee, or whatever behaves like one."""

    @property
    def washout(self) -> int:
        """Samples during which the measured output is fed back before a free run starts."""

    def simulate(
        self, inputs: Record, *, washout: int | None = None, dynamics: Dynamics = plain_dynamics
    ) -> Simulation:
        """Simulate in free run, as `PlantModel.simulate`."""

    def predict(
        self, record: Record, horizon: int = 1, washout: int | None = None, *, dynamics: Dynamics = plain_dynamics
    ) -> Simulation:
        """Predict `horizon` samples ahead, as `PlantModel.predict`."""


def respond(
    model: Model,
    records: Sequence[Record],
    horizon: int | None = None,
    *,
    washout: int | None = None,
    dynamics: Dynamics = plain_dynamics,
) -> list[tuple[Signal, Signal]]:
    """Measured and simulated outputs of each record after its washout.

    Without a horizon the model runs freely; with one it predicts so many samples ahead.

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
