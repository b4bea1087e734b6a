"""The reference kernel: plain NumPy, one network after the other. It defines what is right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from echobound.arrays import Array, Signal
from echobound.kernels.base import TrialKernel
from echobound.network.dynamics import free_run, predictions
from echobound.network.reservoir import ReservoirDraw
from echobound.network.training import PlainTools, Trained

__all__ = ["PlainRoutines", "ReferenceKernel"]


class PlainRoutines(PlainTools):
    """Training and simulation of one draw in plain NumPy."""

    def __init__(self, draw: ReservoirDraw) -> None:
        self.draw = draw

    def simulate(
        self, trained: Sequence[Trained], u: Signal, y: Signal, washout: int, padding: int, horizon: int | None
    ) -> Array:
        """One alternative after the other."""
        runs = []
        for one in trained:
            reservoir = one.reservoir or self.draw.reservoir
            if horizon is None:
                runs.append(free_run(reservoir, one.readout, u, y, washout, padding))
            else:
                runs.append(predictions(reservoir, one.readout, u, y, washout, horizon, padding))
        return np.array(runs)


class ReferenceKernel(TrialKernel):
    """Evaluate draws in plain NumPy.

    Examples
    --------
    >>> from echobound.data import Record
    >>> from echobound.kernels import hold_out
    >>> from echobound.network import paper
    >>> from echobound.scores import get_score
    >>> k = np.arange(300.0)
    >>> record = Record(u=np.sin(0.1 * k) ** 3, y=np.sin(0.1 * (k - 2)) ** 2)
    >>> problem = hold_out(record, record, law=paper(5), scores=[get_score("fit")])
    >>> rows = ReferenceKernel().evaluate(problem, range(2))
    >>> rows["index"].tolist(), rows["order"].tolist()
    ([0, 1], [5, 5])
    """

    name = "reference"

    def routines(self, draw: ReservoirDraw) -> PlainRoutines:
        """Those in plain NumPy."""
        return PlainRoutines(draw)
