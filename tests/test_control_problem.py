"""One sample's optimisation: against SciPy's own optimiser, and its conditions against differences."""

import numpy as np
import pytest

pytest.importorskip("daqp")

from controlled import mimo_network, ph_network
from scipy.optimize import LinearConstraint, minimize

from echobound.control import MPC, Effort
from echobound.control.planning import plan_inputs


def problem_of(controller, wanted, known=None):
    known = np.zeros((controller.horizon + 1, 0)) if known is None else known
    return controller._problem(wanted, known)


def started(reference, **settings):
    controller = MPC(ph_network(), horizon=8, **settings)
    controller.start(15.0, 7.0)
    return controller, problem_of(controller, np.full((8, 1), reference))


@pytest.mark.parametrize("reference", [7.3, 6.4, 9.5])
@pytest.mark.parametrize("rate", [None, 0.4])
def test_no_dearer_than_scipy(reference, rate):
    controller, problem = started(reference, rate=rate)
    found = plan_inputs(problem, controller._starts(problem.reference), Effort(iterations=60, tolerance=1e-9))
    rates = [] if rate is None else [LinearConstraint(problem._differences(), *_around(problem))]
    theirs = minimize(
        lambda v: problem.evaluate(v, False).cost,
        np.full(8, problem.previous[0]),
        bounds=[(0, 1)] * 8,
        constraints=rates,
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert found.converged
    assert found.at.cost <= theirs.fun + 1e-7


def _around(problem):
    at = np.zeros(problem.count)
    at[: len(problem.previous)] = problem.previous
    rate = np.tile(problem.rate, len(problem.samples))
    return at - rate, at + rate


def test_the_residual_is_that_of_the_gradient():
    """Without active bounds, the conditions say that the gradient vanishes: by differences, it does."""
    controller, problem = started(7.2)
    # A gradient of 1e-8 changes the cost by its square, which is rounding: no search by the cost can go further.
    found = plan_inputs(problem, controller._starts(problem.reference), Effort(iterations=60, tolerance=1e-8))
    assert found.residual <= 1e-8
    assert ((found.at.v > 0.01) & (found.at.v < 0.99)).all()
    for p in range(problem.count):
        step = 1e-5 * (np.arange(problem.count) == p)
        up, down = (problem.evaluate(found.at.v + sign * step, False).cost for sign in (1, -1))
        assert abs(up - down) / 2e-5 < 1e-7


def test_the_gradient_of_the_program_is_that_of_the_cost():
    controller = MPC(
        mimo_network(), horizon=6, manipulated=["a", "b"], output_price=[0.3, -0.1], input_price=[0.2, 0.1]
    )
    controller.start([0.1, -0.2], [0.1, 0.0], disturbance=[0.2])
    problem = problem_of(controller, np.tile([0.4, -0.1], (6, 1)), np.full((7, 1), 0.2))
    v = np.random.default_rng(0).uniform(0.2, 0.8, problem.count)
    program, _ = problem.condensed(problem.evaluate(v, True))
    for p in range(problem.count):
        step = 1e-6 * (np.arange(problem.count) == p)
        up, down = (problem.evaluate(v + sign * step, False).cost for sign in (1, -1))
        assert program.g[p] == pytest.approx((up - down) / 2e-6, abs=1e-6)


def test_second_derivatives_make_it_newtons_method():
    """The curvature with them is that of the cost, by differences of its gradient."""
    _, problem = started(7.1)
    v = np.full(8, (15.0 - 12.7) / 4.0)
    at = problem.evaluate(v, True)
    program, used = problem.condensed(at)
    from echobound.control.quadratic import minimise

    own = problem.second(at, minimise(program))
    whole = problem._plain + own
    for p in range(8):
        step = 1e-5 * (np.arange(8) == p)
        up, down = (problem.condensed(problem.evaluate(v + sign * step, True))[0].g for sign in (1, -1))
        np.testing.assert_allclose(whole[p], (up - down) / 2e-5, atol=1e-5)
    assert used.sum() == 0


def test_soft_bounds_hold_where_they_can_and_give_where_they_cannot():
    controller, problem = started(7.6, output_high=7.3)
    found = plan_inputs(problem, controller._starts(problem.reference), Effort(iterations=60))
    assert found.converged
    assert found.at.slack.max() < 1e-6
    assert found.at.outputs.max() == pytest.approx(7.3, abs=1e-5)
    controller, problem = started(7.6, output_high=6.4)  # out of reach for a while
    found = plan_inputs(problem, controller._starts(problem.reference), Effort(iterations=60))
    assert found.at.slack[0] > 0
    assert found.at.slack[-1] < found.at.slack[0]


def test_the_best_of_two_starts_is_kept():
    controller, problem = started(7.6)
    poor, good = np.zeros(8), controller._starts(problem.reference)[0]
    none = Effort(iterations=1, tolerance=0.0)
    costs = [plan_inputs(problem, [start], none).at.cost for start in (poor, good)]
    assert plan_inputs(problem, [poor, good], none).at.cost == min(costs)


def test_iterations_are_limited_and_what_was_found_is_feasible():
    controller, problem = started(6.3, rate=0.3)
    found = plan_inputs(problem, controller._starts(problem.reference), Effort(iterations=1, tolerance=0.0))
    assert found.iterations == 1
    assert not found.converged
    assert np.isfinite(found.residual)
    low, high = _around(problem)
    moved = problem._differences() @ found.at.v
    assert (moved >= low - 1e-9).all()
    assert (moved <= high + 1e-9).all()
