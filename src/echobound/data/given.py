"""Given: data in any form in which a model takes them, as records with its channels."""

from __future__ import annotations

from typing import Any

from echobound.data.frames import is_frame, table_of_frame
from echobound.data.record import Record, as_records
from echobound.data.sampling import Reading


def given_inputs(data: Any, like: Any) -> Any:
    """A record where measured outputs are given too: a record, a pair ``(u, y)``, a frame; otherwise inputs alone.

    Columns of a frame are found by the names of the channels of `like`, a model.
    """
    if is_frame(data):
        table, reading = table_of_frame(data), Reading(like.sampling_time)
        known = {name for name, _ in table.labels} | set(table.columns)
        measured = all(name in known for name in like.output_names)
        [record] = table.records(like.input_names, like.output_names if measured else None, reading)
        return record if measured else record.u
    if isinstance(data, tuple) and len(data) == 2 and all(hasattr(one, "__len__") for one in data):
        return as_records(data, "given")[0]
    return data


def given_records(data: Any, like: Any, what: str = "given") -> tuple[Record, ...]:
    """One or several records, pairs ``(u, y)`` or frames, as records."""
    several = list(data) if isinstance(data, list) else [data]
    frames = [is_frame(one) for one in several]
    if not any(frames):
        return as_records(data, what)
    found = [given_inputs(one, like) for one in several]
    return as_records(found, what)  # refuses a frame without the outputs
