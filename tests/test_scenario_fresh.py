"""Verification: the beta-binomial law, Clopper-Pearson, the combined certificate, counting."""

import math
from fractions import Fraction
from itertools import combinations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from echobound.errors import InputError
from echobound.scenario import (
    ViolationLaw,
    beta_exact,
    count_violations,
    epsilon_exact,
    verify_counts,
    verify_divergence,
)

AT_LEAST = [
    1,
    0.436681222707,
    0.190475463401,
    0.0829893095134,
    0.0361170637725,
    0.0157003186951,
    0.00681724364394,
]
EXACTLY = {
    1: [
        0.563318777293,
        0.246205759306,
        0.107486153888,
        0.0468722457409,
        0.0204167450773,
        0.00888307505119,
        0.00386051110653,
    ],
    2: [0.317113017986, 0.277439210837, 0.181841724441, 0.105822002654],
    5: [0.0563404255084, 0.123553564711, 0.162387784349, 0.165812482788],
}
# x: Clopper-Pearson at 0.05, 1e-3, 1e-7, combined at the same (N = 645, M = 500)
LIMITS = [
    (0.005973551516, 0.01372051437, 0.03172214374, 0.002612940377, 0.006014812197, 0.01397832260),
    (0.009452282208, 0.01831554387, 0.03755467477, 0.004136345806, 0.008035186610, 0.01656705378),
    (0.01253760541, 0.02225156374, 0.04249561602, 0.005488204188, 0.009767442904, 0.01876309811),
    (0.01543373488, 0.02586300074, 0.04697821572, 0.006757706929, 0.01135805957, 0.02075774193),
    (0.01821285180, 0.02927061048, 0.05116536917, 0.007976362235, 0.01285989276, 0.02262283420),
]


def test_golden_probabilities():
    for violations, golden in enumerate(AT_LEAST):
        assert math.isclose(verify_counts(645, 500, violations).p_value, golden, rel_tol=1e-11)
    for rank, row in EXACTLY.items():
        for violations, golden in enumerate(row):
            outcome = verify_counts(645, 500, violations, rank=rank)
            assert math.isclose(outcome.probability, golden, rel_tol=1e-11)


def test_golden_limits():
    for violations, row in enumerate(LIMITS):
        for beta, alone, combined in zip((0.05, 1e-3, 1e-7), row[:3], row[3:], strict=True):
            outcome = verify_counts(645, 500, violations, beta=beta, settled=True)
            assert math.isclose(outcome.epsilon_fresh, alone, rel_tol=6e-10)
            assert math.isclose(outcome.epsilon_combined, combined, rel_tol=6e-10)


def test_golden_posterior():
    """V | X = x is Beta(1 + x, N + M - x): its tail beyond 0.01 is the exact bound for all 1145 networks."""
    golden = (1.00530493e-5, 1.26323165e-4, 7.98106059e-4, 3.38345234e-3, 1.08391732e-2)
    assert [beta_exact(1145, 0.01, d=1 + x) for x in range(5)] == pytest.approx(golden, rel=6e-9)
    assert ViolationLaw(1145, rank=3).mean == 3 / 1146
    assert stats.binom.cdf(4, 500, 0.05) == pytest.approx(1.7e-7, abs=5e-9)


def test_golden_moments_and_the_paper():
    law = [verify_counts(645, 500, x).probability for x in range(60)]
    mean = sum(x * p for x, p in enumerate(law))
    assert mean == pytest.approx(0.773993808, rel=1e-9) == verify_counts(645, 500, 0).expected
    assert math.sqrt(sum(x * x * p for x, p in enumerate(law)) - mean**2) == pytest.approx(1.16996403, rel=1e-8)
    assert 21 * law[0] == pytest.approx(11.8296943, rel=1e-8)
    largest = [sum(law[: top + 1]) ** 21 for top in range(6)]  # of 21 orders
    assert largest[2:] == pytest.approx([0.162130, 0.461860, 0.717256, 0.866189], abs=6e-7)


