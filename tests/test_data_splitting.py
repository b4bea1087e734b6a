"""Splitting in time order, and the checks before training."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echobound.data import Record, default_washout, require_longer_than_washout, require_varying_outputs, split
from echobound.errors import DataError, InputError


def counting(samples: int) -> Record:
    return Record(u=np.arange(samples), y=-np.arange(samples), sampling_time=3.0, name="run")  # type: ignore[arg-type]


@given(st.integers(10, 400), st.floats(0.1, 0.4), st.just(0.0) | st.floats(0.1, 0.4))
def test_parts_follow_each_other_without_gap_or_overlap(samples: int, validation: float, test: float) -> None:
    record = counting(samples)
    parts = split(record, validation, test)
    assert len(parts) == (3 if test else 2)
    assert np.concatenate([part.u for part in parts]).tolist() == record.u.tolist()
    assert np.concatenate([part.y for part in parts]).tolist() == record.y.tolist()
    assert abs(len(parts[1]) - validation * samples) <= 0.5
    assert all(part.sampling_time == 3.0 for part in parts)


def test_the_default_is_the_last_quarter_for_validation() -> None:
    training, validation = split(counting(1000))
    assert (len(training), len(validation)) == (750, 250)
    assert (training.name, validation.name) == ("run (training)", "run (validation)")


def test_sizes_from_1_on_are_numbers_of_samples() -> None:
    assert [len(part) for part in split(counting(100), 20, 1)] == [79, 20, 1]
    assert [len(part) for part in split(counting(100), 20.0, 0.5)] == [30, 20, 50]


@pytest.mark.parametrize("size", [0, 0.001, -0.25, -3, 1.5, float("nan"), float("inf")])
def test_sizes_that_are_none_are_refused(size: float) -> None:
    with pytest.raises(InputError, match="the validation part must be a fraction below 1 or a whole number"):
        split(counting(100), validation=size)
    if size:
        with pytest.raises(InputError, match="the test part"):
            split(counting(100), test=size)


@pytest.mark.parametrize(("validation", "test"), [(100, 0), (0.5, 0.5), (0.999, 0), (60, 40)])
def test_something_must_be_left_for_training(validation: float, test: float) -> None:
    with pytest.raises(InputError, match=r"run has 100 samples, so .* leave none for training"):
        split(counting(100), validation, test)


@given(st.lists(st.integers(1, 2000), min_size=1))
def test_the_default_washout_leaves_four_fifths_of_every_part(lengths: list[int]) -> None:
    washout = default_washout(lengths)
    assert washout == min(100, min(lengths) // 5)
    assert all(5 * (length - washout) >= 4 * length for length in lengths)
    require_longer_than_washout([counting(length) for length in lengths[:3]], washout)


def test_records_must_outlast_the_washout() -> None:
    require_longer_than_washout([counting(101), counting(500)], washout=100)
    message = "washout=100 must be shorter than every test record, but run has 100 samples: shorten the washout or give"
    with pytest.raises(DataError, match=f"{message} more data$"):
        require_longer_than_washout([counting(500), counting(100)], washout=100, what="test")
    with pytest.raises(InputError, match="0 or more, got -1"):
        require_longer_than_washout(counting(5), washout=-1)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9])
def test_a_constant_output_is_named(constant: float) -> None:
    y = np.stack([np.arange(300.0), np.full(300, constant)], axis=1)
    y[:100, 1] = np.arange(100)
    record = Record(u=np.arange(300.0), y=y, output_names=("T", "pH"))
    require_varying_outputs(record, washout=99)
    message = "output 'pH' is .* in all scored validation samples: FIT is undefined for a constant output, so give"
    with pytest.raises(DataError, match=f"{message} validation data in which it varies$"):
        require_varying_outputs(record, washout=100)


def test_an_output_may_rest_in_one_experiment_if_it_moves_over_all_of_them() -> None:
    low, high = (Record(u=np.arange(9.0), y=np.full(9, value)) for value in (0.0, 1.0))
    require_varying_outputs([low, high], washout=3)
    with pytest.raises(DataError, match=r"'y1' is 0\.0 in all scored test samples"):
        require_varying_outputs([low, low], washout=3, what="test")


def test_a_single_scored_sample_is_constant() -> None:
    with pytest.raises(DataError, match="constant"):
        require_varying_outputs(counting(11), washout=10)
