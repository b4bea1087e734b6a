"""Hints: what linear regressions on lagged data suggest about a plant before anything is identified.

Dead time, feedback from the outputs to the inputs, and integration. They are suspicions, each with the number behind
it: a nonlinear plant can look like something else to a linear regression. Several records are one set of equations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from echobound.arrays import Matrix, Vector
from echobound.data.record import Record, as_records

LEAST = 50
"""Samples below which nothing is suggested."""
MOST = 8_000
"""Samples that are looked at, from the start: more change nothing but the time it takes."""
OWN_LAGS, INPUT_LAGS = 4, 3
"""Lags of the output itself, and of each input, in the equation whose delay is looked for."""
SIGNIFICANT = 3.3
"""A t statistic beyond this is significant at 0.1 %."""
UNIT_ROOT = -3.45
"""Dickey and Fuller's 5 % point with a trend: a level that pulls back less than this may be integrated."""
MEMORY = 20
"""Lags of inputs and outputs by which an input is predicted when feedback is looked for."""
FORESEEN = 1e-3
"""Share of an input's changes below which they follow from its past, and nothing is left for outputs to explain."""
FEEDBACK_SHARE = 0.02
"""Part of what its own past leaves open in an input that outputs must explain to be suspected of feedback."""


@dataclass(frozen=True, slots=True)
class Delay:
    """After how many samples an output answers an input; 1 is the least that sampling with a hold leaves."""

    input: str
    output: str
    samples: int | None  # None: no answer was seen

    @property
    def words(self) -> str:
        """As in "level answers pump after 3 samples"."""
        if self.samples is None:
            return f"{self.output} shows no linear answer to {self.input}"
        return f"{self.output} answers {self.input} after {self.samples} sample{'s' * (self.samples != 1)}"


@dataclass(frozen=True, slots=True)
class Feedback:
    """Whether past outputs help to predict an input: in open loop they do not."""

    input: str
    share: float  # of the input's variance that its own past leaves open, explained by past outputs
    p_value: float  # of an F test
    suspected: bool

    @property
    def words(self) -> str:
        """What is suspected, in a sentence."""
        if not self.suspected:
            return f"{self.input} does not seem to depend on the outputs"
        return (
            f"{self.input} follows the outputs, which explain {100 * self.share:.2g} % of what its past leaves open:"
            " the data look as if they were recorded in closed loop"
        )


@dataclass(frozen=True, slots=True)
class Integration:
    """Whether an output looks integrated: nothing pulls it back to a level that the inputs determine."""

    output: str
    pull: (
        float | None
    )  # t statistic of the level in the equation of the increments; None if recent inputs give the level
    suspected: bool

    @property
    def words(self) -> str:
        """What is suspected, in a sentence."""
        if not self.suspected:
            return f"{self.output} settles"
        return (
            f"{self.output} looks integrated: nothing pulls it back to a level, or so slowly that these data do not"
            " show it"
        )


