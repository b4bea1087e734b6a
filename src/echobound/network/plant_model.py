"""PlantModel: what every trained model has, whatever its structure: channels, scaling, limits, origin, and its file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echobound.arrays import Matrix, Signal, Vector
from echobound.data.checks import require_longer_than_washout
from echobound.data.given import given_inputs, given_records
from echobound.data.record import Record
from echobound.data.scaling import Scaling
from echobound.displays import few, html_table, one_line
from echobound.errors import DamagedFile, DataError, InputError
from echobound.files import digest, jsonable, read_npz, write_npz
from echobound.network.dynamics import Dynamics, default_dynamics
from echobound.network.exportable import Exportable
from echobound.network.limits import Limits
from echobound.typed import fields_from_json, shortened

FORMAT = 1
CHANNELS = ("sampling_time", "input_names", "output_names", "input_units", "output_units")  # as in a record
PLAIN = ("washout", "padding", *CHANNELS)


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulated or predicted output and how it was started."""

    y: Signal  # in the data's own units
    first: int  # the sample of the input to which the first row of `y` belongs
    start: str  # how the simulation was started, in words

    def __len__(self) -> int:
        return len(self.y)

    def _facts(self) -> dict[str, str]:
        outputs = self.y.shape[1]
        return {"samples": f"{len(self)} from sample {self.first + 1} on", "outputs": str(outputs), "start": self.start}

    def __repr__(self) -> str:
        return one_line("Simulation", self._facts())

    def _repr_html_(self) -> str:
        return html_table("Simulation", self._facts())


