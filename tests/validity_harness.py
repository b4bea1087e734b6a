"""Does every rule miss as often as it says? Many campaigns of a score whose law is known, judged by an exact test.

A *rule* is a function that plays a number of campaigns and returns how many missed, made by `rule`, which says how
often it may: the exact probability where theory gives one (then the test is two-sided), a bound elsewhere. A *mutant*
is played and judged in the same way, and must be rejected.

Scores are minus uniform numbers unless a rule says otherwise: larger is better, and the probability to beat a
threshold is minus the threshold. Each rule takes its limits from the library; where thresholds are found for all
campaigns at once, the library confirms some of them.
"""

from __future__ import annotations

import math
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy import stats
from test_audit_confirming import CHAOS, chaotic, forge, sensitive

from echobound import Record, audit, generalise, identify, outer_rank, ph_experiment, verify
from echobound.data.copies import require_independent_records
from echobound.errors import DataError
from echobound.network.response import respond
from echobound.runs import RunFolder
from echobound.runs.journal import share_of
from echobound.scenario import (
    Anytime,
    Between,
    BothEnds,
    ConformalBand,
    CoverageBand,
    DistributionBand,
    ErrorLimit,
    FailureRate,
    Families,
    JointScores,
    Looks,
    Mixture,
    OuterRank,
    Patience,
    QuantileInterval,
    RankBand,
    Removal,
    Renewal,
    Stopped,
    certify,
    epsilon_exact,
    fresh_needed,
    planned_verification,
    verify_counts,
    verify_divergence,
)
from echobound.scenario.statements.expected_gain import ExpectedGain
from echobound.scenario.statements.gain import beaten_probability
from echobound.scenario.words import outward, upward

LEVEL = 1e-3
BATCH = 20_000
BETA = 0.05
CONFIRMED = 20  # campaigns of each batch

Play = Callable[[int, np.random.Generator], int]


