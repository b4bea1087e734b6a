"""Adaptation with online data: the readout follows new samples by recursive least squares, the reservoir stays.

What is carried from sample to sample is the triangle R of a QR factorisation of all weighted rows [phi(k), y(k)], never
the Gram matrix or its inverse: in the square-root form nothing can lose its sign or its symmetry, and only half of the
digits are at stake. A new sample of age a has the weight forgetting^a; the training data fade in the same way, but not
below a small weight, since what they say is still the best guess wherever the new data say nothing. The ridge is
applied when the readout is asked for, relative to what is known then, as in training; so with forgetting = 1 the
readout is that of batch least squares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echobound.data.record import Record, as_records
from echobound.errors import DataError, InputError
from echobound.network.dynamics import features
from echobound.network.model import EchoStateNetwork
from echobound.network.readout import minimum_norm

__all__ = ["Adaptation", "RecursiveLeastSquares"]

Matrix = NDArray[np.float64]

BLOCK = 64  # rows that wait before they are worked in: one by one LAPACK takes ten times as long


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
        self._triangle = np.zeros((columns + outputs, columns + outputs), order="F")
        self._waiting = np.empty((0, columns + outputs))
        self._kept: Matrix | None = None
        self.forget(forgetting)

    def forget(self, forgetting: float, kept: float = 0.0) -> None:
        """Change how fast the past fades, from the next row on; what is known now keeps the weight `kept` at least."""
        if not 0 < forgetting <= 1:
            raise InputError(f"forgetting must be above 0 and at most 1, got {forgetting}: 1 forgets nothing")
        if not 0 <= kept < 1:
            raise InputError(f"the weight that is kept must be at least 0 and below 1, got {kept}")
        self._work_in()
        self.forgetting = float(forgetting)
        if kept and forgetting < 1:
            known = np.triu(self._known())
            self._kept = np.asfortranarray(math.sqrt(kept) * known)
            self._triangle = np.asfortranarray(math.sqrt(1 - kept) * known)

    def _known(self) -> Matrix:
        """Triangle of all rows, those that wait and those that are kept too."""
        self._work_in()
        if self._kept is None:
            return self._triangle
        return _append(self._triangle.copy(order="F"), self._kept.copy(order="F"), triangular=True)

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
        """Bring the waiting rows into the triangle."""
        rows, self._waiting = self._waiting, self._waiting[:0]
        if not len(rows):
            return
        if self.forgetting < 1:
            root = math.sqrt(self.forgetting)
            rows = rows * np.power(root, np.arange(len(rows) - 1, -1, -1))[:, None]
            self._triangle *= root ** len(rows)
        self._triangle = _append(self._triangle, np.asfortranarray(rows), triangular=False)

    def readout(self, ridge: float = 0.0) -> Matrix:
        """W_out ``(output, column)`` for a relative ridge; of minimum norm if it is 0."""
        p, triangle = self.columns, self._known()
        if not ridge > 0:
            return minimum_norm(np.triu(triangle), self.outputs)
        from scipy.linalg import solve_triangular

        square = float(np.square(np.triu(triangle[:p, :p])).sum())  # the trace of the Gram matrix
        below = np.zeros((p, p + self.outputs), order="F")
        np.fill_diagonal(below, math.sqrt(ridge * square / p))
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
        has columns, better ten times as long; and as short as the plant demands.
    kept
        Weight below which the training data do not fade: they hold the readout where new data do not excite the plant.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation, later = ph_experiment(samples=(600, 400, 500))
    >>> model = identify(training, validation, law="paper", order=20, networks=20).model
    >>> adaptation = Adaptation(model, training, forgetting=0.995)
    >>> for u, y in zip(later.u, later.y):
    ...     adaptation.update(u, y)
    >>> adaptation.samples, adaptation.model.simulate(validation).y.shape
    (420, (320, 1))
    """

    def __init__(
        self,
        model: EchoStateNetwork,
        training: Record | Iterable[Record],
        forgetting: float = 1.0,
        kept: float = 0.001,
    ) -> None:
        self._base = model
        hyper = model.reservoir.hyper
        inputs, outputs = len(model.input_names), len(model.output_names)
        self._delays = max(hyper.input_delays, hyper.output_delays)
        self.samples = 0
        self._solver = RecursiveLeastSquares(hyper.columns(inputs, outputs), outputs)
        for record in as_records(training):
            self.restart()
            self.update(record.u, record.y)
        self.restart()
        self.samples = 0
        self._solver.forget(forgetting, kept)

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
        base, hyper = self._base, self._base.reservoir.hyper
        u = base.scaling.inputs(base._inputs(_rows(u, len(base.input_names))))
        y = base.scaling.outputs(base._outputs(_rows(y, len(base.output_names))))
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
        self._solver.update(phi[learnt:], y[learnt:])
        self._before = all_u[len(u) :], all_y[len(y) :]
        self._seen += len(u)
        self.samples += max(len(u) - learnt, 0)

    @property
    def model(self) -> EchoStateNetwork:
        """The network with the readout as it is now. It costs more to compute than a sample: ask when you need it."""
        base = self._base
        readout = self._solver.readout(float(base.origin.get("ridge", 0.0)))
        return replace(base, readout=readout, origin={**base.origin, "adapted": self.samples})


def _rows(values: ArrayLike, channels: int) -> Matrix:
    """One sample ``(channel,)`` as one row; anything else as it is."""
    array = np.asarray(values, dtype=np.float64)
    return array[None] if array.ndim == 1 and len(array) == channels else array
