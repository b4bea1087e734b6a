"""Coverage with real networks: drawn, trained and scored, 300 campaigns and more against the beta-binomial law."""

import dataclasses

import numpy as np
import pytest
from campaigns import campaign
from coverage_harness import LEVEL, NETWORKS, count_p_value, violation_counts

from echobound.draws import SEARCH, VERIFICATION
from echobound.kernels import hold_out
from echobound.network import paper
from echobound.plants import ph_experiment
from echobound.runs.ledger import Ledger
from echobound.scores import get_score

CAMPAIGNS = 320


@pytest.fixture(scope="module")
def campaigns():
    """Search and fresh scores (campaign, network) of small networks on the pH plant; one seed for each campaign."""
    training, validation = ph_experiment(samples=(160, 120), period=30)
    problem = hold_out(training, validation, law=paper(5), scores=[get_score("fit")], washout=30)
    tables = {}
    for stream in (SEARCH, VERIFICATION):
        rows = []
        for seed in range(CAMPAIGNS):
            with Ledger(None, "coverage", ["fit"]) as ledger:
                one = dataclasses.replace(problem, seed=seed, stream=stream)
                rows.append(campaign(one, range(NETWORKS), ledger, batch=NETWORKS)["scores"][:, 0])
        tables[stream] = np.array(rows)
    return tables


@pytest.mark.parametrize("case", ["best", "worst"])
def test_violations_follow_the_exact_law(campaigns, case):
    counts = violation_counts(lambda i: (campaigns[SEARCH][i], campaigns[VERIFICATION][i]), CAMPAIGNS, case=case)
    assert count_p_value(counts, NETWORKS, NETWORKS) > LEVEL
    assert sum(counts) > 0


def test_mutant_verification_shares_the_search_stream(campaigns):
    counts = violation_counts(lambda i: (campaigns[SEARCH][i], campaigns[SEARCH][i]), CAMPAIGNS)
    assert count_p_value(counts, NETWORKS, NETWORKS) < LEVEL


def test_mutant_number_overstated(campaigns):
    few = NETWORKS // 4
    counts = violation_counts(lambda i: (campaigns[SEARCH][i][:few], campaigns[VERIFICATION][i]), CAMPAIGNS)
    assert count_p_value(counts, NETWORKS, NETWORKS) < LEVEL


def test_no_network_is_drawn_twice(campaigns):
    both = np.concatenate([campaigns[SEARCH].ravel(), campaigns[VERIFICATION].ravel()])
    assert len(np.unique(both)) == both.size
