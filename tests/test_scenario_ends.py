"""Both ends at once, and quantiles."""

import mpmath
import numpy as np
import pytest
from golden import agrees
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from echobound.errors import InputError
from echobound.scenario import BothEnds, QuantileInterval, beta_exact, epsilon_exact, networks_exact
from echobound.scenario.statements.both_ends import epsilon_both

# epsilon, beta: both <= epsilon, Bonferroni, sum <= epsilon (section 4.2)
NETWORKS = {
    (0.1, 1e-3): (73, 73, 89),
    (0.1, 1e-7): (160, 160, 182),
    (0.05, 1e-3): (149, 149, 181),
    (0.05, 1e-7): (328, 328, 374),
    (0.01, 1e-3): (757, 757, 920),
    (0.01, 1e-7): (1673, 1673, 1903),
}
# level: ranks and coverage, N = 645, beta = 0.05 (section 4.3)
QUANTILES = {
    0.5: (298, 348, "0.951102096580"),
    0.9: (565, 596, "0.958276579095"),
    0.95: (602, 624, "0.953974148077"),
    0.99: (633, 644, "0.973822053312"),
    0.999: (642, 646, "0.995698175735"),
}


@pytest.mark.parametrize("case", NETWORKS)
def test_networks(case):
    both, bonferroni, outside = NETWORKS[case]
    epsilon, beta = case
    assert epsilon_both(both, beta) <= epsilon < epsilon_both(both - 1, beta)
    assert networks_exact(epsilon, beta / 2) == bonferroni
    assert networks_exact(epsilon, beta, d=2) == outside
    assert miss_both(both, epsilon, epsilon) <= beta < miss_both(both - 1, epsilon, epsilon)


def miss_both(n, a, b):
    """P(V_best > a or V_worst > b): no score in the upper tail, or none in the lower, less none in both."""
    with mpmath.workdps(40):
        a, b = mpmath.mpf(a), mpmath.mpf(b)
        return float((1 - a) ** n + (1 - b) ** n - max(1 - a - b, 0) ** n)


def test_golden():
    assert agrees(miss_both(645, 0.01, 0.01), "0.00305787211963")
    assert agrees(miss_both(645, 0.005, 0.01), "0.0409071133742")
    assert epsilon_both(645, "0.00305787211963") == pytest.approx(0.01, rel=1e-11)


@pytest.mark.parametrize(("n", "e"), [(10, 0.2), (12, 0.35), (8, 0.7)])
def test_against_the_dirichlet_density(n, e):
    """(V_best, V_worst, rest) has the law Dirichlet(1, 1, N - 1)."""

    def density(y, x):
        return n * (n - 1) * max(1 - x - y, 0.0) ** (n - 2)

    inside = integrate.dblquad(density, 0, e, 0, lambda x: min(e, 1 - x), epsabs=1e-11)[0]
    assert epsilon_both(n, 1 - inside) == pytest.approx(e, rel=1e-7)


@given(st.integers(2, 400), st.floats(1e-9, 0.9))
@settings(max_examples=40, deadline=None)
def test_epsilon_and_back(n, beta):
    epsilon = epsilon_both(n, beta)
    assert miss_both(n, epsilon, epsilon) <= beta * (1 + 1e-12)
    assert epsilon == 1.0 or miss_both(n, epsilon * (1 - 1e-9), epsilon * (1 - 1e-9)) > beta
    assert epsilon_exact(n, beta) <= epsilon <= epsilon_exact(n, beta / 2) * (1 + 1e-12), "never worse than Bonferroni"


def test_sum_of_both_ends_is_the_bound_for_two_decisions():
    """V_max + V_min ~ Beta(2, N - 1)."""
    assert beta_exact(30, 0.1, d=2) == pytest.approx(stats.beta(2, 29).sf(0.1), rel=1e-9)
    statement = BothEnds.of(range(30), beta=0.05)
    assert statement.epsilon_outside == epsilon_exact(30, 0.05, d=2)


def test_both_ends_of_scores():
    statement = BothEnds.of([3.0, 1.0, 2.0], beta=0.1, direction="min", score="rmse")
    assert (statement.best, statement.worst) == (1.0, 3.0)
    assert "below 1 on these validation data with" in statement.words
    assert "above 3, or diverges," in statement.words
    assert "nothing is worse" in BothEnds.of([3.0, np.nan], beta=0.1).words
    assert "All 2 networks diverged" in BothEnds.of([np.nan, np.nan], beta=0.1).words
    with pytest.raises(InputError, match="draw more"):
        BothEnds.of([1.0], beta=0.1)


@pytest.mark.parametrize("level", QUANTILES)
def test_quantile_ranks(level):
    lower, upper, coverage = QUANTILES[level]
    statement = QuantileInterval.of(range(1, 646), level=level, beta=0.05)
    assert statement.ranks == (lower, upper)
    assert agrees(statement.coverage, coverage)
    assert statement.lower == lower
    assert statement.upper == (None if upper == 646 else upper)


@given(st.integers(1, 60), st.floats(0.01, 0.99), st.floats(1e-4, 0.9))
@settings(max_examples=60, deadline=None)
def test_quantile_ranks_against_scipy(n, level, beta):
    lower, upper = QuantileInterval.of(range(n), level=level, beta=beta).ranks
    below = stats.binom.cdf(np.arange(-1, n + 1), n, level)  # P(X <= rank - 1)
    above = stats.binom.sf(np.arange(-1, n + 1), n, level)  # P(X >= rank)
    slack = 1 + 1e-9
    assert below[lower] <= beta / 2 * slack
    assert lower == n + 1 or below[lower + 1] > beta / 2 / slack
    assert above[upper] <= beta / 2 * slack
    assert upper == 0 or above[upper - 1] > beta / 2 / slack


def test_quantiles_with_divergence():
    """Diverged networks lie at the bad end: below all others for FIT, above for RMSE."""
    scores = [np.nan] * 10 + [float(i) for i in range(10)]
    fit = QuantileInterval.of(scores, level=0.5, beta=0.05, unit="%")
    assert fit.lower is None
    assert fit.upper is not None
    rmse = QuantileInterval.of(scores, level=0.5, beta=0.05, direction="min")
    assert rmse.lower is not None
    assert rmse.upper is None
    assert "anything" in QuantileInterval.of([1.0], level=0.5, beta=0.05).words
