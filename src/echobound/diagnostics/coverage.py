"""Coverage: what the inputs of the training data reached, and what of new inputs lies beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from echobound.arrays import Signal, Vector
from echobound.data.record import Record
from echobound.diagnostics.finding import Finding, listed, per_cent
from echobound.network.limits import Limits

MARGIN = 0.01  # of the range of an input: what lies beyond by less is not worth a word
FEW_LEVELS = 2
FEW_MOVES = 20
MUCH = 0.95  # of the power of a signal
FINE, COARSE = 100.0, 5.0  # samples for each period of the fastest component that matters


@dataclass(frozen=True, slots=True)
class Excursion:
    """How much of an input lies beyond the range of the training data."""

    channel: str
    unit: str
    share: float  # of the samples
    low: float  # of the training data
    high: float
    furthest: float  # the value that lies furthest beyond

    @property
    def words(self) -> str:
        """As in "u1 leaves its training range (0 to 5 V) in 12 % of the samples, up to 7.3 V"."""
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{self.channel} leaves its training range ({self.low:.4g} to {self.high:.4g}{unit}) in"
            f" {per_cent(self.share)} of the samples, up to {self.furthest:.4g}{unit}"
        )


def input_range(training: Sequence[Record]) -> tuple[Vector, Vector]:
    """Lowest and highest value of each input."""
    u = np.concatenate([record.u for record in training])
    return u.min(axis=0), u.max(axis=0)


def excursions(training: Sequence[Record], inputs: Signal) -> list[Excursion]:
    """The inputs that leave the range of the training data, and how often.

    Examples
    --------
    >>> known = Record(u=[0.0, 1.0, 0.5], y=[0.0, 1.0, 2.0])
    >>> [one.words for one in excursions([known], np.array([[0.5], [2.0]]))]
    ['u1 leaves its training range (0 to 1) in 50 % of the samples, up to 2']
    """
    low, high = input_range(training)
    room = MARGIN * (high - low)
    first, found = training[0], []
    for i, (name, unit) in enumerate(zip(first.input_names, first.input_units, strict=True)):
        u = inputs[:, i]
        over = np.maximum(u - high[i], low[i] - u)
        share = float((over > room[i]).mean())
        if share > 0:
            furthest = float(u[np.argmax(over)])
            found.append(Excursion(name, unit, share, float(low[i]), float(high[i]), furthest))
    return found


def named_beyond(training: Sequence[Record], inputs: Signal) -> tuple[str, ...]:
    """For each sample the names of the inputs that lie beyond the range of the training data.

    Examples
    --------
    >>> named_beyond([Record(u=[0.0, 1.0], y=[0.0, 1.0])], np.array([[0.5], [2.0]]))
    ('', 'u1')
    """
    low, high = input_range(training)
    room, names = MARGIN * (high - low), training[0].input_names
    over = (inputs > high + room) | (inputs < low - room)
    if not over.any():
        return ("",) * len(inputs)
    return tuple(" ".join(name for name, out in zip(names, row, strict=True) if out) for row in over)


def coverage_of(training: Sequence[Record]) -> tuple[Finding, ...]:
    """What can be said of the data alone: how inputs move, whether outputs saturate, how fine the sampling is.

    Examples
    --------
    >>> k = np.arange(1.0, 400.0)
    >>> u = np.sign(np.sin(k**1.2))
    >>> [(one.name, one.alarm) for one in coverage_of([Record(u=u, y=np.cumsum(u) + 0.01 * k)])]
    [('input range', True), ('excitation', False), ('saturation', False), ('sampling time', False)]
    """
    return (_range(training), _excitation(training), _saturation(training), _sampling(training))


def _range(training: Sequence[Record]) -> Finding:
    low, high = input_range(training)
    names, units = training[0].input_names, training[0].input_units
    u = np.concatenate([record.u for record in training])
    two = [name for i, name in enumerate(names) if len(np.unique(u[:, i])) <= FEW_LEVELS]
    said = [
        f"{name} {a:.4g} to {b:.4g}{f' {unit}' if unit else ''}"
        for name, unit, a, b in zip(names, units, low, high, strict=True)
    ]
    words = f"Inputs moved within: {', '.join(said)}."
    values = {
        f"{name}, {end}": float(x)
        for end, at in (("low", low), ("high", high))
        for name, x in zip(names, at, strict=True)
    }
    if not two:
        return Finding("input range", False, words, "", None, values)
    words += f" {listed(two)} took two values only: what lies between was never seen."
    advice = f"For a nonlinear model, let {listed(two)} take several levels."
    return Finding("input range", True, words, advice, None, values)


def _excitation(training: Sequence[Record]) -> Finding:
    names, still = training[0].input_names, []
    values: dict[str, float] = {}
    for i, name in enumerate(names):
        u = [record.u[:, i] for record in training]
        span = max(float(np.ptp(np.concatenate(u))), 1e-300)
        moves = sum(int((np.abs(np.diff(one)) > 0.01 * span).sum()) for one in u)
        edge = _edge(u)
        values |= {f"{name}, moves": float(moves), f"{name}, edge": edge}
        if moves < FEW_MOVES:
            still.append(f"{name} ({moves} times)")
    said = [f"{name} below {values[f'{name}, edge']:.2g}" for name in names]
    words = f"95 % of the power of the inputs lies, in parts of the sampling rate: {', '.join(said)}."
    if not still:
        return Finding("excitation", False, words, "", None, values)
    words = f"Inputs that hardly move: {listed(still)}."
    return Finding("excitation", True, words, "Let each input move more often, over the whole range.", None, values)


def _edge(pieces: Sequence[Vector]) -> float:
    """The frequency, as a part of the sampling rate, below which 95 % of the power of a signal lies."""
    from scipy.signal import welch

    longest = max(pieces, key=len)
    frequency, power = welch(longest, nperseg=min(len(longest), 1024), detrend="constant")
    total = np.cumsum(power)
    if total[-1] <= 0:
        return 0.0
    return float(frequency[np.searchsorted(total, MUCH * total[-1])])


def _saturation(training: Sequence[Record]) -> Finding:
    limits, names = Limits.of([record.y for record in training]), training[0].output_names
    stuck = {name: float(share) for name, share in zip(names, limits.share, strict=True) if share > 0}
    if not stuck:
        return Finding("saturation", False, "No output sits at an end of its range.")
    said = [f"{name} in {per_cent(share)} of the samples" for name, share in stuck.items()]
    words = f"Outputs sit at an end of their range: {listed(said)}. It is taken for the end of the sensor's range."
    return Finding("saturation", True, words, "Check the sensor; beyond its end nothing can be learned.", None, stuck)


def _sampling(training: Sequence[Record]) -> Finding:
    names, period = training[0].output_names, training[0].sampling_time
    edges = {name: _edge([record.y[:, j] for record in training]) for j, name in enumerate(names)}
    fastest = max(edges.values())
    values = {f"{name}, edge": edge for name, edge in edges.items()}
    if fastest <= 0:
        return Finding("sampling time", False, "The outputs hardly move: nothing is said about the sampling time.")
    samples = 1.0 / fastest
    words = f"The fastest component that matters has {samples:.0f} samples a period ({samples * period:.3g} s)."
    if samples > FINE:
        factor = int(samples // 20)
        advice = f"Sampling is finer than needed: --decimate {factor} makes networks faster and their memory longer."
        return Finding("sampling time", True, words, advice, None, values)
    if samples < COARSE:
        advice = "Sampling is coarse, or noise is strong: sample faster, or filter before sampling."
        return Finding("sampling time", True, words, advice, None, values)
    return Finding("sampling time", False, words, "", None, values)
