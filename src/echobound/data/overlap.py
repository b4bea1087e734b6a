"""Overlap: whether one record is part of another, sample for sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from echobound.arrays import Signal
from echobound.data.copies import common
from echobound.data.record import Record
from echobound.errors import DataError


def samples_of(record: Record) -> Signal:
    """Return all channels of a record as one array ``(time, channel)``, inputs first."""
    return np.ascontiguousarray(np.concatenate([record.u, record.y], axis=1))


def places_in(record: Record, whole: Record) -> Iterator[int]:
    """Yield the samples of `whole` at which `record` starts, if it is part of it bit for bit.

    Only samples are compared, not the names of channels, nor which of them are inputs.

    Examples
    --------
    >>> whole = Record(u=[0.0, 1.0, 2.0, 1.0, 2.0], y=[0.0, 3.0, 4.0, 3.0, 4.0])
    >>> list(places_in(whole.part(1, 3), whole)), list(places_in(whole, whole.part(1, 3)))
    ([1, 3], [])
    """
    part, text = samples_of(record), samples_of(whole)
    if part.shape[1] != text.shape[1]:
        return
    # A search for bytes is linear in practice and exact: nothing here is equal up to rounding.
    wanted, searched, width = part.tobytes(), text.tobytes(), part[0].nbytes
    at = searched.find(wanted)
    while at >= 0:
        if at % width == 0:  # otherwise the match starts within a sample and is a coincidence of bytes
            yield at // width
        at = searched.find(wanted, at + 1)


def require_distinct(test: Sequence[Record]) -> None:
    """Refuse test data in which a record occurs twice: each episode counts once."""
    first: dict[str, int] = {}
    for number, record in enumerate(test, start=1):
        earlier = first.setdefault(record.digest, number)
        if earlier < number:
            names = f"{earlier} ({test[earlier - 1].name}) and {number} ({record.name})"
            raise DataError(f"test records {names} are the same data: give each episode once")


def require_untouched(test: Sequence[Record], used: Sequence[tuple[str, Record]]) -> None:
    """Refuse test records that contain, or are contained in, a record that was used to make the models."""
    for record in test:
        for role, other in used:
            if any(True for one, whole in ((record, other), (other, record)) for _ in places_in(one, whole)):
                raise DataError(
                    f"{record.name} is among the {role} data of this run: a second certificate needs data that played"
                    " no part in any choice"
                )
            if (found := common(record, other)) is not None:
                raise DataError(
                    f"{record.name} and the {role} data of this run have {found.words}: a second certificate needs data"
                    " that played no part in any choice"
                )
