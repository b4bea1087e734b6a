"""Counts of the paper's table on rows made by hand: FIT is better when higher, RMSE worse when higher."""

import numpy as np
import pytest
import scipy.stats

from echobound.kernels import Status, row_dtype
from echobound.reproduce.experiment import _result

DIVERGED = (-np.inf, np.inf)
SEARCH = [(80.0, 0.5), (90.0, 0.2), (70.0, 0.9), (85.0, 0.4)]  # best FIT 90, worst RMSE 0.9


def rows(scores, stream=0):
    table = np.zeros(len(scores), dtype=row_dtype(2))
    table["stream"], table["index"], table["scores"] = stream, np.arange(len(scores)), np.reshape(scores, (-1, 2))
    table["status"] = [Status.OK if np.isfinite(pair).all() else Status.DIVERGED for pair in scores]
    return table


def result(fresh, search=SEARCH):
    return _result(10, rows(search), rows(fresh, stream=1))


def test_the_thresholds_are_the_best_fit_and_the_highest_rmse():
    outcome = result([(50.0, 0.3)])
    assert (outcome.order, outcome.best_fit, outcome.worst_rmse) == (10, 90.0, 0.9)
    assert (outcome.winner, outcome.failures) == (1, 0)


@pytest.mark.parametrize(
    ("fresh", "best", "worst"),
    [
        ([(89.9, 0.3)], 0, 0),
        ([(90.1, 0.3)], 1, 0),  # a better network violates the best case
        ([(60.0, 1.0)], 0, 1),  # a higher RMSE violates the worst case
        ([(60.0, 0.1)], 0, 0),  # a lower one does not
        ([(10.0, 0.3)], 0, 0),  # a FIT below all says nothing of the worst RMSE
        ([(90.1, 1.0)], 1, 1),  # the two cases are counted apart
        ([(91.0, 0.1), (92.0, 0.1), (50.0, 1.5), (60.0, 0.95), (70.0, 2.0), (80.0, 0.5)], 2, 3),
        ([], 0, 0),
    ],
)
def test_violations(fresh, best, worst):
    outcome = result(fresh)
    assert (outcome.best_violations, outcome.worst_violations) == (best, worst)


def test_ties_are_not_violations():
    outcome = result([(90.0, 0.9), (90.0, 0.9), (np.nextafter(90.0, 91.0), np.nextafter(0.9, 1.0))])
    assert (outcome.best_violations, outcome.worst_violations) == (1, 1)


def test_a_diverged_fresh_network_violates_the_worst_case_only():
    outcome = result([DIVERGED, (89.0, 0.3)])
    assert (outcome.best_violations, outcome.worst_violations) == (0, 1)
    assert outcome.failures == 0, "failures are those of the search"


def test_nothing_is_worse_than_a_diverged_network_of_the_search():
    outcome = result([DIVERGED, (10.0, 1e9), (95.0, 0.1)], search=[*SEARCH, DIVERGED])
    assert outcome.worst_rmse == np.inf
    assert outcome.failures == 1
    assert (outcome.best_violations, outcome.worst_violations) == (1, 0)
    assert (outcome.best_fit, outcome.winner) == (90.0, 1)
    assert outcome.worst_probability == 1.0


def test_all_of_the_search_diverged():
    outcome = result([DIVERGED, (10.0, 3.0)], search=[DIVERGED, DIVERGED])
    assert (outcome.winner, outcome.failures) == (None, 2)
    assert (outcome.best_violations, outcome.worst_violations) == (1, 0)


def test_of_equals_the_first_is_picked():
    assert result([(1.0, 1.0)], search=[(80.0, 0.5), (90.0, 0.4), (90.0, 0.3)]).winner == 1


def test_probabilities_are_those_of_so_many_or_more():
    outcome = result([(91.0, 0.1), (92.0, 0.1), (50.0, 1.5), (60.0, 0.5), (70.0, 0.5)])
    law = scipy.stats.betabinom(5, 1, 4)  # 5 fresh against the extreme of 4
    assert outcome.best_probability == pytest.approx(law.sf(1), rel=1e-12)
    assert outcome.worst_probability == pytest.approx(law.sf(0), rel=1e-12)
