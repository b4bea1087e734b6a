"""The random signals of a simulated experiment: its excitation and its measurement noise.

Both come from stream ``PLANT``. The key of an experiment is (seed, family, index): by convention a family is a plant or
a purpose, and the indices 0, 1, 2 are the training, validation and test records. Excitation and noise are two regions
of that key, so they are independent of each other, and a longer signal begins like a shorter one.
"""

from __future__ import annotations

import math

import numpy as np

from echobound.arrays import Vector
from echobound.data.room import require_room
from echobound.draws import PLANT, draw_key, unit, words
from echobound.errors import InputError

EXCITATION, NOISE = 0, 1  # regions of a draw of stream PLANT
ROOM = 8  # numbers that each sample of a simulated experiment takes, at least


def multilevel(
    samples: int,
    period: int = 100,
    low: float = 12.7,
    high: float = 16.7,
    levels: int | None = None,
    *,
    seed: int = 0,
    family: int = 0,
    index: int = 0,
) -> Vector:
    """Return a multilevel pseudo-random signal (MPRS), ``(time,)``: random levels, each held for a period.

    Parameters
    ----------
    samples
        Length of the signal.
    period
        Samples between two switches.
    low, high
        Amplitude range. The defaults are the paper's, in mL/s.
    levels
        Number of equally spaced levels from `low` to `high`, both included; any value between them if not given.
    seed, family, index
        Which draw; see the module.

    Examples
    --------
    >>> multilevel(7, period=3, low=0.0, high=1.0, levels=3, seed=2).tolist()
    [0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.5]
    """
    _require_count("samples", samples, 1)
    require_room(ROOM * samples, "a signal of this length")
    _require_count("period", period, 1)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"the amplitude range must go from a lower to a higher number, got {low} to {high}")
    position = unit(words(draw_key(seed, PLANT, family, index), EXCITATION, -(-samples // period)))
    if levels is not None:
        _require_count("levels", levels, 2)
        position = np.floor(position * levels) / (levels - 1)
    return np.repeat(low + (high - low) * position, period)[:samples]


def gaussian(
    samples: int, deviation: float = 1.0, *, seed: int = 0, family: int = 0, index: int = 0, region: int = NOISE
) -> Vector:
    """Return white Gaussian noise of mean 0 with this standard deviation, ``(time,)``.

    It is measurement noise, or with the region ``EXCITATION`` an excitation that is independent of it.

    Examples
    --------
    >>> gaussian(3, 0.05, seed=1).shape, gaussian(3, 0.0).tolist()
    ((3,), [0.0, 0.0, 0.0])
    """
    from scipy.special import ndtri  # on first use: loading it takes longer than the simulation

    _require_count("samples", samples, 1)
    require_room(ROOM * samples, "a signal of this length")
    if not (math.isfinite(deviation) and deviation >= 0):
        raise InputError(f"the standard deviation of the noise must be 0 or positive, got {deviation}")
    position = unit(words(draw_key(seed, PLANT, family, index), region, samples))
    # The smallest position is 0, whose normal quantile is -inf; half a step of 2**-53 replaces it.
    normal = np.asarray(ndtri(np.maximum(position, 2.0**-54)), dtype=np.float64)
    return normal * deviation + 0.0  # + 0.0: no minus zeros


def _require_count(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be a whole number, {least} or more, got {value}")
