"""Confidence sequences against high-precision arithmetic, and against somebody who looks again and again."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from echobound.errors import InputError
from echobound.scenario import verify_counts, verify_divergence
from echobound.scenario.bounds import epsilon_exact
from echobound.scenario.sequences import pooled_limit, sequential_limit

BETA, LOOKS, EACH, NETWORKS = 0.05, 20, 100, 59


def ratio(events, trials, v, a, b):
    """The likelihood ratio of a beta mixture against v, in 50 digits."""
    bayes = mpmath.beta(a + events, b + trials - events) / mpmath.beta(a, b)
    return bayes / (v**events * (1 - v) ** (trials - events))


@pytest.mark.parametrize("beta", [0.05, 1e-7])
@pytest.mark.parametrize(("events", "trials"), [(0, 20), (3, 20), (0, 500), (7, 500), (40, 100_000)])
@pytest.mark.parametrize("mixture", [(0.5, 0.5), (1, 645)])
def test_alone_reaches_one_over_beta_at_the_limit(events, trials, beta, mixture):
    with mpmath.workdps(50):
        at = mpmath.mpf(sequential_limit(events, trials, beta, mixture))
        assert 1 <= ratio(events, trials, at, *mixture) * beta < 1 + mpmath.mpf("1e-5")


@pytest.mark.parametrize("beta", [0.05, 1e-7])
@pytest.mark.parametrize(("networks", "fresh", "events", "rank"), [(645, 500, 0, 1), (645, 500, 4, 1), (59, 0, 0, 1)])
def test_pooled_is_the_density_of_the_posterior(networks, fresh, events, rank, beta):
    """E = density of Beta(1, c) over that of V given all draws: the product of both ratios, written out."""
    with mpmath.workdps(50):
        v = mpmath.mpf(pooled_limit(networks, fresh, events, beta, rank))
        c = max(mpmath.mpf(1), networks / -mpmath.log(mpmath.mpf(repr(beta))))
        weight = c * (1 - v) ** (c - 1)
        prior = v ** (rank - 1) * (1 - v) ** (networks - rank) / mpmath.beta(rank, networks - rank + 1)
        process = weight / prior * ratio(events, fresh, v, rank, networks - rank + 1)
        assert 1 <= process * beta < 1 + mpmath.mpf("1e-5")


@pytest.mark.parametrize(("networks", "events"), [(645, 0), (645, 3), (2, 1), (1, 0)])
def test_at_will_is_the_product_with_the_martingale_of_the_search(networks, events):
    with mpmath.workdps(50):
        v = mpmath.mpf(sequential_limit(events, 200, 1e-3, (1, networks), stopped=networks))
        searched = mpmath.quad(lambda u: (1 - u) ** -networks, [0, v])
        process = searched * ratio(events, 200, v, 1, networks)
        assert 1 <= process * mpmath.mpf("1e-3") < 1 + mpmath.mpf("1e-5")


@pytest.mark.parametrize(
    ("found", "golden"),
    [
        # mpmath, 50 digits: roots of E = 1 / beta
        (lambda: pooled_limit(645, 500, 0, 1e-7), 0.017467587),
        (lambda: pooled_limit(645, 500, 4, 1e-3), 0.017167381),
        (lambda: sequential_limit(0, 500, 1e-7, (1, 645)), 0.032832914),
        (lambda: sequential_limit(78, 815, 1e-7), 0.173050349),
        (lambda: sequential_limit(2, 500, 0.05, (1, 645), stopped=645), 0.012799562),
    ],
)
def test_golden_values(found, golden):
    assert found() == pytest.approx(golden, rel=1e-7)


def test_edges():
    assert sequential_limit(0, 0, 0.05) == sequential_limit(5, 5, 0.05) == 1.0
    assert sequential_limit(0, 10, "1e-400") == 1.0 or sequential_limit(0, 10, "1e-400") > 0.999
    assert pooled_limit(1, 0, 0, 0.05) == 1.0
    for wrong in (lambda: sequential_limit(3, 2, 0.05), lambda: pooled_limit(2, 0, 0, 0.05, rank=3)):
        with pytest.raises(InputError):
            wrong()


@pytest.mark.parametrize("stopped", [None, 30])
def test_more_events_never_lower_a_limit(stopped):
    """Ties count as violations, so there are as many as for a continuous score or more; the limit must follow."""
    limits = [sequential_limit(x, 50, 0.05, (1, 30), stopped=stopped) for x in range(51)]
    assert limits == sorted(limits)
    pooled = [pooled_limit(30, 50, x, 0.05) for x in range(51)]
    assert pooled == sorted(pooled)


def looks(campaigns, rng, violation):
    """Violations after each of twenty looks of a hundred, for each campaign."""
    return np.cumsum(rng.binomial(EACH, violation[:, None], size=(campaigns, LOOKS)), axis=1)


def ever_missed(violation, counts, limit):
    """How many campaigns have a limit below the truth at one of their looks."""
    missed = np.zeros(len(violation), dtype=bool)
    for look in range(LOOKS):
        most = int(counts[:, look].max())
        limits = np.array([limit(x, EACH * (look + 1)) for x in range(most + 1)])
        missed |= violation > limits[counts[:, look]]
    return int(missed.sum())


KINDS = {
    "pooled": lambda x, m: verify_counts(NETWORKS, m, x, beta=BETA).epsilon_combined,
    "fresh alone": lambda x, m: verify_counts(NETWORKS, m, x, beta=BETA).epsilon_fresh,
    "divergence": lambda x, m: verify_divergence(1, 0, m, x, beta=BETA).epsilon_fresh,
}
NAIVE = {
    "pooled": lambda x, m: verify_counts(NETWORKS, m, x, beta=BETA, settled=True).epsilon_combined,
    "fresh alone": lambda x, m: epsilon_exact(m, BETA, d=x + 1) if x < m else 1.0,
}


@pytest.mark.parametrize("kind", KINDS)
def test_twenty_looks_of_a_hundred(kind):
    """Verifying again until it looks good: 0.15 to 0.21 with limits of one look, where 0.05 was promised."""
    rng, campaigns = np.random.default_rng(1), 4000
    violation = rng.beta(1, NETWORKS, size=campaigns)
    missed = ever_missed(violation, looks(campaigns, rng, violation), KINDS[kind])
    assert stats.binomtest(missed, campaigns, BETA, "greater").pvalue > 1e-3


@pytest.mark.parametrize("kind", NAIVE)
def test_limits_of_one_look_are_rejected(kind):
    rng, campaigns = np.random.default_rng(1), 4000
    violation = rng.beta(1, NETWORKS, size=campaigns)
    missed = ever_missed(violation, looks(campaigns, rng, violation), NAIVE[kind])
    assert missed > 0.1 * campaigns


def test_stopping_the_search_at_will_and_then_looking_again():
    """Both at once: stop where the best is worst for its number, then add fresh ones and look after each ten."""
    rng, campaigns, most = np.random.default_rng(2), 2000, 300
    u = np.minimum.accumulate(rng.random((campaigns, most)), axis=1)
    n = np.arange(1, most + 1)
    stop = np.argmax(u * n, axis=1)  # as if one knew the law: where the violation probability is largest for n
    violation = u[np.arange(campaigns), stop]
    counts = np.cumsum(rng.binomial(10, violation[:, None], size=(campaigns, 20)), axis=1)
    missed = 0
    for networks, v, row in zip((stop + 1).tolist(), violation.tolist(), counts.tolist(), strict=True):
        how = {"beta": BETA, "at_will": True}
        missed += any(
            v > verify_counts(networks, 10 * look, x, **how).epsilon_combined
            for look, x in enumerate([0, *row])
            if look % 5 == 0
        )
    assert stats.binomtest(missed, campaigns, BETA, "greater").pvalue > 1e-3
    assert math.isclose(sequential_limit(0, 0, BETA, (1, 645), stopped=645), 0.014587446, rel_tol=1e-6), "the rule (M)"
