"""Derivatives of free runs: analytic ones against differences, and compiled code against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echobound.kernels.cpu import derivatives as compiled
from echobound.network import Limits, ReservoirDraw, ReservoirLaw
from echobound.network.derivatives import free_run_derivatives, normal_equations, weights_of, with_weights
from echobound.network.dynamics import free_run

SHAPES = {
    "one input, one output": (1, 1, {}),
    "two and two": (2, 2, {"output_delays": 2, "input_delays": 3, "present_input": True, "constant": True}),
    "no feedback": (1, 2, {"feedback_scale": 0.0}),
    "leaky, with a spread": (2, 1, {"leak": 0.4, "leak_spread": 0.4, "bias_scale": 0.5, "output_delays": 1}),
    "sparse": (1, 1, {"order": 9, "nonzeros": 3, "output_delays": 1}),
    "random pattern": (1, 1, {"order": 6, "nonzeros": 2, "pattern": "random"}),
}


def case(name, seed=0, samples=50):
    inputs, outputs, fields = SHAPES[name]
    draw = ReservoirDraw(ReservoirLaw(**{"order": 4, "norm": 0.7, "nonzeros": 10} | fields), inputs, outputs, seed)
    random = np.random.default_rng(seed)
    u, y = random.normal(size=(samples, inputs)), random.normal(size=(samples, outputs))
    readout = 0.2 * random.normal(size=(outputs, draw.hyper.columns(inputs, outputs)))
    return draw.reservoir, readout, u, y


@pytest.mark.parametrize("whole", [True, False], ids=["all weights", "readout"])
@pytest.mark.parametrize("limit", [None, 0.2], ids=["free", "clipped"])
@pytest.mark.parametrize("name", SHAPES)
def test_they_are_what_differences_say(name, limit, whole):
    reservoir, readout, u, y = case(name)
    ends = np.full(y.shape[1], limit) if limit else None
    limits = None if ends is None else Limits(-ends, ends, 0 * ends)
    outputs, found = free_run_derivatives(reservoir, readout, u, y, 8, 5, limits, whole)
    assert np.allclose(outputs, free_run(reservoir, readout, u, y, 8, 5, limits), rtol=1e-12, atol=1e-13)
    theta, step = weights_of(reservoir, readout, whole), 1e-6

    def at(moved):
        return free_run(*with_weights(reservoir, readout, moved), u, y, 8, 5, limits)

    moves = step * np.eye(len(theta))
    expected = np.stack([(at(theta + move) - at(theta - move)) / (2 * step) for move in moves], axis=2)
    assert np.abs(found - expected).max() < 1e-8 * max(1.0, np.abs(found).max())
    if limits is not None:
        at_limit = np.abs(outputs) == limit
        assert at_limit.any(), "the case must reach its limits"
        assert (found[at_limit] == 0).all()


@pytest.mark.parametrize("whole", [True, False], ids=["all weights", "readout"])
@pytest.mark.parametrize("name", SHAPES)
def test_compiled_code_sums_up_the_same(name, whole):
    reservoir, readout, u, y = case(name, samples=300)  # more rows than a chunk has
    ends = np.full(y.shape[1], 0.6)
    segments = [(u[:200], y[:200], 8), (u[200:], y[200:], 0)]
    rest = (segments, np.linspace(1, 2, y.shape[1]), 5, Limits(-ends, ends, 0 * ends), whole)
    plain, fast = (module(reservoir, readout, *rest) for module in (normal_equations, compiled.normal_equations))
    assert fast.squares == pytest.approx(plain.squares, rel=1e-12)
    assert np.allclose(fast.gradient, plain.gradient, rtol=1e-10, atol=1e-10 * np.abs(plain.gradient).max())
    assert np.allclose(fast.curvature, plain.curvature, rtol=1e-10, atol=1e-10 * np.abs(plain.curvature).max())


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(sorted(SHAPES)), st.integers(0, 1000), st.booleans())
def test_weights_go_to_a_vector_and_back(name, seed, whole):
    reservoir, readout, _, _ = case(name, seed)
    theta = weights_of(reservoir, readout, whole)
    again, weights = with_weights(reservoir, readout, theta)
    assert np.array_equal(weights, readout)
    assert (again is reservoir) or whole
    assert all(np.array_equal(getattr(again, n), getattr(reservoir, n)) for n in ("values", "W_u", "W_y", "bias"))


def test_a_run_that_explodes_gives_equations_that_are_not_finite_and_no_error():
    reservoir, readout, u, y = case("leaky, with a spread")
    readout = 1e3 * np.abs(readout)
    segments = [(np.repeat(u, 20, axis=0), np.repeat(y, 20, axis=0), 8)]
    for module in (normal_equations, compiled.normal_equations):
        found = module(reservoir, readout, segments, np.ones(1), 0, None, True)
        assert not np.isfinite(found.curvature).all()
