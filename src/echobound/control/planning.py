"""Planning: Gauss-Newton on one sample's problem, from one start or the better of two, within a limit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from echobound.arrays import Mask, Vector
from echobound.control.problem import Evaluation, Problem
from echobound.control.quadratic import Minimum, Quadratic, minimise

HALVINGS = 12  # of a step that does not lower the cost
PLAIN = 2  # iterations of Gauss-Newton at least, before second derivatives are taken
SLOW = 0.1  # a residual that is not lowered to this share of what it was: second derivatives then pay
DECREASE = 1e-4  # of the predicted decrease, at least


@dataclass(frozen=True)
class Effort:
    """How much may be done for one sample.

    Parameters
    ----------
    iterations
        Quadratic programs from each start.
    seconds
        Wall-clock time for all of them; none if not given. It is looked at after each program: a step takes longer by
        the program that is under way, and by one more that says how good the plan is. With it, results depend on how
        fast the machine is.
    tolerance
        Residual of the conditions of Karush, Kuhn and Tucker at which an iteration ends.
    newton
        Whether second derivatives are taken where Gauss-Newton is slow; a controller in C does without.
    """

    iterations: int = 10
    seconds: float | None = None
    tolerance: float = 1e-7
    newton: bool = True


@dataclass(frozen=True, eq=False)
class Outcome:
    """The best planned inputs that were found, all of them within the bounds of inputs and rates."""

    at: Evaluation
    residual: float  # of the Karush-Kuhn-Tucker conditions there
    iterations: int
    converged: bool
    failures: int  # quadratic programs that the solver gave up
    multipliers: Vector  # of the last quadratic program: bounds of v, of slacks, then rows
    program: Quadratic | None
    slacks: Mask


def plan_inputs(problem: Problem, starts: Sequence[Vector], effort: Effort) -> Outcome:
    """Improve the planned inputs from each start; the cheapest outcome is kept, at a tie the first."""
    began = time.perf_counter()
    best: Outcome | None = None
    iterations = 0
    for start in starts:
        with np.errstate(over="ignore", invalid="ignore"):  # a model that overflows is a plan that cannot be made
            found = _improve(problem, start, effort, began)
        iterations += found.iterations
        # A second start must be cheaper by more than rounding: otherwise the controller would jump between equals.
        if best is None or found.at.cost < best.at.cost * (1 - 1e-9) - 1e-12:
            best = found
        if effort.seconds is not None and time.perf_counter() - began > effort.seconds:
            break
    if best is None:
        raise ValueError("planning needs a start")
    return Outcome(**{**vars(best), "iterations": iterations})


def _improve(problem: Problem, start: Vector, effort: Effort, began: float) -> Outcome:
    at = problem.evaluate(start, True)
    residual, failures, done = np.inf, 0, 0
    program: Quadratic | None = None
    found: Minimum | None = None
    used = np.zeros(problem.reference.shape, dtype=bool)
    before, last = np.inf, np.inf  # residuals
    while done < effort.iterations:
        if effort.seconds is not None and done and time.perf_counter() - began > effort.seconds:
            break
        # Gauss-Newton is cheap and soon done where it is nearly linear; where it is slow, Newton's method is not.
        slow = effort.newton and done >= PLAIN and before > 0 and last > SLOW * before
        second = problem.second(at, found) if slow and found is not None else None
        program, used = problem.condensed(at, second)
        if not all(np.isfinite(part).all() for part in (program.H, program.g, program.A)):
            found, failures = None, failures + 1
            break
        found = minimise(program)
        done += 1
        if found is None:
            failures += 1
            break
        problem.note_supports(found)
        residual = problem.residual(at, program, used, found)
        before, last = last, residual
        if residual <= effort.tolerance:
            break
        better = _search(problem, at, found.x[: problem.count], problem.predicted(at, program, used, found))
        if better is None:
            break
        at, residual = better, np.inf
    if not np.isfinite(residual) and found is not None:
        # The last step was taken and not looked at again: one more quadratic program says how good it is.
        program, used = problem.condensed(at)
        found = minimise(program)
        if found is not None:
            problem.note_supports(found)
        residual = np.inf if found is None else problem.residual(at, program, used, found)
    multipliers = np.zeros(0) if found is None else found.multipliers
    return Outcome(at, residual, done, residual <= effort.tolerance, failures, multipliers, program, used)


def _search(problem: Problem, at: Evaluation, direction: Vector, predicted: float) -> Evaluation | None:
    """The first of a step, half of it, a quarter .. that lowers the cost; None if none does."""
    size = 1.0
    for _ in range(HALVINGS):
        # A convex combination of two feasible points: rounding apart, it is feasible too.
        v = np.clip(at.v + size * direction, 0.0, 1.0)
        trial = problem.evaluate(v, size == 1.0)
        if trial.cost <= at.cost - DECREASE * size * max(predicted, 0.0) and trial.cost < at.cost:
            return trial if size == 1.0 else problem.evaluate(v, True)
        size *= 0.5
    return None
