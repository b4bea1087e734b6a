"""Stopping rules: golden limits, the exact recursion, patience by brute force, and what naive peeking costs."""

import math
from itertools import permutations

import numpy as np
import pytest
from golden import agrees
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import exp1
from validity_harness import peeking_probability

from echobound.errors import InputError
from echobound.scenario import (
    Anytime,
    Between,
    Looks,
    Mixture,
    Patience,
    Stopped,
    beta_exact,
    epsilon_exact,
    stopping_rule,
    verify_counts,
)

# beta: (C) 100..10000: b, epsilon at 100, 645, 10000; (I) from 100: b, at 100, 645, 1e4, 1e6; (M): at 100, 645, 1e4
LIMITS = {
    0.05: (
        "0.00163712732886 0.06213392937 0.00989615288 0.0006412755151",
        "0.00713027758243 0.04823207592 0.01086749352 0.0008387264674 9.590161065e-6",
        "0.07381416082 0.01458744623 0.001219975061",
    ),
    1e-3: (
        "1.96425144889e-5 0.1027117704 0.01666243287 0.001083194344",
        "8.72670599679e-5 0.0892304476 0.01759687233 0.00127857356 1.399324152e-5",
        "0.1096946275 0.02055514364 0.00161066226",
    ),
    1e-7: (
        "1.03886864324e-9 0.1868594739 0.03156118632 0.002066375456",
        "4.67486842857e-9 0.1745368434 0.03246227935 0.002260286063 2.382758287e-5",
        "0.1887868202 0.03446324481 0.002529881353",
    ),
}
FIXED_645 = {0.05: "0.00463378", 1e-3: "0.01065255", 1e-7: "0.02467965"}
LOOKS = {  # looks: b for 0.05, 1e-3, 1e-7
    (100, 200, 400, 800): ("0.013703061005", "2.53018489372e-4", "2.50029651628e-8"),
    (315, 645, 1000): ("0.0190622873633", "3.4195962698e-4", "3.33596473978e-8"),
}
ALL = range(100, 10_001)


def all_agree(values, golden):
    return all(agrees(value, text) for value, text in zip(values, golden.split(), strict=True))


@pytest.mark.parametrize("beta", LIMITS)
def test_golden_limits(beta):
    between, anytime, mixture = Between(beta=beta, first=100, last=10_000), Anytime(beta=beta), Mixture(beta=beta)
    c, i, m = LIMITS[beta]
    assert all_agree([between.share, *map(between.epsilon, (100, 645, 10_000))], c)
    assert all_agree([anytime.share, *map(anytime.epsilon, (100, 645, 10_000, 1_000_000))], i)
    assert all_agree(map(mixture.epsilon, (100, 645, 10_000)), m)
    assert agrees(epsilon_exact(645, beta), FIXED_645[beta])


@pytest.mark.parametrize("looks", LOOKS)
def test_golden_looks(looks):
    for beta, golden in zip(LIMITS, LOOKS[looks], strict=True):
        rule = Looks(beta=beta, looks=looks)
        assert agrees(rule.share, golden)
        assert rule.share >= beta / len(looks), "never worse than Bonferroni"


@pytest.mark.parametrize(
    ("rule", "golden"),
    [
        (Between(beta=0.05, first=100, last=10_000), "0.040523"),
        (Anytime(beta=0.05), "0.030565"),
        (Mixture(beta=0.05), "0.003582"),
        (Between(beta=1e-7, first=100, last=10_000), "9.31e-8"),
    ],
    ids=["C", "I", "M", "C small"],
)
def test_exact_miss_of_rules_looked_at_all_along(rule, golden):
    found = peeking_probability(ALL, [rule.epsilon(n) for n in ALL])
    assert agrees(found, golden)
    assert found <= rule.beta


def test_exact_miss_of_planned_looks():
    rule = Looks(beta=0.05, looks=(100, 200, 400, 800))
    assert agrees(peeking_probability(rule.looks, [rule.epsilon(n) for n in rule.looks]), "0.049063")


@pytest.mark.parametrize(("beta", "golden"), [(0.05, "0.447153"), (1e-3, "0.0271"), (1e-7, "6.92e-6")])
def test_what_naive_peeking_costs(beta, golden):
    found = peeking_probability(ALL, [-math.expm1(math.log(beta) / n) for n in ALL])
    assert agrees(found, golden)


