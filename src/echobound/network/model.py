"""EchoStateNetwork: a trained network as a model, with its scaling and its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Signal
from echobound.errors import DamagedFile
from echobound.network.dynamics import Dynamics
from echobound.network.plant_model import CHANNELS, PlantModel, Simulation
from echobound.network.reservoir import Hyperparameters, Reservoir
from echobound.network.stability import Stability, stability
from echobound.typed import from_json

__all__ = ["CHANNELS", "EchoStateNetwork", "Simulation"]

ARRAYS = ("columns", "values", "W_u", "W_y", "bias", "leak")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class EchoStateNetwork(PlantModel):
    """A trained echo state network.

    Parameters
    ----------
    reservoir
        The drawn state equation.
    late_readout
        Whether the readout of sample k uses the state that u(k) has already entered, as in reservoirpy; ours uses the
        one before.

    readout, scaling, washout, padding, sampling_time, ...
        As in `PlantModel`.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(600, 400))
    >>> model = identify(training, validation, law="paper", order=20, networks=20, washout=100).network
    >>> run = model.simulate(validation)
    >>> len(run.y), run.start
    (300, 'free run after 100 samples with measured outputs fed back')
    >>> model.simulate(validation.u).start
    'free run from the training mean of the outputs'
    >>> model.predict(validation, horizon=5).y.shape
    (300, 1)
    """

    reservoir: Reservoir
    late_readout: bool = False

    @property
    def order(self) -> int:
        """Number of states."""
        return self.reservoir.order

    @cached_property
    def stability(self) -> Stability:
        """Whether ||W_x|| < 1, by an exact singular value decomposition, and what follows."""
        return stability(self.reservoir)

    @property
    def hyper(self) -> Mapping[str, Any]:
        """The numbers that were drawn, by name."""
        return asdict(self.reservoir.hyper)

    def _free_run(self, u: Signal, y: Signal, washout: int, padding: int, dynamics: Dynamics) -> Signal:
        late = washout + self.late_readout
        return dynamics.free_run(self.reservoir, self.readout, *self._timed(u, y), late, padding, self.limits)

    def _predictions(self, u: Signal, y: Signal, washout: int, horizon: int, dynamics: Dynamics) -> Signal:
        late, (u, y) = washout + self.late_readout, self._timed(u, y)
        return dynamics.predictions(self.reservoir, self.readout, u, y, late, horizon, self.padding, self.limits)

    def _timed(self, u: Signal, y: Signal) -> tuple[Signal, Signal]:
        """Scaled inputs and outputs in the time of the state equation.

        A late readout computes y(k) from x(k+1): it is the same network with its outputs one sample later.
        """
        if not self.late_readout:
            return u, y
        return np.concatenate([u, u[-1:]]), np.concatenate([self.scaling.outputs(self.training_mean[None]), y])

    def _own_content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        # A late readout is named only where there is one: other files stay as they were before there was any.
        late = {"late_readout": True} if self.late_readout else {}
        arrays = {name: getattr(self.reservoir, name) for name in ARRAYS}
        return {"hyper": asdict(self.reservoir.hyper), **late}, arrays

    @classmethod
    def _own_fields(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        hyper = from_json(Hyperparameters, header["hyper"])
        reservoir = Reservoir(hyper, **{name: arrays[name] for name in ARRAYS})
        return {"reservoir": reservoir, "late_readout": bool(header.get("late_readout", False))}

    def _check_shapes(self, path: Path) -> None:
        super()._check_shapes(path)
        n, inputs, outputs = self.order, len(self.input_names), len(self.output_names)
        for name in ARRAYS:
            array = getattr(self.reservoir, name)
            if array.dtype.kind != ("i" if name == "columns" else "f") or not array.size:
                raise DamagedFile(path, f"array {name}", f"numbers of another kind were expected, found {array.dtype}")
        slots = len(self.reservoir.columns)
        shapes = ((slots, n), (slots, n), (n, inputs), (n, outputs), (n,), (n,))
        for name, shape in zip(ARRAYS, shapes, strict=True):
            if getattr(self.reservoir, name).shape != shape:
                raise DamagedFile(path, f"array {name}", f"shape {shape} was expected")
        if self.readout.shape != (outputs, self.reservoir.hyper.columns(inputs, outputs)):
            raise DamagedFile(path, "array readout", f"shape {self.readout.shape} does not fit the network")
        if self.reservoir.columns.min() < 0 or self.reservoir.columns.max() >= n:
            raise DamagedFile(path, "array columns", "a column outside the matrix")
