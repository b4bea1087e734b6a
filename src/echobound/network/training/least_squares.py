"""Least squares with a relative ridge: the training of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.network.reservoir import ReservoirDraw
from echobound.network.training.base import Trained, Trainer, register_trainer
from echobound.network.training.tools import Tools, TrainingData


def require_ridges(ridges: ArrayLike) -> tuple[float, ...]:
    """One or more ridges as they are stored; anything else is refused.

    Examples
    --------
    >>> require_ridges(1e-8)
    (1e-08,)
    """
    found = tuple(np.atleast_1d(np.asarray(ridges, dtype=float)).tolist())
    if not found or not all(0 <= ridge < math.inf for ridge in found):
        raise InputError(f"ridges must be one or more numbers >= 0, got {found}")
    return found


@register_trainer
@dataclass(frozen=True)
class LeastSquares(Trainer):
    """The readout by least squares on states forced by measured outputs; the reservoir stays as it was drawn.

    Parameters
    ----------
    ridges
        Relative ridges, times trace(Phi' Phi) / columns. If there are several, the best on the scored data is kept; 0
        is the minimum-norm solution.

    Examples
    --------
    >>> LeastSquares((1e-8, 1e-4)).chosen(1)
    LeastSquares(ridges=(0.0001,))
    """

    kind: ClassVar[str] = "least squares"
    setting_name: ClassVar[str] = "ridge"
    setting_unit: ClassVar[str] = "relative"

    ridges: tuple[float, ...] = (1e-8,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ridges", require_ridges(self.ridges))

    def train(self, draw: ReservoirDraw, data: TrainingData, tools: Tools) -> Sequence[Trained]:
        """A readout for each ridge, all from one Gram matrix."""
        return [Trained(ridge, readout) for ridge, readout in tools.least_squares(draw, data, self.ridges)]

    def chosen(self, alternative: int) -> LeastSquares:
        """Least squares with one of the ridges, as it was given: whether Cholesky works is decided by the data anew."""
        return LeastSquares((self.ridges[alternative],))

    @property
    def settings(self) -> tuple[float, ...]:
        """The ridges, and 0 for a minimum-norm solution where Cholesky failed."""
        return (0.0, *self.ridges)
