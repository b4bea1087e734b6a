"""Scaling: what each kind promises on the training data, its inverse, and its storage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from echobound.data import Record
from echobound.data.scaling import SCALINGS, Scaling
from echobound.errors import DataError, InputError
from echobound.files import read_npz, write_npz

SIGNAL = arrays(np.float64, st.tuples(st.integers(2, 30), st.just(2)), elements=st.floats(-1e6, 1e6))


@given(SIGNAL, SIGNAL)
def test_minmax_maps_all_training_data_together_onto_the_unit_interval(one: np.ndarray, other: np.ndarray) -> None:
    records = [Record(u=part, y=part[:, ::-1]) for part in (one, other)]
    scaled = Scaling.fit("minmax", records)
    pooled = np.concatenate([one, other])
    for column, values in zip(scaled.inputs(pooled).T, pooled.T, strict=True):
        assert column.min() == 0.0
        assert column.max() == (1.0 if np.ptp(values) > 0 else 0.0)
    assert (scaled.outputs(pooled[:, ::-1]) == scaled.inputs(pooled)[:, ::-1]).all()


def test_standard_gives_mean_0_and_deviation_1_over_all_training_data() -> None:
    generator = np.random.default_rng(1)
    records = [Record(u=generator.normal(5, 3, (n, 2)), y=generator.uniform(100, 101, n)) for n in (40, 7)]
    scaling = Scaling.fit("standard", records)
    for scaled in (
        scaling.inputs(np.concatenate([record.u for record in records])),
        scaling.outputs(np.concatenate([record.y for record in records])),
    ):
        assert scaled.mean(axis=0) == pytest.approx(0, abs=1e-12)
        assert (scaled**2).mean(axis=0) == pytest.approx(1, rel=1e-12)


def test_none_changes_no_bit() -> None:
    y = np.array([[0.1], [1e300], [-7.0]])
    scaling = Scaling.fit("none", Record(u=y, y=y))
    assert (scaling.inputs(y) == y).all()
    assert (scaling.outputs_back(scaling.outputs(y)) == y).all()


@pytest.mark.parametrize("kind", ["minmax", "standard"])
@pytest.mark.parametrize("value", [0.0, 0.1, -3e-7, 1e12])
def test_a_constant_channel_becomes_zero_and_keeps_its_unit(kind: str, value: float) -> None:
    scaling = Scaling.fit(kind, Record(u=np.full(1001, value), y=np.arange(1001.0)))
    assert scaling.input_span.tolist() == [1.0]
    assert scaling.inputs([[value], [value + 2.0]])[:, 0] == pytest.approx([0.0, 2.0], abs=1e-3)


@given(st.sampled_from(SCALINGS), SIGNAL)
def test_outputs_come_back(kind: str, y: np.ndarray) -> None:
    scaling = Scaling.fit(kind, Record(u=y, y=y))
    back = scaling.outputs_back(scaling.outputs(y))
    assert np.abs(back - y).max() <= 4 * np.spacing(np.abs(y).max() + np.abs(scaling.output_offset).max())


def test_leading_axes_are_kept() -> None:
    scaling = Scaling.fit("minmax", Record(u=[0.0, 1.0], y=[[0.0, 1.0], [2.0, 5.0]]))
    several = np.ones((3, 4, 2))
    assert scaling.outputs_back(several).shape == (3, 4, 2)
    assert scaling.outputs_back(several)[2, 3].tolist() == [2.0, 5.0]


@given(SIGNAL)
def test_a_file_keeps_it_exactly(tmp_path_factory: pytest.TempPathFactory, signal: np.ndarray) -> None:
    scaling = Scaling.fit("standard", Record(u=signal, y=signal))
    path = tmp_path_factory.mktemp("scaling") / "model.npz"
    write_npz(path, {"kind": "model", "scaling": scaling.kind}, scaling.to_arrays())
    header, stored = read_npz(path, "model")
    again = Scaling.from_arrays(header["scaling"], {**stored, "W_x": np.eye(2)})
    assert again.kind == scaling.kind
    assert {name: array.tobytes() for name, array in again.to_arrays().items()} == {
        name: array.tobytes() for name, array in scaling.to_arrays().items()
    }


def test_the_arrays_cannot_be_changed() -> None:
    scaling = Scaling.fit("minmax", Record(u=[0.0, 1.0], y=[0.0, 1.0]))
    with pytest.raises(ValueError, match="read-only"):
        scaling.input_span[0] = 2.0


def test_an_unknown_kind_lists_those_there_are() -> None:
    with pytest.raises(InputError, match="unknown scaling 'max': known are minmax, standard, none"):
        Scaling.fit("max", Record(u=[0.0, 1.0], y=[0.0, 1.0]))
    with pytest.raises(InputError, match="unknown scaling"):
        Scaling("robust", *[np.ones(1)] * 4)


@pytest.mark.parametrize(
    "bad", [{"input_span": [0.0]}, {"output_span": [-1.0]}, {"input_offset": [np.nan]}, {"input_span": [[1.0]]}]
)
def test_impossible_offsets_and_spans_are_refused(bad: dict[str, list[float]]) -> None:
    good = {name: np.ones(1) for name in ("input_offset", "input_span", "output_offset", "output_span")}
    Scaling("none", **good)
    with pytest.raises(InputError, match=next(iter(bad))):
        Scaling.from_arrays("none", {**good, **{name: np.array(value) for name, value in bad.items()}})


def test_incomplete_arrays_are_refused() -> None:
    with pytest.raises(InputError, match="output_span not found"):
        Scaling.from_arrays("none", {name: np.ones(1) for name in ("input_offset", "input_span", "output_offset")})
    with pytest.raises(InputError, match="as many input offsets as spans, got 2 and 1"):
        Scaling("none", np.ones(2), np.ones(1), np.ones(1), np.ones(1))


def test_signals_with_another_number_of_channels_are_refused() -> None:
    scaling = Scaling.fit("minmax", Record(u=np.eye(2), y=[0.0, 1.0]))
    with pytest.raises(DataError, match=r"the model has 2 inputs: an array \(time, 2\) is needed, got \(5, 1\)"):
        scaling.inputs(np.ones((5, 1)))
    with pytest.raises(DataError, match="the model has 1 outputs"):
        scaling.outputs(3.0)
