"""A Wiener-Hammerstein system: a third-order filter, a one-sided saturation, and another third-order filter.

The first filter is a Chebyshev low-pass with a ripple of 0.5 dB, the second an inverse Chebyshev low-pass with 40 dB
beyond its edge, whose zeros make the inverse useless; a diode between them bends positive signals only. This is the
structure of a circuit that is a common benchmark, with numbers of our own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Vector
from echobound.data.record import Record
from echobound.errors import InputError
from echobound.plants.excitation import EXCITATION, gaussian
from echobound.plants.ph import ROLES


@dataclass(frozen=True, kw_only=True)
class WienerHammersteinPlant:
    """The system: y = G2 f(G1 u), with f(x) = x below the knee and of a smaller slope above it.

    Parameters
    ----------
    first, second
        Edges of the two filters, in shares of half the sampling rate.
    knee, slope, sharpness
        Where the saturation begins, the slope above it, and how sharply it bends.

    Examples
    --------
    >>> plant = WienerHammersteinPlant()
    >>> plant.saturation([-2.0, 0.0, 4.0]).round(3).tolist()
    [-2.0, -0.004, 1.04]
    >>> plant.response(np.zeros(3)).shape
    (3,)
    """

    first: float = 0.17
    second: float = 0.2
    knee: float = 0.3
    slope: float = 0.2
    sharpness: float = 10.0

    def __post_init__(self) -> None:
        if not (0 < self.first < 1 and 0 < self.second < 1):
            raise InputError(
                f"the edges of the filters must be above 0 and below 1, got {self.first:g} and {self.second:g}"
            )
        if not (math.isfinite(self.knee) and 0 <= self.slope <= 1 and 0 < self.sharpness < math.inf):
            raise InputError(
                "the saturation needs a knee that is a number, a slope from 0 to 1 and a positive sharpness, got"
                f" {self.knee:g}, {self.slope:g} and {self.sharpness:g}"
            )

    def saturation(self, x: ArrayLike) -> Vector:
        """The static nonlinearity between the filters."""
        signal = np.asarray(x, dtype=np.float64)
        above = np.logaddexp(0.0, self.sharpness * (signal - self.knee)) / self.sharpness
        return np.asarray(signal - (1.0 - self.slope) * above)

    def response(self, u: ArrayLike) -> Vector:
        """The output without noise, ``(time,)``, from the steady state of the first sample."""
        from scipy.signal import cheby1, cheby2, lfilter, lfilter_zi  # on first use, as elsewhere

        signal = np.asarray(u, dtype=np.float64)
        signal = signal[:, 0] if signal.ndim == 2 and signal.shape[1] == 1 else signal
        if signal.ndim != 1 or not len(signal) or not np.isfinite(signal).all():
            raise InputError(f"u must be one signal of finite numbers, got an array of shape {signal.shape}")

        def filtered(design: tuple[Vector, Vector], x: Vector) -> Vector:
            return np.asarray(lfilter(*design, x, zi=lfilter_zi(*design) * x[0])[0])

        between = self.saturation(filtered(cheby1(3, 0.5, self.first), signal))
        return filtered(cheby2(3, 40, self.second), between)

    def simulate(
        self,
        u: ArrayLike,
        *,
        snr: float = 50.0,
        seed: int = 0,
        family: int = 0,
        index: int = 0,
        name: str = "wiener-hammerstein",
    ) -> Record:
        """A record with white measurement noise, so many decibels below the output."""
        clean = self.response(u)
        return Record(
            u=np.asarray(u, dtype=np.float64),
            y=clean + gaussian(len(clean), noise_of(clean, snr), seed=seed, family=family, index=index),
            name=name,
        )


def noise_of(clean: Vector, snr: float) -> float:
    """Standard deviation of noise that is so many decibels below a signal.

    Examples
    --------
    >>> noise_of(np.array([-1.0, 1.0]), 40.0)
    0.01
    """
    if math.isnan(snr):
        raise InputError("the signal-to-noise ratio must be a number of decibels, got nan")
    return float(np.std(clean) * 10.0 ** (-snr / 20.0))


def wiener_hammerstein_experiment(
    samples: Sequence[int] = (40_000, 10_000),
    snr: float = 50.0,
    seed: int = 0,
    *,
    plant: WienerHammersteinPlant | None = None,
    family: int = 0,
) -> tuple[Record, ...]:
    """Return records of the system under white Gaussian excitation: training, validation and, if asked for, test.

    Record i is draw (seed, family, index i) of `echobound.plants.excitation`. The output without noise is
    ``WienerHammersteinPlant().response(record.u)``.

    Parameters
    ----------
    samples
        Length of each record.
    snr
        Decibels by which the noise is below the output; infinite for none.
    seed, family
        Which draw.
    plant
        The system; the nominal one if not given.

    Examples
    --------
    >>> training, validation = wiener_hammerstein_experiment(samples=(300, 200))
    >>> len(training), len(validation), validation.name
    (300, 200, 'validation')
    """
    plant = WienerHammersteinPlant() if plant is None else plant
    return tuple(
        plant.simulate(
            gaussian(count, seed=seed, family=family, index=index, region=EXCITATION),
            snr=snr,
            seed=seed,
            family=family,
            index=index,
            name=ROLES[index] if index < len(ROLES) else f"record {index + 1}",
        )
        for index, count in enumerate(samples)
    )
