"""Record: one experiment, inputs and outputs sampled together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from echobound.arrays import Signal, Vector
from echobound.displays import few, html_table, one_line
from echobound.errors import DataError
from echobound.files import digest
from echobound.onward import onward

SHORTEST = 1e-18  # seconds between two samples; its reciprocal is longer than the universe is old


@dataclass(frozen=True, eq=False)
class Record:
    """One experiment: inputs `u` and outputs `y` sampled together, in time order.

    Parameters
    ----------
    u, y
        Signals ``(time, channel)``; one-dimensional arrays are one channel. They are copied and read-only afterwards;
        an array of doubles that is read-only already is used as it is.
    sampling_time
        Seconds between samples.
    input_names, output_names
        Channel names; ``u1, u2, ...`` and ``y1, y2, ...`` if not given.
    input_units, output_units
        Units for axes and tables; empty if not given.
    name
        What to call the experiment in messages.
    note
        What was done to the data when they were read, such as samples that were interpolated; not part of the digest.

    Examples
    --------
    >>> record = Record(u=[0.0, 1.0, 1.0], y=[0.0, 0.0, 0.5], sampling_time=10.0)
    >>> len(record), record.inputs, record.outputs, record.output_names
    (3, 1, 1, ('y1',))
    >>> record
    <Record 'record': samples 3 every 10 s, inputs u1, outputs y1>
    """

    u: Signal
    y: Signal
    sampling_time: float = 1.0
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    input_units: tuple[str, ...] = ()
    output_units: tuple[str, ...] = ()
    name: str = "record"
    note: str = ""

    def __post_init__(self) -> None:
        for side, letter in (("input", "u"), ("output", "y")):
            signal = _signal(getattr(self, letter), f"{side}s of {self.name}")
            width = signal.shape[1]
            names = tuple(getattr(self, f"{side}_names")) or tuple(f"{letter}{i}" for i in range(1, width + 1))
            units = tuple(getattr(self, f"{side}_units")) or ("",) * width
            if len(names) != width or len(units) != width:
                raise DataError(
                    f"{self.name} has {width} {side}s but {len(names)} {side} names and {len(units)} units: give one of"
                    " each per channel"
                )
            if len(set(names)) < len(names):
                raise DataError(
                    f"the {side}s of {self.name} must have different names, got {', '.join(names)}: rename some"
                )
            bad = np.argwhere(~np.isfinite(signal))
            if len(bad):
                row, column = bad[0]
                more = f" ({len(bad)} such values in all)" if len(bad) > 1 else ""
                raise DataError(
                    f"{self.name}: channel {names[column]!r} holds {signal[row, column]} at sample {row + 1}{more}:"
                    " finite numbers are needed everywhere, so repair or cut the record there"
                )
            object.__setattr__(self, letter, signal)
            object.__setattr__(self, f"{side}_names", names)
            object.__setattr__(self, f"{side}_units", units)
        if len(self.u) != len(self.y):
            raise DataError(
                f"{self.name} has {len(self.u)} input samples but {len(self.y)} output samples: give as many of both"
            )
        require_sampling_time(self.sampling_time)
        object.__setattr__(self, "sampling_time", float(self.sampling_time))

    def __len__(self) -> int:
        return len(self.u)

    def _facts(self) -> dict[str, str]:
        period = f"{len(self)} every {self.sampling_time:g} s"
        facts = {"samples": period, "inputs": few(self.input_names), "outputs": few(self.output_names)}
        return facts | ({"note": self.note} if self.note else {})

    def __repr__(self) -> str:
        return one_line(f"Record {self.name!r}", self._facts())

    def _repr_html_(self) -> str:
        return html_table(f"Record {self.name}", self._facts())

    def plot(self, **options: Any) -> Any:
        """Draw inputs and outputs over time; a Matplotlib figure, whose ``axes`` can be changed."""
        return onward("Record.plot", self, **options)

    @property
    def inputs(self) -> int:
        """Number of input channels."""
        return int(self.u.shape[1])

    @property
    def outputs(self) -> int:
        """Number of output channels."""
        return int(self.y.shape[1])

    @property
    def time(self) -> Vector:
        """Sample times in seconds, from 0."""
        return np.arange(len(self), dtype=np.float64) * self.sampling_time

    def part(self, start: int, stop: int, name: str | None = None) -> Record:
        """Return samples `start` to `stop` (exclusive) as a record of its own."""
        return replace(self, u=self.u[start:stop], y=self.y[start:stop], name=name or self.name)

    def identity(self) -> dict[str, Any]:
        """Return what the digest covers: arrays, names of channels, units and sampling time, but not `name`."""
        return {
            "u": self.u,
            "y": self.y,
            "sampling_time": self.sampling_time,
            "names": [self.input_names, self.output_names],
            "units": [self.input_units, self.output_units],
        }

    @property
    def digest(self) -> str:
        """SHA-256 of arrays, names of channels, units and sampling time."""
        return digest(self.identity())


def require_sampling_time(value: float, name: str = "sampling time") -> None:
    """Refuse a sampling time that is not a positive number of seconds, or that no experiment can have.

    Examples
    --------
    >>> require_sampling_time(1e-320)
    Traceback (most recent call last):
        ...
    echobound.errors.DataError: the sampling time must be a positive number of seconds from 1e-18 to 1e+18, got 1e-320
    """
    if not SHORTEST <= value <= 1 / SHORTEST:  # NaN is refused as well; beyond these limits, ratios overflow
        raise DataError(
            f"the {name} must be a positive number of seconds from {SHORTEST:g} to {1 / SHORTEST:g}, got {value}"
        )


def as_records(records: Any, what: str = "training") -> tuple[Record, ...]:
    """Return one or several experiments as a tuple of records, after checking that they fit together.

    Parameters
    ----------
    records
        A `Record`; a pair ``(u, y)`` of arrays, or of lists with an array for each experiment; any object that unpacks
        to ``u, y`` and has a ``sampling_time`` (and perhaps a ``name``); or a list of these.
    what
        What to call them in messages.

    Examples
    --------
    >>> one = Record(u=[0.0, 1.0], y=[0.0, 0.5])
    >>> len(as_records([one, (np.zeros(3), np.ones(3))]))
    2
    """
    if _are_lists(records):
        several: tuple[Any, ...] = tuple(zip(*records, strict=True))
    elif isinstance(records, Record) or _is_pair(records):
        several = (records,)
    else:
        try:
            several = tuple(records)
        except TypeError:
            several = ()
    if not several or not all(isinstance(one, Record) or _is_pair(one) for one in several):
        found = type(records).__name__ if not isinstance(records, list | tuple) else "a list of something else"
        raise DataError(
            f"{what} data must be a Record, a pair (u, y) of arrays, or a non-empty list of these, got {found}: read"
            " files and frames with read_records, which takes the names of their columns"
        )
    made = tuple(
        one if isinstance(one, Record) else _of_pair(one, f"{what} {i}" if len(several) > 1 else what)
        for i, one in enumerate(several, start=1)
    )
    require_alike(made)
    return made


def require_alike(several: Sequence[Record]) -> None:
    """Refuse experiments with different channels or sampling times."""
    first = several[0]
    for other in several[1:]:
        if other.input_names != first.input_names or other.output_names != first.output_names:
            channels = [f"{', '.join(r.input_names)} -> {', '.join(r.output_names)}" for r in (first, other)]
            raise DataError(
                f"the experiments must have the same channels: {first.name} has {channels[0]},"
                f" {other.name} has {channels[1]}: rename or leave out channels"
            )
        if not np.isclose(other.sampling_time, first.sampling_time, rtol=1e-6, atol=0):
            raise DataError(
                f"the experiments must have the same sampling time: {first.name} has {first.sampling_time} s,"
                f" {other.name} has {other.sampling_time} s: resample one of them"
            )


def _is_pair(data: object) -> bool:
    """Whether `data` is a tuple of two arrays, or an object that unpacks to u and y and has a sampling time."""
    if isinstance(data, tuple):
        return len(data) == 2 and not any(isinstance(one, Record | tuple | str) or _is_pair(one) for one in data)
    return hasattr(data, "sampling_time") and not isinstance(data, Record)


def _are_lists(data: object) -> bool:
    """Whether `data` is a list of input arrays and a list of as many output arrays, one for each experiment."""
    if not isinstance(data, tuple) or len(data) != 2 or not all(isinstance(side, list) for side in data):
        return False
    return len(data[0]) == len(data[1]) and all(isinstance(one, np.ndarray) for side in data for one in side)


def _of_pair(data: Any, name: str) -> Record:
    try:
        u, y = data
    except (TypeError, ValueError):
        raise DataError(
            f"{name}: an experiment must unpack to u, y, but a {type(data).__name__} does not: give a Record or (u, y)"
        ) from None
    period = getattr(data, "sampling_time", None)
    if period is not None and not isinstance(period, int | float | np.number):
        raise DataError(f"the sampling time of {name} must be a number of seconds, got {period!r:.40}")
    return Record(u, y, 1.0 if period is None else float(period), name=str(getattr(data, "name", None) or name))


def _signal(values: Any, what: str) -> Signal:
    frozen = isinstance(values, np.ndarray) and not values.flags.writeable
    try:
        if np.asarray(values).dtype.kind == "c":
            raise TypeError("they are complex, so give real and imaginary parts as two channels")
        # Copied, unless nobody can write to it any more: what a reader has just made should not take twice the memory.
        copy = None if frozen and values.flags.owndata else True
        array = np.array(values, dtype=np.float64, order="C", copy=copy)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be numbers: {error}") from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.size == 0:
        raise DataError(f"{what} must be a non-empty array (time, channel), got shape {array.shape}")
    # A read-only array is a part of a record that was checked: a short one may have fewer samples than channels.
    if array.shape[1] > array.shape[0] > 1 and not frozen:
        raise DataError(
            f"{what} have more channels than samples, shape {array.shape}: an array (time, channel) is needed, so"
            " transpose it"
        )
    array.flags.writeable = False
    return array
