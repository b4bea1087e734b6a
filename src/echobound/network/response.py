"""Response: what every model can do, its outputs beside the measured ones, and whether they sit at a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from echobound.arrays import Signal
from echobound.data.record import Record
from echobound.network.dynamics import Dynamics
from echobound.network.limits import HELD
from echobound.network.plant_model import Simulation
from echobound.scenario.words import downward, upward

UNBOUNDED = "Its free runs have no bound: it feeds its outputs back as they are, so that they may run off."


class Model(Protocol):
    """What can be scored and compared: a network, a committee, or whatever behaves like one."""

    @property
    def washout(self) -> int:
        """Samples during which the measured output is fed back before a free run starts."""

    def simulate(self, inputs: Record, *, washout: int | None = None, dynamics: Dynamics | None = None) -> Simulation:
        """Simulate in free run, as `PlantModel.simulate`."""

    def predict(
        self, record: Record, horizon: int = 1, washout: int | None = None, *, dynamics: Dynamics | None = None
    ) -> Simulation:
        """Predict `horizon` samples ahead, as `PlantModel.predict`."""


def respond(
    model: Model,
    records: Sequence[Record],
    horizon: int | None = None,
    *,
    washout: int | None = None,
    dynamics: Dynamics | None = None,
) -> list[tuple[Signal, Signal]]:
    """Measured and simulated outputs of each record after its washout.

    Without a horizon the model runs freely; with one it predicts so many samples ahead.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(400, 300))
    >>> model = identify(training, validation, law="paper", order=10, networks=20, washout=100).network
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


def bound_words(model: Any) -> str:
    """Between what values every free run of a model stays, in words, rounded outwards; or that nothing bounds it.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(400, 300))
    >>> result = identify(training, validation, law="broad", order=10, networks=20, committee=0)
    >>> bound_words(result.model)[:27], bound_words(result.model)[-24:]
    ('Every free run stays within', 'whatever the inputs are.')
    """
    bound = getattr(model, "bound", None)
    if bound is None:
        return UNBOUNDED
    ranges = [
        f"{downward(low)} and {upward(high)}{' ' + unit if unit else ''}"
        for (low, high), unit in zip(bound.tolist(), model.output_units, strict=True)
    ]
    if len(ranges) > 1:
        ranges = [f"{one} ({name})" for one, name in zip(ranges, model.output_names, strict=True)]
    return f"Every free run stays within {', '.join(ranges)}, whatever the inputs are."


@dataclass(frozen=True, slots=True)
class Holding:
    """For how long an output sits at a limit of its model in a simulated record.

    Where it does so for more than 5 % of the samples beyond what the training data did themselves, the model does not
    follow the plant there, and would run off if it were not clipped.
    """

    output: str
    unit: str
    share: float  # of the samples at either limit
    limit: float  # the one at which it is for longer
    usual: float  # share of the training data at a limit, where a sensor saturates

    @property
    def too_long(self) -> bool:
        """Whether it is held: at a limit for longer than the training data explain."""
        return self.share > HELD + self.usual

    @property
    def words(self) -> str:
        """As in "y1 sits at its limit 10 V in 37 % of the samples"."""
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{self.output} sits at its limit {self.limit:.6g}{unit} in {100 * self.share:.3g} % of the samples: the"
            " model does not follow there"
        )


def holdings(model: Any, simulated: Signal) -> tuple[Holding, ...] | None:
    """For how long each output of a free run sits at a limit of its model; None of a model that has no limits.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> clipped = SimpleNamespace(bound=np.array([[0.0, 10.0]]), output_names=("level",), output_units=("V",))
    >>> [level] = holdings(clipped, np.array([[10.0], [10.0], [4.0], [0.0]]))
    >>> level.share, level.limit, level.too_long
    (0.75, 10.0, True)
    """
    bound = getattr(model, "bound", None)
    if bound is None:
        return None
    low, high = bound.T
    near = 1e-9 * (high - low)  # as in `Limits.held`: limits of several scalings differ by rounding
    at_low, at_high = (simulated <= low + near).mean(axis=0), (simulated >= high - near).mean(axis=0)
    at_either = ((simulated <= low + near) | (simulated >= high - near)).mean(axis=0)
    longer = np.where(at_high >= at_low, high, low)
    columns = (at_either.tolist(), longer.tolist(), _usual(model, len(low)).tolist())
    named = zip(model.output_names, model.output_units, *columns, strict=True)
    return tuple(Holding(*each) for each in named)


def _usual(model: Any, outputs: int) -> Any:
    """Share of the training data that are at a limit themselves, for each output."""
    shares = [member.limits.share for member in getattr(model, "members", (model,)) if hasattr(member, "limits")]
    return np.median(shares, axis=0) if shares else np.zeros(outputs)