def delays(data: Record | Iterable[Record], longest: int | None = None) -> tuple[Delay, ...]:
    """Estimate the delay from each input to each output, in samples.

    An equation with `OWN_LAGS` lags of the output and `INPUT_LAGS` of each input, from the delay on, is fitted for each
    delay up to `longest` (50, or a tenth of the data); the best one wins, and leading lags without effect are dropped.

    Examples
    --------
    >>> u = np.random.default_rng(0).normal(size=400)
    >>> y = np.zeros(400)
    >>> for k in range(6, 400):
    ...     y[k] = 0.8 * y[k - 1] + u[k - 6]
    >>> [found] = delays(Record(u, y))
    >>> found.samples, found.words
    (6, 'y1 answers u1 after 6 samples')
    """
    records = _usable(data)
    if not records:
        return ()
    longest = max(1, min(50, min(map(len, records)) // 10)) if longest is None else longest
    found = []
    for output in range(records[0].outputs):
        equation = _delay_equation(records, output, longest)
        first = equation.best()
        for channel, name in enumerate(records[0].input_names):
            found.append(Delay(name, records[0].output_names[output], equation.pruned(first, channel)))
    return tuple(found)


def feedback(data: Record | Iterable[Record]) -> tuple[Feedback, ...]:
    """Suspect feedback where the past of the outputs helps to predict an input, beyond what past inputs say.

    An F test on `MEMORY` lags. What shows is the noise of the plant coming back through the controller: without noise,
    outputs are functions of past inputs, in closed loop too. In open loop they can help only by what they remember of
    inputs before those lags, so that the share that they explain must also exceed `FEEDBACK_SHARE`. Of an input that is
    held most of the time, only the samples at which it changes count.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> u, y, noise = np.zeros(500), np.zeros(500), rng.normal(size=(2, 500))
    >>> for k in range(1, 500):
    ...     y[k] = 0.9 * y[k - 1] + 0.5 * u[k - 1] + noise[0, k]
    ...     u[k] = -0.8 * y[k] + noise[1, k]
    >>> feedback(Record(u, y))[0].suspected, feedback(Record(noise[1], y))[0].suspected
    (True, False)
    """
    from scipy.special import betainc

    records, found = _usable(data), []
    for channel, name in enumerate(records[0].input_names if records else ()):
        own = np.concatenate([lagged(r.u, MEMORY, MEMORY) for r in records])
        other = np.concatenate([lagged(r.y, MEMORY, MEMORY) for r in records])
        target = np.concatenate([r.u[MEMORY:, channel] for r in records])
        # Where it is held there is nothing to predict, and an F test would take the rest for far too certain.
        moved = target != own[:, channel * MEMORY]
        if 2 * moved.sum() < len(moved):
            own, other, target = own[moved], other[moved], target[moved]
        if len(target) < LEAST:
            found.append(Feedback(name, 0.0, 1.0, False))
            continue
        alone, regressors = _residual(own, target)
        both, all_regressors = _residual(np.hstack([own, other]), target)
        free, more = len(target) - all_regressors, all_regressors - regressors
        # An input whose changes follow from its own past, such as a smooth periodic one, says nothing about feedback.
        if free < MEMORY or more < 1 or alone <= FORESEEN * float(np.var(np.diff(target))) * len(target):
            found.append(Feedback(name, 0.0, 1.0, False))
            continue
        share = max(0.0, 1 - both / alone)
        p_value = float(betainc(free / 2, more / 2, 1 - share))  # of F(more, free), by its beta distribution
        # What chance explains on average is taken off, so that the share of a short record is not inflated.
        fair = max(0.0, 1 - (1 - share) * (len(target) - regressors) / free)
        found.append(Feedback(name, fair, p_value, p_value < 1e-3 and fair > FEEDBACK_SHARE))
    return tuple(found)


def integration(data: Record | Iterable[Record]) -> tuple[Integration, ...]:
    """Suspect integration where the level of an output does not pull it back, in the equation of its increments.

    Dickey and Fuller's test with lagged inputs beside the level: integration is suspected if the level's t statistic is
    above `UNIT_ROOT`.

    Examples
    --------
    >>> u = np.random.default_rng(0).normal(size=500)
    >>> integration(Record(u, np.cumsum(u)))[0].suspected, integration(Record(u, u + 1))[0].suspected
    (True, False)
    """
    records, found = _usable(data), []
    for output, name in enumerate(records[0].output_names if records else ()):
        tables, targets = [], []
        for record in records:
            steps = np.diff(record.y[:, output])
            past = lagged(steps[:, None], OWN_LAGS, OWN_LAGS)
            level = record.y[OWN_LAGS:-1, output, None]
            tables.append(np.hstack([level, lagged(record.u[1:], OWN_LAGS, OWN_LAGS, first=0), past]))
            targets.append(steps[OWN_LAGS:])
        pull = _t_of_first(np.concatenate(tables), np.concatenate(targets))
        found.append(Integration(name, pull, pull is not None and pull > UNIT_ROOT))
    return tuple(found)


def lagged(signal: Matrix, lags: int, start: int, first: int = 1) -> Matrix:
    """Lags `first` to ``first + lags - 1`` of each channel, for the samples from `start` on; a channel's side by side.

    Examples
    --------
    >>> lagged(np.arange(5.0)[:, None], lags=2, start=2).tolist()
    [[1.0, 0.0], [2.0, 1.0], [3.0, 2.0]]
    """
    columns = [
        signal[start - d : len(signal) - d, c] for c in range(signal.shape[1]) for d in range(first, first + lags)
    ]
    return np.stack(columns, axis=1)


def _usable(data: Record | Iterable[Record]) -> list[Record]:
    """Records that are long enough, cut to `MOST` samples in all."""
    left, kept = MOST, []
    for record in as_records(data, "data"):
        if min(len(record), left) >= LEAST:
            kept.append(record if len(record) <= left else record.part(0, left))
            left -= len(kept[-1])
    return kept


@dataclass(frozen=True, eq=False)
class _DelayEquation:
    """Normal equations of an output on its own lags and on every lag of every input, of which some are chosen."""

    gram: Matrix
    right: Vector
    square: float
    samples: int
    inputs: int
    longest: int

    def best(self) -> list[int]:
        """The delay of each input, chosen in turn until nothing changes; from 1."""
        chosen = [1] * self.inputs
        for _ in range(3):
            before = list(chosen)
            for channel in range(self.inputs):
                trials = [[*chosen[:channel], d, *chosen[channel + 1 :]] for d in range(1, self.longest + 1)]
                chosen = min(trials, key=self.loss)
            if chosen == before:
                break
        return chosen

    def loss(self, chosen: Sequence[int]) -> float:
        return self._solve(self._columns(chosen))[1]

    def pruned(self, chosen: Sequence[int], channel: int) -> int | None:
        """The first lag of an input that has an effect, from its chosen delay on; None if none has."""
        columns = self._columns(chosen)
        theta, loss, inverse = self._solve(columns)
        # Data without noise leave rounding alone, in which every lag would be significant.
        deviation = math.sqrt((loss + 1e-9 * self.square) / max(1, self.samples - len(columns)))
        for lag in range(INPUT_LAGS):
            at = OWN_LAGS + channel * INPUT_LAGS + lag
            if abs(theta[at]) > SIGNIFICANT * deviation * math.sqrt(max(inverse[at, at], 0.0)):
                return chosen[channel] + lag
        return None

    def _columns(self, chosen: Sequence[int]) -> list[int]:
        width = self.longest + INPUT_LAGS - 1
        lags = [OWN_LAGS + c * width + d - 1 + i for c, d in enumerate(chosen) for i in range(INPUT_LAGS)]
        return [*range(OWN_LAGS), *lags]

    def _solve(self, columns: list[int]) -> tuple[Vector, float, Matrix]:
        part = self.gram[np.ix_(columns, columns)]
        inverse = np.linalg.inv(part + 1e-10 * np.trace(part) / len(columns) * np.eye(len(columns)))
        theta = inverse @ self.right[columns]
        return theta, max(0.0, self.square - float(theta @ self.right[columns])), inverse


def _delay_equation(records: Sequence[Record], output: int, longest: int) -> _DelayEquation:
    start, width = max(OWN_LAGS, longest + INPUT_LAGS - 1), longest + INPUT_LAGS - 1
    tables = [np.hstack([lagged(r.y[:, output, None], OWN_LAGS, start), lagged(r.u, width, start)]) for r in records]
    table, target = np.concatenate(tables), np.concatenate([r.y[start:, output] for r in records])
    table, target = _standardised(table), target - target.mean()
    return _DelayEquation(
        table.T @ table, table.T @ target, float(target @ target), len(target), records[0].inputs, longest
    )


def _standardised(table: Matrix) -> Matrix:
    centred = table - table.mean(axis=0)
    scale = centred.std(axis=0)
    return np.asarray(centred / np.where(scale > 0, scale, 1.0))


def _residual(table: Matrix, target: Vector) -> tuple[float, int]:
    """Sum of squares that a regression with a constant leaves, and the rank of its table."""
    theta, _, rank, _ = np.linalg.lstsq(_standardised(table), target - target.mean(), rcond=1e-10)
    rest = target - target.mean() - _standardised(table) @ theta
    return float(rest @ rest), int(rank) + 1


def _t_of_first(table: Matrix, target: Vector) -> float | None:
    """The t statistic of the first column in a regression with a constant; None if the others give that column."""
    scaled, centred = _standardised(table), target - target.mean()
    others, own = scaled[:, 1:], scaled[:, 0]
    # What the others explain is taken off both (Frisch and Waugh), so that a singular table does no harm.
    rest = [v - others @ np.linalg.lstsq(others, v, rcond=1e-10)[0] for v in (own, centred)]
    power = float(rest[0] @ rest[0])
    if power <= 1e-12 * float(own @ own):
        return None
    theta = float(rest[0] @ rest[1]) / power
    left = rest[1] - theta * rest[0]
    # Data without noise leave rounding alone: their statistic is large, not infinite.
    variance = (float(left @ left) + 1e-12 * float(centred @ centred)) / max(1, len(target) - table.shape[1] - 1)
    return theta / math.sqrt(variance / power) if variance > 0 else 0.0
