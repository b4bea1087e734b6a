"""Does a certificate miss as often as it says? Many repeated campaigns against the exact theory.

Two questions, each a function that returns a p-value to be held against `LEVEL`:

`miss_p_value`
    How often the violation probability V of the best of N exceeds epsilon. V must be known exactly, so the score is a
    cheap random one. Vectorised: one row of an array is one campaign.
`count_p_value`
    How many fresh networks violate the threshold. Nothing needs to be known of the score, so a campaign may be
    anything: a callable that takes the campaign's number and returns the scores of its search and of its test.
"""

from collections.abc import Callable, Iterable

import numpy as np
from scipy import stats

from echobound.scenario import certify, count_violations, networks_exact, verify_counts
from echobound.scenario.ordering import goodness

LEVEL = 1e-3
EPSILON, BETA = 0.05, 0.05
NETWORKS = networks_exact(EPSILON, BETA)  # 59

Campaign = Callable[[int], tuple[np.ndarray, np.ndarray]]


def certified_threshold(scores: np.ndarray, direction: str, case: str) -> float:
    """The threshold that `certify` states, NaN if it is the score of a diverged network.

    With epsilon = beta = 1/2 one network is enough for it: which number is quoted is the caller's, honest or not.
    """
    certificate = certify(scores, score="score", direction=direction, epsilon=0.5, beta=0.5, law={}, seed=0, digests={})
    threshold = certificate.threshold if case == "best" else certificate.worst.threshold
    return np.nan if threshold is None else threshold


def thresholds(search: np.ndarray, direction: str = "max", case: str = "best", confirmed: int = 200) -> np.ndarray:
    """Threshold of each campaign (a row), by the ordering that `certify` uses; some are confirmed by `certify`."""
    values = goodness(search, direction)
    found = values.max(axis=1) if case == "best" else values.min(axis=1)
    found = np.where(np.isinf(found), np.nan, found if direction == "max" else -found)
    for scores, threshold in zip(search[:confirmed], found[:confirmed], strict=True):
        np.testing.assert_equal(threshold, certified_threshold(scores, direction, case))
    return found


def miss_p_value(
    violation: np.ndarray, networks: int, epsilon: float = EPSILON, alternative: str = "two-sided"
) -> float:
    """Exact binomial test of how often V exceeds epsilon, against (1 - epsilon)^N for the N that is quoted."""
    misses = int((violation > epsilon).sum())
    return float(stats.binomtest(misses, len(violation), (1 - epsilon) ** networks, alternative=alternative).pvalue)


def violation_counts(campaign: Campaign, campaigns: int, direction: str = "max", case: str = "best") -> list[int]:
    """Fresh networks strictly beyond the threshold, for each campaign."""
    counts = []
    for number in range(campaigns):
        search, fresh = campaign(number)
        threshold = certified_threshold(search, direction, case)
        counts.append(count_violations(fresh, threshold, direction, case)[0])
    return counts


def count_p_value(counts: Iterable[int], networks: int, fresh: int, least: float = 5.0) -> float:
    """Chi-square test of violation counts against the beta-binomial law, cells pooled to `least` expected and more."""
    counts = list(counts)
    cells: list[list[float]] = []  # observed, expected
    observed = expected = 0.0
    left = 1.0  # probability of the values not yet in a cell
    for value in range(fresh + 1):
        probability = verify_counts(networks, fresh, value).probability
        observed, expected = observed + counts.count(value), expected + len(counts) * probability
        left -= probability
        if expected >= least and len(counts) * left >= least:
            cells.append([observed, expected])
            observed = expected = 0.0
        elif len(counts) * left < least:
            break  # all larger counts belong to this last cell
    table = np.array([*cells, [len(counts) - sum(c[0] for c in cells), len(counts) - sum(c[1] for c in cells)]])
    if len(table) < 2:
        raise ValueError(f"{len(counts)} campaigns leave a single cell: make more, or draw more fresh networks")
    return float(stats.chisquare(table[:, 0], table[:, 1]).pvalue)
