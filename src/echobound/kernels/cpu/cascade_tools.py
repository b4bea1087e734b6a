"""The tools for a cascade: Python arranges them, and each is one compiled call that holds no lock."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from echobound.arrays import Array, Matrix
from echobound.kernels.cpu import projection
from echobound.kernels.cpu.cascade import CHUNK, features_gram, jacobian_gram
from echobound.kernels.cpu.fortran import routines
from echobound.network.cascade import Cascade, taps
from echobound.network.training.cascade_tools import CascadeTools, Stretch
from echobound.network.training.separable import Coordinates


class CompiledCascadeTools(CascadeTools):
    """The routines in compiled code."""

    def features_gram(self, cascade: Cascade, stretches: Sequence[Stretch]) -> tuple[Matrix, Matrix]:
        """As `CascadeTools.features_gram`."""
        size = cascade.columns + stretches[0].y.shape[1]
        totals, chunk, parts = np.zeros((2, size, size)), np.zeros((CHUNK, size)), _arrays(cascade)
        for one in stretches:
            bounds = np.array([one.first, one.split, len(one.u)])
            features_gram(*parts, one.u, one.y, bounds, chunk, totals, *routines())
        return _whole(totals[0]), _whole(totals[1])

    def jacobian_gram(self, cascade: Cascade, readout: Matrix, stretches: Sequence[Stretch]) -> Array:
        """As `CascadeTools.jacobian_gram`."""
        size, outputs = cascade.columns + cascade.parameters.size + 1, len(readout)
        totals, chunks = np.zeros((outputs, size, size)), np.zeros((outputs, CHUNK, size))
        own, linear, _ = cascade.split(readout)
        sections = len(cascade.back)
        weighted = [taps(cascade.back_factors[s], own[:, :, 2 * s : 2 * s + 2]) for s in range(sections)]
        now, then = (np.ascontiguousarray([pair[i] for pair in weighted]).transpose(1, 0, 2).copy() for i in (0, 1))
        direct, linear = own[:, :, -1].copy(), linear.copy()
        parts = _arrays(cascade)
        for one in stretches:
            bounds = np.array([one.first, one.split])
            jacobian_gram(*parts, now, then, direct, linear, one.u, one.y, bounds, chunks, totals, *routines())
        return np.array([_whole(total) for total in totals])

    def descend(
        self, coordinates: Coordinates, stretches: Sequence[Stretch], ridge: float, iterations: int
    ) -> Cascade | None:
        """As `network.training.separable.descended`, in one call."""
        return projection.descend(coordinates, stretches, ridge, iterations)


def _arrays(cascade: Cascade) -> tuple[Array, ...]:
    parts = (cascade.front, cascade.front_factors, cascade.weights, cascade.bias, cascade.back, cascade.back_factors)
    return tuple(np.ascontiguousarray(part, dtype=np.float64) for part in parts)


def _whole(total: Matrix) -> Matrix:
    """Both triangles of a matrix of which the lower one is known."""
    return np.tril(total) + np.tril(total, -1).T
