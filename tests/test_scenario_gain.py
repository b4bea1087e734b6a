"""Is it worth training more: exact, unbiased, and estimated."""

import math
from itertools import combinations

import mpmath
import numpy as np
import pytest
from golden import agrees
from scipy import stats

from echobound.errors import InputError
from echobound.scenario import (
    Anytime,
    ExpectedGain,
    Gain,
    ScoreName,
    Search,
    learning_curve,
    statements_of,
    tail_gain,
)
from echobound.scenario.statements.gain import _tail, beaten_probability

EXPONENTIAL = [-math.log(1 - i / 201) for i in range(1, 201)]
BOUNDED = [100 - 10 * math.sqrt(1 - i / 201) for i in range(1, 201)]


def test_probability_to_be_beaten():
    assert agrees(beaten_probability(645, 500), "0.436681")
    assert beaten_probability(645, 645) == 0.5
    assert beaten_probability(645, 9 * 645) == pytest.approx(0.9)
    assert beaten_probability(645, 0) == 0


def test_golden():
    assert agrees(tail_gain(EXPONENTIAL), "1.6391119248")
    assert agrees(tail_gain(EXPONENTIAL, factor=2), "0.5222578987")
    assert agrees(tail_gain(BOUNDED), "0.4298792200")
    assert agrees(tail_gain(BOUNDED, factor=2), "0.1841383756")
    tail = _tail(np.array(EXPONENTIAL), 20)
    assert agrees(tail.shape, "-0.0718690860")
    assert agrees(tail.scale, "0.9944175565")
    tail = _tail(np.array(BOUNDED), 20)
    assert tail.shape == -0.5, "clipped from -0.5141467832"
    assert agrees(tail.scale, "1.5862624814")
    assert agrees(max(EXPONENTIAL), "5.3033049081")
    assert agrees(max(BOUNDED), "99.2946543841")
    for scores, golden in ((EXPONENTIAL, "3.4600810952"), (BOUNDED, "98.0174285450")):
        assert agrees(learning_curve(scores, [20])[0], golden)
    assert agrees(learning_curve(EXPONENTIAL, [100])[0], "4.7976522524")
    assert agrees(learning_curve(range(1, 11), [5])[0], "9.1666666667")
    assert learning_curve(range(1, 11), [9])[0] == pytest.approx(9.9)


def test_learning_curve_by_brute_force():
    scores = np.random.default_rng(0).normal(size=8)
    for n in range(1, 9):
        every = [max(part) for part in combinations(scores, n)]
        assert learning_curve(scores, [n])[0] == pytest.approx(np.mean(every))
        every = [min(part) for part in combinations(scores, n)]
        assert learning_curve(scores, [n], "min")[0] == pytest.approx(np.mean(every))
    curve = learning_curve(scores, range(1, 9))
    assert curve[0] == pytest.approx(scores.mean())
    assert curve[-1] == scores.max()
    assert curve[-1] - curve[-2] == pytest.approx(np.diff(np.sort(scores))[-1] / 8)
    assert (np.diff(curve, 2) <= 1e-12).all(), "concave"


def test_learning_curve_with_divergence():
    """Finite only where n networks cannot all have diverged."""
    scores = [1.0, 2.0, math.nan, math.nan]
    np.testing.assert_array_equal(np.isfinite(learning_curve(scores, [1, 2, 3, 4])), [False, False, True, True])
    assert learning_curve(scores, [2], "min")[0] == math.inf
    with pytest.raises(InputError, match="up to the 4 networks"):
        learning_curve(scores, [5])


def test_scores_to_minimise_gain_as_their_negatives():
    assert tail_gain([-s for s in EXPONENTIAL], direction="min") == pytest.approx(tail_gain(EXPONENTIAL))
    assert Gain.of([-s for s in BOUNDED], direction="min").last_decade == pytest.approx(Gain.of(BOUNDED).last_decade)


def test_tail_of_shape_zero():
    """Heavy tails are clipped to the exponential: sigma ln(factor)."""
    heavy = stats.t(3).ppf(np.arange(1, 401) / 401)
    tail = _tail(np.sort(heavy), 40)
    assert tail.shape == 0
    assert tail.gain(10) == pytest.approx(tail.scale * math.log(10))


