"""Coverage: certificates over many campaigns, and three mutants that must be caught."""

import numpy as np
import pytest
from coverage_harness import (
    EPSILON,
    LEVEL,
    NETWORKS,
    count_p_value,
    miss_p_value,
    thresholds,
    violation_counts,
)
from scipy import stats

CAMPAIGNS = 20_000
FIT = stats.gumbel_l(loc=85.0, scale=4.0)  # left-skewed, as FIT is
CASES = [("max", "best"), ("max", "worst"), ("min", "best"), ("min", "worst")]


def draws(networks, seed=0, law=FIT):
    return law.ppf(np.random.default_rng(seed).random((CAMPAIGNS, networks)))


def violation(threshold, direction="max", case="best", law=FIT):
    """P(a new score lies beyond the threshold), from the score's own law."""
    return law.sf(threshold) if (direction == "max") == (case == "best") else law.cdf(threshold)


def test_number_of_networks():
    assert NETWORKS == 59


@pytest.mark.parametrize(("direction", "case"), CASES)
def test_continuous_score(direction, case):
    found = thresholds(draws(NETWORKS, seed=CASES.index((direction, case))), direction, case)
    assert miss_p_value(violation(found, direction, case), NETWORKS) > LEVEL


def test_half_of_the_networks_diverge():
    """Counted as networks, they leave the certificate of the whole law as it is."""
    scores = draws(NETWORKS, seed=10)
    scores[np.random.default_rng(11).random(scores.shape) < 0.5] = np.nan
    found = thresholds(scores)
    assert miss_p_value(0.5 * violation(found), NETWORKS) > LEVEL


@pytest.mark.parametrize(("direction", "case"), CASES)
def test_ties(direction, case):
    """Whole per cents: the certificate may only miss less often."""
    found = thresholds(np.round(draws(NETWORKS, seed=20)), direction, case)
    beyond = 0.5 if (direction == "max") == (case == "best") else -0.5
    assert miss_p_value(violation(found + beyond, direction, case), NETWORKS, alternative="greater") > LEVEL


def test_mutant_number_overstated():
    """59 / 1.2 networks are drawn, 59 are quoted."""
    found = thresholds(draws(int(NETWORKS / 1.2), seed=30))
    assert miss_p_value(violation(found), NETWORKS) < LEVEL


def test_mutant_failures_dropped():
    """Half of the networks diverge and are dropped: the rest follow the law of finite scores, and 59 are quoted."""
    scores = draws(NETWORKS, seed=40)
    scores[np.random.default_rng(41).random(scores.shape) < 0.5] = np.nan
    found = thresholds(scores)
    assert miss_p_value(violation(found), NETWORKS) < LEVEL


def test_both_tests_are_sharp():
    """The harness sees an error of 10 % in the number of networks, with the number of campaigns it is run with."""
    rng = np.random.default_rng(50)
    assert miss_p_value(rng.beta(1, NETWORKS, CAMPAIGNS), NETWORKS) > LEVEL
    assert miss_p_value(rng.beta(1, NETWORKS * 0.9, CAMPAIGNS), NETWORKS) < LEVEL
    assert miss_p_value(rng.beta(1, NETWORKS * 1.1, CAMPAIGNS), NETWORKS) < LEVEL


def cheap_campaign(number, *, direction="max", shared=False):
    search, fresh = (np.random.default_rng([60, stream, number]) for stream in (0, 0 if shared else 1))
    sign = 1.0 if direction == "max" else -1.0
    return sign * FIT.ppf(search.random(NETWORKS)), sign * FIT.ppf(fresh.random(NETWORKS))


@pytest.mark.parametrize(("direction", "case"), CASES)
def test_violation_counts(direction, case):
    counts = violation_counts(lambda i: cheap_campaign(i, direction=direction), 400, direction, case)
    assert count_p_value(counts, NETWORKS, NETWORKS) > LEVEL


def test_mutant_verification_shares_the_search_stream():
    counts = violation_counts(lambda i: cheap_campaign(i, shared=True), 400)
    assert set(counts) == {0}
    assert count_p_value(counts, NETWORKS, NETWORKS) < LEVEL


def test_mutants_in_the_counts():
    """Fewer networks than quoted, and an unlucky law of counts, are seen by the chi-square test too."""
    rng = np.random.default_rng(70)
    honest = rng.binomial(500, rng.beta(1, NETWORKS, CAMPAIGNS))
    assert count_p_value(honest.tolist(), NETWORKS, 500) > LEVEL
    assert count_p_value(honest.tolist(), round(NETWORKS * 1.2), 500) < LEVEL
    binomial = rng.binomial(500, 1 / (NETWORKS + 1), CAMPAIGNS)  # the mean without the spread
    assert count_p_value(binomial.tolist(), NETWORKS, 500) < LEVEL


def test_cells_are_pooled():
    with pytest.raises(ValueError, match="single cell"):
        count_p_value([0, 0, 1], NETWORKS, 3)
    law = stats.betabinom(500, 1, NETWORKS)
    typical = [x for x in range(501) for _ in range(round(4000 * law.pmf(x)))]
    assert count_p_value(typical, NETWORKS, 500) > 0.99


def test_epsilon_is_the_issue_s():
    assert EPSILON == 0.05
    assert pytest.approx(0.0485, abs=1e-4) == (1 - EPSILON) ** NETWORKS
