"""What records must fulfil before networks are trained and scored on them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from echobound.data.record import Record, as_records
from echobound.errors import DataError, InputError

__all__ = ["require_longer_than_washout", "require_varying_outputs"]


def require_longer_than_washout(records: Record | Iterable[Record], washout: int, what: str = "training") -> None:
    """Refuse a record of which the washout leaves nothing.

    Examples
    --------
    >>> require_longer_than_washout(Record(u=[0.0, 1.0], y=[0.0, 1.0], name="short"), washout=2)
    Traceback (most recent call last):
        ...
    echobound.errors.DataError: washout=2 must be shorter than every training record, but short has 2 samples:
    shorten the washout or give more data
    """
    if washout < 0:
        raise InputError(f"the washout must be a number of samples from 0 on, got {washout}")
    shortest = min(as_records(records, what), key=len)
    if len(shortest) <= washout:
        raise DataError(
            f"washout={washout} must be shorter than every {what} record, but {shortest.name} has"
            f" {len(shortest)} samples: shorten the washout or give more data"
        )


def require_varying_outputs(records: Record | Iterable[Record], washout: int, what: str = "validation") -> None:
    """Refuse records in which an output is constant over the scored samples (all after the washouts, together).

    Examples
    --------
    >>> require_varying_outputs(Record(u=[0.0, 1.0, 0.0], y=[1.0, 5.0, 5.0], output_names=("level",)), washout=1)
    Traceback (most recent call last):
        ...
    echobound.errors.DataError: output 'level' is 5.0 in all scored validation samples: FIT is undefined for a constant,
    so give validation data in which the output moves
    """
    several = as_records(records, what)
    require_longer_than_washout(several, washout, what)
    scored = np.concatenate([record.y[washout:] for record in several])
    # Not by the deviation: that of a constant 0.1 is a rounding error, not 0.
    for name, first, constant in zip(
        several[0].output_names, scored[0], (scored == scored[0]).all(axis=0), strict=True
    ):
        if constant:
            raise DataError(
                f"output {name!r} is {first} in all scored {what} samples: FIT is undefined for a constant,"
                f" so give {what} data in which the output moves"
            )
