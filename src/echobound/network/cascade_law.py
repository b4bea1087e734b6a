"""CascadeLaw: the distribution that cascades are drawn from; CascadeDraw: one draw of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

from echobound.arrays import Signal, Vector, Words
from echobound.data.scaling import SCALINGS
from echobound.draws import draw_key, unit, words
from echobound.errors import InputError
from echobound.network import distribution
from echobound.network.cascade import Cascade
from echobound.network.distribution import LogUniform, Uniform, Value, extremes, value_at
from echobound.network.law import NetworkLaw
from echobound.network.limits import Limits
from echobound.network.reservoir import HYPER
from echobound.network.training import Trainer, VariableProjection, get_trainer
from echobound.network.training.cascade_tools import CascadeTools

# Regions of a cascade's words. HYPER and KIND (0 and 8) are those of every draw.
POLES, MIXTURE, DIRECTION, THRESHOLDS, GAINS = range(1, 6)


@dataclass(frozen=True, slots=True)
class CascadeHyperparameters:
    """The numbers of one draw of a `CascadeLaw`."""

    units: int
    sections: int
    slowest: float
    spread: float
    gain: float
    wander: float
    ridge: float
    scaling: str
    inputs: int = 1  # of the data, by which the order is known

    @property
    def order(self) -> int:
        """Number of states of the front and the back bank."""
        return 2 * (self.sections + 1) * (self.inputs + self.units)

    def columns(self, inputs: int, outputs: int) -> int:
        """Number of columns of the readout."""
        return self.units * (2 * self.sections + 3) + inputs * (2 * self.sections + 3) + 1


@dataclass(frozen=True, kw_only=True)
class CascadeLaw(NetworkLaw):
    """The distribution from which cascades are drawn: linear filters, tanh, linear filters, and a readout.

    There is no feedback, so that no free run can diverge. Suited to plants whose nonlinearity is in the actuator or the
    sensor, or between two linear parts (Wiener-Hammerstein systems); poorly suited to short records of slow plants.

    Each of the fields up to `scaling` is a constant or a distribution.

    Parameters
    ----------
    units
        Number of tanh units.
    sections
        Second-order sections in each bank that start from a linear model of the data; there is one more with two
        random real poles.
    slowest
        Those are uniform between 0.3 and this.
    spread
        The units' thresholds start within so many standard deviations of the signal that enters them.
    gain
        How steep the units start, in inverse standard deviations.
    wander
        How much the first direction deviates from that of the linear model: 0 not at all, 1 it is as much random.
    ridge
        Ridge of the readout, for each sample, in the last steps of training the filters.
    scaling
        As in `ReservoirLaw`.
    training
        How a draw is trained.
    clip
        Whether outputs are clipped to the range of the training data and a margin.
    name
        What certificates call the law.

    Examples
    --------
    >>> law = CascadeLaw(units=5)
    >>> CascadeLaw.from_dict(law.to_dict()) == law
    True
    >>> law.draw_at(inputs=2, outputs=1, seed=0, stream=0, family=0, index=3).hyper.units
    5
    """

    kind: ClassVar[str] = "cascade"

    # Distributions and trainers are immutable, whatever RUF009 fears. Units and sections are rounded.
    units: Value = Uniform(3.5, 10.5)  # noqa: RUF009
    sections: Value = Uniform(0.5, 3.5)  # noqa: RUF009
    slowest: Value = 0.98
    spread: Value = Uniform(0.5, 2.0)  # noqa: RUF009
    gain: Value = LogUniform(0.3, 1.5)  # noqa: RUF009
    wander: Value = Uniform(0.0, 1.0)  # noqa: RUF009
    ridge: Value = LogUniform(1e-8, 1e-6)  # noqa: RUF009
    scaling: Value = "standard"
    training: Trainer = VariableProjection()  # noqa: RUF009
    clip: bool = True
    name: str = "cascade"

    def __post_init__(self) -> None:
        object.__setattr__(self, "training", get_trainer(self.training))
        for name, low, high, text in _RANGES:
            for value in extremes(getattr(self, name)):
                if isinstance(value, str) or not low <= value <= high:
                    raise InputError(f"{name} must be {text}, got {value}")
            if distribution.depth(getattr(self, name)) > 4:
                raise InputError(
                    f"{name} nests choices more than three deep, but a draw has four words for it: nest fewer"
                )
        for value in extremes(self.scaling):
            if value not in SCALINGS:
                raise InputError(f"scaling must be one of {', '.join(SCALINGS)}, got {value!r}")
        if not isinstance(self.clip, bool):
            raise InputError(f"clip must be true or false, got {self.clip!r}")

    @property
    def padding(self) -> int:
        """None: filters start in the steady state of the first sample."""
        return 0

    def draw_at(self, inputs: int, outputs: int, seed: int, stream: int, family: int, index: int) -> CascadeDraw:
        """Draw number `index`."""
        return CascadeDraw(self, inputs, outputs, seed, stream, family, index)

    def draw(self, key: Words) -> CascadeHyperparameters:
        """Draw the hyper-parameters of one cascade; each field has four random words of its own."""
        units = unit(words(key, HYPER, 4 * len(_DRAWN))).reshape(-1, 4).tolist()
        drawn = {name: value_at(getattr(self, name), own) for name, own in zip(_DRAWN, units, strict=True)}
        whole = {name: math.floor(float(drawn[name]) + 0.5) for name in ("units", "sections")}
        numbers: dict[str, Any] = {name: float(drawn[name]) for name in _DRAWN if name not in (*whole, "scaling")}
        return CascadeHyperparameters(**whole, **numbers, scaling=str(drawn["scaling"]))

    def most_columns(self, inputs: int, outputs: int) -> int:
        """Largest number of readout columns that a draw can have."""
        # The upper end of a distribution is not drawn: 10.5 is rounded down.
        units, sections = (
            math.ceil(max(float(v) for v in extremes(value)) - 0.5) for value in (self.units, self.sections)
        )
        return (units + inputs) * (2 * sections + 3) + 1

    def to_dict(self) -> dict[str, Any]:
        """The law as JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        own = {name: v.to_dict() if isinstance(v, Trainer) else distribution.to_json(v) for name, v in values.items()}
        return {"kind": self.kind, **own}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> CascadeLaw:
        """Inverse of `to_dict`; unknown or missing fields are refused."""
        known = {field.name for field in fields(cls)} | {"kind"}
        if set(content) != known:
            raise InputError(
                f"a law of cascades has the fields {', '.join(sorted(known))}, got {', '.join(sorted(content))}"
            )
        values: dict[str, Any] = {
            name: distribution.from_json(v) for name, v in content.items() if name not in ("kind", "training")
        }
        return cls(**values, training=Trainer.from_dict(content["training"]))


