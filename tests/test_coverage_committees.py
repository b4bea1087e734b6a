"""Coverage of the certificate of committees: 2,000 small campaigns each, against what the theory says exactly.

Once with draws whose score is known, so that the probability of a better committee is too, and once with real networks.
The committees are formed by `Committees` itself: who is kept, and the median of their outputs.
"""

from dataclasses import replace

import numpy as np
import pytest
from coverage_harness import LEVEL, certified_threshold, miss_p_value, thresholds
from scipy import stats

from echobound.candidates import Committees, Networks
from echobound.data import Record
from echobound.draws import VERIFICATION, unit, words
from echobound.kernels import get_kernel, hold_out
from echobound.kernels.base import Run
from echobound.network import paper
from echobound.plants import ph_experiment
from echobound.scores import Score, get_score

CAMPAIGNS, MEMBERS = 2000, 3
EPSILON, NETWORKS = 0.2, 14  # beta = 0.8**14 = 0.044


class SharingDraws(Committees):
    """A mutant: each committee has but one draw that the one before it does not have."""

    def draws(self, index):
        return range(index, index + self.members)


# Draws whose score is known ---------------------------------------------------------------------------------------


class Uniform:
    """A kernel whose draws give a constant output, uniform between 0 and 1, from their own words."""

    name = "uniform"

    def runs(self, problem, indices):
        return [Run(1, 0.0, [np.full((1, 1), unit(words(problem.key(i), 0, 1))[0])]) for i in indices]


def better(level):
    """P(a new committee of three scores above `level`), where a score is the mean of the larger two of three uniforms.

    They have the density 6 a (a <= b); below the line a + b = 2 t it integrates to 2 t^3 - max(2 t - 1, 0)^3.
    """
    return 1 - (2 * level**3 - np.maximum(2 * level - 1, 0) ** 3)


def searches(kind, campaigns=CAMPAIGNS):
    """Scores (campaign, committee); one seed for each campaign."""
    k = np.arange(2.0)
    level = Score("level", lambda y, yhat: float(yhat.mean()), "max")
    problem = hold_out(*[Record(u=k, y=k)] * 2, law=paper(2), scores=[level], washout=0)
    problem = replace(
        problem, folds=(replace(problem.folds[0], scored=(replace(problem.folds[0].scored[0], stop=1),)),)
    )
    made = [kind(Networks(Uniform(), replace(problem, seed=seed)), MEMBERS) for seed in range(campaigns)]
    return np.array([committees.score(range(NETWORKS))["scores"][:, 0] for committees in made])


@pytest.fixture(scope="module")
def scores():
    return searches(Committees)


def test_the_law_of_the_score_is_the_one_computed_here(scores):
    assert stats.kstest(1 - better(scores.ravel()), "uniform").pvalue > LEVEL


def test_the_certificate_misses_as_often_as_it_says(scores):
    assert miss_p_value(better(thresholds(scores)), NETWORKS, EPSILON) > LEVEL


def test_mutant_committees_that_share_draws_are_found():
    violation = better(thresholds(searches(SharingDraws, campaigns=500)))
    assert miss_p_value(violation, NETWORKS, EPSILON) < LEVEL
    assert (violation > EPSILON).mean() > (1 - EPSILON) ** NETWORKS, "they miss more often than is certified"


def test_mutant_that_counts_members_as_committees_is_found(scores):
    assert miss_p_value(better(thresholds(scores)), MEMBERS * NETWORKS, EPSILON) < LEVEL


# Real networks ------------------------------------------------------------------------------------------------------

FEW = 4  # committees of a search; a fresh one beats their best with probability 1 / 5


@pytest.fixture(scope="module")
def beaten():
    """By kind: in how many campaigns one fresh committee of small networks beats the best of a few."""
    training, validation = ph_experiment(samples=(60, 50), period=10)
    problem = hold_out(training, validation, law=paper(2), scores=[get_score("fit")], washout=10)
    kernel, counts = get_kernel("cpu"), dict.fromkeys(("honest", "overstated"), 0)
    for seed in range(CAMPAIGNS):
        committees = Committees(Networks(kernel, replace(problem, seed=seed)), MEMBERS)
        search = committees.score(range(FEW))["scores"][:, 0]
        fresh = committees.on(VERIFICATION).score([0])["scores"][0, 0]
        counts["honest"] += fresh > certified_threshold(search, "max", "best")
        counts["overstated"] += fresh > certified_threshold(search[: FEW // 2], "max", "best")
    return counts


def test_fresh_committees_of_networks_beat_the_best_as_often_as_the_theory_says(beaten):
    assert stats.binomtest(int(beaten["honest"]), CAMPAIGNS, 1 / (FEW + 1)).pvalue > LEVEL


def test_mutant_that_claims_twice_as_many_as_it_drew_is_found(beaten):
    assert stats.binomtest(int(beaten["overstated"]), CAMPAIGNS, 1 / (FEW + 1)).pvalue < LEVEL
