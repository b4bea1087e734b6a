"""The best of N by their scores: diverged networks never, the lowest index of equals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echobound.errors import InputError
from echobound.scenario import ranking, select

SCORES = st.lists(
    st.one_of(st.integers(-3, 3).map(float), st.just(np.nan), st.just(np.inf), st.just(-np.inf)), max_size=30
)


@given(scores=SCORES, direction=st.sampled_from(["max", "min"]), count=st.integers(0, 40))
def test_ranking_by_brute_force(scores, direction, count):
    sign = 1 if direction == "max" else -1
    there = [i for i, score in enumerate(scores) if np.isfinite(score)]
    expected = sorted(there, key=lambda i: (-sign * scores[i], i))[:count]
    assert ranking(scores, direction, count) == expected
    assert select(scores, direction) == (ranking(scores, direction, 1) or [None])[0]


def test_unknown_directions_are_refused():
    with pytest.raises(InputError, match="'max' or 'min'"):
        select([1.0], "best")
