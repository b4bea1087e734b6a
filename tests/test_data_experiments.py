"""Experiments: records by role, what their digest covers, exact round trips, and damage that is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echobound.data import Record
from echobound.data.experiments import Experiments, records_digest
from echobound.errors import DamagedFile, RunError
from echobound.files import read_npz, write_npz


def record(seed: int, samples: int = 12) -> Record:
    generator = np.random.default_rng(seed)
    return Record(
        u=generator.normal(size=(samples, 2)),
        y=generator.normal(size=samples),
        sampling_time=0.1,
        input_names=("valve", "größe"),
        output_names=("level",),
        output_units=("m",),
        name=f"day {seed}",
    )


@pytest.fixture
def experiments() -> Experiments:
    return Experiments((record(1), record(2, 30)), (record(3),), (record(4), record(5)))


def test_roles_come_training_first(experiments: Experiments) -> None:
    found = [(role, one.name) for role, one in experiments.roles]
    expected = [
        ("training", "day 1"),
        ("training", "day 2"),
        ("validation", "day 3"),
        ("test", "day 4"),
        ("test", "day 5"),
    ]
    assert found == expected


def test_the_digest_covers_content_order_and_role(experiments: Experiments) -> None:
    first, second = experiments.training
    renamed = replace(experiments, training=(replace(first, name="another name"), second))
    assert renamed.digest == experiments.digest
    others = [
        replace(experiments, training=(second, first)),
        replace(experiments, test=()),
        Experiments((first,), (second, *experiments.validation), experiments.test),
        replace(experiments, training=(replace(first, sampling_time=0.2), second)),
    ]
    assert len({one.digest for one in (experiments, *others)}) == len(others) + 1
    assert records_digest([first, second]) != records_digest([second, first])


def test_digests_never_change() -> None:
    """Pinned: run folders of earlier versions must remain valid."""
    one = Record(u=[0.0, 1.0, 2.0], y=[0.5, 0.25, 0.125], sampling_time=10.0, input_units=("mL/s",), name="pinned")
    assert (
        Experiments((one,), (one.part(0, 2),)).digest
        == "a5e70682c98813d7a6dbdd001c27dcb2b16386d608d9b7de286123af1ce0ca96"
    )
    assert records_digest([one]) == "544efa31d939685701a1b7e6faea79f7a2ffbbed51583f33dcab576735a81c34"


def test_a_file_keeps_every_bit_and_name(experiments: Experiments, tmp_path: Path) -> None:
    experiments.save(tmp_path / "data.npz")
    loaded = Experiments.load(tmp_path / "data.npz")
    assert loaded.digest == experiments.digest
    for (role, one), (expected, other) in zip(loaded.roles, experiments.roles, strict=True):
        assert (role, one.name, one.sampling_time) == (expected, other.name, other.sampling_time)
        assert (one.input_names, one.output_units) == (other.input_names, other.output_units)
        assert (one.u.tobytes(), one.y.tobytes()) == (other.u.tobytes(), other.y.tobytes())


def test_a_missing_and_a_cut_file_are_told_apart(experiments: Experiments, tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    with pytest.raises(RunError, match="is missing"):
        Experiments.load(path)
    experiments.save(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DamagedFile, match=r"data\.npz is damaged or was changed \(archive: "):
        Experiments.load(path)


def without(key: str) -> Any:
    return lambda header, arrays: header["records"][1].pop(key)


@pytest.mark.parametrize(
    "damage",
    [
        lambda header, arrays: header.pop("records"),
        lambda header, arrays: header.update(records=3),
        lambda header, arrays: header["records"].append("what"),
        lambda header, arrays: header["records"][0].update(role="spare"),
        lambda header, arrays: header["records"][0].update(input_names=["valve"]),
        lambda header, arrays: header["records"][0].update(sampling_time=-1.0),
        without("role"),
        without("sampling_time"),
        lambda header, arrays: arrays.pop("y2"),
        lambda header, arrays: arrays.update(u0=arrays["u0"][:-1]),
    ],
)
def test_content_with_a_right_digest_that_is_no_data_is_refused(
    experiments: Experiments, tmp_path: Path, damage: Any
) -> None:
    path = tmp_path / "data.npz"
    experiments.save(path)
    header, arrays = read_npz(path, kind="data")
    damage(header, arrays)
    write_npz(path, header, arrays)
    with pytest.raises(DamagedFile, match=r"data\.npz is damaged or was changed \(header: "):
        Experiments.load(path)
