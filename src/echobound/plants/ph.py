"""The pH neutralisation process of the paper, with the signs that its steady state and the physics demand.

An acid stream q1, a buffer stream q2 (the unmeasured disturbance) and an alkaline stream q3 (the input) flow into a
stirred reactor that empties through a valve; the output is the pH of the outflow. The states are the two reaction
invariants Wa4 and Wb4 (charge and carbonate) and the level h1; pH is given implicitly by the charge balance

    Wa + 10^(pH-14) - 10^(-pH) + Wb (1 + 2 10^(pH-pK2)) / (1 + 10^(pK1-pH) + 10^(pH-pK2)) = 0.

The paper prints Wa3 without its minus sign and 10^(-pH) with a plus; with either, its nominal point is not an
equilibrium.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Array, Vector
from echobound.data.record import Record
from echobound.errors import DataError, InputError
from echobound.plants.excitation import gaussian, multilevel
from echobound.scores import fit

PK1, PK2 = 6.35, 10.25
"""Dissociation constants of carbonic acid, as -log10."""
LOWEST, HIGHEST = -2.0, 16.0
"""pH values between which the charge balance is solved: 100 mol/L of free acid, 100 mol/L of free base."""
STRONGEST = 99.0
"""Largest abs(Wa) in mol/L for which the balance is certain to change its sign between them."""
HALVINGS = 54
"""Bisections of that interval: 18 / 2^54 = 1e-15, the spacing of doubles near pH 7."""
LONGEST_STEP = 2.5
"""Longest integration step in seconds. The reactor's time constant is about 90 s, so the error is below 1e-10 pH."""
ROLES = ("training", "validation", "test")


class PHState(NamedTuple):
    """State of the reactor: reaction invariants `wa4` and `wb4` (mol/L) and level `h1` (cm)."""

    wa4: float
    wb4: float
    h1: float


def ph_of(wa: ArrayLike, wb: ArrayLike, pk1: float = PK1, pk2: float = PK2) -> Array:
    """Return the pH of solutions with the reaction invariants `wa` and `wb` (mol/L; shapes broadcast), to 1e-12.

    The charge balance increases with pH for every ``wb >= 0``, so it has one root and bisection finds it.

    Examples
    --------
    >>> round(float(ph_of(0.0, 0.0)), 12)  # pure water
    7.0
    >>> ph_of([-4.32e-4, 1e-3], [5.28e-4, 0.0]).round(3).tolist()  # the paper's nominal point; 1 mmol/L strong acid
    [7.002, 3.0]
    """
    wa, wb = np.broadcast_arrays(np.asarray(wa, dtype=np.float64), np.asarray(wb, dtype=np.float64))
    if not ((np.abs(wa) <= STRONGEST) & (wb >= 0) & (wb < np.inf)).all():
        raise InputError(f"pH is computed for abs(Wa) <= {STRONGEST:g} mol/L and Wb >= 0 mol/L: check wa and wb")
    up, down = 10.0**pk1, 10.0**-pk2
    low, high = np.full(wa.shape, LOWEST), np.full(wa.shape, HIGHEST)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        p = 10.0**middle
        carbonate = (1.0 + 2.0 * down * p) / (1.0 + up / p + down * p)
        below = wa + 1e-14 * p - 1.0 / p + wb * carbonate < 0.0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))


