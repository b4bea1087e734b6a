"""Splitting a record in time order, without overlap."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise

from echobound.data.record import Record
from echobound.errors import InputError


def split(record: Record, validation: float = 0.25, test: float = 0.0) -> tuple[Record, ...]:
    """Split a record into a training part, a validation part and, if asked for, a test part, in this order in time.

    Parameters
    ----------
    record
        The record to split.
    validation, test
        Sizes of these parts, taken from the end: below 1 a fraction of the record, otherwise a number of samples. If
        `test` is 0 there are two parts.

    Examples
    --------
    >>> record = Record(u=range(10), y=range(10), name="plant")
    >>> [(part.name, float(part.u[0, 0]), len(part)) for part in split(record, validation=0.2, test=3)]
    [('plant (training)', 0.0, 5), ('plant (validation)', 5.0, 2), ('plant (test)', 7.0, 3)]
    """
    total = len(record)
    sizes = {"validation": _size(validation, total, "validation")}
    if test != 0:
        sizes["test"] = _size(test, total, "test")
    start = total - sum(sizes.values())
    if start < 1:
        parts = " and ".join(f"{size} for {name}" for name, size in sizes.items())
        raise InputError(f"{record.name} has {total} samples, so {parts} leave none for training: make them smaller")
    bounds = list(accumulate((start, *sizes.values()), initial=0))
    return tuple(
        record.part(first, last, name=f"{record.name} ({name})")
        for name, (first, last) in zip(("training", *sizes), pairwise(bounds), strict=True)
    )


def _size(value: float, total: int, name: str) -> int:
    """Return the number of samples that a fraction or a count asks for."""
    size = 0 if not math.isfinite(value) else round(value * total) if value < 1 else int(value)
    if size < 1 or (value >= 1 and size != value):
        raise InputError(
            f"the {name} part must be a fraction below 1 or a whole number of samples, and hold at least one of the"
            f" record's {total} samples, got {value}"
        )
    return size
