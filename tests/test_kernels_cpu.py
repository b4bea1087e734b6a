"""The compiled pieces against NumPy, SciPy and mpmath."""

import dataclasses
import threading

import mpmath
import numpy as np
import pytest
from numba import njit

from echobound.draws import draw_key, unit, words
from echobound.kernels.blas import one_blas_thread
from echobound.kernels.cpu import CPUKernel
from echobound.kernels.cpu.bidiagonal import spectral_norm
from echobound.kernels.cpu.fortran import ADDRESSES, cholesky, gram_update, triangle_solve
from echobound.kernels.cpu.philox import floyd, symmetric, units
from echobound.kernels.cpu.step import tanh
from echobound.kernels.problem import hold_out
from echobound.network import LeastSquares, paper
from echobound.network.reservoir import draw_reservoir
from echobound.network.spectral_norm import spectral_norm as reference_norm
from echobound.scores import get_score


@njit(error_model="numpy")
def tanh_of(x, out):
    for i in range(x.size):
        out[i] = tanh(x[i])


def test_tanh_is_accurate_everywhere():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=4000) * scale for scale in (1e-300, 1e-9, 1e-3, 0.2, 1.0, 5.0, 25.0)])
    out = np.empty_like(x)
    tanh_of(x, out)
    with mpmath.workdps(40):
        worst = max(
            abs(float((mpmath.mpf(o) - mpmath.tanh(v)) / mpmath.tanh(v))) for o, v in zip(out, x.tolist(), strict=True)
        )
    assert worst < 1e-15
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 700.0, -1e308])
    result = np.empty_like(special)
    tanh_of(special, result)
    assert result[2:4].tolist() == [1.0, -1.0]
    assert np.isnan(result[4])
    assert np.signbit(result[1])
    assert result[5:].tolist() == [1.0, -1.0]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 1003])
@pytest.mark.parametrize("region", [0, 1, 7])
def test_philox_is_numpys(count, region):
    key = draw_key(12345678901, 1, 3, 99)
    out = np.empty(count)
    units(key, region, out)
    assert (out == unit(words(key, region, count))).all()
    symmetric(key, region, 0.3, out)
    assert (out == 0.3 * (2.0 * unit(words(key, region, count)) - 1.0)).all()


@pytest.mark.parametrize("pattern", ["diagonals", "random"])
@pytest.mark.parametrize("order", [1, 2, 9, 50, 201])
def test_weights_are_bit_identical_before_the_norm_is_scaled(pattern, order, ph_records):
    from echobound.kernels.cpu.net import drawn_net

    law = dataclasses.replace(paper(order), pattern=pattern, bias_scale=0.7, leak=0.5, leak_spread=0.2)
    problem = hold_out(*ph_records, law=law, scores=[get_score("fit")], washout=50)
    net = drawn_net(problem.draw(3))
    reference = draw_reservoir(law, 1, 1, seed=0, index=3)
    assert (reference.W_u == net.W_u.T).all()
    assert (reference.W_y == net.W_y.T).all()
    assert (net.bias == reference.bias).all()
    assert (net.leak == reference.leak).all()
    columns = net.columns if pattern == "random" else (np.arange(order) + net.columns) % order
    assert (columns == reference.columns).all()
    assert np.allclose(net.values, reference.values, rtol=1e-10, atol=0)


@pytest.mark.parametrize("slots", [1, 4, 10])
def test_norm_is_the_references(slots):
    for order in (1, 2, 5, 30, 157):
        levels = np.random.default_rng(order).random((min(slots, order), order))
        columns = np.empty(levels.shape, dtype=np.int64)
        floyd(levels, order, columns)
        values = 2 * levels - 1
        assert spectral_norm(values, columns) == pytest.approx(reference_norm(columns, values), rel=1e-12)


def test_blas_and_lapack():
    rng = np.random.default_rng(0)
    chunk = rng.normal(size=(64, 11))
    ints, reals, flags = np.zeros(8, np.int32), np.zeros(2), np.zeros(2, np.uint8)
    gram = np.zeros((11, 11))
    gram_update(ADDRESSES, ints, reals, flags, chunk, 40, gram)
    gram_update(ADDRESSES, ints, reals, flags, chunk[40:].copy(), 24, gram)
    assert np.allclose(np.tril(gram), np.tril(chunk.T @ chunk), rtol=1e-13)
    factor = gram.copy()
    assert cholesky(ADDRESSES, ints, flags, factor, 10)
    rhs = rng.normal(size=(2, 10))
    expected = np.linalg.solve((chunk.T @ chunk)[:10, :10], rhs.T).T
    triangle_solve(ADDRESSES, ints, flags, factor, 10, rhs)
    assert np.allclose(rhs, expected, rtol=1e-9)
    assert not cholesky(ADDRESSES, ints, flags, np.zeros((11, 11)), 10)


def test_blas_has_its_threads_again_after_campaigns_in_threads():
    """Some versions of OpenBLAS obey only the first thread that ever set a limit."""
    from threadpoolctl import threadpool_info

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    def inside(entered, leave):
        with one_blas_thread():
            entered.set()
            leave.wait(10)

    before = threads()
    for order in ((0, 1), (1, 0)):
        events = [(threading.Event(), threading.Event()) for _ in range(2)]
        workers = [threading.Thread(target=inside, args=pair) for pair in events]
        for worker, (entered, _) in zip(workers, events, strict=True):
            worker.start()
            entered.wait(10)
        assert set(threads()) == {1}
        for number in order:
            events[number][1].set()
            workers[number].join()
        assert threads() == before


def test_one_blas_thread_is_kept_until_the_first_one_leaves():
    from threadpoolctl import threadpool_info

    def threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    before = threads()
    entered, leave = threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            entered.set()
            leave.wait(10)

    with one_blas_thread():
        worker = threading.Thread(target=other)
        worker.start()
        entered.wait(10)
        assert threads() == {1}
        with one_blas_thread():
            pass
        assert threads() == {1}
        leave.set()
        worker.join()
        assert threads() == {1}
    assert threads() == before


def test_long_records_do_not_need_the_whole_regression(ph_records):
    # More rows than one chunk, cut at odd places: the same result as the reference by another path.
    from kernel_agreement import agreement

    from echobound.kernels import get_kernel

    training, validation = ph_records
    for ridges in ((1e-8,), (0.0,)):
        law = dataclasses.replace(paper(30), training=LeastSquares(ridges))
        problem = hold_out(
            [training, training.part(0, 333)], validation, law=law, scores=[get_score("fit")], washout=37
        )
        assert not agreement(problem, get_kernel("reference"), CPUKernel(), range(2))[2]
