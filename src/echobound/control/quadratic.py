"""Quadratic programs: minimise 1/2 x'Hx + g'x within bounds on x and on Ax, by the dual active-set method of DAQP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from echobound.arrays import Matrix, Vector
from echobound.errors import MissingExtra

FEASIBLE = 1e-10  # what a constraint may be off; inputs are moved onto their bounds afterwards, exactly
MOST = 10_000  # iterations of the active-set method; it needs about as many as constraints are active


@dataclass(frozen=True, eq=False)
class Quadratic:
    """One quadratic program: the first bounds are those of the variables, the others those of the rows of A."""

    H: Matrix
    g: Vector
    A: Matrix
    low: Vector
    high: Vector


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where it is, and the multiplier of each bound: positive at an upper one, negative at a lower one."""

    x: Vector
    multipliers: Vector


def solver() -> Any:
    """DAQP, which is installed by the extra ``control``."""
    try:
        import daqp
    except ImportError:
        raise MissingExtra("the controller's solver", extra="control") from None
    return daqp


def minimise(problem: Quadratic) -> Minimum | None:
    """Solve it; None if the solver gave up, which its caller counts.

    Examples
    --------
    >>> nearest = Quadratic(np.eye(2), -np.array([3.0, 1.0]), np.ones((1, 2)), np.zeros(3), np.array([2.0, 2.0, 2.5]))
    >>> minimise(nearest).x.round(6).tolist(), minimise(nearest).multipliers.round(6).tolist()
    ([2.0, 0.5], [0.5, 0.0, 0.5])
    """
    x, _, flag, info = solver().solve(
        *(np.ascontiguousarray(one) for one in (problem.H, problem.g, problem.A, problem.high, problem.low)),
        primal_tol=FEASIBLE,
        dual_tol=1e-12,
        iter_limit=MOST,
    )
    x, multipliers = np.asarray(x), np.asarray(info["lam"])
    if flag <= 0 or not (np.isfinite(x).all() and np.isfinite(multipliers).all()):
        return None
    return Minimum(x, multipliers)
