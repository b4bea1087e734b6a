"""Operating points are where a long free run settles, and a linear model is the model nearby."""

import model_zoo
import numpy as np
import pytest

from echobound.errors import InputError
from echobound.network.linearisation import linearise, operating_point
from echobound.network.stepping import Stepper

MODELS = model_zoo.zoo()


@pytest.mark.parametrize("name", MODELS)
def test_an_operating_point_is_where_a_free_run_settles(name):
    model = MODELS[name]
    u = model_zoo.excitation(model, 1, seed=3)[0]
    point = operating_point(model, u=u)
    np.testing.assert_allclose(Stepper(model).advance(point.state, u), point.state, atol=1e-10)
    settled = model.simulate(np.tile(u, (3000, 1))).y[-1]
    np.testing.assert_allclose(point.y, settled, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["plain", "bias", "cascade", "late readout", "committee", "even committee"])
def test_the_input_for_a_wanted_output_is_found(name):
    model = MODELS[name]
    wanted = operating_point(model, u=model_zoo.excitation(model, 1, seed=4)[0]).y
    found = operating_point(model, y=wanted)
    np.testing.assert_allclose(found.y, wanted, rtol=1e-9)
    np.testing.assert_allclose(operating_point(model, u=found.u).y, wanted, rtol=1e-8)


@pytest.mark.parametrize("name", ["plain", "leak spread", "output delays", "cascade, several", "committee"])
def test_a_linear_model_is_the_model_nearby(name):
    model = MODELS[name]
    first = model_zoo.excitation(model, 1, seed=5)[0]
    point, stepper = operating_point(model, u=first), Stepper(model)
    linear = linearise(model, point)
    assert linear.stable
    moves = 1e-6 * np.random.default_rng(0).standard_normal((40, stepper.inputs))
    state, deviation = point.state, np.zeros(stepper.states)
    for move in moves:
        state, y = stepper.step(state, point.u + move)
        want = linear.C @ deviation + linear.D @ move
        np.testing.assert_allclose(y - point.y, want, atol=1e-9)
        deviation = linear.A @ deviation + linear.B @ move
    assert np.abs(deviation).max() > 1e-8


def test_with_measured_outputs_the_feedback_is_an_input():
    model = MODELS["plain"]
    point = operating_point(model, u=model_zoo.excitation(model, 1)[0])
    open_loop, closed = linearise(model, point, measured=True), linearise(model, point)
    assert open_loop.E.any()
    np.testing.assert_allclose(open_loop.A + open_loop.E @ open_loop.C, closed.A, atol=1e-12)
    np.testing.assert_allclose(open_loop.B + open_loop.E @ open_loop.D, closed.B, atol=1e-12)


def test_what_has_no_operating_point_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="either the input u"):
        operating_point(MODELS["plain"])
    with pytest.raises(InputError, match="no input was found at which the model rests at y = 1000"):
        operating_point(MODELS["clipped"], y=[1000.0])
    with pytest.raises(InputError, match="y must have as many"):
        operating_point(MODELS["plain"], y=[1.0, 2.0])
