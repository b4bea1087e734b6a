"""Trainer: how a drawn network is trained. A trainer is one file in this folder, and a line in its `__init__`.

The contract
------------
1. A trainer trains *one* draw, from that draw and the training data alone. It keeps nothing from draw to draw and never
   sees the data that are scored: this is what keeps draws independent, and the certificate rests on it. Whatever is
   random in it comes from the draw's own words.
2. It returns one or more *alternatives*, as many and in the same order for every draw and fold: least squares returns a
   readout for each ridge. The kernel simulates all of them and keeps the best by the first score. Each carries a number
   that names it, its `setting`, which stands in the column ``ridge`` of the row. What that number is, `setting_name`
   and `setting_unit` say.
3. An alternative is a readout and, if training changed it, the reservoir. A changed reservoir has the same order and
   the same inputs to its readout as the one that was drawn.
4. With blocks in turn, the alternative is chosen over all blocks, and the model is trained once more on all of the
   data: `chosen` returns the trainer of this last fit, which has one alternative only.
5. A trainer is plain data: a frozen dataclass whose fields become JSON, in the plan and in the origin of every model.

`Tools` are the kernel's fast routines. A trainer written against them, or in NumPy against `echobound.network`, runs on
the reference and the CPU kernel unchanged. The GPU kernel knows least squares, and `FreeRun` of small networks; it has
the host do all else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from echobound.arrays import Matrix
from echobound.errors import InputError
from echobound.network.cascade import Cascade
from echobound.network.reservoir import Reservoir, ReservoirDraw
from echobound.network.training.tools import Tools, TrainingData


@dataclass(frozen=True, eq=False)
class Trained:
    """One alternative of a trained draw."""

    setting: float  # names it among the alternatives: the ridge of least squares
    readout: Matrix  # W_out (output, column), in scaled units
    reservoir: Reservoir | Cascade | None = None  # if training changed or made it; None if it is the one that was drawn


class Trainer(ABC):
    """How a draw is trained; see the contract above. Subclasses are frozen dataclasses, registered by their kind.

    Examples
    --------
    >>> get_trainer("least squares").to_dict()
    {'kind': 'least squares', 'ridges': [1e-08]}
    """

    kind: ClassVar[str]
    setting_name: ClassVar[str] = "setting"  # what the number of an alternative is called, where one is shown
    setting_unit: ClassVar[str] = ""  # what it is relative to, if anything

    @abstractmethod
    def train(self, draw: ReservoirDraw, data: TrainingData, tools: Tools) -> Sequence[Trained]:
        """Train one draw on the training data of one fold."""

    def chosen(self, alternative: int) -> Trainer:
        """The trainer with this alternative only; a trainer that has but one is its own."""
        return self

    @property
    def settings(self) -> tuple[float, ...]:
        """All settings that an alternative can carry."""
        return (0.0,)

    # `fields` is typed for dataclasses only, and an abstract class cannot promise to be one.
    def to_dict(self) -> dict[str, Any]:
        """The trainer as JSON: its kind and its fields."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"kind": self.kind} | {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}

    @classmethod
    def from_dict(cls, content: Any) -> Trainer:
        """Inverse of `to_dict`; an unknown kind, and unknown or missing fields, are refused."""
        if not isinstance(content, Mapping) or not isinstance(content.get("kind"), str):
            raise InputError(f"the training of a law is an object with a kind, got {content!r}")
        known = _lookup(content["kind"])
        names = {field.name for field in fields(known)}  # type: ignore[arg-type]
        given: dict[str, Any] = {name: value for name, value in content.items() if name != "kind"}
        if set(given) != names:
            raise InputError(
                f"training by {known.kind} has the fields {', '.join(sorted(names))}, got {', '.join(sorted(given))}"
            )
        try:
            return known(**{name: tuple(v) if isinstance(v, list) else v for name, v in given.items()})
        except (TypeError, ValueError) as error:
            raise InputError(f"training by {known.kind} cannot be made from {given}: {error}") from None


T = TypeVar("T", bound=type[Trainer])
_known: dict[str, type[Trainer]] = {}


def register_trainer(trainer: T) -> T:
    """Make a trainer known by its kind, so that laws can name it and files can refer to it; a class decorator.

    Examples
    --------
    >>> from dataclasses import dataclass, replace
    >>> @register_trainer
    ... @dataclass(frozen=True)
    ... class Quiet(Trainer):
    ...     kind = "quiet"
    ...     factor: float = 0.5
    ...
    ...     def train(self, draw, data, tools):
    ...         weaker = replace(draw.reservoir, W_y=self.factor * draw.reservoir.W_y)
    ...         [(_, readout)] = tools.least_squares(draw.with_reservoir(weaker), data, (1e-8,))
    ...         return [Trained(self.factor, readout, weaker)]
    >>> from echobound.network import ReservoirLaw
    >>> ReservoirLaw(order=20, training="quiet").to_dict()["training"]
    {'kind': 'quiet', 'factor': 0.5}
    """
    other = _known.setdefault(trainer.kind, trainer)
    # The same class may come again, when a module is loaded twice; another one under this name may not.
    if (other.__module__, other.__qualname__) != (trainer.__module__, trainer.__qualname__):
        raise InputError(f"the trainer {trainer.kind!r} is registered already: choose another kind")
    _known[trainer.kind] = trainer
    return trainer


def _lookup(kind: str) -> type[Trainer]:
    if kind not in _known:
        raise InputError(
            f"unknown training {kind!r}: known are {', '.join(sorted(_known))}; register_trainer makes another known"
        )
    return _known[kind]


def get_trainer(trainer: str | Trainer) -> Trainer:
    """Look up a trainer by its kind, with the defaults of its fields; a `Trainer` is returned as it is.

    Examples
    --------
    >>> get_trainer("least squares")
    LeastSquares(ridges=(1e-08,))
    """
    if isinstance(trainer, Trainer):
        return trainer
    if not isinstance(trainer, str):
        raise InputError(f"training must be a Trainer or the name of one, got {trainer!r}")
    return _lookup(trainer)()
