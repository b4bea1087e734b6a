"""What figures show, before anything is drawn: thinning keeps extremes, stairs count networks."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from echobound.report.panels import ScorePanel, histogram, staircase, thinned


def panel(scores, direction="max", **more):
    return ScorePanel(
        scores=np.asarray(scores, float), threshold=None, direction=direction, case="best", label="s", **more
    )


@settings(max_examples=60, deadline=None)
@given(
    signals=hnp.arrays(
        float, st.tuples(st.integers(1, 400), st.integers(1, 3)), elements=st.floats(-1e6, 1e6, allow_nan=False)
    ),
    most=st.integers(20, 200),
)
def test_thinning_keeps_the_extremes_of_every_stretch(signals, most):
    rows = thinned(signals, most)
    assert (np.diff(rows) > 0).all()
    count, width = signals.shape
    if count <= most:
        assert rows.tolist() == list(range(count))
        return
    assert len(rows) <= most
    assert {0, count - 1} <= set(rows.tolist())
    stretches = max(1, (most - 2) // (2 * width))
    edges = np.linspace(0, count, stretches + 1).astype(int)
    for start, stop in itertools.pairwise(edges):
        kept = rows[(rows >= start) & (rows < stop)]
        for column in signals.T:
            assert column[kept].max() == column[start:stop].max()
            assert column[kept].min() == column[start:stop].min()


def test_thinning_keeps_gaps_and_passes_over_them():
    signal = np.sin(np.arange(5000.0) / 50)[:, None]
    signal[[1000, 3000]] = np.nan
    signal[2000] = 9.0
    rows = thinned(signal, 300)
    assert {1000, 2000, 3000} <= set(rows.tolist())
    assert len(rows) <= 300


@settings(max_examples=60, deadline=None)
@given(
    scores=st.lists(st.one_of(st.integers(-5, 5).map(float), st.just(np.nan)), min_size=1, max_size=30),
    direction=st.sampled_from(["max", "min"]),
)
def test_stairs_count_the_networks_that_do_better(scores, direction):
    stairs = staircase(panel(scores, direction), reach=(-6.0, 6.0))
    middle = (stairs.score[:-1:2] + stairs.score[1::2]) / 2
    sign = 1 if direction == "max" else -1
    for place, share in zip(middle, stairs.share[::2], strict=True):
        if place in scores:
            continue  # two networks with one score: a step of no width
        assert share == np.sum(sign * np.array(scores) > sign * place) / len(scores)


def test_the_band_between_two_ranks_is_the_better_ones_lower_and_the_worse_ones_upper_limit():
    lower, upper = np.array([0.01, 0.1, 0.3]), np.array([0.4, 0.8, 0.95])
    stairs = staircase(panel([1.0, 3.0, 2.0]), (lower, upper), reach=(0.0, 4.0))
    assert stairs.low[::2].tolist() == [0.0, 0.01, 0.1, 0.3]
    assert stairs.high[::2].tolist() == [0.4, 0.8, 0.95, 1.0]
    with_failure = staircase(panel([1.0, 3.0, -np.inf]), (lower, upper), reach=(0.0, 4.0))
    assert with_failure.low[::2].tolist() == [0.0, 0.01, 0.1]
    assert with_failure.high[::2].tolist() == [0.4, 0.8, 0.95], "below the last finite score the diverged one is next"


def test_ranks_left_out_only_widen_the_band():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=3000)
    k = np.arange(1, 3001)
    band = k / 4000, np.minimum(k / 2500, 1.0)
    full, thin = (staircase(panel(scores), band, most=most, reach=(-9.0, 9.0)) for most in (5000, 400))
    assert len(thin.score) < 1000 < len(full.score)
    places = rng.uniform(-4, 4, 500)
    at = [np.searchsorted(-stairs.score, -places) for stairs in (full, thin)]
    assert (thin.low[at[1]] <= full.low[at[0]]).all()
    assert (thin.high[at[1]] >= full.high[at[0]]).all()
    assert np.abs(thin.share[at[1]] - full.share[at[0]]).max() < 0.01


def test_a_histogram_counts_what_is_finite_and_inside():
    counts, edges = histogram(np.array([0.0, 1.0, np.nan, np.inf, 5.0]), (0.0, 2.0), 2)
    assert counts.sum() == 2
    assert len(edges) == 3


@pytest.mark.parametrize("scores", [[np.nan], [np.inf, -np.inf]])
def test_nothing_finite_is_no_error(scores):
    assert panel(scores).limits == (0.0, 1.0)
    assert panel(scores).off.all()
    assert staircase(panel(scores)).share.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("scores", [[2.5e38], [-1.7e308, 1.7e308], [0.0], [-4.0, -4.0], [1e-320, 2e-320]])
@pytest.mark.parametrize("direction", ["max", "min"])
def test_limits_are_apart_and_finite_whatever_the_scores(scores, direction):
    low, high = panel(scores, direction).limits
    assert np.isfinite([low, high]).all()
    assert low < high
