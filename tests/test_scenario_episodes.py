"""Generalisation: statements on independent test episodes."""

import math

import numpy as np
import pytest
from golden import agrees
from scipy import stats

from echobound.errors import InputError
from echobound.scenario import (
    ConformalBand,
    CoverageBand,
    ErrorLimit,
    FailureRate,
    Optimism,
)
from echobound.scenario.statements.episodes import cut_blocks


@pytest.mark.parametrize(
    ("failures", "episodes", "golden"), [(0, 59, "0.0495076"), (0, 100, "0.0295130496"), (2, 100, "0.0616192004")]
)
def test_failure_rate(failures, episodes, golden):
    statement = FailureRate.of([True] * failures + [False] * (episodes - failures), beta=0.05)
    assert agrees(statement.epsilon, golden)
    assert statement.epsilon == pytest.approx(stats.beta(failures + 1, episodes - failures).ppf(0.95), rel=1e-9)
    assert FailureRate.of([True] * 3, beta=0.05).epsilon == 1.0


@pytest.mark.parametrize(("discarded", "golden"), [(0, "0.0581550791"), (4, "0.1737911582")])
def test_error_limit(discarded, golden):
    statement = ErrorLimit.of(np.arange(50.0)[::-1], beta=0.05, discarded=discarded)
    assert agrees(statement.epsilon, golden)
    assert statement.limit == 49 - discarded


def test_error_limit_with_divergence():
    errors = [1.0, math.nan, 2.0, math.inf]
    assert ErrorLimit.of(errors, beta=0.05).limit is None
    assert "diverged" in ErrorLimit.of(errors, beta=0.05, discarded=1).words
    assert ErrorLimit.of(errors, beta=0.05, discarded=2).limit == 2.0
    with pytest.raises(InputError, match="keep at least one"):
        ErrorLimit.of(errors, beta=0.05, discarded=4)


def test_conformal_rank():
    errors = [np.full((3, 1), float(i)) for i in range(1, 51)]
    band = ConformalBand.of(errors, beta=0.1, names=["pH"])
    assert (band.rank, band.widths) == (46, (46.0,))
    assert ConformalBand.of(errors[:9], beta=0.1).rank == 9, "10 times 0.9, not a rounding error above it"
    few = ConformalBand.of(errors[:8], beta=0.1)
    assert (few.rank, few.widths) == (9, (None,))
    assert "no band" in few.words


@pytest.mark.parametrize(("episodes", "discarded"), [(59, 0), (124, 2), (50, 4), (12, 0)])
def test_coverage_band(episodes, discarded):
    """Its epsilon by mpmath: the largest p with P(Binomial(n, p) <= r) >= beta."""
    import mpmath

    errors = [np.full((3, 1), float(i)) for i in range(1, episodes + 1)]
    band = CoverageBand.of(errors, beta=0.05, discarded=discarded, names=["pH"])
    assert band.widths == (float(episodes - discarded),)
    with mpmath.workdps(40):
        n, p = episodes, mpmath.mpf(band.epsilon)
        tail = mpmath.fsum(mpmath.binomial(n, i) * p**i * (1 - p) ** (n - i) for i in range(discarded + 1))
        assert abs(mpmath.mpf("0.05") - tail) < 1e-15
    assert f"stays within pH +- {episodes - discarded} of the simulated one throughout" in band.words
    assert CoverageBand.from_dict(band.to_dict()) == band


def test_coverage_band_over_a_window():
    errors = [np.full((3, 2), float(i)) for i in range(1, 31)]
    band = CoverageBand.of(errors, beta=0.05, scales=[1.0, 2.0], window=3, horizon=4)
    assert band.widths == (30.0, 60.0)
    assert "in 3 consecutive samples that are chosen without a look at it," in band.words
    assert "y1 +- 30, y2 +- 60 of the one predicted 4 samples ahead in all of them" in band.words
    assert "stationary after their start" in band.words
    assert "no band for sure" in CoverageBand.of([*errors, errors[0] * np.nan], beta=0.05).words
    assert CoverageBand.of([*errors, errors[0] * np.nan], beta=0.05, discarded=1).widths == (30.0, 30.0)
    for bad in ({"discarded": 30}, {"window": 0}, {"names": ["a"]}, {"scales": [1.0]}):
        with pytest.raises(InputError):
            CoverageBand.of(errors, beta=0.05, **bad)


def test_conformal_band_over_several_outputs():
    """One band for both: scaled, the larger of the two errors counts."""
    errors = [np.array([[0.1 * i, -4.0 * i], [0.2 * i, 1.0 * i]]) for i in range(1, 20)]
    band = ConformalBand.of(errors, beta=0.1, scales=[1.0, 10.0])
    assert band.rank == 18
    assert band.widths == pytest.approx((0.4 * 18, 4.0 * 18))
    assert ConformalBand.of([*errors[:-2], errors[0] * np.nan, errors[0] * np.inf], beta=0.1).widths == (None, None)
    for bad in ([], [np.zeros(3)], [np.zeros((3, 1)), np.zeros((3, 2))]):
        with pytest.raises(InputError, match="array"):
            ConformalBand.of(bad, beta=0.1)
    with pytest.raises(InputError, match="scales"):
        ConformalBand.of(errors, beta=0.1, scales=[1.0])


def test_optimism():
    assert Optimism.of(90.0, 88.0).difference == 2.0
    assert Optimism.of(0.1, 0.3, direction="min").difference == pytest.approx(0.2)
    assert "2 better" in Optimism.of(88.0, 90.0).words
    assert "the same" in Optimism.of(88.0, 88.0).words
    assert Optimism.of(88.0, math.nan).difference is None
    assert "diverged" in Optimism.of(88.0, -math.inf).words


def test_blocks_of_one_record():
    assert cut_blocks(1000, 300, 100) == [(0, 300), (400, 700)]
    assert cut_blocks(300, 300, 0) == [(0, 300)]
    with pytest.raises(InputError, match="gap"):
        cut_blocks(1000, 300, gap=50, washout=100)
    with pytest.raises(InputError, match="does not fit"):
        cut_blocks(200, 300, 100)


def test_blocks_pay_for_their_dependence():
    independent = FailureRate.of([False] * 50, beta=0.05)
    dependent = FailureRate.of([False] * 50, beta=0.05, mixing=1e-3)
    assert independent.total_beta == 0.05
    assert dependent.total_beta == pytest.approx(0.05 + 49e-3)
    assert dependent.epsilon == independent.epsilon
    assert "1 - 0.099, " in dependent.words
    assert "assumptions, which are not tested" in dependent.words
    assert "independent" in independent.words
    with pytest.raises(InputError, match="no confidence"):
        FailureRate.of([False] * 50, beta=0.05, mixing=0.02)
    with pytest.raises(InputError, match="between 0 and 1"):
        FailureRate.of([False] * 50, beta=0.05, mixing=-0.1)


@pytest.mark.parametrize("failed", [[0, 1], [[True]], ["no"]])
def test_failures_are_true_or_false(failed):
    with pytest.raises(InputError, match="true or false"):
        FailureRate.of(failed, beta=0.05)