@pytest.mark.parametrize(
    ("networks", "fresh", "rank"), [(645, 500, 1), (645, 500, 7), (3, 4, 2), (1, 1, 1), (59, 9, 59)]
)
def test_against_scipy(networks, fresh, rank):
    law = stats.betabinom(fresh, rank, networks - rank + 1)
    for violations in range(min(fresh, 12) + 1):
        outcome = verify_counts(networks, fresh, violations, rank=rank)
        assert outcome.probability == pytest.approx(law.pmf(violations), rel=1e-8)
        assert outcome.p_value == pytest.approx(law.sf(violations - 1), rel=1e-8)


def test_large_counts_against_mpmath():
    networks, fresh, violations, rank = 10**9, 10**4, 3, 2
    with mpmath.workdps(60):
        pmf = [
            mpmath.binomial(fresh, x)
            * mpmath.beta(x + rank, fresh - x + networks - rank + 1)
            / mpmath.beta(rank, networks - rank + 1)
            for x in range(violations + 1)
        ]
        golden = float(1 - sum(pmf[:violations]))
    outcome = verify_counts(networks, fresh, violations, rank=rank)
    assert math.isclose(outcome.p_value, golden, rel_tol=1e-14)
    assert math.isclose(outcome.probability, float(pmf[-1]), rel_tol=1e-14)


def test_by_enumeration_of_orderings():
    """Every choice of the M places that fresh networks take among all N + M ranks is equally likely."""
    for networks, fresh, rank in [(1, 3, 1), (3, 2, 1), (4, 3, 2), (3, 4, 3)]:
        counts = []
        for places in combinations(range(networks + fresh), fresh):  # 0 is the best
            search = [place for place in range(networks + fresh) if place not in places]
            counts.append(sum(place < search[rank - 1] for place in places))
        for violations in range(fresh + 1):
            outcome = verify_counts(networks, fresh, violations, rank=rank)
            exactly = Fraction(counts.count(violations), len(counts))
            at_least = Fraction(sum(count >= violations for count in counts), len(counts))
            assert outcome.probability == pytest.approx(float(exactly), rel=1e-15)
            assert outcome.p_value == pytest.approx(float(at_least), rel=1e-15)


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 5), st.integers(0, 5), st.integers(1, 3))
def test_relations(networks, fresh, violations, ties, rank):
    if rank > networks or violations + ties > fresh:
        with pytest.raises(InputError):
            verify_counts(networks, fresh, violations, ties, rank=rank)
        return
    outcome = verify_counts(networks, fresh, violations, ties, beta=1e-3, rank=rank, settled=True)
    assert 0 < outcome.probability <= outcome.p_value * (1 + 1e-12) <= 1 + 1e-12
    assert outcome.epsilon_combined == epsilon_exact(networks + fresh, 1e-3, d=rank + violations + ties)
    if violations < fresh:
        assert outcome.epsilon_fresh == epsilon_exact(fresh, 1e-3, d=violations + 1)
    again = verify_counts(networks, fresh, violations, ties, beta=1e-3, rank=rank)
    assert again.p_value == outcome.p_value
    assert again.epsilon_combined >= outcome.epsilon_combined, "whoever may look again pays for it"
    assert again.epsilon_fresh >= outcome.epsilon_fresh


def test_every_fresh_network_violates():
    assert verify_counts(10, 3, 3).epsilon_fresh == 1.0


def test_combined_certificate_misses_as_often_as_it_says():
    """Conditionally on the count, too: V of the best of 59, tested by 40 fresh, beta = 0.05."""
    rng = np.random.default_rng(3)
    best = rng.beta(1, 59, size=20_000)
    counts = rng.binomial(40, best)
    limits = np.array([verify_counts(59, 40, x, beta=0.05, settled=True).epsilon_combined for x in range(41)])
    for chosen in (counts >= 0, counts == 0, counts == 1, counts == 2):
        misses = int((best > limits[counts])[chosen].sum())
        assert stats.binomtest(misses, int(chosen.sum()), 0.05).pvalue > 1e-3


