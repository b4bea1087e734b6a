"""The paper's experiment on the pH process, and the best FIT that noisy data allow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from echobound.data.record import Record
from echobound.errors import DataError
from echobound.plants.excitation import multilevel
from echobound.plants.ph import PHPlant
from echobound.scores import fit

__all__ = ["noise_limit", "ph_experiment"]

NAMES = ("training", "validation", "test")


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
    """Return records of the pH process under multilevel excitation: training, validation and, if asked for, test.

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
            name=NAMES[index] if index < len(NAMES) else f"record {index + 1}",
        )
        for index, count in enumerate(samples)
    )


def noise_limit(record: Record, clean: ArrayLike, washout: int = 100) -> float:
    """Return the FIT of the true output on a noisy record: 100 (1 - ||noise|| / ||y - mean(y)||).

    A model that fits better than this has been lucky with the noise.

    Parameters
    ----------
    record
        The measured record.
    clean
        Its output without noise, such as ``PHPlant().response(record.u)``.
    washout
        Samples at the start that are not scored.

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