@pytest.mark.parametrize(
    "scores", [[1.0] * 100, [1.0, 2.0], [math.nan] * 100, [math.nan] * 95 + [1.0, 2.0, 3.0, 4.0, 5.0]]
)
def test_where_nothing_can_be_said(scores):
    assert tail_gain(scores) is None
    assert "too few or too alike" in Gain.of(scores).words


@pytest.mark.parametrize("factor", [1, 0, math.nan, math.inf])
def test_bad_factors(factor):
    with pytest.raises(InputError):
        tail_gain(EXPONENTIAL, factor)


def test_words():
    words = Gain.of(BOUNDED, score="fit", unit="%").words
    assert words.startswith("Ten times as many networks would probably gain about 0.4 FIT points")
    assert "probability at most 0.9" in words
    assert Gain.of(BOUNDED, factor=2).words.startswith("Twice as many")
    assert Gain.of(BOUNDED, factor=3).words.startswith("3 times as many")


# law: true gain of 10 times more, bias and relative root-mean-square error of the last decade and of the tail, per cent
MONTE_CARLO = {
    "normal": (stats.norm, "0.62907", (23, 52), (-14, 51)),
    "exponential": (stats.expon, "2.30189", (0, 46), (-20, 34)),
    "student": (stats.t(5), "4.02743", (-33, 56), (-58, 59)),
}


@pytest.mark.parametrize("name", MONTE_CARLO)
def test_error_of_the_estimates(name):
    """The errors the documentation states, within what 500 runs can tell."""
    law, gain, *errors = MONTE_CARLO[name]
    rng = np.random.default_rng(2)
    true = float(gain)
    found = [Gain.of(law.ppf(rng.random(645))) for _ in range(500)]
    for values, (bias, spread) in zip(([g.last_decade for g in found], [g.tail for g in found]), errors, strict=True):
        relative = np.array(values) / true - 1
        assert 100 * relative.mean() == pytest.approx(bias, abs=8)
        assert 100 * math.sqrt((relative**2).mean()) == pytest.approx(spread, abs=10)


def found_better(scores, further, rng, campaigns=4000):
    """How often the best of so many further draws of a discrete law beats the best of 30."""
    first = rng.choice(scores, size=(campaigns, 30)).max(axis=1)
    return float((rng.choice(scores, size=(campaigns, further)).max(axis=1) > first).mean())


def test_with_ties_a_better_one_is_found_less_often_and_the_words_say_at_most():
    """0.9 was promised for ten times as many; a score of few values gives less, a saturated one nothing."""
    rng = np.random.default_rng(0)
    assert found_better(np.arange(60.0), 270, rng) < 0.8
    assert found_better(np.full(60, 100.0), 270, rng) == 0
    for scores in (np.arange(60.0), np.full(60, 100.0)):
        words = Gain.of(scores).words
        assert "a better one with probability at most 0.9" in words


def test_where_one_stops_at_will_nothing_is_said_about_finding_a_better_one():
    how = {"table": np.random.default_rng(0).normal(size=(200, 1)), "scores": (ScoreName(),), "beta": 0.05}
    [stopped] = [s for s in statements_of(Search(**how, stop=Anytime(beta=0.05))) if isinstance(s, Gain)]
    assert stopped.at_will
    assert "better one" not in stopped.words
    [patient] = [s for s in statements_of(Search(**how)) if isinstance(s, Gain)]
    assert "better one" in patient.words


def test_the_expected_gain_of_a_bounded_score():
    """(B - h)(1 - (1 - epsilon)^M), in exact arithmetic."""
    scores = 80 + 10 * np.random.default_rng(1).random(100)
    gain = ExpectedGain.of(scores, beta=0.05, further=20, score="fit", unit="%")
    with mpmath.workdps(40):
        epsilon = 1 - mpmath.mpf("0.05") ** (mpmath.mpf(1) / 100)
        limit = (100 - mpmath.mpf(float(scores.max()))) * (1 - (1 - epsilon) ** 20)
    assert float(limit) <= gain.limit == pytest.approx(float(limit), rel=1e-9)
    smaller = ExpectedGain.of(scores, beta=0.05, further=20, score="rmse", direction="min")
    assert smaller.limit < scores.min()
    with pytest.raises(InputError, match="known for fit"):
        ExpectedGain.of(scores, beta=0.05, further=20, score="own")
