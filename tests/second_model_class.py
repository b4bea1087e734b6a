"""Taps: finite impulse responses with random delays, a second class of models beside networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from echobound.arrays import Rows, Signal
from echobound.candidates import Candidates, Made
from echobound.data import Record
from echobound.draws import SEARCH, draw_key, unit, words
from echobound.files import digest, read_npz, write_npz
from echobound.kernels import Status, row_dtype
from echobound.network import Simulation
from echobound.plan import register_law


@dataclass(frozen=True, eq=False)
class TapsModel:
    """y(k) = c + sum over the taps of h_i u(k - d_i)."""

    delays: Any
    weights: Any  # (tap * input + 1, output)
    washout: int
    sampling_time: float
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    input_units: tuple[str, ...]
    output_units: tuple[str, ...]
    origin: Mapping[str, Any]

    def simulate(self, inputs: Any, *, washout: int | None = None, **_: Any) -> Simulation:
        """Free run: there is no feedback, so measured outputs are not used."""
        first = self.washout if washout is None else washout
        u = inputs.u if isinstance(inputs, Record) else np.asarray(inputs)
        return Simulation((rows_of(u, self.delays) @ self.weights)[first:], first, "no feedback")

    def predict(self, record: Any, horizon: int = 1, washout: int | None = None, **_: Any) -> Simulation:
        """As `simulate`."""
        return self.simulate(record, washout=washout)

    def content(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Header and arrays of its file."""
        plain = {name: value for name, value in vars(self).items() if name not in ("delays", "weights")}
        return {"kind": "taps", **plain}, {"delays": self.delays, "weights": self.weights}

    @property
    def digest(self) -> str:
        """SHA-256 over everything in it."""
        return digest(self.content())

    def save(self, path: str | Path) -> None:
        """Write its file."""
        write_npz(Path(path), *self.content())


def rows_of(u: Signal, delays: Any) -> Signal:
    """Delayed inputs side by side, and a constant."""
    k = np.arange(len(u))
    return np.concatenate([*(u[np.maximum(k - d, 0)] for d in delays), np.ones((len(u), 1))], axis=1)


@register_law
@dataclass(frozen=True)
class TapsLaw:
    """So many taps, uniform over the delays up to a longest one."""

    kind: ClassVar[str] = "taps"
    taps: int = 5
    longest: int = 40

    @property
    def name(self) -> str:
        """What the law is called."""
        return "taps"

    def to_dict(self) -> dict[str, Any]:
        """The law as JSON."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> TapsLaw:
        """Inverse of `to_dict`."""
        return cls(**{name: value for name, value in content.items() if name != "kind"})

    def candidates(self, plan: Any, experiments: Any, family: Any) -> Taps:
        """What is drawn."""
        return Taps(self, plan, (*experiments.training, *experiments.validation), family.number)

    @staticmethod
    def load_model(path: Path) -> TapsModel:
        """Read what `TapsModel.save` wrote."""
        return TapsLaw.model_from_content(*read_npz(path, kind="taps"), path)

    @staticmethod
    def model_from_content(header: Mapping[str, Any], arrays: Mapping[str, Any], _: Path) -> TapsModel:
        """Inverse of `TapsModel.content`."""
        named = {n: tuple(v) if isinstance(v, list) else v for n, v in header.items() if n != "kind"}
        return TapsModel(**arrays, **named)


class Taps(Candidates):
    """Draws of a `TapsLaw`, trained by least squares."""

    code = "numpy"

    def __init__(self, law: TapsLaw, plan: Any, records: Sequence[Record], family: int, stream: int = SEARCH) -> None:
        self.law, self.plan, self.records, self.family, self.stream = law, plan, records, family, stream
        self.seed, self.measures = plan.seed, plan.measures

    def make(self, index: int) -> Made:
        """Draw the delays, train on each fold, and keep the model of the last fit."""
        key = draw_key(self.seed, self.stream, self.family, index)
        delays = np.sort((unit(words(key, 0, self.law.taps)) * self.law.longest).astype(np.int64))
        outputs, scores = [], []
        for fold in self.plan.folds:
            model = self._train(index, delays, fold.training)
            parts = [(self.records[s.record].part(s.start, s.stop), s.washout) for s in fold.scored]
            simulated = np.concatenate([model.simulate(part, washout=washout).y for part, washout in parts])
            measured = np.concatenate([part.y[washout:] for part, washout in parts])
            outputs.append(simulated)
            scores.append([score(measured, simulated) for score in self.measures])
        if len(self.plan.folds) > 1:
            model = self._train(index, delays, {s for fold in self.plan.folds for s in fold.scored})
        return Made(model, np.mean(scores, axis=0), outputs)

    def _train(self, index: int, delays: Any, segments: Any) -> TapsModel:
        parts = [(self.records[s.record].part(s.start, s.stop), s.washout) for s in segments]
        phi = np.concatenate([rows_of(part.u, delays)[washout:] for part, washout in parts])
        weights = np.linalg.lstsq(phi, np.concatenate([part.y[washout:] for part, washout in parts]), rcond=None)[0]
        first, washout = parts[0]
        origin = {"law": self.describe(), "seed": self.seed, "stream": self.stream, "family": self.family}
        return TapsModel(
            delays, weights, washout, first.sampling_time, first.input_names, first.output_names, first.input_units,
            first.output_units, {**origin, "index": index},
        )  # fmt: skip

    def score(self, indices: Sequence[int]) -> Rows:
        """A row for each index."""
        table = np.zeros(len(indices), dtype=row_dtype(len(self.measures)))
        table["stream"], table["family"], table["index"] = self.stream, self.family, list(indices)
        table["status"], table["order"] = Status.OK, self.law.taps
        table["scores"] = [self.make(index).scores for index in indices]
        return table

    def describe(self) -> Mapping[str, Any]:
        """The law as JSON."""
        return self.law.to_dict()

    def on(self, stream: int) -> Taps:
        """The draws of another stream."""
        return Taps(self.law, self.plan, self.records, self.family, stream)
