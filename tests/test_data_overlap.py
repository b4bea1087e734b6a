"""Overlap: a part is found where it was cut, coincidences of bytes are not, and used data are refused as test data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from echobound.data import Record, split
from echobound.data.overlap import places_in, require_distinct, require_untouched, samples_of
from echobound.errors import DataError


def ramp(samples: int, start: float = 0.0, name: str = "run") -> Record:
    k = start + np.arange(float(samples))
    return Record(u=np.column_stack([k, -k]), y=k**2, name=name)


def test_all_channels_are_one_array_with_the_inputs_first() -> None:
    assert samples_of(ramp(3)).tolist() == [[0.0, 0.0, 0.0], [1.0, -1.0, 1.0], [2.0, -2.0, 4.0]]


@st.composite
def cuts(draw: st.DrawFn) -> tuple[Record, int, int]:
    """A record of few values, so that parts repeat, and where to cut it."""
    values = draw(arrays(np.float64, st.tuples(st.integers(1, 25), st.just(2)), elements=st.sampled_from([0.0, 1.0])))
    start = draw(st.integers(0, len(values) - 1))
    return Record(u=values[:, 0], y=values[:, 1]), start, draw(st.integers(start + 1, len(values)))


@given(cuts())
def test_a_part_is_found_where_it_was_cut_and_wherever_it_repeats(cut: tuple[Record, int, int]) -> None:
    whole, start, stop = cut
    table, length = samples_of(whole), stop - start
    expected = [at for at in range(len(whole) - length + 1) if (table[at : at + length] == table[start:stop]).all()]
    assert list(places_in(whole.part(start, stop), whole)) == expected
    assert start in expected


def test_bytes_that_match_across_sample_boundaries_are_no_match() -> None:
    values = np.array([1.0, 2.0, 1.0, 2.0, 1.0, 3.0])
    whole = Record(u=values[::2], y=values[1::2])
    shifted = Record(u=[2.0, 2.0], y=[1.0, 1.0])
    assert samples_of(shifted).tobytes() in samples_of(whole).tobytes()
    assert not list(places_in(shifted, whole))
    # Within a number as well: the last seven bytes of one double and the first of the next.
    byte = np.frombuffer(samples_of(whole).tobytes()[8 + 1 : 8 + 1 + 16], dtype=np.float64)
    assert not list(places_in(Record(u=byte[:1], y=byte[1:]), whole))


def test_a_last_bit_a_longer_record_or_another_number_of_channels_is_no_part() -> None:
    whole = ramp(20)
    assert not list(places_in(replace(whole, y=whole.y + np.spacing(whole.y)), whole))
    assert not list(places_in(ramp(21), whole))
    assert not list(places_in(Record(u=whole.u, y=whole.u), whole))


def test_names_and_sides_of_channels_do_not_hide_a_part() -> None:
    whole = ramp(20)
    renamed = Record(u=whole.u[5:9, :1], y=np.column_stack([whole.u[5:9, 1], whole.y[5:9]]), output_names=("a", "b"))
    assert list(places_in(renamed, whole)) == [5]


def test_an_episode_counts_once() -> None:
    require_distinct([ramp(5), ramp(6), ramp(5, start=1.0)])
    message = r"test records 1 \(run\) and 3 \(again\) are the same data: give each episode once$"
    with pytest.raises(DataError, match=message):
        require_distinct([ramp(5), ramp(6), ramp(5, name="again")])


def test_data_that_were_used_are_refused_as_test_data() -> None:
    training, validation, test = split(ramp(100), validation=0.25, test=0.25)
    used = [("training", training), ("validation", validation)]
    require_untouched([test], used)
    for touched, role in ((training, "training"), (validation.part(3, 9), "validation"), (ramp(100), "training")):
        message = f"is among the {role} data of this run: a second certificate needs data that played no part in any"
        with pytest.raises(DataError, match=f"{message} choice$"):
            require_untouched([test, touched], used)