@pytest.mark.parametrize(
    ("threshold", "direction", "case", "expected"),
    [
        (90.0, "max", "best", (1, 2)),
        (90.0, "max", "worst", (3, 2)),  # 50 and both that diverged
        (90.0, "min", "best", (1, 2)),
        (90.0, "min", "worst", (3, 2)),  # 95 and both that diverged
        (None, "max", "best", (4, 2)),  # all of the search diverged: whatever is finite beats it
        (None, "max", "worst", (0, 2)),  # nothing is worse than diverging
        (None, "min", "worst", (0, 2)),
    ],
)
def test_counting(threshold, direction, case, expected):
    diverged = -np.inf if direction == "max" else np.inf
    scores = [50.0, 90.0, 90.0, 95.0, diverged, np.nan]
    assert count_violations(scores, threshold, direction, case) == expected
    assert count_violations(scores[::-1], threshold, direction, case) == expected


def test_counting_mirrors():
    scores = np.random.default_rng(4).integers(0, 5, 50).astype(float)
    for case in ("best", "worst"):
        assert count_violations(scores, 2.0, "max", case) == count_violations(-scores, -2.0, "min", case)


def test_counting_needs_a_direction():
    with pytest.raises(InputError, match="'max' or 'min'"):
        count_violations([1.0], 1.0, "up", "best")


def test_statement():
    text = verify_counts(645, 500, 3, ties=1, beta=1e-3).statement()
    assert "500 fresh networks" in text
    assert "0.774" in text
    assert "0.083" in text
    assert "tie" in text


@given(st.integers(0, 40), st.integers(0, 60), st.sampled_from([0.05, 1e-3, 1e-7]))
@settings(max_examples=40, deadline=None)
def test_divergence_is_pooled_clopper_pearson(failures, diverged, beta):
    outcome = verify_divergence(networks=40, failures=failures, fresh=60, diverged=diverged, beta=beta, settled=True)
    total = failures + diverged
    expected = 1.0 if total == 100 else stats.beta.isf(beta, total + 1, 100 - total)
    assert outcome.epsilon_combined == pytest.approx(expected, rel=1e-8)
    alone = 1.0 if diverged == 60 else stats.beta.isf(beta, diverged + 1, 60 - diverged)
    assert outcome.epsilon_fresh == pytest.approx(alone, rel=1e-8)
    assert f"{diverged} diverged" in outcome.statement


def test_impossible_divergence_is_refused():
    with pytest.raises(InputError):
        verify_divergence(10, 11, 5, 0)


def test_unknown_case_is_refused():
    with pytest.raises(InputError, match="case"):
        count_violations([1.0], 0.5, "max", "median")


def test_after_a_stop_at_will_a_search_counts_by_its_martingale():
    """Who stops where the best looks weak misses far more often than beta, if search and fresh networks are pooled."""
    beta, fresh, most, runs = 0.05, 50, 2000, 1500
    random = np.random.default_rng(5)
    n = np.arange(1, most + 1)
    pooled = honest = 0
    for _ in range(runs):
        best = np.minimum.accumulate(random.random(most))  # the violation probability of the best so far
        weak = np.nonzero((best > 1 - beta ** (1 / n)) & (n >= 100))[0]
        at = int(weak[0]) if len(weak) else most - 1
        violations = int(random.binomial(fresh, best[at]))
        pooled += best[at] > stats.beta.isf(beta, violations + 1, n[at] + fresh - violations)
        honest += best[at] > verify_counts(int(n[at]), fresh, violations, beta=beta, at_will=True).epsilon_combined
    assert pooled > 0.15 * runs
    assert honest < beta * runs
    outcome = verify_counts(2000, fresh, 1, beta=beta, at_will=True)
    assert outcome.epsilon_combined < outcome.epsilon_fresh, "the search counts again, by its own martingale"
    assert "for 2000 networks of a search and 50 fresh ones settled beforehand, the exact" in outcome.statement()
    alone = verify_counts(2000, fresh, 1, beta=beta, alone=True)
    assert alone.epsilon_combined == alone.epsilon_fresh
    assert "The 50 alone certify epsilon" in alone.statement()