@dataclass(frozen=True, eq=False, kw_only=True)
class PlantModel(Exportable, ABC):
    """A trained model of a plant. A subclass has the equations, and what of them is stored.

    Parameters
    ----------
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
        Law, seed, stream, family, index and ridge, from which the model can be drawn and trained again.
    limits
        To what range each output is clipped before it is fed back, in scaled units; None if it is not.
    """

    structure: ClassVar[str | None] = None  # what its file says that it is; echo state networks were there before

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
    limits: Limits | None = None

    def _facts(self) -> dict[str, str]:
        facts = {"order": str(self.order), "inputs": few(self.input_names), "outputs": few(self.output_names)}
        return facts | {"sampling time": f"{self.sampling_time:g} s", "washout": str(self.washout)}

    def __repr__(self) -> str:
        return one_line(type(self).__name__, self._facts())

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self._facts())

    @property
    @abstractmethod
    def order(self) -> int:
        """Number of states."""

    @property
    @abstractmethod
    def stability(self) -> Any:
        """What is known about its stability: `to_dict` and, in words, `statement`."""

    @property
    @abstractmethod
    def hyper(self) -> Mapping[str, Any]:
        """The numbers that were drawn, by name."""

    @abstractmethod
    def _free_run(self, u: Signal, y: Signal, washout: int, padding: int, dynamics: Dynamics) -> Signal:
        """Scaled outputs from sample `washout` on; `y` has as many measured ones, or one that the run starts from."""

    @abstractmethod
    def _predictions(self, u: Signal, y: Signal, washout: int, horizon: int, dynamics: Dynamics) -> Signal:
        """Scaled outputs from sample `washout` on, each predicted `horizon` samples ahead."""

    @abstractmethod
    def _own_content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Header and arrays beyond those of every model."""

    @classmethod
    @abstractmethod
    def _own_fields(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        """Inverse of `_own_content`: the fields of the subclass."""

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
        dynamics: Dynamics | None = None,
    ) -> Simulation:
        """Simulate in free run: the model's own outputs are fed back.

        Parameters
        ----------
        inputs
            A record, a pair ``(u, y)``, a frame with columns of the model's names, or inputs ``(time, channel)``.
        initial
            Measured outputs of the first samples, fed back in place of the model's own. Without it, a record's outputs
            serve for `washout` samples; without a record, the run starts from the training mean.
        washout
            How many of a record's outputs are used; the model's own washout if not given.
        dynamics
            What runs the state equation: compiled code if not given; `echobound.network.dynamics` is the same in plain
            NumPy, a hundred times slower, and says what is right.
        """
        inputs = given_inputs(inputs, self)
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
        signals = self.scaling.inputs(u), self.scaling.outputs(self._outputs(initial))
        scaled = self._free_run(*signals, washout, padding, dynamics or default_dynamics())
        return Simulation(self.scaling.outputs_back(scaled), washout, start)

    def predict(
        self, record: Record, horizon: int = 1, washout: int | None = None, *, dynamics: Dynamics | None = None
    ) -> Simulation:
        """Predict `horizon` steps ahead: each output from the measured outputs up to `horizon` samples before.

        The record may also be a pair ``(u, y)``, or a frame with columns of the model's names.
        """
        record = given_records(record, self, "predicted")[0]
        washout = self.washout if washout is None else washout
        if horizon < 1:
            raise InputError(f"the horizon must be at least 1 sample, got {horizon}")
        require_longer_than_washout(record, washout, "predicted")
        signals = self.scaling.inputs(self._inputs(record)), self.scaling.outputs(self._outputs(record.y))
        scaled = self._predictions(*signals, washout, horizon, dynamics or default_dynamics())
        return Simulation(self.scaling.outputs_back(scaled), washout, f"prediction {horizon} samples ahead")

    def _inputs(self, inputs: Record | ArrayLike) -> Signal:
        return _channels(inputs.u if isinstance(inputs, Record) else inputs, self.input_names, "input")

    def _outputs(self, outputs: ArrayLike) -> Signal:
        return _channels(outputs, self.output_names, "output")

    def content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Header and arrays of the file that `save` writes."""
        own_header, own_arrays = self._own_content()
        header = {
            "kind": "model",
            "format": FORMAT,
            **({} if self.structure is None else {"structure": self.structure}),
            **{name: getattr(self, name) for name in PLAIN},
            "scaling": self.scaling.kind,
            "origin": dict(self.origin),
            **own_header,
        }
        arrays = own_arrays | {f"scaling.{name}": array for name, array in self.scaling.to_arrays().items()}
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
    def load(cls, path: str | Path) -> Self:
        """Load a model of this structure; nothing in the file is run, and a damaged or changed file is refused.

        `load_model` loads any.
        """
        header, arrays = read_npz(Path(path), kind=("model", "committee"))
        if header["kind"] == "committee":
            raise InputError(f"{path} holds a committee, not one network: open it with load_model or Committee.load")
        return cls.from_content(header, arrays, Path(path))

    @classmethod
    def from_content(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], path: Path) -> Self:
        """Inverse of `content`; `path` is named in the error if this is no such model."""
        if header.get("format") != FORMAT:
            raise DamagedFile(path, "header", f"format {header.get('format')!r}, this version reads {FORMAT}")
        if header.get("structure") != cls.structure:
            ours, theirs = (one or "echo state network" for one in (cls.structure, header.get("structure")))
            raise InputError(f"{path} has a model of the structure {theirs!r}, not {ours!r}: load_model loads any")
        header = jsonable(header)  # as it is in a file
        try:
            plain = fields_from_json(cls, header, (*PLAIN, "origin"), path)
            scaled, limits = (
                {k.removeprefix(part): v for k, v in arrays.items() if k.startswith(part)}
                for part in ("scaling.", "limits.")
            )
            model = cls(
                **plain,
                **cls._own_fields(header, arrays),
                readout=arrays["readout"],
                scaling=Scaling.from_arrays(header["scaling"], scaled),
                training_mean=arrays["training_mean"],
                limits=Limits(**limits) if limits else None,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DamagedFile(path, "header", f"not a complete model, {shortened(str(error))}") from None
        model._check_shapes(path)
        return model

    def _check_shapes(self, path: Path) -> None:
        """Refuse a file that is damaged in a way that still parses: compiled code would read beyond its arrays."""
        inputs, outputs = len(self.input_names), len(self.output_names)
        widths = {name: inputs if name.startswith("input") else outputs for name in self.scaling.to_arrays()}
        vectors = {**self.scaling.to_arrays(), "training_mean": self.training_mean}
        for name, array in vectors.items():
            if array.shape != (widths.get(name, outputs),) or array.dtype.kind != "f" or not np.isfinite(array).all():
                raise DamagedFile(path, f"array {name}", "one finite number for each channel was expected")
        if self.readout.ndim != 2 or self.readout.dtype.kind != "f":
            raise DamagedFile(path, "array readout", f"a matrix of numbers was expected, found {self.readout.shape}")
        if self.washout < 0 or self.padding < 0 or not inputs or not outputs:
            raise DamagedFile(path, "header", "numbers of samples and channels were expected")
        for name, array in vars(self.limits).items() if self.limits is not None else ():
            if array.shape != (len(self.output_names),) or not np.isfinite(array).all():
                raise DamagedFile(path, f"array limits.{name}", "one finite number for each output was expected")
        if self.limits is not None and not (self.limits.low <= self.limits.high).all():
            raise DamagedFile(path, "array limits.low", "a lower limit that is below the upper one was expected")


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