_DRAWN = ("units", "sections", "slowest", "spread", "gain", "wander", "ridge", "scaling")
_RANGES = (
    ("units", 0.5, 1000, "a whole number from 1 to 1000"),
    ("sections", 0.5, 20.5, "a whole number from 1 to 20"),
    ("slowest", 0.3, 0.99, "from 0.3 to 0.99"),
    ("spread", 0, 10, "from 0 to 10 standard deviations"),
    ("gain", 1e-6, 1e3, "above 0 and at most 1000"),
    ("wander", 0, 100, "from 0 to 100"),
    ("ridge", 1e-15, 1, "above 0 and at most 1"),
)


@dataclass(frozen=True, eq=False)
class CascadeDraw:
    """Draw (seed, stream, family, index) of a law of cascades; its filters follow from the data in training.

    Examples
    --------
    >>> draw = CascadeDraw(CascadeLaw(), inputs=1, outputs=1, seed=0, index=3)
    >>> draw.uniform(POLES, 2).shape
    (2,)
    """

    law: CascadeLaw
    inputs: int
    outputs: int
    seed: int
    stream: int = 0
    family: int = 0
    index: int = 0
    limits: Limits | None = None  # of the fold that it is trained on, in scaled units; None if nothing is clipped
    trained: Cascade | None = None

    @cached_property
    def key(self) -> Words:
        """The key of its random words."""
        return draw_key(self.seed, self.stream, self.family, self.index)

    @cached_property
    def hyper(self) -> CascadeHyperparameters:
        """Its hyper-parameters."""
        return replace(self.law.draw(self.key), inputs=self.inputs)

    @property
    def cascade(self) -> Cascade:
        """What training made of it."""
        if self.trained is None:
            raise InputError("a drawn cascade has no filters before it is trained: train it first")
        return self.trained

    def uniform(self, region: int, count: int) -> Vector:
        """Its random numbers in [0, 1) for one purpose."""
        return unit(words(self.key, region, count))

    def tools(self) -> CascadeTools:
        """What trains and simulates it, in plain NumPy."""
        return CascadeTools()

    def with_reservoir(self, reservoir: Cascade) -> CascadeDraw:
        """The same draw with the filters that training found."""
        return replace(self, trained=reservoir)

    def within(self, limits: Limits | None) -> CascadeDraw:
        """The same draw with the limits of the data that it is trained on."""
        return replace(self, limits=limits)

    def fed_back(self, outputs: Sequence[Signal], deviation: Vector) -> list[Signal]:
        """Nothing is fed back: the outputs as they are."""
        return list(outputs)
