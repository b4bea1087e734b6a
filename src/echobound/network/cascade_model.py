"""CascadeModel: a trained cascade as a model, and its stability in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Signal
from echobound.errors import DamagedFile
from echobound.network.cascade import Cascade
from echobound.network.dynamics import Dynamics
from echobound.network.plant_model import PlantModel

ARRAYS = tuple(one.name for one in fields(Cascade))


@dataclass(frozen=True)
class CascadeStability:
    """How far from zero the poles of both banks are at most."""

    radius: float

    @property
    def contracts(self) -> bool:
        """Whether all poles are within the unit circle."""
        return self.radius < 1

    @property
    def statement(self) -> str:
        """The stability statement in words."""
        if not self.contracts:
            return (
                f"A pole of its filters has the modulus {self.radius:.6g}, not below 1: stability is not established."
            )
        return (
            f"No output is fed back, and all poles of its filters have a modulus of at most {self.radius:.6g} < 1: the"
            " model, in free run too, is incrementally input-to-state stable."
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers and the statement."""
        return {**asdict(self), "contracts": self.contracts, "statement": self.statement}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CascadeModel(PlantModel):
    """A trained cascade. Measured outputs are not used: every run starts in the steady state of the first input.

    Parameters
    ----------
    cascade
        Its filters and units.
    drawn
        The hyper-parameters of the draw.
    readout, scaling, washout, padding, sampling_time, ...
        As in `PlantModel`.

    Examples
    --------
    >>> from echobound.kernels import get_kernel, hold_out
    >>> from echobound.kernels.training import train_network
    >>> from echobound.network import CascadeLaw
    >>> from echobound.plants import wiener_hammerstein_experiment
    >>> from echobound.scores import get_score
    >>> training, validation = wiener_hammerstein_experiment((400, 300))
    >>> problem = hold_out(training, validation, law=CascadeLaw(units=4, sections=1), scores=[get_score("fit")])
    >>> model, _ = train_network(get_kernel("reference"), problem, 0)
    >>> model.order, model.stability.contracts, model.simulate(validation).y.shape
    (20, True, (200, 1))
    >>> bool((model.predict(validation, 5).y == model.simulate(validation).y).all())
    True
    """

    structure: ClassVar[str | None] = "cascade"

    cascade: Cascade
    drawn: Mapping[str, Any]

    @property
    def order(self) -> int:
        """Number of states."""
        return self.cascade.order

    @property
    def hyper(self) -> Mapping[str, Any]:
        """The numbers that were drawn, by name."""
        return self.drawn

    @cached_property
    def stability(self) -> CascadeStability:
        """The largest modulus of a pole, and what follows."""
        sections = np.concatenate([self.cascade.front, self.cascade.back])
        return CascadeStability(float(max(np.abs(np.roots([1.0, *one])).max(initial=0.0) for one in sections)))

    def _free_run(self, u: Signal, y: Signal, washout: int, padding: int, dynamics: Dynamics) -> Signal:
        with np.errstate(over="ignore", invalid="ignore"):  # of absurd inputs; what is not a number is clipped
            outputs = self.cascade.response(self.readout, u)[washout:]
        return outputs if self.limits is None else self.limits.clip(outputs)

    def _predictions(self, u: Signal, y: Signal, washout: int, horizon: int, dynamics: Dynamics) -> Signal:
        return self._free_run(u, y, washout, self.padding, dynamics)

    def _own_content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"hyper": dict(self.drawn)}, {name: getattr(self.cascade, name) for name in ARRAYS}

    @classmethod
    def _own_fields(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        return {"cascade": Cascade(**{name: arrays[name] for name in ARRAYS}), "drawn": dict(header["hyper"])}

    def _check_shapes(self, path: Path) -> None:
        super()._check_shapes(path)
        own, inputs = self.cascade, len(self.input_names)
        for name in ARRAYS:
            if getattr(own, name).ndim != (1 if name == "bias" else 2):
                raise DamagedFile(path, f"array {name}", "another number of axes was expected")
        shapes: dict[str, tuple[int, ...]] = {
            name: (len(getattr(own, name.split("_")[0])), 2) for name in ARRAYS if name[0] in "fb"
        }
        shapes |= {"weights": (len(own.bias), inputs * own.signals), "bias": (len(own.bias),)}
        for name, shape in shapes.items():
            array = getattr(own, name)
            if array.shape != shape or not array.size or not np.isfinite(array).all():
                raise DamagedFile(path, f"array {name}", f"finite numbers of shape {shape} were expected")
        if self.readout.shape != (len(self.output_names), own.columns):
            raise DamagedFile(path, "array readout", f"shape {self.readout.shape} does not fit the cascade")
