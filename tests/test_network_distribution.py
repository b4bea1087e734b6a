import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echobound.errors import InputError
from echobound.network.distribution import Choice, LogUniform, Uniform, extremes, from_json, to_json, value_at

units = st.floats(0, 1, exclude_max=True)
constants = st.one_of(st.floats(-10, 10), st.integers(-5, 5), st.booleans(), st.sampled_from(["minmax", "standard"]))
leaves = st.one_of(
    constants,
    st.tuples(st.floats(-5, 0), st.floats(0, 5)).map(lambda p: Uniform(*p)),
    st.tuples(st.floats(0.01, 1), st.floats(1, 9)).map(lambda p: LogUniform(*p)),
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, min_size=1, max_size=3).map(lambda o: Choice(tuple(o))), max_leaves=5
)


@given(values)
def test_json_round_trip(value):
    assert from_json(to_json(value)) == value


@given(values, st.lists(units, min_size=8, max_size=8))
def test_the_value_drawn_is_a_constant_within_its_extremes(value, levels):
    drawn = value_at(value, levels)
    assert isinstance(drawn, float | int | bool | str)
    known = list(extremes(value))
    if not isinstance(drawn, str):
        numbers = [v for v in known if not isinstance(v, str)]
        assert min(numbers) - 1e-12 <= drawn <= max(numbers) + 1e-9


def test_weights_are_the_frequencies():
    choice = Choice(("a", "b", "c"), weights=(1, 2, 1))
    picked = [choice.at([u]) for u in (np.arange(400) + 0.5) / 400]
    assert [picked.count(x) for x in "abc"] == [100, 200, 100]


def test_log_uniform_is_uniform_in_the_logarithm():
    law = LogUniform(0.01, 100.0)
    logs = [math.log10(law.at([u])) for u in (np.arange(1000) + 0.5) / 1000]
    assert np.allclose(np.sort(logs), np.linspace(-2, 2, 1001)[:-1] + 0.002)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Uniform(2, 1),
        lambda: Uniform(0, math.inf),
        lambda: LogUniform(0, 1),
        lambda: LogUniform(-1, 1),
        lambda: Choice(()),
        lambda: Choice((1, 2), weights=(1,)),
        lambda: Choice((1, 2), weights=(0, 0)),
        lambda: Choice((1, 2), weights=(-1, 2)),
        lambda: from_json({"normal": [0, 1]}),
        lambda: from_json({"uniform": [0, 1, 2]}),
        lambda: from_json({"uniform": ["a", "b"]}),
        lambda: from_json(None),
    ],
)
def test_refused(make):
    with pytest.raises(InputError):
        make()
