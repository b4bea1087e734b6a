"""Recursive least squares with exponential forgetting.

The state that is carried from row to row is the triangle R of a QR factorisation of all weighted rows [phi(k), y(k)],
never the Gram matrix or its inverse: the square-root form cannot lose its sign or its symmetry, and rounding costs only
half as many digits. A row of age a has the weight forgetting^a. The ridge is applied when the readout is asked for,
relative to all rows known by then, as in training; so with forgetting = 1 the readout is that of batch least squares.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Matrix
from echobound.errors import InputError
from echobound.network.readout import minimum_norm

TOGETHER = 64  # rows that are merged at once: one by one takes ten times as long


class RecursiveLeastSquares:
    """Recursive least squares with exponential forgetting, in square-root form.

    `forgetting` is the weight of the past at each new row, above 0 and at most 1; the memory is 1 / (1 - forgetting)
    rows long.

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
        self._past_rows = self._recent_rows = 0.0  # the sum of the weights of the rows in each
        self._waiting = np.empty((0, columns + outputs))
        self._anchor: Matrix | None = None
        self.forget(forgetting)

    def _nothing(self) -> Matrix:
        return np.zeros((self.columns + self.outputs,) * 2, order="F")

    def forget(self, forgetting: float) -> None:
        """Change how fast the past fades, from the next row on."""
        if not 0 < forgetting <= 1:
            raise InputError(f"forgetting must be above 0 and at most 1, got {forgetting}: 1 forgets nothing")
        self._merge()
        self.forgetting = float(forgetting)

    def anchor(self, readout: Matrix, ridge: float, share: float) -> None:
        """Keep a share of all rows so far from fading, and pull towards a readout as weakly as the ridge does now."""
        known, p = self._known(), self.columns
        pull = self._nothing()
        pull[:p, :p] = math.sqrt(ridge * self._square(known) / p) * np.eye(p)
        pull[:p, p:] = pull[:p, :p] @ readout.T
        self._anchor = _append(np.asfortranarray(math.sqrt(share) * np.triu(known)), pull, triangular=True)
        self.mark()
        self._past *= math.sqrt(1 - share)
        self._past_rows *= 1 - share

    def mark(self) -> None:
        """Let all rows so far be the past, to which `discount` applies."""
        self._merge()
        self._past = _append(self._past, self._recent, triangular=True)
        self._past_rows += self._recent_rows
        self._recent, self._recent_rows = self._nothing(), 0.0

    def discount(self, rows: float) -> None:
        """Let the past, as of the last `mark`, count as so many rows at most; then mark."""
        self._merge()
        if self._past_rows > rows:
            self._past *= math.sqrt(rows / self._past_rows)
            self._past_rows = rows
        self.mark()

    def _known(self) -> Matrix:
        """Triangle of all rows, including those that wait and the anchor."""
        self._merge()
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
        if len(self._waiting) >= TOGETHER:
            self._merge()

    def _merge(self) -> None:
        """Merge the waiting rows into the triangle of the recent ones."""
        rows, self._waiting = self._waiting, self._waiting[:0]
        if not len(rows):
            return
        if self.forgetting < 1:
            root = math.sqrt(self.forgetting)
            # The oldest of them fades most: rows wait, and the weight of each is as if it had been merged at once.
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

        # A ridge is as many more rows sqrt(level) I with outputs of zero: no Gram matrix is formed for it.
        below = np.zeros((p, p + self.outputs), order="F")
        np.fill_diagonal(below, math.sqrt(ridge * self._square(triangle) / p))
        solved = _append(triangle[:p].copy(order="F"), below, triangular=True)
        if not np.diag(solved).all():
            return np.zeros((self.outputs, p))  # no row has come yet, or all were zero
        return np.asarray(solve_triangular(solved[:, :p], solved[:, p:], check_finite=False).T)


def _append(triangle: Matrix, rows: Matrix, *, triangular: bool) -> Matrix:
    """The triangle of a QR factorisation of [triangle; rows]; its first len(triangle) columns become triangular."""
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