def test_recursion_by_brute_force():
    """Minimum of uniform numbers on a grid of exact cases: two looks, by hand."""
    a, b = 0.3, 0.2
    # P(m_1 > a) + P(m_3 > b) - P(m_1 > a, m_3 > b)
    assert peeking_probability([1, 3], [a, b]) == pytest.approx(0.7 + 0.8**3 - 0.7 * 0.8**2)


# ---------------------------------------------------------------- patience


@pytest.mark.parametrize(
    ("draws", "golden"), [(10, "18.7083183"), (50, "89.9456266"), (100, "178.998516"), (1000, "1781.96303")]
)
def test_mean_of_patience(draws, golden):
    assert agrees(Patience(beta=0.05, draws=draws).mean, golden)


@pytest.mark.parametrize(("draws", "least"), [(1, 1), (2, 1), (2, 5), (3, 4)])
def test_patience_by_enumeration(draws, least):
    """All orders of 8 networks: the law of the number at which the rule stops, as far as 8 go."""
    rule, length = Patience(beta=0.05, draws=draws, least=least), 8
    stops = [rule.stops_at(order) for order in permutations(range(length))]
    counted = [stops.count(n) / len(stops) for n in range(1, length + 1)]
    # By the records alone: independent, network i is one with probability 1 / i.
    expected = np.zeros(length)
    for pattern in range(2 ** (length - 1)):
        records = [1] + [i for i in range(2, length + 1) if pattern >> (i - 2) & 1]
        probability = math.prod(1 / i if i in records else 1 - 1 / i for i in range(2, length + 1))
        for n in range(1, length + 1):
            if n >= least and n - max(r for r in records if r <= n) >= draws:
                expected[n - 1] += probability
                break
    np.testing.assert_allclose(counted, expected, atol=1e-12)


def test_mean_with_a_least_number_by_simulation():
    rule = Patience(beta=0.05, draws=5, least=12)
    rng = np.random.default_rng(0)
    found = [rule.stops_at(rng.random(400)) for _ in range(4000)]
    assert min(found) == 12
    assert np.mean(found) == pytest.approx(rule.mean, abs=5 * np.std(found) / math.sqrt(4000))


def test_patience_looks_at_ranks_alone():
    scores = np.random.default_rng(1).normal(size=300)
    rule = Patience(beta=0.05, draws=30)
    assert rule.stops_at(scores) == rule.stops_at(np.exp(scores)) == rule.stops_at(-scores, "min")
    n = rule.stops_at(scores)
    assert rule.stops_at(scores[:n]) == n, "what comes later does not matter"
    assert rule.stops_at(scores[: n - 1]) is None


def test_ties_are_broken_by_coins():
    """Of equal scores the record is wherever the largest coin fell: not always the first."""
    rules = [Patience(beta=0.05, draws=3, seed=seed) for seed in range(50)]
    stops = {rule.stops_at([1.0] * 100) for rule in rules}
    assert len(stops) > 3
    assert rules[0].stops_at([1.0] * 100) == rules[0].stops_at([7.0] * 100), "and reproducible"
    assert {rule.stops_at([np.nan] * 100) for rule in rules} == stops, "diverged networks are equal to each other"


def test_patience_that_has_not_stopped():
    with pytest.raises(InputError, match="draw more"):
        Stopped.of([1.0, 2.0, 3.0], Patience(beta=0.05, draws=5))


# ---------------------------------------------------------------- other statements of section 6


def test_stopping_at_a_target_is_harmless():
    """V ~ Uniform(0, p), tau ~ Geometric(p), independent; the miss tends to beta - L E1(L) as p tends to 0."""
    beta = 0.05

    def miss(p):
        n = np.arange(1, int(60 / p))
        epsilon = -np.expm1(math.log(beta) / n)
        return float((p * (1 - p) ** (n - 1) * np.maximum(p - epsilon, 0) / p).sum())

    limit = beta - math.log(1 / beta) * exp1(math.log(1 / beta))
    assert agrees(limit, "0.010698")
    assert miss(1e-4) == pytest.approx(limit, rel=1e-3)
    for p in (0.5, 0.1, 0.01):
        assert miss(p) <= beta / (1 - p)


