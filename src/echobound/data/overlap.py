"""Overlap: whether one record is a part of another, sample for sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from echobound.data.record import Record
from echobound.errors import DataError

__all__ = ["places_in", "require_distinct", "require_untouched", "samples_of"]


def samples_of(record: Record) -> NDArray[np.float64]:
    """All channels of a record as one table ``(time, channel)``, inputs first."""
    return np.ascontiguousarray(np.concatenate([record.u, record.y], axis=1))


def places_in(record: Record, whole: Record) -> Iterator[int]:
    """Samples of `whole` at which `record` starts, if it is a part of it bit for bit.

    Examples
    --------
    >>> whole = Record(u=[0.0, 1.0, 2.0, 1.0, 2.0], y=[0.0, 3.0, 4.0, 3.0, 4.0])
    >>> list(places_in(whole.part(1, 3), whole)), list(places_in(whole, whole.part(1, 3)))
    ([1, 3], [])
    """
    if (record.inputs, record.outputs) != (whole.inputs, whole.outputs) or len(record) > len(whole):
        return
    part, text = samples_of(record), samples_of(whole).tobytes()
    wanted, width = part.tobytes(), part[0].nbytes
    at = text.find(wanted)
    while at >= 0:
        if at % width == 0:  # else the bytes of one sample end within another
            yield at // width
        at = text.find(wanted, at + 1)


def require_distinct(test: Sequence[Record]) -> None:
    """Refuse test records that are there twice: an episode counts once.

    Examples
    --------
    >>> one = Record(u=[0.0, 1.0], y=[0.0, 1.0], name="monday")
    >>> require_distinct([one, one])
    Traceback (most recent call last):
        ...
    echobound.errors.DataError: test records 1 (monday) and 2 (monday) are the same data: give each episode once
    """
    first: dict[str, int] = {}
    for number, record in enumerate(test, start=1):
        before = first.setdefault(record.digest, number)
        if before < number:
            names = f"{before} ({test[before - 1].name}) and {number} ({record.name})"
            raise DataError(f"test records {names} are the same data: give each episode once")


def require_untouched(test: Sequence[Record], used: Sequence[tuple[str, Record]]) -> None:
    """Refuse test records that are among the data the models were made from, or contain or are contained in them."""
    for record in test:
        for role, other in used:
            if any(True for a, b in ((record, other), (other, record)) for _ in places_in(a, b)):
                raise DataError(
                    f"{record.name} is among the {role} data of this run: a second certificate needs data that nothing"
                    " was chosen by"
                )
