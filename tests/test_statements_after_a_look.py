"""What is chosen after a look, or by everybody in the same way: quantiles, coins, how many promises, tiny betas."""

import numpy as np
import pytest
from scipy import stats

from echobound.errors import DamagedFile
from echobound.plan import Plan, settle_validation
from echobound.plants import ph_experiment
from echobound.scenario import (
    Anytime,
    Between,
    DistributionBand,
    Patience,
    QuantileInterval,
    RankBand,
    ScoreName,
    Search,
    Statement,
    certify,
    statements_of,
)

SCORES = np.random.default_rng(0).normal(88, 1, 100)
LEVELS = np.arange(1, 20) / 20


def misses(intervals, u):
    """How often one of 19 quantiles of a uniform score lies outside its interval."""
    ascending = np.concatenate([np.zeros((len(u), 1)), np.sort(u, axis=1), np.ones((len(u), 1))], axis=1)
    wrong = np.zeros(len(u), dtype=bool)
    for level, interval in zip(LEVELS, intervals, strict=True):
        lower, upper = interval.ranks
        wrong |= (ascending[:, lower] > level) | (ascending[:, upper] < level)
    return int(wrong.sum())


def intervals(**how):
    return [QuantileInterval.of(SCORES, level=float(level), beta=0.05, **how) for level in LEVELS]


def test_a_quantile_chosen_after_a_look():
    """Of 19 levels, one or more were wrong 27 % of the time instead of 5 %."""
    u = np.random.default_rng(1).random((4000, 100))
    assert misses(intervals(), u) > 0.2 * len(u)
    missed = misses(intervals(simultaneous=True), u)
    assert stats.binomtest(missed, len(u), 0.05, "greater").pvalue > 1e-3
    assert missed > 0, "sharp enough to be wrong sometimes"


def test_simultaneous_quantiles_in_words_and_json():
    one = QuantileInterval.of(SCORES, level=0.5, beta=0.05, simultaneous=True)
    assert "all quantiles together" in one.words
    assert Statement.from_dict(one.to_dict()) == one
    narrow = QuantileInterval.of(SCORES, level=0.5, beta=0.05)
    assert one.lower < narrow.lower < narrow.upper < one.upper
    with pytest.raises(DamagedFile):
        Statement.from_dict({**narrow.to_dict(), "simultaneous": True})
    many = QuantileInterval.of(np.arange(5000.0), level=0.5, beta=0.05, simultaneous=True)
    width = np.sqrt(np.log(40) / 10_000)
    assert many.lower == pytest.approx(5000 * (0.5 - width), abs=2), "Massart's inequality"
    assert many.upper == pytest.approx(5000 * (0.5 + width), abs=2)


def test_the_coins_of_patience_come_from_the_seed_of_the_plan():
    """With the same coins for everybody, ties are broken in the same way in every search."""
    scheme = settle_validation(*ph_experiment(samples=(300, 200)))
    rules = [Plan(law="paper", order=5, stop="patience:20", seed=seed).settle(scheme).stop for seed in (0, 7, 2**200)]
    assert [rule.seed for rule in rules[:2]] == [0, 7]
    assert len({rule.seed for rule in rules}) == 2 or rules[2].seed == 2**200 % 2**63
    own = Plan(law="paper", order=5, stop=Patience(beta=1e-7, draws=20, seed=3), seed=7).settle(scheme).stop
    assert own.seed == 3
    ties = np.zeros(400)
    assert len({Patience(beta=0.05, draws=20, seed=seed).stops_at(ties) for seed in range(20)}) > 5


def patience_misses(seeds, campaigns=6000):
    """A score of few values, each rare enough to matter, under coins of these seeds."""
    rng = np.random.default_rng(3)
    share = np.array([0.80, 0.10, 0.05, 0.02, 0.02, 0.01])
    beaten = 1 - np.cumsum(share)
    missed = 0
    for campaign in range(campaigns):
        scores = rng.choice(6, p=share, size=400).astype(float)
        n = Patience(beta=0.05, draws=20, seed=int(seeds[campaign % len(seeds)])).stops_at(scores)
        missed += n is not None and beaten[int(scores[:n].max())] > 1 - 0.05 ** (1 / n)
    return missed


def test_patience_with_ties_misses_no_more_than_beta_over_seeds():
    seeds = np.random.default_rng(4).integers(2**62, size=6000)
    assert stats.binomtest(patience_misses(seeds), 6000, 0.05, "greater").pvalue > 1e-3


KWARGS = {"score": "fit", "direction": "max", "unit": "%", "epsilon": 0.05, "beta": 0.05}
KWARGS |= {"law": {}, "seed": 0, "digests": {}}


@pytest.mark.parametrize(
    ("how", "promises"),
    [({}, 4), ({"discarded": 2}, 5), ({"families": (("a", 100), ("b", 100))}, 5), ({"stop": Anytime(beta=0.05)}, 2)],
)
def test_a_certificate_says_how_many_promises_hold_together(how, promises):
    scores = np.random.default_rng(2).normal(88, 1, 200)
    search = Search(table=scores[:, None], scores=(ScoreName("fit", "max", "%"),), beta=0.05, **how)
    families = [{"family": i, "name": n, "networks": c, "law": {}} for i, (n, c) in enumerate(how.get("families", ()))]
    certificate = certify(scores, **KWARGS, families=families, statements=statements_of(search))
    [said] = [sentence for sentence in certificate.not_stated if "promises" in sentence]
    assert f"all {promises} promises hold together with confidence 1 - {0.05 * promises:g}" in said


@pytest.mark.parametrize("beta", [1e-300, 5e-324, 1e-149])
def test_a_beta_at_the_edge_of_floats_ends_in_no_error(beta):
    """The band of the page ended in a ValueError when the search was over."""
    band = DistributionBand.of(SCORES, beta=beta)
    assert all(0 <= low <= high <= 1 for low, high in zip(band.lower, band.upper, strict=True))
    assert RankBand.of(SCORES, beta=beta, ranks=10).epsilons[0] <= 1
    assert QuantileInterval.of(SCORES, level=0.5, beta=beta, simultaneous=True).words
    assert 0 < Anytime(beta=beta).epsilon(100_000) <= 1
    assert 0 < Between(beta=beta, first=10, last=100).epsilon(50) <= 1


def test_the_union_bound_for_tiny_betas_is_continuous_with_the_exact_band():
    exact, shared = (DistributionBand.of(SCORES, beta=beta).upper[0] for beta in (1.01e-150, 0.99e-150))
    assert shared == pytest.approx(exact, abs=2e-3)
