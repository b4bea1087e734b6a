"""Tests of what a model leaves over, against known truth: a small version of `benchmarks/diagnostics.py`."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from echobound.diagnostics.finding import RATE, Piece
from echobound.diagnostics.residuals import residuals_of
from echobound.diagnostics.whitening import Autoregression, correlation

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from diagnostics import rates

CASES = 60


@pytest.fixture(scope="module")
def table():
    return rates(CASES, samples=800, seed=3)


@pytest.mark.parametrize(
    ("truth", "quiet"),
    [
        ("white residuals", ("white errors", "missing dynamics", "dead time", "feedback", "drift")),
        ("coloured residuals", ("missing dynamics", "dead time", "feedback", "drift")),
        ("feedback", ("dead time",)),
    ],
)
def test_false_alarms_come_at_the_stated_rate(table, truth, quiet):
    most = binom.isf(1e-4, CASES, RATE) / CASES  # more has a probability below 1 in 10,000 at the stated rate
    for name in quiet:
        assert table[truth][name] <= most, name


@pytest.mark.parametrize(
    ("truth", "name", "least"),
    [("wrong delay", "dead time", 0.9), ("feedback", "feedback", 0.8), ("drift", "drift", 0.7),
     ("missing dynamics", "missing dynamics", 0.3), ("coloured residuals", "white errors", 0.9)],
)  # fmt: skip
def test_what_is_wrong_is_found(table, truth, name, least):
    assert table[truth][name] >= least


def test_correlations_are_those_of_numpy():
    a, b = np.random.default_rng(0).standard_normal((2, 300))
    found = correlation([a], [b], -4, 4)
    for lag, value in zip(found.lags, found.values, strict=True):
        x, y = (a[: 300 - lag], b[lag:]) if lag >= 0 else (a[-lag:], b[:lag])
        assert value == pytest.approx((x @ y) / np.sqrt((a @ a) * (b @ b)))


def test_whitening_leaves_what_is_new():
    rng = np.random.default_rng(1)
    new = rng.standard_normal(5000)
    x = np.zeros(5000)
    for k in range(2, 5000):
        x[k] = 1.5 * x[k - 1] - 0.7 * x[k - 2] + new[k]
    model = Autoregression.of([x[:2500], x[2500:]])
    assert model.a[:2] == pytest.approx([1.5, -0.7], abs=0.1)
    assert np.corrcoef(model.new(x), new[len(model.a) :])[0, 1] > 0.98


def test_too_little_is_said_to_be_so():
    u = np.zeros((30, 1))
    found = residuals_of([Piece(u, u, u)], ["u1"], ["y1"]).findings
    assert all(one.words.startswith("Not tested") and not one.alarm for one in found)


def test_the_error_is_named_by_what_was_scored():
    """In a run of predictions it was called the simulation error, and predicting was advised."""
    rng = np.random.default_rng(0)
    u = rng.standard_normal((400, 1))
    piece = Piece(u, u + np.cumsum(rng.standard_normal((400, 1)), axis=0) / 10, u)
    free, near, far = (residuals_of([piece], ["u1"], ["y1"], horizon).findings[0] for horizon in (None, 1, 5))
    assert (free.alarm, near.alarm, far.alarm) == (True, True, True)
    assert free.words.startswith("The simulation error resembles its own past")
    assert "--horizon" in free.advice
    assert near.words.startswith("The error of predictions 1 sample ahead resembles")
    assert far.words.startswith("The error of predictions 5 samples ahead resembles")
    assert "free run" not in near.advice + far.advice
