"""Bands: crossing probabilities against a recursion in many digits, golden levels, ranks chosen after a look."""

import math

import mpmath
import numpy as np
import pytest
from golden import agrees
from hypothesis import given, settings
from hypothesis import strategies as st

from echobound.errors import InputError
from echobound.scenario import DistributionBand, RankBand, epsilon_exact
from echobound.scenario.bands import crossing_probability, local_level, rank_limits

# beta, K: gamma and epsilon_1, _2, _5, _10 for N = 645
LEVELS = {
    (0.05, 10): "0.013612765 0.0066394844 0.0097000231 0.017196909 0.028053470",
    (0.05, 50): "0.0068127231 0.0077049901 0.010922273 0.018728076 0.029929933",
    (0.05, 645): "0.0013593751 0.010181504 0.013702796 0.022120576 0.034014270",
    (1e-3, 645): "1.6126831e-5 0.016963047 0.021069767 0.030717697 0.044036930",
}
# At beta = 1e-7 the specification's values come from 1 - P and are right to five digits; `crossing` below has the rest.
LEVELS_SMALL = {
    (1e-7, 50): "5.9851e-9 0.028928 0.033668 0.044729 0.059751",
    (1e-7, 645): "9.5166e-10 0.031693 0.036540 0.047852 0.063184",
}


@pytest.mark.parametrize(("beta", "ranks"), {**LEVELS, **LEVELS_SMALL})
def test_golden_levels(beta, ranks):
    golden = {**LEVELS, **LEVELS_SMALL}[beta, ranks].split()
    band = RankBand.of(range(645), beta=beta, ranks=ranks)
    for value, text in zip([band.level, *(band.epsilons[k - 1] for k in (1, 2, 5, 10))], golden, strict=True):
        assert agrees(value, text)


def crossing(networks, limits, digits=40):
    """P(U_(k) > c_k for some k) by first crossings: no Poisson process, no rounding to speak of."""
    with mpmath.workdps(digits):
        c = [mpmath.mpf(float(limit)) for limit in limits]
        first = []
        for k in range(1, len(c) + 1):
            value = mpmath.binomial(networks, k - 1) * c[k - 1] ** (k - 1) * (1 - c[k - 1]) ** (networks - k + 1)
            for i in range(1, k):
                n, share = networks - i + 1, (c[k - 1] - c[i - 1]) / (1 - c[i - 1])
                value -= first[i - 1] * mpmath.binomial(n, k - i) * share ** (k - i) * (1 - share) ** (n - k + i)
            first.append(value)
        return float(mpmath.fsum(first))


@pytest.mark.parametrize(
    ("networks", "beta", "ranks"), [(645, 1e-7, 50), (645, 0.05, 10), (59, 1e-12, 59), (40, 0.3, 7)]
)
def test_bands_miss_with_probability_beta(networks, beta, ranks):
    """The limits that are reported, judged in forty digits."""
    limits = RankBand.of(range(networks), beta=beta, ranks=ranks).epsilons
    found = crossing(networks, limits)
    assert found <= beta
    assert found == pytest.approx(beta, rel=1e-8)


@given(st.integers(1, 6), st.data())
@settings(max_examples=30, deadline=None)
def test_crossing_against_the_other_recursion(networks, data):
    limits = sorted(data.draw(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=networks)))
    assert crossing_probability(networks, limits) == pytest.approx(crossing(networks, limits), abs=1e-12)


def test_two_sided_crossing_by_hand():
    """One number between a and b; two numbers, each with its own limits."""
    assert crossing_probability(1, [0.8], [0.3]) == pytest.approx(0.5)
    # U_(1) in [0.1, 0.6], U_(2) in [0.4, 0.9]: twice the area of that rectangle where U_(1) < U_(2).
    inside = 2 * (0.5 * 0.5 - 0.5 * 0.2**2)
    assert crossing_probability(2, [0.6, 0.9], [0.1, 0.4]) == pytest.approx(1 - inside)


def test_one_rank_has_nothing_to_share():
    for beta in (0.05, 1e-7):
        assert local_level(645, beta, ranks=1) == beta
        assert RankBand.of(range(645), beta=beta, ranks=1).epsilons[0] == pytest.approx(
            epsilon_exact(645, beta), rel=1e-9
        )


def test_two_sided_golden():
    band = DistributionBand.of(range(645), beta=0.05)
    assert agrees(band.level, "0.0011980404")
    limits = {1: ("9.2899e-7", "0.01143829"), 33: ("0.02742011", "0.08348034"), 323: ("0.43650839", "0.56349161")}
    for k, (lower, upper) in limits.items():
        assert agrees(band.lower[k - 1], lower)
        assert agrees(band.upper[k - 1], upper)
    assert crossing_probability(645, band.upper, band.lower) == pytest.approx(0.05, rel=1e-8)


def test_two_sided_bands_are_symmetric():
    lower, upper = rank_limits(50, 0.01, 50, two_sided=True)
    np.testing.assert_allclose(lower, 1 - upper[::-1], rtol=1e-9)


def test_tails_are_sharper_than_a_constant_band():
    band = DistributionBand.of(range(645), beta=0.05)
    constant = math.sqrt(math.log(2 / 0.05) / (2 * 645))  # Dvoretzky, Kiefer, Wolfowitz; Massart's constant
    assert agrees(constant, "0.0534751950")
    assert band.upper[0] < constant / 4


def test_ranks_chosen_after_a_look():
    band = RankBand.of([5.0, math.nan, 3.0, 4.0], beta=0.5, ranks=4, score="fit")
    assert band.thresholds == (5.0, 4.0, 3.0, None)
    assert "any finite score at most" in RankBand.of([math.nan] * 3, beta=0.5).words
    worst = RankBand.of([5.0, math.nan], beta=0.5, case="worst")
    assert worst.thresholds == (None, 5.0)
    with pytest.raises(InputError, match="5 ranks of 4"):
        RankBand.of(range(4), beta=0.5, ranks=5)
