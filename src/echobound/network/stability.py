"""Incremental input-to-state stability of a reservoir that is driven by measured signals, from the norm of W_x.

It is about the reservoir alone. In a free run the model's own outputs are fed back: that loop is closed through the
readout, about which the norm of W_x says nothing. What bounds a free run are the limits of the model (`Limits`). Only
where no output enters a state or the readout is there no such loop: a free run is then driven by the inputs alone, and
the statement covers it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from echobound.network.reservoir import Reservoir
from echobound.scenario.words import upward

NOT_FREE_RUN = "This says nothing about a free run, in which the model's own outputs are fed back."


@dataclass(frozen=True, slots=True)
class Stability:
    """The contraction of a reservoir driven by measured inputs and outputs, from an exact singular value decomposition.

    The difference d of two states shrinks by `rate` at each step in the norm d' A^-1 d, with leak rates A. In the
    Euclidean norm, after k steps it is at most overshoot * rate**k times the initial one.
    """

    norm: float  # ||W_x||, the largest singular value
    contracts: bool  # whether that is below 1
    rate: float
    overshoot: float
    feedback: bool = True  # whether outputs enter the states or the readout

    def to_dict(self) -> dict[str, Any]:
        """The numbers and the statement."""
        return {**asdict(self), "statement": self.statement}

    @property
    def statement(self) -> str:
        """The stability statement in words, with what it does not cover."""
        if self.feedback:
            what, rest = "the reservoir, driven by measured inputs and outputs,", f" {NOT_FREE_RUN}"
        else:
            what, rest = "the model, in free run too,", " No output is fed back."
        if not self.contracts:
            return (
                f"||W_x|| = {self.norm:.6g} is not below 1: it is not established that {what} is incrementally"
                f" input-to-state stable.{rest}"
            )
        return (
            f"||W_x|| = {upward(self.norm, 10)} < 1 (exact SVD): {what} is incrementally input-to-state stable; after"
            f" k steps the effect of its initial state is at most {upward(self.overshoot)} x {upward(self.rate)}^k of"
            f" what it was.{rest}"
        )


def stability(reservoir: Reservoir) -> Stability:
    """Establish whether ||W_x|| < 1, and how fast initial states are forgotten.

    With leak rates A = diag(a) and rho = ||W_x|| < 1, differences shrink in the norm x' A^-1 x by
    sqrt(1 - (1 - rho^2) a_min) at each step; without leak that is rho itself.

    Examples
    --------
    >>> from echobound.network.laws import paper
    >>> from echobound.network.reservoir import draw_reservoir
    >>> round(stability(draw_reservoir(paper(order=20), 1, 1, seed=0)).rate, 6)
    0.99
    """
    # By the exact decomposition, not by the iteration that scaled the draw: the statement must not rest on the latter.
    norm = float(np.linalg.svd(reservoir.W_x, compute_uv=False)[0])
    smallest, largest = float(reservoir.leak.min()), float(reservoir.leak.max())
    rate = float(np.sqrt(max(0.0, 1.0 - (1.0 - norm**2) * smallest))) if norm < 1 else float("inf")
    feedback = bool(reservoir.W_y.any()) or reservoir.hyper.output_delays > 0
    return Stability(norm, norm < 1, rate, float(np.sqrt(largest / smallest)), feedback)
