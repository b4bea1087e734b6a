"""The law of the violation probability."""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from echobound.errors import InputError
from echobound.scenario import ViolationLaw, beta_exact, epsilon_exact, select

# N, k: mean, q05, q50, q95, q99, q(1 - 1e-7) (section 3)
GOLDEN = {
    (315, 1): ("0.00316455696 0.000162822598 0.00219804799 0.00946518167 0.0145132406 0.0498814927"),
    (645, 1): "0.00154798762 7.95213254e-5 0.00107406957 0.00463377694 0.00711437093 0.0246796478",
    (645, 2): "0.00309597523 0.000551223707 0.00260072052 0.00733351783 - 0.0292304424",
    (645, 5): "0.00773993808 0.00305931679 0.00723795416 0.0141348820 - 0.0398604924",
    (645, 10): "0.0154798762 0.00843493060 0.0149824871 0.0242226492 - -",
}


@pytest.mark.parametrize(("networks", "rank"), GOLDEN)
def test_golden(networks, rank):
    law = ViolationLaw(networks, rank)
    values = [law.mean, *(law.quantile(q) for q in (0.05, 0.5, 0.95, 0.99, 1 - 1e-7))]
    for value, golden in zip(values, GOLDEN[networks, rank].split(), strict=True):
        assert golden == "-" or math.isclose(value, float(golden), rel_tol=6e-9)


@pytest.mark.parametrize(("networks", "rank"), [(1, 1), (59, 1), (645, 5), (645, 645)])
def test_against_scipy_and_the_bounds(networks, rank):
    law, reference = ViolationLaw(networks, rank), stats.beta(rank, networks - rank + 1)
    assert math.isclose(law.mean, reference.mean())
    for value in (0.001, 0.01, 0.3):
        assert math.isclose(beta_exact(networks, value, d=rank), reference.sf(value), rel_tol=1e-9)
    assert math.isclose(law.quantile(0.95), epsilon_exact(networks, 0.05, d=rank), rel_tol=1e-9)


@pytest.mark.parametrize("direction", ["max", "min"])
def test_simulated_violation_probability(direction):
    """V of the best of N against Beta(1, N): a normal score, its violation probability known from its own cdf."""
    scores = np.random.default_rng(1).normal(size=(3000, 40))
    best = scores[np.arange(3000), [select(row, direction) for row in scores]]
    violation = stats.norm.sf(best) if direction == "max" else stats.norm.cdf(best)
    assert stats.kstest(violation, stats.beta(1, 40).cdf).pvalue > 1e-3


def test_mean_by_enumeration():
    """All orderings of N + 1 networks are equally likely: the last beats the best of the first N in 1 of N + 1."""
    for networks in range(1, 6):
        orders = list(permutations(range(networks + 1)))
        beaten = sum(order[-1] > order[select(order[:-1], "max")] for order in orders)
        assert beaten / len(orders) == pytest.approx(ViolationLaw(networks).mean, rel=1e-15)


def test_ties_only_help():
    """FIT rounded to whole per cent, N = 59: P(V > 0.05) = F(Q(0.95)-)^N, below 0.95^59."""
    scores = np.random.default_rng(2).normal(80, 5, size=(20_000, 59))
    best = np.round(scores).max(axis=1)
    violation = stats.norm.sf(best + 0.5, 80, 5)
    misses = int((violation > 0.05).sum())
    assert stats.binomtest(misses, 20_000, beta_exact(59, 0.05), alternative="greater").pvalue > 0.5


@pytest.mark.parametrize(("networks", "rank"), [(0, 1), (5, 0), (5, 6)])
def test_bad_ranks(networks, rank):
    with pytest.raises(InputError, match="rank"):
        ViolationLaw(networks, rank)