def test_repetitive_design_is_worth_less_than_pooling():
    """Section 6.4 in the words of this library: draw N + M until at most r of M violate."""

    def law(n, m, r, epsilon):
        counts = [verify_counts(n, m, x).probability for x in range(r + 1)]
        passed = sum(counts)
        posterior = sum(p * beta_exact(n + m, epsilon, d=x + 1) for x, p in enumerate(counts)) / passed
        return passed, 1 / passed, posterior

    passed, rounds, posterior = law(645, 500, 3, 0.01)
    assert agrees(passed, "0.963882936")
    assert agrees(rounds, "1.03747")
    assert agrees(posterior, "2.91674e-4")
    passed, rounds, posterior = law(60, 255, 0, 0.05)
    assert posterior == pytest.approx(0.95**315), "as the best of all 315"
    assert agrees(rounds * 315, "1653.75")


# ---------------------------------------------------------------- the rules as objects


RULES = ["patience:200", "patience:20,315", "looks:100,200", "between:100,10000", "anytime", "anytime:50", "mixture"]


@pytest.mark.parametrize("text", RULES)
def test_rules_by_name(text):
    rule = stopping_rule(text, 1e-3)
    assert rule.kind == text.split(":")[0]
    epsilons = [rule.epsilon(n) for n in (1, 10, 99, 100, 315, 645, 9999, 10_000, 20_000)]
    assert epsilons == sorted(epsilons, reverse=True)
    assert all(limit >= epsilon_exact(n, 1e-3) for n, limit in zip((1, 10, 99, 100, 315), epsilons, strict=False))


def test_the_old_name_of_a_rule_is_still_read():
    assert stopping_rule("horizon:100,10000", 1e-3) == stopping_rule("between:100,10000", 1e-3)


@pytest.mark.parametrize(
    "text",
    ["", "naive", "peek", "patience", "patience:", "patience:x", "patience:0", "patience:1:2", "patience:1,2,3",
     "looks", "looks:200,100", "between:100", "between:10,5", "anytime:0", "anytime:1,2", "mixture:3",
     "between:100:200", ",", "mixture:"],
)  # fmt: skip
def test_rules_that_are_refused(text):
    with pytest.raises(InputError):
        stopping_rule(text, 1e-3)


@given(st.floats(1e-9, 0.2), st.integers(1, 300))
@settings(max_examples=40, deadline=None)
def test_shares_solve_their_equations(beta, first):
    b = Anytime(beta=beta, first=first).share
    assert b * (math.log(1 / b) * (1 + 1 / (first + 1)) + 2 + 2 / first) == pytest.approx(beta, rel=1e-10)
    b = Between(beta=beta, first=first, last=7 * first).share
    assert b * (1 + math.log(1 / b) * math.log(7)) == pytest.approx(beta, rel=1e-10)
    b = Looks(beta=beta, looks=(first, 2 * first)).share
    assert b * (2 - b**0.5) == pytest.approx(beta, rel=1e-10)


def test_networks_for_an_epsilon():
    for text in RULES[:1] + RULES[3:]:
        rule = stopping_rule(text, 1e-3)
        n = rule.networks(0.02)
        assert rule.epsilon(n) <= 0.02 < rule.epsilon(n - 1)
    with pytest.raises(InputError, match="never certifies"):
        Between(beta=1e-3, first=10, last=100).networks(0.001)


def test_looks_at_a_lower_rank_share_beta():
    rule = Looks(beta=0.05, looks=(100, 200), rank=5)
    assert rule.epsilon(150) == pytest.approx(epsilon_exact(100, 0.025, d=5), rel=1e-9)
    assert Looks(beta=0.05, looks=(100,)).share == pytest.approx(0.05)


def test_too_large_a_beta_for_no_end():
    with pytest.raises(InputError, match="too large"):
        Anytime(beta=0.9)


def test_stopped():
    scores = [1.0, math.nan, 5.0, 2.0, 9.0]
    stopped = Stopped.of(scores, Mixture(beta=0.05), 4, score="fit", unit="%")
    assert (stopped.networks, stopped.winner, stopped.threshold) == (4, 2, 5.0)
    assert stopped.epsilon == Mixture(beta=0.05).epsilon(4)
    assert "by the rule 'mixture', named before the first draw" in stopped.words
    assert Stopped.of(scores, Mixture(beta=0.05), direction="min").threshold == 1.0
    assert "finite score" in Stopped.of([math.nan] * 3, Mixture(beta=0.05)).words
    for networks in (0, 6):
        with pytest.raises(InputError):
            Stopped.of(scores, Mixture(beta=0.05), networks)
    with pytest.raises(InputError, match="not at 3"):
        Stopped.of(scores, Patience(beta=0.05, draws=1), 3)
