"""Adaptation with online data: the readout follows new samples by recursive least squares, the reservoir stays.

What is carried from sample to sample is the triangle R of a QR factorisation of all weighted rows [phi(k), y(k)], never
the Gram matrix or its inverse: in the square-root form nothing can lose its sign or its symmetry, and only half of the
digits are at stake. A row of age a has the weight forgetting^a. The ridge is applied when the readout is asked for,
relative to what is known then, as in training; so with forgetting = 1 the readout is that of batch least squares.

A memory short enough to follow a plant that moves is too short for the many directions of a readout: what fades first
is what the plant does seldom, and the next free run that needs it diverges. So the memory may be long, and the past is
discounted when the plant is seen to move: the mean of 64 prediction errors is near zero while the readout is right, and
far from it when it is not. A cumulative sum (CUSUM) of its square raises the alarm. What came since the sum began to
rise counts in full, what was known before as a few samples; and wherever neither says anything, two things that do not
fade hold the readout in place: a small share of the training data, and a pull towards the trained readout as weak as
the ridge of the training.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Matrix
from echobound.data.record import Record, as_records
from echobound.errors import DataError, InputError
from echobound.network.dynamics import features
from echobound.network.model import EchoStateNetwork
from echobound.network.readout import minimum_norm

__all__ = ["Adaptation", "RecursiveLeastSquares"]


BLOCK = 64
"""Rows that wait before they are worked in (one by one takes ten times as long), and whose mean error is judged."""

# The alarm, in units of the square mean error of a block of training data. In a record like those of training a block
# has 1 on average and the sum stays near 0; it takes four bad blocks to raise the alarm, however bad one of them is.
ALLOWANCE, MOST, ALARM = 4.0, 10.0, 20.0
SHARE = 0.001  # of the training data, which does not fade: a plant that rests would wear the readout out
PAUSE = 8  # blocks after an alarm that are not judged: the readout needs time to settle


class RecursiveLeastSquares:
    """Least squares that rows are added to, the old ones fading; in square-root form.

    Parameters
    ----------
    columns, outputs
        Columns of phi and of y.
    forgetting
        Weight of the past at each new row, above 0 and at most 1; the memory is 1 / (1 - forgetting) rows long.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> phi = rng.normal(size=(50, 3))
    >>> solver = RecursiveLeastSquares(columns=3, outputs=1)
    >>> solver.update(phi, phi @ [[1.0], [2.0], [3.0]])
    >>> solver.readout().round(9).tolist()
    [[1.0, 2.0, 3.0]]
    """

    def __init__(self, columns: int, outputs: int, forgetting: float = 1.0) -> None:
        self.columns, self.outputs = columns, outputs
        self._past, self._recent = self._nothing(), self._nothing()
        self._past_rows = self._recent_rows = 0.0  # the weights of the rows in each, added up
        self._waiting = np.empty((0, columns + outputs))
        self._anchor: Matrix | None = None
        self.forget(forgetting)

    def _nothing(self) -> Matrix:
        return np.zeros((self.columns + self.outputs,) * 2, order="F")

    def forget(self, forgetting: float) -> None:
        """Change how fast the past fades, from the next row on."""
        if not 0 < forgetting <= 1:
            raise InputError(f"forgetting must be above 0 and at most 1, got {forgetting}: 1 forgets nothing")
        self._work_in()
        self.forgetting = float(forgetting)

    def anchor(self, readout: Matrix, ridge: float, share: float) -> None:
        """Let a share of what is known now not fade; and pull towards a readout, as weakly as a ridge does now."""
        known, p = self._known(), self.columns
        pull = self._nothing()
        pull[:p, :p] = math.sqrt(ridge * self._square(known) / p) * np.eye(p)
        pull[:p, p:] = pull[:p, :p] @ readout.T
        self._anchor = _append(np.asfortranarray(math.sqrt(share) * np.triu(known)), pull, triangular=True)
        self.mark()
        self._past *= math.sqrt(1 - share)
        self._past_rows *= 1 - share

    def mark(self) -> None:
        """Let all rows so far be the past, of which `discount` speaks."""
        self._work_in()
        self._past = _append(self._past, self._recent, triangular=True)
        self._past_rows += self._recent_rows
        self._recent, self._recent_rows = self._nothing(), 0.0

    def discount(self, rows: float) -> None:
        """Let all that was known at the last `mark` count as so many rows at most; then mark."""
        self._work_in()
        if self._past_rows > rows:
            self._past *= math.sqrt(rows / self._past_rows)
            self._past_rows = rows
        self.mark()

    def _known(self) -> Matrix:
        """Triangle of all rows, those that wait and the anchor too."""
        self._work_in()
        known = self._past.copy(order="F")
        for more in (self._recent, self._anchor):
            if more is not None:
                known = _append(known, more.copy(order="F"), triangular=True)
        return known

    def _square(self, triangle: Matrix) -> float:
        """The trace of the Gram matrix."""
        return float(np.square(np.triu(triangle[: self.columns, : self.columns])).sum())

    def update(self, phi: ArrayLike, y: ArrayLike) -> None:
        """Add rows ``(row, column)`` and ``(row, output)``, the oldest first; or one row."""
        rows = np.concatenate([np.atleast_2d(np.asarray(part, dtype=np.float64)) for part in (phi, y)], axis=1)
        if rows.shape[1] != self.columns + self.outputs or not np.isfinite(rows).all():
            raise InputError(
                f"rows of {self.columns} columns and {self.outputs} outputs are needed, numbers everywhere, got"
                f" {np.shape(phi)} and {np.shape(y)}"
            )
        self._waiting = np.concatenate([self._waiting, rows])
        if len(self._waiting) >= BLOCK:
            self._work_in()

    def _work_in(self) -> None:
        """Bring the waiting rows into the triangle of the recent ones."""
        rows, self._waiting = self._waiting, self._waiting[:0]
        if not len(rows):
            return
        if self.forgetting < 1:
            root = math.sqrt(self.forgetting)
            rows = rows * np.power(root, np.arange(len(rows) - 1, -1, -1))[:, None]
            for triangle in (self._past, self._recent):
                triangle *= root ** len(rows)
            self._past_rows *= self.forgetting ** len(rows)
            self._recent_rows *= self.forgetting ** len(rows)
        self._recent_rows += float(np.power(self.forgetting, np.arange(len(rows))).sum())
        self._recent = _append(self._recent, np.asfortranarray(rows), triangular=False)

    def readout(self, ridge: float = 0.0) -> Matrix:
        """W_out ``(output, column)`` for a relative ridge; of minimum norm if it is 0."""
        p, triangle = self.columns, self._known()
        if not ridge > 0:
            return minimum_norm(np.triu(triangle), self.outputs)
        from scipy.linalg import solve_triangular

        below = np.zeros((p, p + self.outputs), order="F")
        np.fill_diagonal(below, math.sqrt(ridge * self._square(triangle) / p))
        solved = _append(triangle[:p].copy(order="F"), below, triangular=True)
        if not np.diag(solved).all():
            return np.zeros((self.outputs, p))  # no row was seen, or all were zero
        return np.asarray(solve_triangular(solved[:, :p], solved[:, p:], check_finite=False).T)


def _append(triangle: Matrix, rows: Matrix, *, triangular: bool) -> Matrix:
    """The triangle of a QR factorisation of [triangle; rows]; only its first len(triangle) columns are made so."""
    from scipy.linalg.lapack import dtpmqrt, dtpqrt

    n = len(triangle)
    upper, reflectors, factors, info = dtpqrt(
        n if triangular else 0, min(32, n), triangle[:, :n], rows[:, :n], overwrite_a=True, overwrite_b=True
    )
    if info != 0:
        raise RuntimeError(f"LAPACK refused argument {-info} of dtpqrt")
    if triangle.shape[1] == n:
        return np.asarray(upper)
    right, _, info = dtpmqrt(
        n if triangular else 0, reflectors, factors, triangle[:, n:], rows[:, n:], side="L", trans="T"
    )
    if info != 0:
        raise RuntimeError(f"LAPACK refused argument {-info} of dtpmqrt")
    return np.concatenate([upper, right], axis=1)


class Adaptation:
    """A network whose readout follows new data.

    It starts with what the network was trained on, so that before the first new sample its readout is the network's own
    (trained without noise on what is fed back), and with forgetting = 1 always that of all the data together.

    Parameters
    ----------
    model
        The network; its reservoir, scaling, washout and ridge stay as they are.
    training
        The records it was trained on.
    forgetting
        Weight of the past at each new sample. The memory, 1 / (1 - forgetting) samples, must be longer than the readout
        has columns, better five times as long: 0.999 for 200 states. Below 1 it also watches the prediction errors
        for a plant that moves.
    kept
        When the plant has moved, what was known before counts as so many samples at most; ``math.inf`` for plain
        forgetting, which does not heed the alarm.

    Attributes
    ----------
    samples
        New samples learnt so far.
    changes
        After how many of them the plant was seen to move.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation, later = ph_experiment(samples=(600, 400, 500))
    >>> model = identify(training, validation, law="paper", order=20, networks=20).model
    >>> adaptation = Adaptation(model, training, forgetting=0.999)
    >>> for u, y in zip(later.u, later.y):
    ...     adaptation.update(u, y)
    >>> adaptation.samples, adaptation.model.simulate(validation).y.shape
    (420, (320, 1))
    >>> adaptation.changes  # the same plant as in training
    []
    """

    def __init__(
        self,
        model: EchoStateNetwork,
        training: Record | Iterable[Record],
        forgetting: float = 1.0,
        kept: float = 60.0,
    ) -> None:
        if not kept >= 0:
            raise InputError(f"kept must be a number of samples, 0 or more, got {kept}")
        self._base, self.kept = model, float(kept)
        hyper = model.reservoir.hyper
        inputs, outputs = len(model.input_names), len(model.output_names)
        self._delays = max(hyper.input_delays, hyper.output_delays)
        self._ridge = float(model.origin.get("ridge", 0.0))
        self._solver = RecursiveLeastSquares(hyper.columns(inputs, outputs), outputs)
        records = as_records(training)
        for record in records:
            self.restart()
            self._solver.update(*self._rows(record.u, record.y))
        self._solver.mark()
        self._solver.forget(forgetting)
        self.samples, self.changes = 0, list[int]()
        if self._solver.forgetting < 1:
            self._readout = self._solver.readout(self._ridge)
            self._usual = self._usual_error(records)
            self._error, self._judged = np.zeros(outputs), 0  # of the block that is not full yet: sum, samples
            self._sum, self._pause = 0.0, 0
            self._solver.anchor(self._readout, self._ridge, SHARE)
        self.restart()

    def _usual_error(self, records: Iterable[Record]) -> Matrix:
        """Square of the mean error of a block of training data, on average, for each output."""
        squares, blocks = np.zeros(len(self._base.output_names)), 0
        for record in records:
            self.restart()
            phi, y = self._rows(record.u, record.y)
            size = max(min(BLOCK, len(phi)), 1)  # a record of less than a block is one
            whole = len(phi) // size * size
            means = (y - phi @ self._readout.T)[:whole].reshape(-1, size, y.shape[1]).mean(axis=1)
            squares += np.square(means).sum(axis=0)
            blocks += len(means)
        return np.maximum(squares / max(blocks, 1), np.finfo(float).tiny)

    def restart(self) -> None:
        """Say that the next sample begins another record: its first samples, as many as the washout, are not learnt."""
        self._seen = 0

    def update(self, u: ArrayLike, y: ArrayLike) -> None:
        """Take the next samples of a record, one or many: inputs and measured outputs in their own units.

        Parameters
        ----------
        u, y
            One sample ``(channel,)``, or several ``(time, channel)``.
        """
        phi, y = self._rows(u, y)
        if self._solver.forgetting == 1:
            self._solver.update(phi, y)
            self.samples += len(phi)
            return
        while len(phi):  # a block ends after so many samples, in whatever pieces they come
            n = min(BLOCK - self._judged, len(phi))
            self._error += (y[:n] - phi[:n] @ self._readout.T).sum(axis=0)
            self._solver.update(phi[:n], y[:n])
            self.samples += n
            self._judged += n
            if self._judged == BLOCK:
                self._judge()
            phi, y = phi[n:], y[n:]

    def _judge(self) -> None:
        """Add the mean error of a block to the sum, and discount the past if that raises the alarm."""
        size = float((np.square(self._error / BLOCK) / self._usual).mean())
        if self._pause:
            self._pause -= 1
        else:
            self._sum = max(0.0, self._sum + min(size, MOST) - ALLOWANCE)
        if self._sum > ALARM:
            self._solver.discount(self.kept)
            self._sum, self._pause = 0.0, PAUSE
            self.changes.append(self.samples)
        elif self._sum == 0:
            self._solver.mark()
        self._error[:], self._judged = 0.0, 0
        self._readout = self._solver.readout(self._ridge)

    def _rows(self, u: ArrayLike, y: ArrayLike) -> tuple[Matrix, Matrix]:
        """phi and scaled y of the next samples of a record, those within its washout left out."""
        base, hyper = self._base, self._base.reservoir.hyper
        u = base.scaling.inputs(base._inputs(_several(u, len(base.input_names))))
        y = base.scaling.outputs(base._outputs(_several(y, len(base.output_names))))
        if len(u) != len(y):
            raise DataError(f"as many inputs as outputs are needed, got {len(u)} and {len(y)} samples")
        drives = base.reservoir.drive(u)
        if self._seen == 0:  # as in training: the first sample is held before a record starts
            self._x = np.zeros(base.order)
            for _ in range(base.padding):
                self._x = base.reservoir.step(self._x, drives[0], y[0])
            self._before = u[:1].repeat(self._delays, axis=0), y[:1].repeat(self._delays, axis=0)
        states = np.empty((len(u), base.order))
        for k, drive in enumerate(drives):
            states[k] = self._x
            self._x = base.reservoir.step(self._x, drive, y[k])
        all_u, all_y = np.concatenate([self._before[0], u]), np.concatenate([self._before[1], y])
        times = np.arange(self._delays, len(all_u))
        phi = features(hyper, states, all_u, all_y, times, all_y[0])
        learnt = max(base.washout - self._seen, 0)
        self._before = all_u[len(u) :], all_y[len(y) :]
        self._seen += len(u)
        return phi[learnt:], y[learnt:]

    @property
    def model(self) -> EchoStateNetwork:
        """The network with the readout as it is now. It costs more to compute than a sample: ask when you need it."""
        base, readout = self._base, self._solver.readout(self._ridge)
        return replace(base, readout=readout, origin={**base.origin, "adapted": self.samples})


def _several(values: ArrayLike, channels: int) -> Matrix:
    """One sample ``(channel,)`` as one row; anything else as it is."""
    array = np.asarray(values, dtype=np.float64)
    return array[None] if array.ndim == 1 and len(array) == channels else array
