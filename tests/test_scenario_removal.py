"""Constraint removal: exact certificates after the r best were set aside."""

import numpy as np
import pytest
from golden import agrees
from scipy import stats

from echobound.errors import InputError
from echobound.scenario import Removal, certify, epsilon_exact, networks_exact

R = (0, 1, 2, 5, 10, 20, 50)
# epsilon, beta, d: N for r = 0, 1, 2, 5, 10, 20, 50 (section 4.1)
NETWORKS = {
    (0.1, 1e-7, 1): (153, 182, 207, 271, 362, 523, 948),
    (0.05, 1e-7, 1): (315, 374, 424, 553, 738, 1064, 1920),
    (0.01, 1e-7, 1): (1604, 1903, 2158, 2811, 3744, 5385, 9693),
    (0.05, 1e-3, 1): (135, 181, 220, 324, 476, 752, 1506),
    (0.05, 1e-7, 2): (374, 439, 494, 635, 836),
    (0.05, 1e-7, 5): (512, 591, 657, 824, 1060),
    (0.05, 0.05, 1): (59, 93, 124),  # Wilks 95/95
}
EPSILON_645 = {0: "0.0246796", 1: "0.0292304", 2: "0.0330877", 5: "0.0429676", 10: "0.0570226", 20: "0.0815565"}


@pytest.mark.parametrize("case", NETWORKS)
def test_networks(case):
    epsilon, beta, d = case
    for r, golden in zip(R, NETWORKS[case], strict=False):
        assert networks_exact(epsilon, beta, d, discarded=r) == golden
        # An independent predicate, by scipy; d = 1 has no factor.
        if d == 1:
            assert stats.binom.cdf(r, golden, epsilon) <= beta < stats.binom.cdf(r, golden - 1, epsilon)


def test_epsilon():
    scores = np.random.default_rng(0).normal(size=645)
    for r, golden in EPSILON_645.items():
        statement = Removal.of(scores, discarded=r, beta=1e-7)
        assert agrees(statement.epsilon, golden)
        assert statement.threshold == np.sort(scores)[-1 - r]
        assert statement.threshold == scores[statement.index]


def test_nothing_discarded_is_the_certificate():
    scores = [90.0, 80.0, np.nan, 85.0]
    statement = Removal.of(scores, discarded=0, beta=0.05, score="fit")
    certificate = certify(scores, score="fit", direction="max", epsilon=0.6, beta=0.05, law={}, seed=0, digests={})
    assert (statement.index, statement.threshold) == (certificate.winner, certificate.threshold)
    assert statement.epsilon == certificate.epsilon_exact == epsilon_exact(4, 0.05)


def test_worst_end_and_divergence():
    scores = [0.3, np.inf, 0.1, 0.2]
    diverged = Removal.of(scores, discarded=0, beta=0.1, case="worst", direction="min", score="rmse")
    assert (diverged.threshold, diverged.index) == (None, 1)
    assert "nothing is worse" in diverged.words
    kept = Removal.of(scores, discarded=1, beta=0.1, case="worst", direction="min", score="rmse")
    assert (kept.threshold, kept.index) == (0.3, 0)
    assert "an RMSE above 0.3, or diverges," in kept.words
    assert "after the worst was set aside" in kept.words
    none = Removal.of([np.nan] * 5, discarded=1, beta=0.1)
    assert none.threshold is None
    assert "finite score" in none.words


def test_words_round_outwards():
    """0.04296757...: never smaller in words than in number, and a threshold never lower."""
    scores = np.linspace(80, 90.1234564, 645)
    words = Removal.of(scores, discarded=0, beta=1e-7, score="fit", unit="%").words
    assert "above 90.1235 %" in words
    assert "at most 0.0246797" in words


@pytest.mark.parametrize("discarded", [-1, 5, 1.5, True, "2"])
def test_bad_numbers(discarded):
    with pytest.raises(InputError, match="discarded"):
        Removal.of([1.0] * 5, discarded=discarded, beta=0.1)
