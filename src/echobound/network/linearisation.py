"""Operating points and linear models: where a model settles, and how it behaves near there.

Both follow from the derivatives of a step (`Stepper.jacobians`), which are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echobound.arrays import Matrix, Vector
from echobound.errors import InputError
from echobound.network.stepping import Stepper

SETTLING = 300  # steps of free run before Newton's method: it then starts near the point at which the model settles
ITERATIONS = 60
TOLERANCE = 1e-11  # of the scaled state, and of the output relative to its span
STARTS = (0.5, 0.25, 0.75, 0.0, 1.0)  # of the range of the inputs in training


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """Where a model rests: with this input held, its state and its output stay as they are."""

    u: Vector  # in the data's own units
    y: Vector
    state: Vector  # in the model's scaled units, as `Stepper` has it


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A model near an operating point: deviations from it follow ds' = A ds + B du + E dy, y = C ds + D du.

    E is zero unless the measured output is fed back; in a free run A and B contain the feedback.
    """

    A: Matrix
    B: Matrix
    E: Matrix
    C: Matrix
    D: Matrix
    sampling_time: float
    point: OperatingPoint
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]

    @property
    def poles(self) -> NDArray[np.complex128]:
        """Eigenvalues of A, the largest modulus first."""
        poles = np.linalg.eigvals(self.A).astype(np.complex128)
        return poles[np.argsort(-np.abs(poles), kind="stable")]

    @property
    def stable(self) -> bool:
        """Whether all poles are within the unit circle: the model returns to the point after a small disturbance."""
        return bool(np.abs(self.poles).max(initial=0.0) < 1)

    @property
    def gain(self) -> Matrix:
        """Steady-state gain ``(output, input)``: how the output settles after a small step of an input."""
        return np.asarray(self.C @ np.linalg.solve(np.eye(len(self.A)) - self.A, self.B) + self.D)


def operating_point(
    model: Any, *, u: ArrayLike | None = None, y: ArrayLike | None = None, guess: ArrayLike | None = None
) -> OperatingPoint:
    """Where a model rests in free run: at a given input, or at the input that gives a wanted output.

    Parameters
    ----------
    model
        Any delivered model.
    u, y
        The input that is held, or the output that is wanted; one of them.
    guess
        An input from which the one for `y` is looked for; inputs across the range of the training data if not given.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> records = ph_experiment(samples=(800, 500))
    >>> model = identify(*records, law="paper", order=20, networks=20, washout=100).model
    >>> point = operating_point(model, y=[7.0])
    >>> point.y.round(9).tolist(), bool(abs(Stepper(model).advance(point.state, point.u) - point.state).max() < 1e-9)
    ([7.0], True)
    """
    stepper = Stepper(model)
    if (u is None) == (y is None):
        raise InputError("give either the input u that is held or the output y that is wanted, and not both")
    if u is not None:
        return _settled(stepper, np.atleast_1d(np.asarray(u, dtype=np.float64)), None)
    wanted = np.atleast_1d(np.asarray(y, dtype=np.float64))
    if wanted.shape != (stepper.outputs,):
        raise InputError(f"the model has {stepper.outputs} outputs: y must have as many, got shape {wanted.shape}")
    guesses = _guesses(stepper) if guess is None else [np.atleast_1d(np.asarray(guess, dtype=np.float64))]
    for start in guesses:
        if (found := _search(stepper, start, wanted)) is not None:
            return found
    shown = ", ".join(f"{value:g}" for value in wanted)
    raise InputError(
        f"no input was found at which the model rests at y = {shown}: ask for an output within its range, or give a"
        " guess of the input"
    )


def linearise(model: Any, point: OperatingPoint, *, measured: bool = False) -> LinearModel:
    """The linear model near an operating point.

    Parameters
    ----------
    model
        The model that the point is of.
    point
        Where to linearise.
    measured
        Whether the measured output is fed back, as while following a plant; otherwise the model runs freely.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> records = ph_experiment(samples=(800, 500))
    >>> model = identify(*records, law="paper", order=20, networks=20, washout=100, committee=0).model
    >>> here, there = (operating_point(model, u=[u]) for u in (16.6, 16.6001))
    >>> linear = linearise(model, here)
    >>> bool(abs(linear.gain[0, 0] / ((there.y - here.y)[0] / 0.0001) - 1) < 1e-3)
    True
    """
    stepper = Stepper(model)
    jacobians = stepper.jacobians(point.state, point.u, point.y if measured else None)
    names = model.input_names, model.output_names
    return LinearModel(
        **vars(jacobians), sampling_time=model.sampling_time, point=point, input_names=names[0], output_names=names[1]
    )


def _guesses(stepper: Stepper) -> list[Vector]:
    scaling = stepper.equations[0].scaling
    return [scaling.input_offset + share * scaling.input_span for share in STARTS]


def _settled(stepper: Stepper, u: Vector, near: Vector | None) -> OperatingPoint:
    """Where the model rests at u, by Newton's method for each member; from a state that is near, or a free run."""
    state = near
    if state is None:
        state = stepper.start(u)
        for _ in range(SETTLING):
            state = stepper.advance(state, u)
    for _ in range(ITERATIONS):
        after = stepper.advance(state, u)
        residual = after - state
        size = np.abs(residual).max(initial=0.0)
        if size <= TOLERANCE * max(1.0, float(np.abs(state).max(initial=0.0))):
            return OperatingPoint(u, stepper.output(after, u), after)
        if not np.isfinite(size):
            break
        state = _newton(stepper, state, u, residual)
    shown = ", ".join(f"{value:g}" for value in u)
    raise InputError(
        f"the model does not come to rest at u = {shown}: it has no operating point there, or one that could not be"
        " found; try another input"
    )


def _newton(stepper: Stepper, state: Vector, u: Vector, residual: Vector) -> Vector:
    """A damped Newton step; where the model has no steady state near, a step of its free run."""
    A = stepper.jacobians(state, u).A
    step = np.empty_like(state)
    for place in stepper.parts:  # the members do not see each other
        block = np.eye(place.stop - place.start) - A[place, place]
        step[place] = np.linalg.lstsq(block, residual[place], rcond=None)[0]
    for damping in (1.0, 0.5, 0.25, 0.125):
        trial = state + damping * step
        if np.abs(stepper.advance(trial, u) - trial).max(initial=0.0) < np.abs(residual).max(initial=0.0):
            return trial
    return state + residual


def _search(stepper: Stepper, u: Vector, wanted: Vector) -> OperatingPoint | None:
    """The operating point with the wanted output, from a first input; None if it is not found."""
    span = stepper.equations[0].scaling.output_span
    try:
        point = _settled(stepper, u, None)
        for _ in range(ITERATIONS):
            error = wanted - point.y
            size = np.abs(error / span).max()
            if size <= TOLERANCE:
                return point
            gain = linearise(stepper.model, point).gain
            change = np.linalg.lstsq(gain, error, rcond=None)[0]
            for damping in (1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125):
                trial = _settled(stepper, point.u + damping * change, None if damping == 1.0 else point.state)
                if np.abs((wanted - trial.y) / span).max() < size:
                    break
            else:
                return None
            point = trial
    except (InputError, np.linalg.LinAlgError):
        return None
    return None
