"""ReservoirLaw: the distribution that networks are drawn from, and how each draw is trained.

`NetworkLaw` is what all laws of networks have in common; `network.mixed_law` has one that draws several kinds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from echobound.arrays import Words
from echobound.data.scaling import SCALINGS
from echobound.draws import unit, words
from echobound.errors import InputError
from echobound.network import distribution
from echobound.network.distribution import Distribution, Value, extremes, value_at
from echobound.network.reservoir import HYPER, Hyperparameters, ReservoirDraw, readout_columns
from echobound.network.training import LeastSquares, Trainer, get_trainer


class NetworkLaw(ABC):
    """What every law of networks has: its name, and how a draw is made.

    A law that draws one kind only also has `training`, its `Trainer`; `padding`, the steps for which the first sample
    of a segment is held before it; and `clip`, whether outputs are clipped to the limits of the training data. A draw
    is asked for them by ``draw.law``, which is always such a law.
    """

    name: str

    @abstractmethod
    def draw_at(self, inputs: int, outputs: int, seed: int, stream: int, family: int, index: int) -> Any:
        """Draw number `index`: a `ReservoirDraw`, or what takes its place."""

    def component(self, key: Words) -> NetworkLaw:
        """The law that decides about the draw of this key; a law that draws one kind only is its own."""
        return self

    @abstractmethod
    def draw(self, key: Words) -> Any:
        """The hyper-parameters of one draw, among them its `order` and `scaling`."""

    @abstractmethod
    def most_columns(self, inputs: int, outputs: int) -> int:
        """Largest number of readout columns that a draw can have."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The law as JSON."""


