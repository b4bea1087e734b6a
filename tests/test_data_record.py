"""Record: what it holds, what it refuses, and what its digest covers."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from echobound.data import Record, as_records
from echobound.errors import DataError


@pytest.fixture
def record() -> Record:
    return Record(
        u=np.arange(12.0).reshape(6, 2),
        y=np.arange(6.0),
        sampling_time=0.5,
        input_names=("a", "b"),
        output_names=("y",),
        input_units=("V", "A"),
        output_units=("K",),
        name="bench",
    )


def test_channels_names_and_time(record: Record) -> None:
    assert (len(record), record.inputs, record.outputs) == (6, 2, 1)
    assert record.y.shape == (6, 1)
    assert record.time.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    default = Record(u=np.ones((3, 2)), y=np.ones((3, 3)))
    assert default.input_names == ("u1", "u2")
    assert default.output_names == ("y1", "y2", "y3")
    assert default.output_units == ("", "", "")


def test_signals_are_copied_and_cannot_be_changed() -> None:
    u = np.zeros(3)
    record = Record(u=u, y=u)
    u[0] = 7.0
    assert record.u[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        record.u[0] = 1.0
    with pytest.raises(FrozenInstanceError):
        record.name = "other"  # type: ignore[misc]


def test_part_keeps_all_but_the_samples(record: Record) -> None:
    part = record.part(2, 5, name="middle")
    assert part.u.tolist() == record.u[2:5].tolist()
    assert part.y.tolist() == record.y[2:5].tolist()
    assert (part.input_units, part.sampling_time, part.name) == (("V", "A"), 0.5, "middle")
    assert record.part(0, 3).name == "bench"


def test_digest_covers_content_and_nothing_else(record: Record) -> None:
    same = replace(record, u=np.asfortranarray(record.u), name="another name")
    assert same.digest == record.digest
    changed = [
        replace(record, u=record.u + np.array([1e-12, 0.0])),
        replace(record, y=-record.y),
        replace(record, sampling_time=0.25),
        replace(record, input_names=("b", "a")),
        replace(record, output_units=("degC",)),
        record.part(0, 5),
    ]
    assert len({other.digest for other in (record, *changed)}) == len(changed) + 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"u": [0.0, np.nan, np.inf], "y": [0.0] * 3}, r"'u1' holds nan at sample 2 \(2 such values in all\)"),
        ({"u": [0.0, 1.0], "y": [0.0, -np.inf], "output_names": ("pH",)}, "'pH' holds -inf at sample 2:"),
        ({"u": [0.0, 1.0], "y": [0.0]}, "2 input samples but 1 output samples"),
        ({"u": ["a", "b"], "y": [0.0, 1.0]}, "inputs of record must be numbers"),
        ({"u": [[1.0], [1.0, 2.0]], "y": [0.0, 1.0]}, "inputs of record must be numbers"),
        ({"u": [], "y": []}, "must be a non-empty array"),
        ({"u": np.zeros((2, 2, 2)), "y": [0.0, 1.0]}, "must be a non-empty array"),
        ({"u": np.zeros((2, 0)), "y": [0.0, 1.0]}, "must be a non-empty array"),
        ({"u": [0.0], "y": [0.0], "input_names": ("a", "b")}, "1 inputs but 2 input names"),
        ({"u": [0.0], "y": [0.0], "output_units": ("a", "b")}, "1 outputs but 1 output names and 2 units"),
        ({"u": [0.0], "y": [0.0], "sampling_time": 0.0}, "sampling time must be a positive"),
        ({"u": [0.0], "y": [0.0], "sampling_time": np.nan}, "sampling time must be a positive"),
    ],
)
def test_bad_records_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Record(**arguments)  # type: ignore[arg-type]


def test_as_records_takes_one_or_several(record: Record) -> None:
    assert as_records(record) == (record,)
    assert as_records(iter([record, record.part(0, 2)]))[0] is record


def test_as_records_refuses_experiments_that_do_not_fit_together(record: Record) -> None:
    other = replace(record, output_names=("T",), name="other")
    with pytest.raises(DataError, match="bench has a, b -> y, other has a, b -> T"):
        as_records([record, other])
    with pytest.raises(DataError, match=r"the same sampling time: bench has 0\.5 s, bench has 1\.0 s"):
        as_records([record, replace(record, sampling_time=1.0)])
    with pytest.raises(DataError, match="validation data must be a Record"):
        as_records([], what="validation")
    with pytest.raises(DataError, match="must be a Record"):
        as_records([record, record.u])  # type: ignore[list-item]


def test_as_records_forgives_the_rounding_of_a_sampling_time(record: Record) -> None:
    assert len(as_records([record, replace(record, sampling_time=0.5 * (1 + 1e-9))])) == 2
