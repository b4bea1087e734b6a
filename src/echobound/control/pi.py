"""PI: the controller that everything else has to beat, tuned by a rule from the same model."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Vector
from echobound.control.bounds import bounds_of, within
from echobound.control.prediction import members_of
from echobound.errors import InputError
from echobound.network import linearise, operating_point

RESPONSE = 2000  # samples of the step response at most
RISEN = 1 - np.exp(-1)


@dataclass(frozen=True, eq=False)
class PIStep:
    """What was applied."""

    u: Vector
    seconds: float


class PI:
    """A PI controller for one input and one output, within the same bounds as `MPC`, without windup.

    u(k) = u(k-1) + K (e(k) - e(k-1)) + K T/Ti e(k), moved to the nearest input that the bounds allow: as this form has
    no integral of its own, nothing winds up.

    Parameters
    ----------
    model
        For names, sampling time and, where no bounds are given, the range of the training data.
    gain, integral_time
        K, in units of the input per unit of the output, and Ti in seconds.
    input_low, input_high, rate
        As in `MPC`.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> model = identify(*ph_experiment(samples=(600, 400)), law="paper", order=20, networks=20).network
    >>> controller = PI.tuned(model, y=7.0)
    >>> controller.start(u=15.6, y=7.0)
    >>> bool(controller.step(reference=7.5, y=7.0).u[0] > 15.6)
    True
    """

    def __init__(
        self,
        model: Any,
        gain: float,
        integral_time: float,
        *,
        input_low: ArrayLike | None = None,
        input_high: ArrayLike | None = None,
        rate: ArrayLike | None = None,
    ) -> None:
        if len(model.input_names) != 1 or len(model.output_names) != 1:
            raise InputError("a PI controller has one input and one output: use MPC for more")
        if not (np.isfinite(gain) and gain != 0 and integral_time > 0):
            raise InputError(
                f"a gain other than 0 and a positive integral time are needed, got {gain}, {integral_time}"
            )
        scaling = members_of(model)[0].scaling
        self.bounds = bounds_of(model, None, input_low, input_high, rate, None, None, scaling)
        self.gain, self.integral_time, self.sampling_time = gain, integral_time, model.sampling_time
        self.model, self.manipulated, self.horizon = model, tuple(model.input_names), 1

    @classmethod
    def tuned(cls, model: Any, y: float, *, closed_loop_time: float | None = None, **bounds: Any) -> PI:
        """Tune by Skogestad's rule (SIMC) at the output y, from the step response of the model's linearisation there.

        The response gives a gain k and a time constant T1, at which 63 % are reached; the delay D is one sample. With
        the closed-loop time constant Tc, T1 / 2 if not given: K = T1 / (k (Tc + D)), Ti = min(T1, 4 (Tc + D)).
        """
        linear = linearise(model, operating_point(model, y=[y]))
        k = float(linear.gain[0, 0])
        state, response, risen = np.zeros(len(linear.A)), 0.0, 0
        while response / k < RISEN and risen < RESPONSE:
            state, risen = linear.A @ state + linear.B[:, 0], risen + 1
            response = float(linear.C[0] @ state + linear.D[0, 0])
        lag, delay = risen * model.sampling_time, model.sampling_time
        wanted = 0.5 * lag if closed_loop_time is None else closed_loop_time
        return cls(model, lag / (k * (wanted + delay)), min(lag, 4 * (wanted + delay)), **bounds)

    def start(self, u: ArrayLike, y: ArrayLike, disturbance: ArrayLike | None = None) -> None:
        """Start at rest."""
        self._u, self._y = (np.atleast_1d(np.asarray(one, dtype=np.float64)) for one in (u, y))
        self._error = np.zeros(1)

    def step(self, reference: ArrayLike, y: ArrayLike, *, disturbance: ArrayLike | None = None, age: int = 0) -> PIStep:
        """The next input; a lost measurement is replaced by the last one."""
        began = time.perf_counter()
        measured = np.atleast_1d(np.asarray(y, dtype=np.float64))
        wanted = np.asarray(reference, dtype=np.float64).reshape(-1)[:1]
        self._y = np.where(np.isfinite(measured), measured, self._y)
        error = np.where(np.isfinite(wanted), wanted - self._y, self._error)
        moved = self.gain * (error - self._error + self.sampling_time / self.integral_time * error)
        self._u, self._error = within(self.bounds, self._u + moved, self._u), error
        return PIStep(self._u, time.perf_counter() - began)
