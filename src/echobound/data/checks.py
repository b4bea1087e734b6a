"""Conditions that records must meet before networks are trained and scored on them, and the default washout."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from echobound.data.record import Record, as_records
from echobound.errors import DataError, InputError

USUAL_WASHOUT = 100
"""Samples after which a reservoir has forgotten its initial state, for the laws that are usual."""


def default_washout(lengths: Iterable[int]) -> int:
    """Return the washout for records or blocks of these lengths: `USUAL_WASHOUT`, but at most a fifth of the shortest.

    Examples
    --------
    >>> default_washout([1000, 5000]), default_washout([250, 5000])
    (100, 50)
    """
    # A washout is lost for training and scoring: short data keep at least four fifths of their samples.
    return min(USUAL_WASHOUT, min(lengths) // 5)


def require_longer_than_washout(records: Record | Iterable[Record], washout: int, what: str = "training") -> None:
    """Refuse records that the washout uses up completely."""
    if washout < 0:
        raise InputError(f"the washout must be a number of samples, 0 or more, got {washout}")
    shortest = min(as_records(records, what), key=len)
    if len(shortest) <= washout:
        raise DataError(
            f"washout={washout} must be shorter than every {what} record, but {shortest.name} has"
            f" {len(shortest)} samples: shorten the washout or give more data"
        )


def require_varying_outputs(records: Record | Iterable[Record], washout: int, what: str = "validation") -> None:
    """Refuse records in which an output is constant over all scored samples (of all records, after the washout)."""
    several = as_records(records, what)
    require_longer_than_washout(several, washout, what)
    scored = np.concatenate([record.y[washout:] for record in several])
    # Compared exactly: the standard deviation of a constant 0.1 is a rounding error, not 0.
    constant = (scored == scored[0]).all(axis=0)
    for name, value, is_constant in zip(several[0].output_names, scored[0], constant, strict=True):
        if is_constant:
            raise DataError(
                f"output {name!r} is {value} in all scored {what} samples: FIT is undefined for a constant output,"
                f" so give {what} data in which it varies"
            )
