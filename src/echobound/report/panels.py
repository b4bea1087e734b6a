"""What the figures show, whatever draws them: networks placed on a panel, signals thinned, scores counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Array, Mask, Signal, Vector
from echobound.scenario.ordering import Case, violates
from echobound.scores import Direction

LARGEST = 1e300  # beyond it nothing can be drawn; such a score stands on the edge


@dataclass(frozen=True, eq=False, kw_only=True)
class ScorePanel:
    """The scores of all networks with a threshold: where each one is drawn, and which violate it.

    Networks far off the rest (or diverged) stand on the edge of the panel.

    Parameters
    ----------
    scores
        One for each network, in the order of their index.
    threshold
        The best (or worst) of the search; None or not finite if there is none.
    direction, case
        Whether larger or smaller is better, and whether the threshold is the best or the worst.
    label
        Of the axis, with its unit.
    circle_violations
        Whether the networks that violate the threshold are circled and counted.

    Examples
    --------
    >>> scores = np.array([80.0, 90.0, 95.0, -np.inf])
    >>> panel = ScorePanel(scores=scores, threshold=90.0, direction="max", case="best", label="FIT (%)")
    >>> panel.violating.tolist(), panel.off.tolist(), panel.note
    ([False, False, True, False], [False, False, False, True], '1 off the scale, 1 of them diverged')
    """

    scores: Array
    threshold: float | None
    direction: Direction
    case: Case
    label: str
    circle_violations: bool = False

    @property
    def limits(self) -> tuple[float, float]:
        """Axis limits that show all networks, or the bulk where a few are far worse and the best is the subject."""
        scores = self.scores[np.isfinite(self.scores)]
        if not len(scores):
            return 0.0, 1.0
        sign = 1.0 if self.direction == "max" else -1.0
        values = sign * np.clip(scores, -LARGEST, LARGEST)
        good, bad, bulk = values.max(), values.min(), np.quantile(values, 0.03)
        if self.case == "best" and good - bad > 4 * (good - bulk):
            bad = bulk
        marks = [sign * good, sign * bad] + ([self.threshold] if self.line is not None else [])
        low, high = float(min(marks)), float(max(marks))
        margin = 0.08 * (high - low) or 0.08 * abs(high) or 1.0
        return low - margin, high + margin

    @property
    def line(self) -> float | None:
        """The threshold, if it is a number."""
        return self.threshold if self.threshold is not None and np.isfinite(self.threshold) else None

    @property
    def edge(self) -> float:
        """Where networks stand that are off the scale: they are bad ones."""
        return self.limits[0 if self.direction == "max" else 1]

    @cached_property
    def off(self) -> Mask:
        """Networks beyond the limits, or diverged."""
        low, high = self.limits
        return ~(np.isfinite(self.scores) & (self.scores >= low) & (self.scores <= high))

    @cached_property
    def violating(self) -> Mask:
        """Networks that violate the threshold."""
        if self.line is None:
            return np.zeros(len(self.scores), dtype=bool)
        return violates(self.scores, self.line, self.direction, self.case)

    @property
    def shown(self) -> Array:
        """The height at which each network is drawn."""
        return np.where(np.isnan(self.scores), self.edge, np.clip(self.scores, *self.limits))

    @property
    def note(self) -> str:
        """How many networks are off the scale; empty if none is."""
        diverged = int((~np.isfinite(self.scores)).sum())
        count = int(self.off.sum())
        return f"{count} off the scale" + (f", {diverged} of them diverged" if diverged else "") if count else ""

    @property
    def counted(self) -> str:
        """The number of violations in words."""
        count = int(self.violating.sum())
        return f"{count} violation{'s' * (count != 1)}"

    @property
    def line_label(self) -> str:
        """What the threshold is."""
        return f"{self.case} of the search: {self.threshold:.6g}"


@dataclass(frozen=True)
class FamilyRange:
    """Where the scores of one of several families lie, and the epsilon that is certified of its own best.

    Diverged networks are left out of best, median and quartiles (low, high), which are None if all diverged.
    """

    name: str
    networks: int
    failures: int
    best: float | None
    median: float | None
    low: float | None
    high: float | None
    epsilon: float

    @classmethod
    def of(cls, name: str, scores: Array, direction: Direction, epsilon: float) -> FamilyRange:
        """Look at the scores of a family.

        Examples
        --------
        >>> family = FamilyRange.of("order 10", np.array([1.0, 2.0, 3.0, np.inf]), "max", 0.1)
        >>> family.best, family.median, family.failures
        (3.0, 2.0, 1)
        """
        there = scores[np.isfinite(scores)]
        low, median, high = (float(q) for q in np.quantile(there, [0.25, 0.5, 0.75])) if len(there) else [None] * 3
        best = None if not len(there) else float(there.max() if direction == "max" else there.min())
        return cls(name, len(scores), len(scores) - len(there), best, median, low, high, epsilon)


@dataclass(frozen=True, eq=False, kw_only=True)
class EpisodePanel:
    """The error of each model in each episode, with its limit; an episode in which it diverged stands on the edge.

    Errors that are not finite mean that the model diverged; a limit may be None.

    Examples
    --------
    >>> panel = EpisodePanel(errors={"model": np.array([0.1, np.inf])}, limits={"model": None}, label="RMSE (pH)")
    >>> panel.shown("model").tolist(), panel.off("model").tolist()
    ([0.1, 0.12], [False, True])
    """

    errors: Mapping[str, Array]
    limits: Mapping[str, float | None]
    label: str

    @property
    def top(self) -> float:
        """Upper end of the axis; the lower one is 0."""
        seen = np.concatenate([errors[np.isfinite(errors)] for errors in self.errors.values()])
        return 1.2 * float(min(seen.max(initial=0.0), LARGEST)) or 1.0

    def off(self, whose: str) -> Mask:
        """Episodes in which a model diverged."""
        return ~np.isfinite(self.errors[whose])

    def shown(self, whose: str) -> Array:
        """The height at which each episode is drawn."""
        return np.where(self.off(whose), self.top, np.minimum(self.errors[whose], self.top))


@dataclass(frozen=True, eq=False)
class OutputPanel:
    """One output, measured and simulated, with the range to show it in.

    Models are clipped well beyond the measured range (`low` to `high`) and shown up to a margin beyond it: one that
    diverges would flatten everything else. `half` is half the width of the band around the first model, or None.
    """

    measured: Vector
    shown: Mapping[str, Vector]
    low: float
    high: float
    margin: float
    half: float | None

    @classmethod
    def of(
        cls, measured: Signal, simulated: Mapping[str, Signal], output: int, band: Sequence[float | None] = ()
    ) -> OutputPanel:
        """The panel of an output of signals ``(time, output)``.

        Examples
        --------
        >>> y = np.array([[0.0], [2.0]])
        >>> OutputPanel.of(y, {"model": 1e9 * y}, 0).limits
        (0.0, 2.7)
        """
        y = measured[:, output]
        low, high = float(np.nanmin(y)), float(np.nanmax(y))
        margin = 0.35 * (high - low) or 1.0
        clipped = {
            whose: np.clip(signal[:, output], low - 10 * margin, high + 10 * margin)
            for whose, signal in simulated.items()
        }
        return cls(y, clipped, low, high, margin, band[output] if band else None)

    @property
    def limits(self) -> tuple[float, float]:
        """Limits that hold the measured output, the models near it, and the band that a model near it has."""
        near = [np.clip(y, self.low - self.margin, self.high + self.margin) for y in self.shown.values()]
        lows, highs = [float(np.nanmin(y)) for y in near], [float(np.nanmax(y)) for y in near]
        if self.half is not None:
            lows.append(lows[0] - self.half)
            highs.append(highs[0] + self.half)
        return min(self.low, *lows), max(self.high, *highs)

    @property
    def largest_error(self) -> float:
        """The largest error that is shown: a few samples that are far worse than all others do not set the scale."""
        errors = np.concatenate([np.abs(self.measured - y) for y in self.shown.values()])
        errors = np.minimum(errors[~np.isnan(errors)], self.margin)
        if not len(errors):
            return 1.0
        return float(min(errors.max(), 3.0 * np.quantile(errors, 0.99))) or float(errors.max()) or 1.0


def thinned(signals: Array, most: int) -> NDArray[np.intp]:
    """Rows to draw of signals ``(time, signal)``: all, or for each stretch of time those where a signal is extreme.

    Every minimum and maximum of a stretch is kept, and so are the ends and all rows with a gap (NaN), so that a line
    through the rows that are left looks the same wherever a stretch is narrower than a pixel.

    Examples
    --------
    >>> spike = np.zeros((10_000, 1))
    >>> spike[4321] = 7.0
    >>> rows = thinned(spike, most=100)
    >>> len(rows) <= 100, 4321 in rows
    (True, True)
    """
    count, width = signals.shape
    if count <= most:
        return np.arange(count)
    gaps = np.flatnonzero(np.isnan(signals).any(axis=1))
    stretches = max(1, (most - len(gaps) - 2) // (2 * width))
    edges = np.linspace(0, count, stretches + 1).astype(np.intp)
    kept = [np.array([0, count - 1]), gaps]
    length = int(np.diff(edges).max())
    rows = edges[:-1, None] + np.arange(length)
    inside = rows < edges[1:, None]
    rows = np.minimum(rows, count - 1)
    for column in signals.T:
        values = column[rows]
        for pick, worst in ((np.argmin, np.inf), (np.argmax, -np.inf)):
            counted = np.where(inside & ~np.isnan(values), values, worst)
            kept.append(rows[np.arange(stretches), pick(counted, axis=1)])
    return np.unique(np.concatenate(kept))


def histogram(scores: Array, limits: tuple[float, float], bins: int) -> tuple[NDArray[np.intp], Array]:
    """Counts of finite scores within limits, and the edges of the bins.

    Examples
    --------
    >>> counts, edges = histogram(np.array([1.0, 2.0, 2.5, np.inf, 99.0]), (0.0, 4.0), 4)
    >>> counts.tolist(), edges.tolist()
    ([0, 1, 2, 0], [0.0, 1.0, 2.0, 3.0, 4.0])
    """
    counts, edges = np.histogram(scores[np.isfinite(scores)], bins=bins, range=limits)
    return counts, edges


@dataclass(frozen=True, eq=False)
class Staircase:
    """The share of networks that do better than a score: corners of a line, and of a band around it if there is one."""

    score: Array
    share: Array
    low: Array | None = None
    high: Array | None = None


def staircase(
    panel: ScorePanel,
    band: tuple[Array, Array] | None = None,
    most: int = 1500,
    reach: tuple[float, float] | None = None,
) -> Staircase:
    """The distribution of the scores from the best to the worst.

    The band has limits for each rank from the best: a new network is better than it with probability at most
    ``band[1]``, and at least as good with probability at least ``band[0]``. Between two ranks the lower limit of the
    better one and the upper limit of the worse one hold, also if ranks in between are left out: at most `most` are
    drawn, the best and worst hundred always. `reach` are the ends of the axis; the limits of the panel if not given.

    Examples
    --------
    >>> panel = ScorePanel(scores=np.array([1.0, 3.0]), threshold=None, direction="max", case="best", label="FIT (%)")
    >>> stairs = staircase(panel, reach=(0.0, 4.0))
    >>> stairs.score.tolist(), stairs.share.tolist()
    ([4.0, 3.0, 3.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.5, 0.5, 1.0, 1.0])
    """
    sign = 1.0 if panel.direction == "max" else -1.0
    networks, ends = len(panel.scores), panel.limits if reach is None else reach
    scores = sign * np.sort(sign * panel.scores[np.isfinite(panel.scores)])[::-1]
    rank = np.arange(1, len(scores) + 1)
    if len(rank) > most:
        between = np.linspace(101, len(rank) - 100, most - 200).round().astype(np.intp)
        rank = np.unique(np.concatenate([rank[:100], between, rank[-100:]]))
    good, bad = ends[::-1] if panel.direction == "max" else ends
    edges = np.concatenate([[good], scores[rank - 1], [bad]])
    reached = np.concatenate([[0], rank])
    low = high = None
    if band is not None:
        behind = np.append(rank, rank[-1] + 1 if len(rank) else 1)
        low = np.repeat(np.append(0.0, band[0])[reached], 2)
        high = np.repeat(np.append(band[1], 1.0)[np.minimum(behind, networks + 1) - 1], 2)
    return Staircase(np.repeat(edges, 2)[1:-1], np.repeat(reached / networks, 2), low, high)


def labelled(name: str, unit: str) -> str:
    """A name with its unit, once.

    Examples
    --------
    >>> labelled("level", "m"), labelled("pH", "pH"), labelled("y1", "")
    ('level (m)', 'pH', 'y1')
    """
    return f"{name} ({unit})" if unit and unit != name else name
