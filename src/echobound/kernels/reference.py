"""The reference kernel: plain NumPy, one network after the other. It defines what is right."""

from __future__ import annotations

from echobound.kernels.base import TrialKernel
from echobound.network.reservoir import ReservoirDraw
from echobound.network.training import PlainTools


class ReferenceKernel(TrialKernel):
    """Evaluate draws in plain NumPy.

    Examples
    --------
    >>> import numpy as np
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

    def tools(self, draw: ReservoirDraw) -> PlainTools:
        """Those in plain NumPy."""
        return PlainTools()
