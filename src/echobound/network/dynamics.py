"""The state equation, run over a segment of data in scaled units and plain NumPy: it defines what is right.

Models run by the same equation in compiled code unless told otherwise, a hundred times faster; see `default_dynamics`.

Time runs from k = 0; before that, the first sample is held. ``x(k)`` is the state *before* sample k enters, so that
y(k) = W_out phi(k) with phi(k) = [x(k), u(k-1) .. u(k-d), u(k), y(k-1) .. y(k-m), 1].
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Matrix, Signal, Vector
from echobound.network.limits import Limits
from echobound.network.reservoir import Hyperparameters, Reservoir

PIECE = 1024  # samples whose drive W_u u + b is held in memory at once
COMPILED = "echobound.kernels.cpu.simulation"  # by name, since this room imports nothing that stands to its right


class Dynamics(Protocol):
    """A module that can run a network: this one, or its counterpart in compiled code."""

    def free_run(
        self,
        reservoir: Reservoir,
        readout: Matrix,
        u: Signal,
        y: Signal,
        washout: int,
        padding: int,
        limits: Limits | None,
        /,
    ) -> Signal:
        """As `free_run` below."""

    def predictions(
        self,
        reservoir: Reservoir,
        readout: Matrix,
        u: Signal,
        y: Signal,
        washout: int,
        horizon: int,
        padding: int,
        limits: Limits | None,
        /,
    ) -> Signal:
        """As `predictions` below."""


@cache
def default_dynamics() -> Dynamics:
    """What models run by if nothing else is asked for: the counterpart in compiled code, loaded at the first run.

    Always that one, also for a few samples: the two agree to rounding, not bit for bit, and a result must not depend on
    how long the record is or on what ran before.
    """
    compiled: Any = import_module(COMPILED)
    dynamics: Dynamics = compiled
    return dynamics


def teacher_states(reservoir: Reservoir, u: Signal, y: Signal, padding: int = 0) -> Matrix:
    """States x(0) .. x(K-1) driven by measured inputs and outputs, from x = 0 at `padding` steps before the start."""
    x = _at_rest(reservoir, u, y, padding)
    states = np.empty((len(u), reservoir.order))
    for k, drive in enumerate(_drives(reservoir, u)):
        states[k] = x
        x = reservoir.step(x, drive, y[k])
    return states


def _at_rest(reservoir: Reservoir, u: Signal, y: Signal, padding: int) -> Matrix:
    """The state after the first sample was held for `padding` steps from x = 0."""
    x, drive = np.zeros(reservoir.order), reservoir.drive(u[:1])[0]
    for _ in range(padding):
        x = reservoir.step(x, drive, y[0])
    return x


def _drives(reservoir: Reservoir, u: Signal) -> Iterator[Matrix]:
    """W_u u(k) + b sample by sample, computed a piece at a time so that a long record needs little memory."""
    for start in range(0, len(u), PIECE):
        yield from reservoir.drive(u[start : start + PIECE])


def features(
    hyper: Hyperparameters, states: Matrix, u: Signal, y: Signal, times: NDArray[np.int64], before: Signal
) -> Matrix:
    """Rows phi(k) at the given times; ``states[i]`` belongs to ``times[i]``, `before` is y before the start."""
    parts = [states]
    parts += [_delayed(u, times, delay, u[0]) for delay in range(1, hyper.input_delays + 1)]
    if hyper.present_input:
        parts.append(u[times])
    parts += [_delayed(y, times, delay, before) for delay in range(1, hyper.output_delays + 1)]
    if hyper.constant:
        parts.append(np.ones((len(times), 1)))
    return np.concatenate(parts, axis=1)


def _delayed(signal: Signal, times: NDArray[np.int64], delay: int, before: Signal) -> Signal:
    return np.where((times >= delay)[:, None], signal[np.maximum(times - delay, 0)], before)


def free_run(
    reservoir: Reservoir,
    readout: Matrix,
    u: Signal,
    y: Signal,
    washout: int,
    padding: int = 0,
    limits: Limits | None = None,
) -> Signal:
    """Outputs at k = washout .. K-1 with the model's own outputs fed back; before that, the measured `y` are.

    With limits, each output is clipped to them, and fed back as it then is. Only the first `washout` rows of `y` are
    used (and its first row for the time before the start).
    """
    hyper = reservoir.hyper
    fed = np.zeros((len(u), readout.shape[0]))
    fed[:washout] = y[:washout]
    x = _at_rest(reservoir, u, y, padding)
    # A diverging run overflows to inf and then to NaN; that is its result, not an error.
    with np.errstate(over="ignore", invalid="ignore"):
        for k, drive in enumerate(_drives(reservoir, u)):
            if k >= washout:
                fed[k] = _clipped(readout @ features(hyper, x[None], u, fed, np.array([k]), y[0])[0], limits)
            x = reservoir.step(x, drive, fed[k])
    return fed[washout:]


def _clipped(y: Vector, limits: Limits | None) -> Vector:
    return y if limits is None else limits.clip(y)


def predictions(
    reservoir: Reservoir,
    readout: Matrix,
    u: Signal,
    y: Signal,
    washout: int,
    horizon: int,
    padding: int = 0,
    limits: Limits | None = None,
) -> Signal:
    """Outputs at k = washout .. K-1, each predicted from the measured outputs up to k - horizon."""
    result = np.empty((len(u) - washout, y.shape[1]))
    fed, reached = y.copy(), 0
    measured = _at_rest(reservoir, u, y, padding)
    with np.errstate(over="ignore", invalid="ignore"):
        for end in range(washout, len(u)):
            first = max(end - horizon + 1, 0)
            for k in range(reached, first):
                measured = reservoir.step(measured, reservoir.drive(u[k]), y[k])
            reached, x = first, measured  # the state with measured outputs up to here, from which this run branches off
            for k in range(first, end + 1):
                value = readout @ features(reservoir.hyper, x[None], u, fed, np.array([k]), y[0])[0]
                fed[k] = _clipped(value, limits)
                x = reservoir.step(x, reservoir.drive(u[k]), fed[k])
            result[end - washout] = fed[end]
            fed[first : end + 1] = y[first : end + 1]  # the next sample is predicted from measured outputs again
    return result