@dataclass(frozen=True)
class PHPlant:
    """The reactor and its streams; the defaults are the paper's nominal values, with the sign of Wa3 corrected.

    Parameters
    ----------
    a1
        Cross-section of the reactor, cm2.
    z
        Height of the reactor's floor above the valve, cm.
    cv4, n
        Valve: outflow ``q4 = cv4 (h1 + z)^n`` in mL/s, with the level h1 in cm.
    pk1, pk2
        Dissociation constants of carbonic acid, as -log10.
    wa1, wb1, wa2, wb2, wa3, wb3
        Reaction invariants of the acid, buffer and alkaline streams, mol/L.
    q1, q2, q3
        Nominal flows of the acid, buffer and alkaline streams, mL/s. q1 is constant; q2 and q3 are the flows before the
        first sample.

    Examples
    --------
    >>> plant = PHPlant()
    >>> nominal = plant.steady_state()
    >>> round(nominal.h1, 2), round(float(ph_of(nominal.wa4, nominal.wb4)), 3)
    (13.96, 7.026)
    >>> record = plant.simulate([15.6, 16.7, 16.7], noise=0.05, seed=1)
    >>> record.input_names, record.output_names, record.sampling_time
    (('q3',), ('pH',), 10.0)
    """

    a1: float = 207.0
    z: float = 11.5
    cv4: float = 4.59
    n: float = 0.607
    pk1: float = PK1
    pk2: float = PK2
    wa1: float = 3.00e-3
    wb1: float = 0.0
    wa2: float = -0.03
    wb2: float = 0.03
    wa3: float = -3.05e-3  # printed without the minus sign
    wb3: float = 5.00e-5
    q1: float = 16.6
    q2: float = 0.55
    q3: float = 15.6

    def steady_state(self, q3: float | None = None, q2: float | None = None) -> PHState:
        """Return the steady state under constant flows (mL/s; nominal if not given)."""
        flow, wa, wb = self._mixture(np.atleast_1d(self.q3 if q3 is None else q3), self.q2 if q2 is None else q2)
        return PHState(float(wa[0]), float(wb[0]), (float(flow[0]) / self.cv4) ** (1.0 / self.n) - self.z)

    def response(
        self, q3: ArrayLike, q2: ArrayLike | None = None, sampling_time: float = 10.0, initial: PHState | None = None
    ) -> Vector:
        """Return the pH without noise at the sampling times, ``(time,)``; flows are held between them.

        The alkaline flow `q3` is ``(time,)`` or ``(time, 1)``; the buffer flow `q2` is a number, or a signal as long
        (mL/s; nominal if not given). The first value is that of the `initial` state, which is the steady state of the
        nominal flows if not given: an input acts from the next sample on.

        Examples
        --------
        >>> PHPlant().response([15.6, 16.7, 16.7]).round(3).tolist()
        [7.026, 7.026, 7.09]
        """
        if not (math.isfinite(sampling_time) and sampling_time > 0):
            raise InputError(f"the sampling time must be a positive number of seconds, got {sampling_time}")
        alkaline = np.asarray(q3, dtype=np.float64)
        alkaline = alkaline[:, 0] if alkaline.ndim == 2 and alkaline.shape[1] == 1 else alkaline
        flow, wa_in, wb_in = self._mixture(alkaline, self.q2 if q2 is None else q2)
        wa, wb, level = self.steady_state() if initial is None else initial
        if not level > 0:
            raise InputError(f"the level must be positive at the first sample, got h1 = {level} cm")
        steps = math.ceil(sampling_time / LONGEST_STEP)
        states = np.empty((len(flow), 2))
        states[0] = wa, wb
        held = zip(flow[:-1].tolist(), wa_in.tolist(), wb_in.tolist(), strict=False)
        for k, (q, wa_mix, wb_mix) in enumerate(held, start=1):
            wa, wb, level = self._after(PHState(wa, wb, level), q, wa_mix, wb_mix, sampling_time / steps, steps)
            states[k] = wa, wb
        return ph_of(states[:, 0], states[:, 1], self.pk1, self.pk2)

    def simulate(
        self,
        q3: ArrayLike,
        *,
        q2: ArrayLike | None = None,
        sampling_time: float = 10.0,
        noise: float = 0.0,
        seed: int = 0,
        family: int = 0,
        index: int = 0,
        name: str = "pH process",
    ) -> Record:
        """Return the record of an experiment: `response`, with Gaussian noise on the measured pH.

        `noise` is its standard deviation, and (seed, family, index) its draw; see `echobound.plants.excitation`.

        Examples
        --------
        >>> drifting = np.repeat([0.55, 0.65], 50)  # the buffer flow steps up halfway through the record
        >>> PHPlant().simulate(np.full(100, 15.6), q2=drifting).y[[0, 50, 99], 0].round(3).tolist()
        [7.026, 7.026, 7.107]
        """
        clean = self.response(q3, q2, sampling_time)
        return Record(
            u=q3,  # type: ignore[arg-type]  # Record makes a Signal of it
            y=clean + gaussian(len(clean), noise, seed=seed, family=family, index=index),
            sampling_time=sampling_time,
            input_names=("q3",),
            output_names=("pH",),
            input_units=("mL/s",),
            output_units=("pH",),
            name=name,
        )

    def advance(
        self, state: PHState, q3: float, q2: float | None = None, sampling_time: float = 10.0
    ) -> tuple[PHState, float]:
        """The state and the pH one sample later, with the flows held until then: one step of `response`.

        Examples
        --------
        >>> plant = PHPlant()
        >>> state, ph = plant.advance(plant.steady_state(), q3=16.7)
        >>> round(ph, 3), bool(ph == plant.response([16.7, 16.7])[1])
        (7.09, True)
        """
        flow, wa, wb = self._mixture(np.atleast_1d(np.asarray(q3, float)), self.q2 if q2 is None else q2)
        steps = math.ceil(sampling_time / LONGEST_STEP)
        mixed = float(flow[0]), float(wa[0]), float(wb[0])
        after = PHState(*map(float, self._after(state, *mixed, sampling_time / steps, steps)))
        return after, float(ph_of(after.wa4, after.wb4, self.pk1, self.pk2))

    def _after(
        self, state: PHState, flow: float, wa_mix: float, wb_mix: float, step: float, steps: int
    ) -> tuple[float, float, float]:
        """Both invariants and the level after some steps under a constant inflow."""
        wa, wb, level = state
        level, exchanged = self._hold(level, flow, step, steps)
        # Both invariants obey dW/dt = q / (a1 h1) (W_mix - W), so one exponential solves both exactly.
        stays = math.exp(-exchanged)
        return wa_mix + (wa - wa_mix) * stays, wb_mix + (wb - wb_mix) * stays, level

    def _mixture(self, q3: Vector, q2: ArrayLike) -> tuple[Vector, Vector, Vector]:
        """Return the inflow and its invariants at every sample, after checking that the reactor cannot run empty."""
        buffer = np.asarray(q2, dtype=np.float64)
        if q3.ndim != 1 or len(q3) == 0 or buffer.shape not in ((), q3.shape):
            raise InputError(
                f"q3 must be a signal and q2 a number or a signal as long, got shapes {q3.shape} and {buffer.shape}"
            )
        # The level always moves towards the one that the inflow would sustain: if all of these are positive, so is it.
        least = self.cv4 * self.z**self.n
        flow = self.q1 + buffer + q3
        good = (q3 >= 0) & (buffer >= 0) & (flow > least) & (flow < np.inf)
        if not good.all():
            k = int(np.argmin(good))
            raise InputError(
                f"sample {k + 1} has q3 = {q3[k]:g} and q2 = {np.broadcast_to(buffer, q3.shape)[k]:g} mL/s: neither"
                f" may be negative, and q1 + q2 + q3 must exceed {least:.4g} mL/s, otherwise the reactor runs empty"
            )
        wa = (self.q1 * self.wa1 + buffer * self.wa2 + q3 * self.wa3) / flow
        wb = (self.q1 * self.wb1 + buffer * self.wb2 + q3 * self.wb3) / flow
        return flow, wa, wb

    def _hold(self, level: float, flow: float, step: float, steps: int) -> tuple[float, float]:
        """Integrate the level under a constant inflow by RK4; return it and the number of reactor volumes exchanged."""
        cv4, z, n, area = self.cv4, self.z, self.n, self.a1
        slope = step / area
        exchanged = 0.0
        for _ in range(steps):
            k1 = slope * (flow - cv4 * (level + z) ** n)
            h2 = level + 0.5 * k1
            k2 = slope * (flow - cv4 * (h2 + z) ** n)
            h3 = level + 0.5 * k2
            k3 = slope * (flow - cv4 * (h3 + z) ** n)
            h4 = level + k3
            k4 = slope * (flow - cv4 * (h4 + z) ** n)
            exchanged += slope * flow * (1.0 / level + 2.0 / h2 + 2.0 / h3 + 1.0 / h4) / 6.0
            level += (k1 + 2.0 * k2 + 2.0 * k3 + k4) / 6.0
        return level, exchanged


