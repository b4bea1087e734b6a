"""Limits: by what rule they follow from training outputs, and that nothing leaves them."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from echobound.data import Record
from echobound.data.scaling import Scaling
from echobound.network import Limits

REAL = st.floats(-1e12, 1e12, allow_nan=False)
SIGNALS = hnp.arrays(np.float64, st.tuples(st.integers(2, 300), st.integers(1, 3)), elements=REAL)
ANY = st.floats(allow_nan=True, allow_infinity=True)


def by_hand(y):
    """Limits of one output from what docs/choosing.md says of them, sample by sample."""
    low, high = min(y), max(y)
    span = high - low
    if span == 0:
        span = max(abs(high), 1.0)
        return low - 0.25 * span, high + 0.25 * span, 0.0
    at_low = sum(value <= low + 1e-6 * span for value in y)
    at_high = sum(value >= high - 1e-6 * span for value in y)
    sticks = [count >= 5 and count >= 0.01 * len(y) for count in (at_low, at_high)]
    share = (at_low * sticks[0] + at_high * sticks[1]) / len(y)
    return low if sticks[0] else low - 0.25 * span, high if sticks[1] else high + 0.25 * span, share


@settings(deadline=None)
@given(SIGNALS, st.integers(1, 40), st.integers(0, 20))
def test_they_follow_from_the_rule_for_each_output_alone(y, parts, sticking):
    y = np.concatenate([y, np.repeat(y.max(axis=0)[None], sticking, axis=0)])
    limits = Limits.of(np.array_split(y, min(parts, len(y))))
    for output in range(y.shape[1]):
        low, high, share = by_hand(y[:, output].tolist())
        assert (limits.low[output], limits.high[output]) == (low, high)
        assert limits.share[output] == pytest.approx(share)


@given(SIGNALS, st.data())
@settings(deadline=None)
def test_nothing_leaves_them_and_what_is_within_stays(y, data):
    limits = Limits.of([y])
    wild = data.draw(hnp.arrays(np.float64, (20, y.shape[1]), elements=ANY))
    clipped = limits.clip(wild)
    assert (clipped >= limits.low).all()
    assert (clipped <= limits.high).all()
    within = (wild >= limits.low) & (wild <= limits.high)
    assert (clipped[within] == wild[within]).all()
    low, high = np.broadcast_to(limits.low, wild.shape), np.broadcast_to(limits.high, wild.shape)
    assert (clipped[np.isnan(wild)] == low[np.isnan(wild)]).all(), "what is not a number is at the lower one"
    assert (clipped[wild > high] == high[wild > high]).all()
    assert (limits.clip(y) == y).all(), "the training data are within"
    assert (limits.low < limits.high).all()


@pytest.mark.parametrize(
    ("samples", "sticking", "widened"),
    [(1000, 9, True), (1000, 10, False), (100, 4, True), (100, 5, False), (400, 4, True), (600, 6, False)],
)
def test_a_side_is_not_widened_from_one_per_cent_and_five_samples_on(samples, sticking, widened):
    y = np.linspace(0.0, 1.0, samples)
    y[-sticking:] = 1.0
    limits = Limits.of([y[:, None]])
    assert limits.high[0] == (1.25 if widened else 1.0)
    assert limits.low[0] == pytest.approx(-0.25)
    assert limits.share[0] == (0 if widened else pytest.approx(sticking / samples))


def test_both_sides_may_stick():
    y = np.clip(3.0 * np.sin(0.1 * np.arange(500)), -1.0, 2.0)[:, None]
    limits = Limits.of([y])
    assert (limits.low[0], limits.high[0]) == (-1.0, 2.0)
    assert limits.share[0] == pytest.approx(((y == -1) | (y == 2)).mean())


@pytest.mark.parametrize(("level", "low", "high"), [(0.0, -0.25, 0.25), (8.0, 6.0, 10.0), (-8.0, -10.0, -6.0)])
def test_an_output_that_never_moved_may_move_by_a_quarter_of_its_size(level, low, high):
    limits = Limits.of([np.full((50, 1), level)])
    assert (limits.low[0], limits.high[0], limits.share[0]) == (low, high, 0.0)


@given(SIGNALS, st.sampled_from(["minmax", "standard", "none"]))
@settings(deadline=None)
@example(1e9 + np.linspace(0, 1e-3, 50)[:, None], "standard")
def test_an_output_at_a_limit_is_seen_there_after_the_way_to_scaled_units_and_back(y, kind):
    limits = Limits.of([y])
    scaling = Scaling.fit(kind, Record(u=np.zeros(len(y)), y=y))
    for end in (limits.low, limits.high):
        there = scaling.outputs_back(scaling.outputs(end))[None]
        # Where the range is lost in the rounding of its offset, nothing can be told.
        far = (limits.high - limits.low) > 1e-12 * np.abs(end)
        assert (limits.held(there)[far] == 1.0).all()


def test_held_counts_samples_at_either_limit():
    limits = Limits.of([np.array([[0.0, 0.0], [4.0, 8.0]])])
    assert (limits.low.tolist(), limits.high.tolist()) == ([-1.0, -2.0], [5.0, 10.0])
    y = np.array([[-1.0, 0.0], [5.0, 0.0], [4.9, 10.0], [0.0, -1.9]])
    assert limits.held(y).tolist() == [0.5, 0.25]


def test_a_model_is_held_beyond_five_per_cent_more_than_the_data_were():
    plain, saturated = Limits(np.zeros(1), np.ones(1), np.zeros(1)), Limits(np.zeros(1), np.ones(1), np.full(1, 0.3))
    for count, expected in ((5, (False, False)), (6, (True, False)), (34, (True, False)), (36, (True, True))):
        y = np.full((100, 1), 0.5)
        y[:count] = 1.0
        assert tuple(bool(limits.holds(limits.held(y))) for limits in (plain, saturated)) == expected
    assert plain.holds(np.array([[[0.01], [0.2]]])).tolist() == [[False, True]], "leading axes are other models"