@dataclass(frozen=True, kw_only=True)
class ReservoirLaw(NetworkLaw):
    """The distribution from which networks are drawn. The defaults give the paper's model.

    Each of the fields up to `scaling` is a constant or a distribution (`Uniform`, `LogUniform`, `Choice`); the
    others are the same for all draws. A certificate is about one law.

    Parameters
    ----------
    order
        Number of states n.
    norm
        Spectral norm of W_x, below 1.
    input_scale, feedback_scale, bias_scale
        W_u, W_y and the bias are uniform in [-scale, scale].
    leak
        Leak rate a in (0, 1]: x(k+1) = (1 - a) x(k) + a tanh(...).
    leak_spread
        Each unit's leak rate is multiplied by 10**U(-spread, spread) and limited to 1.
    input_delays, present_input, output_delays, constant
        What the readout is applied to besides the state: u(k-1..k-d), u(k), y(k-1..k-m), a constant.
    training_noise
        Noise added to the measured y that is fed back in training, in standard deviations of y.
    scaling
        ``"minmax"`` to [0, 1], ``"standard"`` or ``"none"``, fitted on training data.
    nonzeros
        Non-zero elements in each row of W_x.
    pattern
        Where they are: on cyclic ``"diagonals"`` with random offsets (the default: as good, and several times faster),
        or ``"random"`` in each row.
    padding
        Steps for which the first sample of a segment is held before it, so that the state does not start from zero.
    training
        How a draw is trained: a `Trainer`, or the name of one. Least squares with a ridge of 1e-8 is the paper's.
    clip
        Whether each output is clipped before it is fed back, to the range of the training data and a margin (see
        `network.limits`): then every free run is bounded. The paper's law does not clip.
    name
        What certificates call the law.

    Examples
    --------
    >>> from echobound.network import Uniform
    >>> law = ReservoirLaw(order=50, norm=Uniform(0.5, 0.99))
    >>> ReservoirLaw.from_dict(law.to_dict()) == law
    True
    """

    order: Value
    norm: Value = 0.99
    input_scale: Value = 1.0
    feedback_scale: Value = 1.0
    bias_scale: Value = 0.0
    leak: Value = 1.0
    leak_spread: Value = 0.0
    input_delays: Value = 1
    present_input: Value = False
    output_delays: Value = 0
    constant: Value = False
    training_noise: Value = 0.0
    scaling: Value = "minmax"
    nonzeros: int = 10
    pattern: Literal["diagonals", "random"] = "diagonals"
    padding: int = 0
    training: Trainer = LeastSquares()  # noqa: RUF009 (it is immutable)
    clip: bool = False
    name: str = "custom"

    def __post_init__(self) -> None:
        object.__setattr__(self, "training", get_trainer(self.training))
        # Checked at the ends of every distribution, before anything is drawn: a draw must not fail within a campaign.
        for name, low, high, text in _RANGES:
            for value in extremes(getattr(self, name)):
                if isinstance(value, str) or not low <= value <= high:
                    raise InputError(f"{name} must be {text}, got {value}")
        for name in ("order", "input_delays", "output_delays"):
            value = getattr(self, name)
            if isinstance(value, float) and not value.is_integer():
                raise InputError(f"{name} must be a whole number, got {value}")
        for name in (f.name for f in _DRAWN):
            if distribution.depth(getattr(self, name)) > 4:
                raise InputError(
                    f"{name} nests choices more than three deep, but a draw has four words for it: nest fewer"
                )
        for name in ("nonzeros", "padding"):
            if not isinstance(getattr(self, name), int):
                raise InputError(f"{name} must be a whole number, got {getattr(self, name)!r}")
        for value in extremes(self.scaling):
            if value not in SCALINGS:
                raise InputError(f"scaling must be one of {', '.join(SCALINGS)}, got {value!r}")
        if self.pattern not in ("diagonals", "random"):
            raise InputError(f"pattern must be 'diagonals' or 'random', got {self.pattern!r}")
        if not isinstance(self.clip, bool):
            raise InputError(f"clip must be true or false, got {self.clip!r}")
        if self.nonzeros < 1 or self.padding < 0:
            raise InputError(f"nonzeros must be >= 1 and padding >= 0, got {self.nonzeros} and {self.padding}")

    def draw_at(self, inputs: int, outputs: int, seed: int, stream: int, family: int, index: int) -> ReservoirDraw:
        """Draw number `index`, its parts made when they are needed."""
        return ReservoirDraw(self, inputs, outputs, seed, stream, family, index)

    def draw(self, key: Words) -> Hyperparameters:
        """Draw the hyper-parameters of one network.

        Each field has four random words of its own, found by its position, so that changing the distribution of one
        field leaves the others as they were.
        """
        units = unit(words(key, HYPER, 4 * len(_DRAWN))).reshape(-1, 4).tolist()
        drawn = (value_at(getattr(self, field.name), own) for field, own in zip(_DRAWN, units, strict=True))
        return Hyperparameters(*(cast(value) for cast, value in zip(_CASTS, drawn, strict=True)))

    def draw_all(self, keys: Words) -> list[Hyperparameters]:
        """Draw the hyper-parameters of many networks; only once if the law leaves none of them to chance."""
        if not any(isinstance(getattr(self, field.name), Distribution) for field in _DRAWN):
            # One object for all of them, by which the GPU kernel sees that it need not look at each.
            return [self.draw(keys[0])] * len(keys) if len(keys) else []
        return [self.draw(key) for key in keys]

    def most_columns(self, inputs: int, outputs: int) -> int:
        """Largest number of readout columns that a draw can have."""
        order, input_delays, present_input, output_delays, constant = (
            math.ceil(max(float(value) for value in extremes(field)))
            for field in (self.order, self.input_delays, self.present_input, self.output_delays, self.constant)
        )
        return readout_columns(order, input_delays, present_input, output_delays, constant, inputs, outputs)

    def to_dict(self) -> dict[str, Any]:
        """The law as JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if not self.clip:
            del values["clip"]  # laws without it are written, and named by their digest, as before there was one
        return {name: v.to_dict() if isinstance(v, Trainer) else distribution.to_json(v) for name, v in values.items()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ReservoirLaw:
        """Inverse of `to_dict`; unknown or missing fields are refused."""
        known = {field.name for field in fields(cls)}
        if set(content) | {"clip"} != known:
            raise InputError(f"a law has the fields {', '.join(sorted(known))}, got {', '.join(sorted(content))}")
        values: dict[str, Any] = {name: distribution.from_json(v) for name, v in content.items() if name != "training"}
        return cls(**values, training=Trainer.from_dict(content["training"]))


_DRAWN = fields(Hyperparameters)
# An order drawn from a continuous distribution is rounded to the nearest integer.
_CASTERS = {"int": lambda value: math.floor(float(value) + 0.5), "float": float, "bool": bool, "str": str}
_CASTS: list[Any] = [_CASTERS[str(field.type)] for field in _DRAWN]
_RANGES = (
    ("order", 1, 2**31, "an integer of at least 1"),
    ("norm", 1e-12, math.nextafter(1.0, 0.0), "above 0 and below 1, so that the reservoir forgets its initial state"),
    ("input_scale", 0, math.inf, "at least 0"),
    ("feedback_scale", 0, math.inf, "at least 0"),
    ("bias_scale", 0, math.inf, "at least 0"),
    ("leak", 1e-12, 1, "above 0 and at most 1"),
    ("leak_spread", 0, 6, "from 0 to 6 decades"),
    ("input_delays", 0, 10_000, "from 0 to 10000 samples"),
    ("present_input", 0, 1, "true or false"),
    ("output_delays", 0, 10_000, "from 0 to 10000 samples"),
    ("constant", 0, 1, "true or false"),
    ("training_noise", 0, math.inf, "at least 0 standard deviations"),
)