def ph_experiment(
    samples: Sequence[int] = (5000, 3000),
    noise: float = 0.05,
    seed: int = 0,
    *,
    period: int = 100,
    low: float = 12.7,
    high: float = 16.7,
    levels: int | None = None,
    sampling_time: float = 10.0,
    plant: PHPlant | None = None,
    family: int = 0,
) -> tuple[Record, ...]:
    """Return records of the paper's experiment: training, validation and, if asked for, test.

    Each record is a separate experiment that starts at the nominal steady state, with its own excitation and noise:
    record i is draw (seed, family, index i) of `echobound.plants.excitation`.

    Parameters
    ----------
    samples
        Length of each record; the defaults are those that reproduce the paper's table.
    noise
        Standard deviation of the measurement noise, pH.
    seed, family
        Which draw.
    period, low, high, levels
        The excitation, as in `multilevel`; flows in mL/s.
    sampling_time
        Seconds between samples.
    plant
        The process; the nominal one if not given.

    Examples
    --------
    >>> training, validation = ph_experiment(samples=(300, 200))
    >>> len(training), len(validation), validation.name
    (300, 200, 'validation')
    """
    plant = PHPlant() if plant is None else plant
    return tuple(
        plant.simulate(
            multilevel(count, period, low, high, levels, seed=seed, family=family, index=index),
            sampling_time=sampling_time,
            noise=noise,
            seed=seed,
            family=family,
            index=index,
            name=ROLES[index] if index < len(ROLES) else f"record {index + 1}",
        )
        for index, count in enumerate(samples)
    )


def noise_limit(record: Record, clean: ArrayLike, washout: int = 100) -> float:
    """Return the FIT of the true output on a noisy record: 100 (1 - ||noise|| / ||y - mean(y)||).

    A model that fits better than this has been lucky with the noise.

    `clean` is the record's output without noise; the samples of the washout are not scored.

    Examples
    --------
    >>> _, validation = ph_experiment(seed=0)
    >>> round(noise_limit(validation, PHPlant().response(validation.u)), 1)
    91.1
    """
    truth = np.asarray(clean, dtype=np.float64)
    truth = truth[:, None] if truth.ndim == 1 else truth
    if truth.shape != record.y.shape:
        raise DataError(
            f"the clean output must have the shape of the record's output, {record.y.shape}, got {np.shape(clean)}"
        )
    if not 0 <= washout < len(record):
        raise DataError(f"the washout must be shorter than the record ({len(record)} samples), got {washout}")
    return float(fit(record.y[washout:], truth[washout:]))
