"""EchoStateNetwork: a trained network as a model, with its scaling and its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echobound.arrays import Matrix, Signal, Vector
from echobound.data.checks import require_longer_than_washout
from echobound.data.record import Record
from echobound.data.scaling import Scaling
from echobound.errors import DamagedFile, DataError, InputError
from echobound.files import digest, read_npz, write_npz
from echobound.network import dynamics as plain_dynamics
from echobound.network.dynamics import Dynamics
from echobound.network.limits import Limits
from echobound.network.reservoir import Hyperparameters, Reservoir
from echobound.network.stability import Stability, stability

FORMAT = 1
CHANNELS = ("sampling_time", "input_names", "output_names", "input_units", "output_units")  # as in a record
PLAIN = ("washout", "padding", *CHANNELS)
ARRAYS = ("columns", "values", "W_u", "W_y", "bias", "leak")


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulated or predicted output and how it was started."""

    y: Signal  # in the data's own units
    first: int  # the sample of the input to which the first row of `y` belongs
    start: str  # how the simulation was started, in words


@dataclass(frozen=True, eq=False)
class EchoStateNetwork:
    """A trained echo state network.

    Parameters
    ----------
    reservoir
        The drawn state equation.
    readout
        W_out ``(output, column)``, in scaled units.
    scaling
        Fitted on the training data; applied on the way in, undone on the way out.
    washout
        Samples during which the measured output is fed back before a free run starts.
    padding
        Steps for which the first sample is held before a record starts.
    sampling_time, input_names, output_names, input_units, output_units
        As in the training record.
    training_mean
        Mean output of the training data, from which a simulation without measured outputs starts.
    origin
        Law, seed, stream, family, index and ridge, from which the network can be drawn and trained again.
    limits
        To what range each output is clipped before it is fed back, in scaled units; None if it is not.
    late_readout
        Whether the readout of sample k uses the state that u(k) has already entered, as in reservoirpy; ours uses the
        one before.

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
    readout: Matrix
    scaling: Scaling
    washout: int
    padding: int
    sampling_time: float
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    input_units: tuple[str, ...]
    output_units: tuple[str, ...]
    training_mean: Vector
    origin: Mapping[str, Any] = field(default_factory=dict)
    late_readout: bool = False
    limits: Limits | None = None

    @property
    def order(self) -> int:
        """Number of states."""
        return self.reservoir.order

    @cached_property
    def stability(self) -> Stability:
        """Whether ||W_x|| < 1, by an exact singular value decomposition, and what follows."""
        return stability(self.reservoir)

    @property
    def bound(self) -> Signal | None:
        """The lowest and highest value of each output, ``(output, 2)``, in any free run; None if there is no bound.

        In floating point, too: the way back from scaled units is monotone.
        """
        if self.limits is None:
            return None
        return np.stack([self.scaling.outputs_back(end) for end in (self.limits.low, self.limits.high)], axis=1)

    def simulate(
        self,
        inputs: Record | ArrayLike,
        *,
        initial: ArrayLike | None = None,
        washout: int | None = None,
        dynamics: Dynamics = plain_dynamics,
    ) -> Simulation:
        """Simulate in free run: the model's own outputs are fed back.

        Parameters
        ----------
        inputs
            A record, or inputs ``(time, channel)``.
        initial
            Measured outputs of the first samples, fed back in place of the model's own. Without it, a record's outputs
            serve for `washout` samples; without a record, the run starts from the training mean.
        washout
            How many of a record's outputs are used; the model's own washout if not given.
        dynamics
            What runs the state equation: plain NumPy, or `kernels.compiled_dynamics` for long records.
        """
        u = self._inputs(inputs)
        if initial is None and isinstance(inputs, Record):
            washout = self.washout if washout is None else washout
            require_longer_than_washout(inputs, washout, "simulated")
            initial = inputs.y[: max(washout, 1)]  # y(0) also stands for the time before the start
            start = f"free run after {washout} samples with measured outputs fed back"
        elif initial is not None:
            initial = self._outputs(initial)
            washout = len(initial)
            start = f"free run after {washout} given initial outputs"
        else:
            initial, washout = self.training_mean[None], 0
            start = "free run from the training mean of the outputs"
        if washout >= len(u):
            raise DataError(
                f"{washout} initial outputs leave nothing to simulate of {len(u)} samples: give fewer of them"
            )
        # Without measured outputs there is no washout in which the state converges: hold the first sample instead.
        padding = self.padding if washout else max(self.padding, self.washout)
        signals = self._scaled(u, self._outputs(initial))
        late = washout + self.late_readout
        scaled = dynamics.free_run(self.reservoir, self.readout, *signals, late, padding, self.limits)
        return Simulation(self.scaling.outputs_back(scaled), washout, start)

    def predict(
        self, record: Record, horizon: int = 1, washout: int | None = None, *, dynamics: Dynamics = plain_dynamics
    ) -> Simulation:
        """Predict `horizon` steps ahead: each output from the measured outputs up to `horizon` samples before."""
        washout = self.washout if washout is None else washout
        if horizon < 1:
            raise InputError(f"the horizon must be at least 1 sample, got {horizon}")
        require_longer_than_washout(record, washout, "predicted")
        signals = self._scaled(self._inputs(record), self._outputs(record.y))
        late = washout + self.late_readout
        u, y = signals
        scaled = dynamics.predictions(self.reservoir, self.readout, u, y, late, horizon, self.padding, self.limits)
        return Simulation(self.scaling.outputs_back(scaled), washout, f"prediction {horizon} samples ahead")

    def _scaled(self, u: Signal, y: Signal) -> tuple[Signal, Signal]:
        """Inputs and outputs in scaled units, and in the time of the state equation.

        A late readout computes y(k) from x(k+1): it is the same network with its outputs one sample later.
        """
        if self.late_readout:
            u, y = np.concatenate([u, u[-1:]]), np.concatenate([self.training_mean[None], y])
        return self.scaling.inputs(u), self.scaling.outputs(y)

    def _inputs(self, inputs: Record | ArrayLike) -> Signal:
        return _channels(inputs.u if isinstance(inputs, Record) else inputs, self.input_names, "input")

    def _outputs(self, outputs: ArrayLike) -> Signal:
        return _channels(outputs, self.output_names, "output")

    def content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Header and arrays of the file that `save` writes."""
        plain = {name: getattr(self, name) for name in PLAIN}
        header = {
            "kind": "model",
            "format": FORMAT,
            **plain,
            "hyper": asdict(self.reservoir.hyper),
            "scaling": self.scaling.kind,
            "origin": dict(self.origin),
            **({"late_readout": True} if self.late_readout else {}),  # only where it is: other files stay the same
        }
        arrays = {name: getattr(self.reservoir, name) for name in ARRAYS}
        arrays |= {f"scaling.{name}": array for name, array in self.scaling.to_arrays().items()}
        if self.limits is not None:
            arrays |= {f"limits.{name}": array for name, array in vars(self.limits).items()}
        return header, arrays | {"readout": self.readout, "training_mean": self.training_mean}

    @property
    def digest(self) -> str:
        """SHA-256 over everything in the model."""
        return digest(self.content())

    def save(self, path: str | Path) -> None:
        """Save as NPZ with a JSON header; loading gives back the same bits."""
        write_npz(Path(path), *self.content())

    @classmethod
    def load(cls, path: str | Path) -> EchoStateNetwork:
        """Load a model; nothing in the file is run, and a damaged or changed file is refused."""
        return cls.from_content(*read_npz(Path(path), kind="model"), Path(path))

    @classmethod
    def from_content(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], path: Path
    ) -> EchoStateNetwork:
        """Inverse of `content`; `path` is named in the error if this is not a network."""
        if header.get("format") != FORMAT:
            raise DamagedFile(path, "header", f"format {header.get('format')!r}, this version reads {FORMAT}")
        try:
            plain: dict[str, Any] = {k: tuple(header[k]) if isinstance(header[k], list) else header[k] for k in PLAIN}
            scaled, limits = (
                {k.removeprefix(part): v for k, v in arrays.items() if k.startswith(part)}
                for part in ("scaling.", "limits.")
            )
            model = cls(
                **plain,
                reservoir=Reservoir(Hyperparameters(**header["hyper"]), **{name: arrays[name] for name in ARRAYS}),
                readout=arrays["readout"],
                scaling=Scaling.from_arrays(header["scaling"], scaled),
                training_mean=arrays["training_mean"],
                origin=header["origin"],
                late_readout=bool(header.get("late_readout", False)),
                limits=Limits(**limits) if limits else None,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFile(path, "header", f"not a complete model, {error}") from None
        model._check_shapes(path)
        return model

    def _check_shapes(self, path: Path) -> None:
        # A file may be damaged in a way that still parses, and compiled code would read beyond an array that is short.
        n, inputs, outputs = self.order, len(self.input_names), len(self.output_names)
        slots = len(self.reservoir.columns)
        shapes = ((slots, n), (slots, n), (n, inputs), (n, outputs), (n,), (n,))
        for name, shape in zip(ARRAYS, shapes, strict=True):
            if getattr(self.reservoir, name).shape != shape:
                raise DamagedFile(path, f"array {name}", f"shape {shape} was expected")
        if self.readout.shape != (outputs, self.reservoir.hyper.columns(inputs, outputs)):
            raise DamagedFile(path, "array readout", f"shape {self.readout.shape} does not fit the network")
        for name, array in vars(self.limits).items() if self.limits is not None else ():
            if array.shape != (outputs,) or not np.isfinite(array).all():
                raise DamagedFile(path, f"array limits.{name}", "one finite number for each output was expected")
        if self.reservoir.columns.min() < 0 or self.reservoir.columns.max() >= n:
            raise DamagedFile(path, "array columns", "a column outside the matrix")


def _channels(values: ArrayLike, names: tuple[str, ...], side: str) -> Signal:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 1 and len(names) == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != len(names) or not len(array):
        raise DataError(
            f"the model has {len(names)} {side}s ({', '.join(names)}): an array (time, {len(names)}) was expected,"
            f" got shape {array.shape}"
        )
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise DataError(f"the {side}s must be numbers everywhere, but sample {row + 1} is not: repair the data")
    return array
