"""Scaling: part of the model, fitted to training data only and inverted for its outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Signal, Vector
from echobound.data.record import Record, as_records
from echobound.errors import DataError, InputError

SCALINGS = ("minmax", "standard", "none")
"""The kinds of scaling: to [0, 1], to mean 0 and standard deviation 1, none."""
ARRAYS = ("input_offset", "input_span", "output_offset", "output_span")


@dataclass(frozen=True, eq=False)
class Scaling:
    """An affine map of each channel: ``scaled = (value - offset) / span``.

    A network without bias is an odd function of its inputs: centred data (``standard``) suit it only if a bias is drawn
    as well. Min-max scaling is therefore the default everywhere.

    Parameters
    ----------
    kind
        One of `SCALINGS`.
    input_offset, input_span, output_offset, output_span
        One value per channel, ``(channel,)``; spans are positive.

    Examples
    --------
    >>> scaling = Scaling.fit("minmax", Record(u=[0.0, 4.0], y=[6.0, 8.0]))
    >>> scaling.inputs([[1.0]]).tolist(), scaling.outputs([[8.0]]).tolist(), scaling.outputs_back([[0.5]]).tolist()
    ([[0.25]], [[1.0]], [[7.0]])
    """

    kind: str
    input_offset: Vector
    input_span: Vector
    output_offset: Vector
    output_span: Vector

    def __post_init__(self) -> None:
        if self.kind not in SCALINGS:
            raise InputError(f"unknown scaling {self.kind!r}: known are {', '.join(SCALINGS)}")
        for name in ARRAYS:
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.ndim != 1 or not np.isfinite(array).all() or (name.endswith("span") and not (array > 0).all()):
                raise InputError(f"{name} of a scaling must be one finite number per channel, and every span positive")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        for side in ("input", "output"):
            offset, span = getattr(self, f"{side}_offset"), getattr(self, f"{side}_span")
            if len(offset) != len(span):
                raise InputError(f"a scaling needs as many {side} offsets as spans, got {len(offset)} and {len(span)}")

    @classmethod
    def fit(cls, kind: str, records: Record | Iterable[Record]) -> Scaling:
        """Fit a scaling to all training records together; a constant channel keeps its unit (span 1)."""
        several = as_records(records)
        inputs = _offset_and_span(kind, np.concatenate([record.u for record in several]))
        outputs = _offset_and_span(kind, np.concatenate([record.y for record in several]))
        return cls(kind, *inputs, *outputs)

    @classmethod
    def from_arrays(cls, kind: str, arrays: Mapping[str, Vector]) -> Scaling:
        """Make a scaling from what `to_arrays` returned; other arrays in the mapping are ignored."""
        missing = [name for name in ARRAYS if name not in arrays]
        if missing:
            raise InputError(f"a scaling is stored as {', '.join(ARRAYS)}: {', '.join(missing)} not found")
        return cls(kind, *(arrays[name] for name in ARRAYS))

    def to_arrays(self) -> dict[str, Vector]:
        """Return the offsets and spans by name, to be stored with `kind`."""
        return {name: getattr(self, name) for name in ARRAYS}

    def inputs(self, u: ArrayLike) -> Signal:
        """Scale inputs ``(..., channel)``."""
        return (_channels_of(u, self.input_span, "input") - self.input_offset) / self.input_span

    def outputs(self, y: ArrayLike) -> Signal:
        """Scale outputs ``(..., channel)``."""
        return (_channels_of(y, self.output_span, "output") - self.output_offset) / self.output_span

    def outputs_back(self, y: ArrayLike) -> Signal:
        """Return outputs in their own units; a diverging run may overflow here, and is then infinite."""
        with np.errstate(over="ignore"):
            return _channels_of(y, self.output_span, "output") * self.output_span + self.output_offset


def _offset_and_span(kind: str, signal: Signal) -> tuple[Vector, Vector]:
    ones = np.ones(signal.shape[1])
    if kind == "none":
        return 0.0 * ones, ones
    low = signal.min(axis=0)
    width = signal.max(axis=0) - low
    width = np.where(width > 0, width, ones)
    if kind == "minmax":
        return low, width
    # Computed from the position within the range: the deviation of a constant 0.1 is a rounding error, not 0.
    position = (signal - low) / width
    span = width * position.std(axis=0)
    return low + width * position.mean(axis=0), np.where(span > 0, span, ones)


def _channels_of(values: ArrayLike, span: Vector, side: str) -> Signal:
    signal = np.asarray(values, dtype=np.float64)
    if signal.ndim == 0 or signal.shape[-1] != len(span):
        raise DataError(
            f"the model has {len(span)} {side}s: an array (time, {len(span)}) is needed, got {signal.shape}"
        )
    return signal