@dataclass(frozen=True)
class Rule:
    """A rule under test: how it is played, and how often it may miss."""

    name: str
    play: Play
    probability: float
    exact: bool
    cost: int = 1  # how many cheap campaigns take as long as one of these

    def judge(self, campaigns: int, seed: int = 0) -> Outcome:
        """Play so many cheap campaigns, or dear ones that take as long, a batch after the other."""
        campaigns = left = max(1, campaigns // self.cost)
        misses, rng = 0, np.random.default_rng([seed, len(self.name), sum(map(ord, self.name))])
        while left:
            batch = min(left, BATCH)
            misses += self.play(batch, rng)
            left -= batch
        way = "two-sided" if self.exact else "greater"
        return Outcome(self, misses, campaigns, float(stats.binomtest(misses, campaigns, self.probability, way).pvalue))


@dataclass(frozen=True)
class Outcome:
    """How a rule did."""

    rule: Rule
    misses: int
    campaigns: int
    p_value: float


RULES: list[Rule] = []
MUTANTS: list[Rule] = []


def rule(name: str, probability: float, *, exact: bool, cost: int = 1) -> Callable[[Play], Play]:
    """A rule that must pass."""

    def add(play: Play) -> Play:
        RULES.append(Rule(name, play, probability, exact, cost))
        return play

    return add


def mutant(name: str, probability: float = BETA) -> Callable[[Play], Play]:
    """A rule that breaks its promise, and must be rejected."""

    def add(play: Play) -> Play:
        MUTANTS.append(Rule(name, play, probability, exact=False))
        return play

    return add


def missed(violation: np.ndarray, epsilon: float | np.ndarray) -> int:
    return int((violation > epsilon).sum())


def uniform(campaigns: int, networks: int, rng: np.random.Generator) -> np.ndarray:
    return rng.random((campaigns, networks))


# ---------------------------------------------------------------- constraint removal


@rule("removal: 5 best of 100 set aside", BETA, exact=True)
def removal_best(campaigns, rng):
    u = uniform(campaigns, 100, rng)
    threshold = np.sort(u, axis=1)[:, 5]
    said = [Removal.of(-row, discarded=5, beta=BETA) for row in u[:CONFIRMED]]
    np.testing.assert_array_equal([-s.threshold for s in said], threshold[:CONFIRMED])
    return missed(threshold, said[0].epsilon)


@rule("removal: 2 worst of 80 set aside, score to minimise", BETA, exact=True)
def removal_worst(campaigns, rng):
    u = uniform(campaigns, 80, rng)
    threshold = np.sort(u, axis=1)[:, -3]
    said = [Removal.of(row, discarded=2, beta=BETA, case="worst", direction="min") for row in u[:CONFIRMED]]
    np.testing.assert_array_equal([s.threshold for s in said], threshold[:CONFIRMED])
    return missed(1 - threshold, said[0].epsilon)


@rule("removal: ties (scores of two digits), a tenth diverged", BETA, exact=False)
def removal_ties(campaigns, rng):
    u = uniform(campaigns, 100, rng)
    scores = np.where(u > 0.9, np.nan, -np.floor(20 * u) / 20)
    said = [Removal.of(row, discarded=5, beta=BETA) for row in scores[:CONFIRMED]]
    threshold = -np.sort(-scores, axis=1)[:, 5]
    np.testing.assert_array_equal([s.threshold for s in said], threshold[:CONFIRMED])
    return missed(-threshold, said[0].epsilon)  # u below the atom's lower end is strictly better


# ---------------------------------------------------------------- both ends, quantiles, bands


@rule("both ends: best and worst of 100 together", BETA, exact=True)
def both_ends(campaigns, rng):
    u = uniform(campaigns, 100, rng)
    said = BothEnds.of(-u[0], beta=BETA)
    assert (said.best, said.worst) == (-u[0].min(), -u[0].max())
    return int(((u.min(axis=1) > said.epsilon) | (1 - u.max(axis=1) > said.epsilon)).sum())


@rule("both ends: outside the range of 100", BETA, exact=True)
def outside(campaigns, rng):
    u = uniform(campaigns, 100, rng)
    return missed(u.min(axis=1) + 1 - u.max(axis=1), BothEnds.of(-u[0], beta=BETA).epsilon_outside)


_QUANTILE = QuantileInterval.of(range(100), level=0.9, beta=BETA)


@rule("quantile interval: 90 % quantile from 100", 1 - _QUANTILE.coverage, exact=True)
def quantile(campaigns, rng):
    u = uniform(campaigns, 100, rng)
    lower, upper = _QUANTILE.ranks
    ascending = np.sort(u, axis=1)
    said = QuantileInterval.of(u[0], level=0.9, beta=BETA)
    assert (said.lower, said.upper) == (ascending[0, lower - 1], ascending[0, upper - 1])
    return int(((ascending[:, lower - 1] > 0.9) | (ascending[:, upper - 1] < 0.9)).sum())


@rule("rank band: any of the 10 best of 100, chosen after a look", BETA, exact=True)
def rank_band(campaigns, rng):
    u = np.sort(uniform(campaigns, 100, rng), axis=1)
    return int((u[:, :10] > RankBand.of(-u[0], beta=BETA, ranks=10).epsilons).any(axis=1).sum())


@rule("distribution band: 100 networks, both sides", BETA, exact=True)
def distribution_band(campaigns, rng):
    u = np.sort(uniform(campaigns, 100, rng), axis=1)
    band = DistributionBand.of(-u[0], beta=BETA)
    return int(((u > band.upper) | (u < band.lower)).any(axis=1).sum())


# ---------------------------------------------------------------- stopping early


def patience_stops(u: np.ndarray, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Number of networks at which each campaign stops, and the violation probability of its best there."""
    best = np.minimum.accumulate(u, axis=1)
    column = np.arange(u.shape[1])
    record = np.maximum.accumulate(np.where(u == best, column, 0), axis=1)
    stops = np.argmax(column - record >= draws, axis=1)
    assert stops.all(), "long enough for all to stop"
    return stops + 1, best[np.arange(len(u)), stops]


@rule("patience: the last 20 brought no improvement", BETA, exact=True)
def patience(campaigns, rng):
    u = uniform(campaigns, 500, rng)
    n, violation = patience_stops(u, 20)
    rule = Patience(beta=BETA, draws=20)
    said = [Stopped.of(-row, rule) for row in u[:CONFIRMED]]
    np.testing.assert_array_equal([s.networks for s in said], n[:CONFIRMED])
    np.testing.assert_array_equal([-s.threshold for s in said], violation[:CONFIRMED])
    limits = np.array([1.0, *(rule.epsilon(k) for k in range(1, 501))])
    return missed(violation, limits[n])


def three_levels(draws: int = 20, later: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """A score of three values that is worst for patience without coins: their probabilities, and those to beat them."""
    lowest = BETA ** (1 / (draws + 1)) * (1 - 1e-9)
    lower = BETA ** (1 / (draws + later)) * (1 - 1e-9)
    return np.array([lowest, lower - lowest, 1 - lower]), np.array([1 - lowest, 1 - lower, 0.0])


def patience_on_three_levels(campaigns, rng, allows):
    share, beaten = three_levels()
    limits = [1.0, *(epsilon_exact(n, BETA) for n in range(1, 400))]
    scores = rng.choice(3, p=share, size=(campaigns, 399)).astype(float)
    total = 0
    for row, seed in zip(scores, rng.integers(2**62, size=campaigns).tolist(), strict=True):
        n = allows(row, seed)
        total += bool(beaten[int(row[:n].max())] > limits[n])
    return total


@rule("patience: ties broken by coins, a score of three values", BETA, exact=False)
def patience_ties(campaigns, rng):
    return patience_on_three_levels(
        campaigns, rng, lambda row, seed: Patience(beta=BETA, draws=20, seed=seed).stops_at(row)
    )


FIRST, LAST = 100, 10_000
_SPAN = range(FIRST, LAST + 1)


def peeking_probability(networks, epsilons) -> float:
    """P(the violation probability of the best exceeds its limit at one look or more), exactly; limits do not grow."""
    n, log_miss = np.asarray(networks, dtype=float), np.log1p(-np.asarray(epsilons, dtype=float))
    assert len(n) == len(log_miss), "as many limits as looks are needed"
    assert (np.diff(n) > 0).all(), "looks must increase"
    assert (np.diff(log_miss) >= -1e-12).all(), "limits must not"
    first = np.zeros(len(n))  # P(exceeded at this look and at none before)
    # Exceeded at look j, less those that were first exceeded at a look i before and whose draws since then all missed
    # the share of limit j; what exceeded limit i exceeds limit j too, since limits do not grow.
    for j in range(len(n)):
        first[j] = math.exp(n[j] * log_miss[j]) - first[:j] @ np.exp((n[j] - n[:j]) * log_miss[j])
    return float(first.sum())


def peeking(limits: np.ndarray) -> Play:
    """Look at every n from FIRST to LAST, and stop as soon as the limit at n is wrong: the worst that one can do.

    The violation probability changes only at records, and how long the next one takes is geometric.
    """

    def play(campaigns, rng):
        n = np.full(campaigns, FIRST)
        violation = -np.expm1(np.log(rng.random(campaigns)) / FIRST)
        wrong = np.zeros(campaigns, dtype=bool)
        active = np.arange(campaigns)
        while len(active):
            v = violation[active]
            wait = np.ceil(np.log(rng.random(len(active))) / np.log1p(-v))
            following = np.minimum(n[active] + np.maximum(wait, 1), LAST + 1).astype(int)
            wrong[active] |= v > limits[following - 1]  # just before the next record the limit is tightest
            n[active], violation[active] = following, v * rng.random(len(active))
            active = active[(following <= LAST) & ~wrong[active]]
        return int(wrong.sum())

    return play


for _rule in (Between(beta=BETA, first=FIRST, last=LAST), Anytime(beta=BETA, first=FIRST), Mixture(beta=BETA)):
    _limits = np.array([_rule.epsilon(max(n, 1)) for n in range(LAST + 1)])
    _exact = peeking_probability(_SPAN, _limits[FIRST:].tolist())
    rule(f"{_rule.kind}: stop at will between {FIRST} and {LAST:,}", _exact, exact=True)(peeking(_limits))
    rule(f"{_rule.kind}: below beta", BETA, exact=False)(peeking(_limits))

_LOOKS = Looks(beta=BETA, looks=(100, 200, 400, 800))


@rule(
    "looks: stop at will at 100, 200, 400 or 800",
    peeking_probability(_LOOKS.looks, [_LOOKS.epsilon(n) for n in _LOOKS.looks]),
    exact=True,
)
def looks(campaigns, rng):
    violation, before, wrong = np.ones(campaigns), 0, np.zeros(campaigns, dtype=bool)
    for n in _LOOKS.looks:
        violation = np.minimum(violation, -np.expm1(np.log(rng.random(campaigns)) / (n - before)))
        before = n
        wrong |= violation > _LOOKS.epsilon(n)
    return int(wrong.sum())


@rule("looks: the 5th best, any n from 25 to 200", BETA, exact=False)
def looks_lower_rank(campaigns, rng):
    rule = Looks(beta=BETA, looks=(25, 50, 100, 200), rank=5)
    u = uniform(campaigns, 200, rng)
    wrong = np.zeros(campaigns, dtype=bool)
    for n in (*range(25, 200, 5), 200):
        wrong |= np.partition(u[:, :n], 4, axis=1)[:, 4] > rule.epsilon(n)
    return int(wrong.sum())


# ---------------------------------------------------------------- several orders, several scores

_FAMILIES, _EACH = 21, 59


@rule("families: global best, one family above all others", BETA, exact=True)
def global_best_dominated(campaigns, rng):
    u = uniform(campaigns, _EACH, rng)
    others = np.linspace(-3, -2, _EACH)
    said = Families.of({"0": -u[0], "1": others, "2": others}, beta=BETA)
    assert (said.best, said.thresholds[0]) == (0, -u[0].min())
    return missed(u.min(axis=1), said.epsilon)


@rule("families: global best, families of different quality", BETA, exact=False)
def global_best_spread(campaigns, rng):
    scale = np.linspace(1, 4, 5)
    least = rng.random((campaigns, 5, _EACH)).min(axis=2) * scale  # family k is uniform on [0, scale_k]
    best = least.min(axis=1)
    violation = (best[:, None] / scale).max(axis=1)
    return missed(violation, Families.of({str(k): range(_EACH) for k in range(5)}, beta=BETA).epsilon)


@rule("families: 21 of one law, the mixture", BETA, exact=True)
def mixture_of_families(campaigns, rng):
    least = -np.expm1(np.log(rng.random((campaigns, _FAMILIES))) / _EACH)
    said = Families.of({str(k): range(_EACH) for k in range(_FAMILIES)}, beta=BETA)
    return missed(least.min(axis=1), said.epsilon_mixture)


@rule("families: own best of each of 21, all together", 1 - (1 - BETA / _FAMILIES) ** _FAMILIES, exact=True)
def own_best(campaigns, rng):
    least = -np.expm1(np.log(rng.random((campaigns, _FAMILIES))) / _EACH)
    said = Families.of({str(k): range(_EACH) for k in range(_FAMILIES)}, beta=BETA)
    return int((least > said.epsilons).any(axis=1).sum())


def three_scores(campaigns, rng, kind):
    """For each of three scores, the probability that a new network beats its best of 124; and that of beating any."""
    if kind == "independent":
        each = rng.random((campaigns, 3, 124)).min(axis=2)
        return each, 1 - np.prod(1 - each, axis=1)
    # Disjoint: network u in [0, 3) is good in one score alone, the one of its unit interval.
    u = 3 * uniform(campaigns, 124, rng)
    each = np.stack([np.where(u // 1 == j, u % 1, 1.0).min(axis=1) / 3 for j in range(3)], axis=1)
    return each, each.sum(axis=1)


def _joint_statement() -> JointScores:
    return JointScores.of({name: range(124) for name in "abc"}, beta=BETA, directions=("max",) * 3)


for _kind in ("independent", "disjoint"):

    @rule(f"scores: three {_kind} ones, jointly", BETA, exact=False)
    def joint_scores(campaigns, rng, kind=_kind):
        return missed(three_scores(campaigns, rng, kind)[1], _joint_statement().epsilon_joint)


@rule("scores: three independent ones, each", 1 - (1 - BETA / 3) ** 3, exact=True)
def separate_scores(campaigns, rng):
    each, _ = three_scores(campaigns, rng, "independent")
    return int((each > _joint_statement().epsilon_separate).any(axis=1).sum())


# ---------------------------------------------------------------- more networks, new data, new episodes


@rule("gain: 50 further networks do not beat the best of 100", 1 - beaten_probability(100, 50), exact=True)
def beaten(campaigns, rng):
    u = uniform(campaigns, 150, rng)
    return int((u[:, 100:].min(axis=1) >= u[:, :100].min(axis=1)).sum())


@rule("renewal: the same 80 networks on three further sets of data", 1 - (1 - BETA / 3) ** 3, exact=True)
def renewal(campaigns, rng):
    u = rng.random((campaigns, 3, 80))
    said = Renewal.of(-u[0, 0], networks=80, beta=BETA, updates=3, depends_on_model=False)
    assert said.threshold == -u[0, 0].min()
    return int((u.min(axis=2) > said.epsilon).any(axis=1).sum())


@rule("episodes: failures of a criterion in 59", BETA, exact=False)
def failure_rate(campaigns, rng):
    true = 0.055
    failures = rng.binomial(59, true, size=campaigns)
    limits = np.array([FailureRate(episodes=59, failures=x, beta=BETA).epsilon for x in range(60)])
    return int((limits[failures] < true).sum())


@rule("episodes: third largest error of 60", BETA, exact=True)
def error_limit(campaigns, rng):
    errors = rng.exponential(size=(campaigns, 60))
    limit = np.sort(errors, axis=1)[:, -3]
    said = [ErrorLimit.of(row, beta=BETA, discarded=2) for row in errors[:CONFIRMED]]
    np.testing.assert_array_equal([s.limit for s in said], limit[:CONFIRMED])
    return missed(np.exp(-limit), said[0].epsilon)


_FEW = 20


@rule("episodes: conformal band from 20", 1 - 19 / 21, exact=True)
def conformal(campaigns, rng):
    errors = rng.exponential(size=(campaigns, _FEW + 1))
    band = [ConformalBand.of([[[e]] for e in row[:_FEW]], beta=0.1) for row in errors[:CONFIRMED]]
    width = np.sort(errors[:, :_FEW], axis=1)[:, band[0].rank - 1]
    np.testing.assert_array_equal([b.widths[0] for b in band], width[:CONFIRMED])
    return missed(errors[:, _FEW], width)


@rule("episodes: coverage band from 59, for this very band", BETA, exact=True)
def coverage_band(campaigns, rng):
    errors = rng.exponential(size=(campaigns, 59))
    bands = [CoverageBand.of([[[e]] for e in row], beta=BETA) for row in errors[:CONFIRMED]]
    width = errors.max(axis=1)
    np.testing.assert_array_equal([band.widths[0] for band in bands], width[:CONFIRMED])
    return missed(np.exp(-width), bands[0].epsilon)


def window_band(campaigns, rng, window, quoted):
    """Runs of 40 samples; the band is from the last `window` of each, and is quoted for `quoted` of a new run."""
    errors = rng.exponential(size=(campaigns, 30, 40))
    peaks = np.sort(errors[:, :, -window:].max(axis=2), axis=1)
    bands = [CoverageBand.of([[[e]] for e in row], beta=BETA, discarded=1, window=window) for row in peaks[:CONFIRMED]]
    np.testing.assert_array_equal([band.widths[0] for band in bands], peaks[:CONFIRMED, -2])
    return missed(-np.expm1(quoted * np.log1p(-np.exp(-peaks[:, -2]))), bands[0].epsilon)


@rule("episodes: coverage band over any window of 10 samples, from 30 runs of 40", BETA, exact=True)
def any_window(campaigns, rng):
    return sum(window_band(min(2000, campaigns - done), rng, 10, 10) for done in range(0, campaigns, 2000))


# ---------------------------------------------------------------- all promises of a certificate together


@rule("together: best, worst, third best, both ends and the range between them", 5 * BETA, exact=False)
def all_promises(campaigns, rng):
    u = np.sort(uniform(campaigns, 100, rng), axis=1)
    count = certify(
        -u[0],
        score="fit",
        direction="max",
        epsilon=0.1,
        beta=BETA,
        law={},
        seed=0,
        digests={},
        statements=[Removal.of(-u[0], discarded=2, beta=BETA, score="fit"), BothEnds.of(-u[0], beta=BETA, score="fit")],
    ).not_stated
    assert any("all 5 promises hold together with confidence 1 - 0.25" in sentence for sentence in count)
    both, alone = BothEnds.of(-u[0], beta=BETA), epsilon_exact(100, BETA)
    best, worst = u[:, 0], 1 - u[:, -1]
    wrong = (best > alone) | (worst > alone) | (u[:, 2] > epsilon_exact(100, BETA, discarded=2))
    wrong |= (best > both.epsilon) | (worst > both.epsilon) | (best + worst > both.epsilon_outside)
    return int(wrong.sum())


@rule("together: error limit, failure rate and band for sure of two models", 6 * BETA, exact=False)
def all_limits(campaigns, rng):
    wrong = np.zeros(campaigns, dtype=bool)
    for _ in range(2):
        errors = rng.exponential(size=(campaigns, 59))
        largest, epsilon = errors.max(axis=1), ErrorLimit.of(errors[0], beta=BETA).epsilon
        rates = np.array([FailureRate(episodes=59, failures=x, beta=BETA).epsilon for x in range(60)])
        peaks = rng.exponential(size=(campaigns, 59)).max(axis=1)
        wrong |= (
            (np.exp(-largest) > epsilon) | (np.exp(-peaks) > epsilon) | (rates[(errors > 3).sum(axis=1)] < np.exp(-3))
        )
    return int(wrong.sum())


# ---------------------------------------------------------------- words, and ties everywhere


@rule("words: threshold and epsilon as a sentence prints them", BETA, exact=False)
def as_printed(campaigns, rng):
    """Scores of many digits, read off the sentence: rounding is to the side on which it stays true."""
    best = rng.random((campaigns, _N)).max(axis=1)
    epsilon = epsilon_exact(_N, BETA)
    how = {"score": "fit", "direction": "max", "epsilon": epsilon, "beta": BETA, "law": {}, "seed": 0, "digests": {}}
    said = certify([0.0] * (_N - 1) + [best[0]], **how).statement
    assert said.endswith(f"with probability at most {upward(epsilon)}.")
    assert f"above {outward(best[0], 'max')} " in said
    printed = np.array([float(outward(one, "max")) for one in best])
    return missed(1 - printed, float(upward(epsilon)))


def tied(u: np.ndarray) -> np.ndarray:
    """Scores of 20 levels: minus these, and the probability to be strictly better."""
    return np.floor(20 * u) / 20


@rule("ties: any of the 10 best of 100, chosen after a look", BETA, exact=False)
def rank_ties(campaigns, rng):
    u = np.sort(tied(uniform(campaigns, 100, rng)), axis=1)
    band = RankBand.of(-u[0], beta=BETA, ranks=10)
    return int((u[:, :10] > band.epsilons).any(axis=1).sum())


@rule("ties: best and worst of 100 together", BETA, exact=False)
def ends_ties(campaigns, rng):
    u = tied(uniform(campaigns, 100, rng))
    epsilon = BothEnds.of(-u[0], beta=BETA).epsilon
    return int(((u.min(axis=1) > epsilon) | (1 - u.max(axis=1) - 1 / 20 > epsilon)).sum())


@rule("ties: 90 % quantile from 100", BETA, exact=False)
def quantile_ties(campaigns, rng):
    u = np.sort(tied(uniform(campaigns, 100, rng)), axis=1)  # a score, ascending; its 90 % quantile is 0.85
    lower, upper = QuantileInterval.of(u[0], level=0.9, beta=BETA).ranks
    padded = np.concatenate([np.full((campaigns, 1), -np.inf), u, np.full((campaigns, 1), np.inf)], axis=1)
    return int(((padded[:, lower] > 0.85) | (padded[:, upper] < 0.85)).sum())


@rule("ties: global best of 5 families", BETA, exact=False)
def family_ties(campaigns, rng):
    least = tied(rng.random((campaigns, 5, _EACH)).min(axis=2))
    return missed(least.min(axis=1), Families.of({str(k): range(_EACH) for k in range(5)}, beta=BETA).epsilon)


# ---------------------------------------------------------------- verification, looked at again and again

_N, _LOOK, _TIMES = 59, 100, 20


def looked_again(campaigns, rng, limit, violation=None, ties=1) -> int:
    """Campaigns in which a limit from the fresh networks so far is wrong at one of twenty looks of a hundred."""
    v = rng.beta(1, _N, size=campaigns) if violation is None else violation
    counts = np.cumsum(rng.binomial(_LOOK, np.minimum(1, ties * v)[:, None], size=(campaigns, _TIMES)), axis=1)
    wrong = np.zeros(campaigns, dtype=bool)
    for look in range(_TIMES):
        wrong |= v > limits_at(limit, (look + 1) * _LOOK, counts[:, look])
    return int(wrong.sum())


_KNOWN: dict[tuple[Any, int, int], float] = {}


def limits_at(limit, fresh: int, counts: np.ndarray) -> np.ndarray:
    """The limit of each campaign; one for each count is computed once, also for other batches."""
    key = limit.__code__  # every rule has a limit of its own
    for count in map(int, np.unique(counts)):
        if (key, fresh, count) not in _KNOWN:
            _KNOWN[key, fresh, count] = limit(fresh, count)
    found = np.zeros(int(counts.max()) + 1)
    for count in map(int, np.unique(counts)):
        found[count] = _KNOWN[key, fresh, count]
    return found[counts]


@rule("verify: all networks together, twenty looks of 100", BETA, exact=False)
def verify_again(campaigns, rng):
    return looked_again(campaigns, rng, lambda m, x: verify_counts(_N, m, x, beta=BETA).epsilon_combined)


def looked_each_time(campaigns, rng, limit, most=300) -> int:
    """As `looked_again`, by somebody who looks after every fresh network and knows the law: M is where he is wrong."""
    v = rng.beta(1, _N, size=campaigns)
    counts, wrong = np.zeros(campaigns, dtype=int), np.zeros(campaigns, dtype=bool)
    for m in range(1, most + 1):
        counts += rng.random(campaigns) < v
        wrong |= v > limits_at(limit, m, counts)
    return int(wrong.sum())


@rule("verify: M chosen late by somebody who knows the law, all networks together", BETA, exact=False, cost=4)
def verify_late(campaigns, rng):
    return looked_each_time(campaigns, rng, lambda m, x: verify_counts(_N, m, x, beta=BETA).epsilon_combined)


@rule("verify: the best of the certificate's epsilon and the verification's, at any M", 2 * BETA, exact=False, cost=4)
def verify_better_of_two(campaigns, rng):
    alone = epsilon_exact(_N, BETA)
    return looked_each_time(
        campaigns, rng, lambda m, x: min(alone, verify_counts(_N, m, x, beta=BETA).epsilon_combined)
    )


@rule("verify: best and worst case, diverged networks among them, at any M", 2 * BETA, exact=False, cost=4)
def verify_both_ends(campaigns, rng):
    """A share diverges, whose limit takes the place of the worst case's as soon as one of the search did."""
    share, v = 0.05, rng.beta(1, _N, size=campaigns)
    failures = rng.binomial(_N, share, size=campaigns)
    # Where none of the search diverged, the worst is beaten by those that do, and by some that do not.
    worst = np.where(failures > 0, share, share + (1 - share) * rng.beta(1, _N, size=campaigns))
    beyond, bad, wrong = np.zeros(campaigns, int), np.zeros(campaigns, int), np.zeros(campaigns, bool)
    for m in range(1, 151):
        beyond += rng.random(campaigns) < v
        bad += rng.random(campaigns) < worst
        wrong |= v > limits_at(lambda m, x: verify_counts(_N, m, x, beta=BETA).epsilon_combined, m, beyond)
        own = limits_at(lambda m, x: verify_counts(_N, m, x, beta=BETA).epsilon_combined, m, bad)
        # One code for each number of failures: the cache is asked for all trials of both.
        pooled = limits_at(
            lambda n, x: verify_divergence(1, 0, n - 1, x, beta=BETA).epsilon_combined, _N + m, failures + bad
        )
        wrong |= worst > np.where(failures > 0, pooled, own)
    return int(wrong.sum())


@rule("verify: ties count as violations, twenty looks", BETA, exact=False)
def verify_ties(campaigns, rng):
    return looked_again(campaigns, rng, lambda m, x: verify_counts(_N, m, 0, x, beta=BETA).epsilon_combined, ties=2)


@rule("verify: fresh networks alone, twenty looks of 100", BETA, exact=False)
def verify_alone(campaigns, rng):
    return looked_again(campaigns, rng, lambda m, x: verify_counts(_N, m, x, beta=BETA).epsilon_fresh)


@rule("verify: divergence, twenty looks of 100", BETA, exact=False)
def verify_diverged(campaigns, rng):
    share = np.full(campaigns, 0.03)
    return looked_again(campaigns, rng, lambda m, x: verify_divergence(1, 0, m, x, beta=BETA).epsilon_fresh, share)


@rule("verify: M settled beforehand, looked at once", BETA, exact=True)
def verify_settled(campaigns, rng):
    v = rng.beta(1, _N, size=campaigns)
    counts = rng.binomial(40, v)
    limits = np.array([verify_counts(_N, 40, x, beta=BETA, settled=True).epsilon_combined for x in range(41)])
    return missed(v, limits[counts])


_M, _PLANNED = 40, planned_verification(_N, 40, beta=BETA)


@rule("verify: planned together, at least one of 40 fresh networks violates", _PLANNED[1].p_value, exact=True)
def planned_violations(campaigns, rng):
    return int((rng.binomial(_M, rng.beta(1, _N, size=campaigns)) >= 1).sum())


@rule("verify: planned together, what all of them certify", BETA, exact=False)
def planned_together(campaigns, rng):
    v = rng.beta(1, _N, size=campaigns)
    said = [one.epsilon_combined for one in _PLANNED]
    counts = rng.binomial(_M, v)
    return int((v > np.array([*said, *[1.0] * (_M + 1)])[counts]).sum())


@rule("verify: as many as planned for no violation certify the epsilon that was asked for", BETA, exact=False)
def planned_number(campaigns, rng):
    fresh = fresh_needed(_N, 0.04, beta=BETA)
    v = rng.beta(1, _N, size=campaigns)
    return int(((v > 0.04) & (rng.binomial(fresh, v) == 0)).sum())


@rule("verify: a search stopped at will, then ten looks of 10", BETA, exact=False)
def verify_at_will(campaigns, rng):
    """Stopped where the best is weakest for its number, as if one knew the law."""
    campaigns_wrong, most, limits = 0, 200, {}
    n = np.arange(1, most + 1)
    for _ in range(campaigns):
        best = np.minimum.accumulate(rng.random(most))
        at = int(np.argmax(best * n))
        counts = np.cumsum(rng.binomial(10, best[at], size=10))
        for look in (0, 4, 9):
            key = (at + 1, 10 * (look + 1), int(counts[look]))
            if key not in limits:
                limits[key] = verify_counts(*key, beta=BETA, at_will=True).epsilon_combined
            if best[at] > limits[key]:
                campaigns_wrong += 1
                break
    return campaigns_wrong


@rule("outer rank: the refitted pick among fresh ones, at every number of them", BETA, exact=False, cost=4)
def outer_ranks(campaigns, rng):
    """What a network scores on the outer block has to do with what it was picked by, more or less."""
    u = rng.random((campaigns, 20))
    outer = np.mod(u + 0.3 * rng.random((campaigns, 20)), 1.0)
    v = outer[np.arange(campaigns), u.argmin(axis=1)]  # the probability to beat the pick there
    counts, wrong = np.zeros(campaigns, dtype=int), np.zeros(campaigns, dtype=bool)
    for m in range(1, 101):
        counts += rng.random(campaigns) < v
        wrong |= v > limits_at(
            lambda n, x: OuterRank(fresh=n, violations=x, threshold=0.0, beta=BETA).epsilon, m, counts
        )
    return int(wrong.sum())


@rule("expected gain of 20 further networks, a bounded score", BETA, exact=False)
def expected_gain(campaigns, rng):
    """For a uniform score in [0, 100], what 20 further ones gain on average over the best is known exactly."""
    best = 100 * rng.random((campaigns, _N)).max(axis=1)
    # Mean of (max of 20 - best)+ for uniform scores: the integral of 1 - (x / 100)^20 from the best to 100.
    gain = (100 - best) - (100 - best * (best / 100) ** 20) / 21
    one = ExpectedGain.of([float(best[0])] * _N, beta=BETA, further=20, score="fit")
    limits = (100 - best) * (one.limit / (100 - best[0]))
    return missed(gain, limits)


@rule("quantiles: 19 of them from 100, the worst chosen after a look", BETA, exact=False)
def quantiles_together(campaigns, rng):
    u = np.sort(uniform(campaigns, 100, rng), axis=1)
    u = np.concatenate([np.zeros((campaigns, 1)), u, np.ones((campaigns, 1))], axis=1)
    wrong = np.zeros(campaigns, dtype=bool)
    for level in np.arange(1, 20) / 20:
        lower, upper = QuantileInterval.of(range(100), level=float(level), beta=BETA, simultaneous=True).ranks
        wrong |= (u[:, lower] > level) | (u[:, upper] < level)
    return int(wrong.sum())


@rule("the same data searched six times, each at its share of beta", BETA, exact=False)
def searched_again(campaigns, rng):
    wrong = np.zeros(campaigns, dtype=bool)
    for number, size in enumerate((50, 60, 80, 120, 200, 400), start=1):
        wrong |= rng.beta(1, size, size=campaigns) > epsilon_exact(size, BETA * share_of(number))
    return int(wrong.sum())


@rule("episodes: blocks that depend on each other, with their mixing coefficient", BETA + 58 * 2e-3, exact=False)
def mixing_blocks(campaigns, rng):
    """Every block equals the one before with probability 0.002, which is at most the coefficient that is assumed."""
    true = 0.055
    fails, repeats = rng.random((campaigns, 59)) < true, rng.random((campaigns, 59)) < 2e-3
    for block in range(1, 59):
        fails[:, block] = np.where(repeats[:, block], fails[:, block - 1], fails[:, block])
    limits = np.array([FailureRate(episodes=59, failures=x, beta=BETA, mixing=2e-3).epsilon for x in range(60)])
    return int((limits[fails.sum(axis=1)] < true).sum())


# ---------------------------------------------------------------- through the public entry points, with real networks


def _tiny(seed: int, folder: Path, **settings: Any) -> Any:
    """A search with the smallest of networks over a short record."""
    how = {"law": "paper", "order": 2, "networks": 9, "beta": BETA, "washout": 20, "committee": 0, "confirm": 0}
    training, validation = _short_data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return identify(training, validation, **how | settings, seed=seed, run=folder / "run", workers=1)


@cache
def _short_data() -> tuple[Record, Record]:
    first, second = ph_experiment(samples=(120, 90), period=30)
    return first, second


@contextmanager
def without_pages() -> Iterator[None]:
    """A page takes longer than a campaign, and promises nothing that the rest does not."""
    with ExitStack() as stack:
        for name in ("identify", "verify", "generalise"):
            stack.enter_context(patch.object(sys.modules[f"echobound.{name}"], "write_page", lambda folder: None))
        yield


def each(campaigns: int, rng: np.random.Generator, missed_in: Callable[[int, Path], bool]) -> int:
    """Campaigns that missed, each with a seed and a folder of its own."""
    total = 0
    for seed in rng.integers(2**48, size=campaigns).tolist():
        with TemporaryDirectory() as folder, without_pages():
            total += missed_in(seed, Path(folder))
    return total


@rule("pipeline: 9 fresh networks find none better than the best of 9", 0.5, exact=True, cost=4000)
def pipeline_verify(campaigns, rng):
    return each(campaigns, rng, lambda seed, at: verify(_tiny(seed, at).run, fresh=9, workers=1)["violations"] > 0)


@rule("pipeline: after patience, as many fresh networks as were drawn find a better one", 0.5, exact=True, cost=4000)
def pipeline_patience(campaigns, rng):
    def missed_in(seed, at):
        result = _tiny(seed, at, networks=None, stop="patience:4", epsilon=0.6)
        return verify(result.run, fresh=result.certificate.networks, workers=1)["violations"] > 0

    return each(campaigns, rng, missed_in)


@rule("pipeline: committees of three, 6 fresh ones find none better than the best of 6", 0.5, exact=True, cost=4000)
def pipeline_committees(campaigns, rng):
    def missed_in(seed, at):
        return verify(_tiny(seed, at, networks=6, members=3).run, fresh=6, workers=1)["violations"] > 0

    return each(campaigns, rng, missed_in)


_EPISODES = 9


def second_certificate(campaigns: int, rng: np.random.Generator, horizon: int | None, index: int) -> int:
    """New episodes that lie beyond a limit of the second certificate, the model run as the certificate says."""
    total, score = 0, {0: "rmse", -1: "peak"}[index]
    with TemporaryDirectory() as folder, without_pages():
        run = _tiny(7, Path(folder), networks=12, horizon=horizon, beta=0.2).run
        for number, seed in enumerate(rng.integers(2**31, size=campaigns).tolist()):
            copied = shutil.copytree(run, Path(folder) / str(number))
            *episodes, new = ph_experiment(samples=(60,) * (_EPISODES + 1), period=30, seed=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                said = generalise(copied, episodes, beta=0.1).statements["model"][index]
            limit = said.limit if index == 0 else said.widths[0]
            network = RunFolder(copied).network
            [(measured, output)] = respond(network, [new], horizon)
            error = measured - output
            found = np.sqrt(np.mean(error**2)) if score == "rmse" else np.abs(error).max()
            total += bool(found > limit)
            shutil.rmtree(copied)
    return total


for _horizon, _run in ((None, "free runs"), (1, "predictions one sample ahead")):

    @rule(f"pipeline: error limit of the largest of 9 {_run}", 1 / (_EPISODES + 1), exact=True, cost=4000)
    def pipeline_limit(campaigns, rng, horizon=_horizon):
        return second_certificate(campaigns, rng, horizon, 0)

    @rule(f"pipeline: band from 9 {_run}, around the output that its words name", 0.1, exact=True, cost=4000)
    def pipeline_band(campaigns, rng, horizon=_horizon):
        return second_certificate(campaigns, rng, horizon, -1)


@rule("pipeline: outer rank of the refitted pick, among 9 fresh ones and 51 others", BETA, exact=False, cost=4000)
def pipeline_outer(campaigns, rng):
    """The last 51 of 60 fresh networks say where the pick really stands; a miss is beyond what these allow."""

    def missed_in(seed, at):
        one, two = _short_data()
        how = {"law": "paper", "order": 2, "networks": 9, "beta": BETA, "washout": 20, "committee": 0, "confirm": 0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = identify(one, **how, blocks=2, seed=seed, run=at / "run", workers=1).run
        few, many = (outer_rank(run, two, fresh=fresh) for fresh in (9, 60))
        return stats.binom.sf(many.violations - few.violations - 1, 51, few.epsilon) < 0.01

    return each(campaigns, rng, missed_in)


@rule(
    "pipeline: the seed of the data is another one for the same samples in another guise", 0.0, exact=False, cost=4000
)
def pipeline_seed(campaigns, rng):
    def missed_in(seed, at):
        one, two = _short_data()
        whole = Record(u=np.concatenate([one.u, two.u]), y=np.concatenate([one.y, two.y]), output_names=[f"y{seed}"])
        cut = 60 + seed % 90
        guises = [whole.part(0, cut), whole.part(cut, len(whole))][:: 1 if seed % 2 else -1]
        how = {"law": "paper", "order": 2, "networks": 2, "beta": 0.5, "washout": 20, "seed_of_data": True}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seeds = {identify(*pair, **how, confirm=0).certificate.seed for pair in ((one, two), guises)}
        return len(seeds) > 1

    return each(campaigns, rng, missed_in)


@rule("pipeline: near-duplicates are taken for independent episodes", 0.0, exact=False, cost=200)
def pipeline_copies(campaigns, rng):
    """Windows of one record, shifted, with jitter of rounding size, in other units, or thinned out."""
    whole, total = _long_record(), 0
    for _ in range(campaigns):
        start, shift = int(rng.integers(0, 150)), int(rng.integers(0, 80))
        one = whole.part(start, start + 200)
        two = whole.part(start + shift, start + shift + 200)
        kind = int(rng.integers(4))
        if kind == 1:
            two = replace(two, y=two.y + 10.0 ** rng.uniform(-9, -4.5) * two.y.std() * rng.normal(size=two.y.shape))
        elif kind == 2:
            two = replace(two, y=two.y * rng.uniform(-3, 3), u=two.u * 60 + 5)
        elif kind == 3:
            rate = int(rng.integers(2, 4))
            two = replace(two, u=two.u[::rate], y=two.y[::rate])
        try:
            require_independent_records([one, two])
        except DataError:
            continue
        total += 1
    return total


@cache
def _long_record() -> Record:
    """Filtered noise, noise on the output too."""
    rng = np.random.default_rng(3)
    u = np.convolve(rng.normal(size=440), np.full(5, 0.2), "valid")
    y = np.convolve(u, 0.8 ** np.arange(20))[: len(u)] + 0.01 * rng.normal(size=len(u))
    return Record(u=u, y=y)


@rule("audit: a forged row of a chaotic network passes", 0.0, exact=False, cost=20_000)
def pipeline_forged(campaigns, rng):
    def missed_in(seed, at):
        records = chaotic(600, seed % 1000), chaotic(400, seed % 1000 + 1)
        run = identify(*records, **CHAOS, confirm=0, seed=seed, run=at / "run", workers=1).run
        rows = sensitive(run)
        if not rows:
            return False
        forge(run, rows[seed % len(rows)], (99.9, 60.0, 5.0)[seed % 3])
        return audit(run, everything=True, workers=1).passed

    return each(campaigns, rng, missed_in)


# ---------------------------------------------------------------- mutants


@mutant("verify repeated: all networks together by the limit of one look")
def verify_naive(campaigns, rng):
    return looked_again(campaigns, rng, lambda m, x: verify_counts(_N, m, x, beta=BETA, settled=True).epsilon_combined)


@mutant("verify repeated: fresh networks alone by Clopper and Pearson's limit")
def verify_alone_naive(campaigns, rng):
    return looked_again(campaigns, rng, lambda m, x: verify_counts(_N, m, x, beta=BETA, settled=True).epsilon_fresh)


@mutant("19 quantiles, each at the level of one settled beforehand")
def quantiles_naive(campaigns, rng):
    u = np.sort(uniform(campaigns, 100, rng), axis=1)
    u = np.concatenate([np.zeros((campaigns, 1)), u, np.ones((campaigns, 1))], axis=1)
    wrong = np.zeros(campaigns, dtype=bool)
    for level in np.arange(1, 20) / 20:
        lower, upper = QuantileInterval.of(range(100), level=float(level), beta=BETA).ranks
        wrong |= (u[:, lower] > level) | (u[:, upper] < level)
    return int(wrong.sum())


@mutant("the same data searched six times, each at its whole beta")
def searched_again_naive(campaigns, rng):
    wrong = np.zeros(campaigns, dtype=bool)
    for size in (50, 60, 80, 120, 200, 400):
        wrong |= rng.beta(1, size, size=campaigns) > epsilon_exact(size, BETA)
    return int(wrong.sum())


@mutant("a second search with the seed of the first, its number of networks settled after a look, at its share of beta")
def searched_with_the_same_seed(campaigns, rng):
    most, wrong = 500, 0
    n = np.arange(50, most + 1)
    first, second = epsilon_exact(most, BETA * share_of(1)), -np.expm1(math.log(BETA * share_of(2)) / n)
    for done in range(0, campaigns, 2000):
        best = np.minimum.accumulate(rng.random((min(2000, campaigns - done), most)), axis=1)
        wrong += int(((best[:, 49:] > second).any(axis=1) | (best[:, -1] > first)).sum())
    return wrong


@mutant("a conformal band, quoted with confidence 1 - beta for this very band")
def conformal_for_sure(campaigns, rng):
    errors = rng.exponential(size=(campaigns, _FEW))
    width = np.sort(errors, axis=1)[:, ConformalBand.of([[[e]] for e in errors[0]], beta=0.1).rank - 1]
    return missed(np.exp(-width), 0.1)


@mutant("a band over windows of 10 samples, quoted for 20")
def window_of_twice_as_many(campaigns, rng):
    return sum(window_band(min(2000, campaigns - done), rng, 10, 20) for done in range(0, campaigns, 2000))


@mutant("59 windows of one record, shifted by one sample, as episodes")
def near_duplicates(campaigns, rng):
    """An episode fails if a rare event is inside of it; the windows share all but one sample with the next."""
    length, chance = 120, 0.0005
    events = rng.random((campaigns, length + 58)) < chance
    seen = np.concatenate([np.zeros((campaigns, 1)), np.cumsum(events, axis=1)], axis=1)
    failures = ((seen[:, length:] - seen[:, :-length]) > 0).sum(axis=1)
    limits = np.array([FailureRate(episodes=59, failures=x, beta=BETA).epsilon for x in range(60)])
    return int((limits[failures] < 1 - (1 - chance) ** length).sum())


def _fixed(n: np.ndarray) -> np.ndarray:
    return -np.expm1(math.log(BETA) / n)


mutant("naive peeking: the certificate of a fixed n, stopped at will between 100 and 10,000")(
    peeking(_fixed(np.maximum(np.arange(LAST + 1), 1)))
)


@mutant("the number to discard is chosen after a look, at the limit of one settled beforehand")
def chosen_rank(campaigns, rng):
    u = np.sort(uniform(campaigns, 100, rng), axis=1)
    return int((u[:, :10] > [epsilon_exact(100, BETA, discarded=r) for r in range(10)]).any(axis=1).sum())


@mutant("patience without coins: a tie counts as no improvement")
def patience_without_coins(campaigns, rng):
    def allows(row, _seed):
        record = 0
        for n, value in enumerate(row.tolist(), 1):
            if value > row[record]:
                record = n - 1
            if n - 1 - record >= 20:
                return n
        return None

    return patience_on_three_levels(campaigns, rng, allows)


@mutant("own best of each of 21 families, without sharing beta")
def families_without_union(campaigns, rng):
    least = -np.expm1(np.log(rng.random((campaigns, _FAMILIES))) / _EACH)
    return int((least > epsilon_exact(_EACH, BETA)).any(axis=1).sum())


@mutant("the score is chosen among three after a look")
def chosen_score(campaigns, rng):
    each, _ = three_scores(campaigns, rng, "independent")
    return int((each > epsilon_exact(124, BETA)).any(axis=1).sum())


@mutant("renewal with the better half of the networks, quoting all")
def renewal_pruned(campaigns, rng):
    return missed(rng.random((campaigns, 40)).min(axis=1), epsilon_exact(80, BETA))


@mutant("one-sided limits of the band, quoted for both ends")
def one_sided_quoted_for_both(campaigns, rng):
    u = uniform(campaigns, 100, rng)
    epsilon = epsilon_exact(100, BETA)
    return int(((u.min(axis=1) > epsilon) | (1 - u.max(axis=1) > epsilon)).sum())


@mutant("conformal band of rank (n)(1 - beta) instead of (n + 1)(1 - beta)", 0.1)
def conformal_off_by_one(campaigns, rng):
    errors = rng.exponential(size=(campaigns, _FEW + 1))
    return missed(errors[:, _FEW], np.sort(errors[:, :_FEW], axis=1)[:, math.ceil(0.9 * _FEW) - 1])


@mutant("blocks of one record that depend on each other, taken for independent episodes")
def dependent_blocks(campaigns, rng):
    """Every block equals the one before it with probability one half."""
    fails = rng.random((campaigns, 59)) < 0.055
    repeats = rng.random((campaigns, 59)) < 0.5
    for block in range(1, 59):
        fails[:, block] = np.where(repeats[:, block], fails[:, block - 1], fails[:, block])
    limits = np.array([FailureRate(episodes=59, failures=x, beta=BETA).epsilon for x in range(60)])
    return int((limits[fails.sum(axis=1)] < 0.055).sum())
