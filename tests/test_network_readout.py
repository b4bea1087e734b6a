import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from echobound.network.readout import least_squares, minimum_norm, ridge_solution


@given(st.integers(1, 12), st.integers(1, 3), st.integers(0, 10_000), st.sampled_from([1e-8, 1e-3, 1.0]))
@settings(max_examples=50, deadline=None)
def test_ridge_is_augmented_least_squares(columns, outputs, seed, ridge):
    rng = np.random.default_rng(seed)
    phi, y = rng.normal(size=(30, columns)), rng.normal(size=(30, outputs))
    [(used, weights)] = least_squares(phi, y, (ridge,))
    level = ridge * np.trace(phi.T @ phi) / columns
    augmented = np.concatenate([phi, np.sqrt(level) * np.eye(columns)])
    expected = scipy.linalg.lstsq(augmented, np.concatenate([y, np.zeros((columns, outputs))]))[0].T
    assert used == ridge
    assert np.allclose(weights, expected, rtol=1e-7, atol=1e-9)


@given(st.integers(2, 10), st.integers(1, 2), st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_zero_ridge_is_the_minimum_norm_solution(columns, outputs, seed):
    rng = np.random.default_rng(seed)
    rank = max(1, columns // 2)
    phi = rng.normal(size=(25, rank)) @ rng.normal(size=(rank, columns))
    y = rng.normal(size=(25, outputs))
    [(used, weights)] = least_squares(phi, y, (0.0,))
    assert used == 0.0
    assert np.allclose(weights, (np.linalg.pinv(phi, rcond=1e-10) @ y).T, atol=1e-8)


def test_fewer_rows_than_columns():
    rng = np.random.default_rng(0)
    phi, y = rng.normal(size=(4, 9)), rng.normal(size=(4, 1))
    [(_, weights)] = least_squares(phi, y, (0.0,))
    assert np.allclose(phi @ weights.T, y)
    assert np.allclose(weights, (np.linalg.pinv(phi) @ y).T)


def test_failed_cholesky_falls_back_and_says_so():
    phi = np.ones((10, 3))  # the Gram matrix is exactly singular, and so small a ridge is lost in it
    assert ridge_solution(phi.T @ phi, phi.T @ np.ones((10, 1)), 1e-30) is None
    [(used, weights), (kept, _)] = least_squares(phi, np.ones((10, 1)), (1e-30, 1e-3))
    assert (used, kept) == (0.0, 1e-3)
    assert np.allclose(weights, 1 / 3)


def test_triangle_may_come_from_pieces():
    rng = np.random.default_rng(1)
    both = rng.normal(size=(40, 7))
    whole = np.linalg.qr(both, mode="r")
    pieces = np.linalg.qr(np.concatenate([np.linalg.qr(both[:25], mode="r"), both[25:]]), mode="r")
    assert np.allclose(minimum_norm(whole, 2), minimum_norm(pieces, 2), rtol=1e-12)
    assert minimum_norm(whole, 2) == pytest.approx((np.linalg.pinv(both[:, :5]) @ both[:, 5:]).T)
