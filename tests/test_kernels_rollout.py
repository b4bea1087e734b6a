"""Planned inputs in compiled code: against plain steps of the model, and derivatives against differences."""

import numpy as np
import pytest

from echobound.control.prediction import Predictor
from echobound.kernels import compiled_rollout
from echobound.network import Limits, broad
from echobound.network.reservoir import draw_reservoir

STEPS, INPUTS, OUTPUTS = 12, 2, 2


def case(seed, clipped):
    """Any network of the broad law, from any state, with each input planned anew at each step."""
    generator = np.random.default_rng(seed)
    reservoir = draw_reservoir(broad(order=25), INPUTS, OUTPUTS, seed=seed)
    readout = 0.2 * generator.standard_normal((OUTPUTS, reservoir.readout_columns(OUTPUTS)))
    limits = Limits(np.full(2, -0.1), np.full(2, 0.3), np.zeros(2)) if clipped else None
    hyper, u = reservoir.hyper, generator.random((STEPS + 1, INPUTS))
    past = generator.random((hyper.input_delays, INPUTS)), generator.random((hyper.output_delays, OUTPUTS))
    start = (0.3 * generator.standard_normal(25), *past, generator.random(2), 0.1 * generator.random(2))
    column = np.minimum(np.arange(STEPS + 1), STEPS - 1)[:, None] * INPUTS + np.arange(INPUTS)
    return compiled_rollout(reservoir, readout, limits), start, u, column, generator


@pytest.mark.parametrize("clipped", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_first_and_second_derivatives(seed, clipped):
    rollout, start, u, column, generator = case(seed, clipped)
    errors, count, size = generator.standard_normal((STEPS, OUTPUTS)), STEPS * INPUTS, 1e-5
    _, slopes = rollout(start, u, column, True)
    second = rollout.curvature(errors)
    for p in range(count):
        moved = [u + sign * size * (column == p) for sign in (1, -1)]
        (up, up_slopes), (down, down_slopes) = (rollout(start, one, column) for one in moved)
        np.testing.assert_allclose(slopes[:, :, p], (up - down) / (2 * size), atol=2e-8)
        difference = np.einsum("jo,jop->p", errors, (up_slopes - down_slopes) / (2 * size))
        np.testing.assert_allclose(second[p], difference, atol=2e-7)


def test_keeping_changes_no_bit_and_no_derivatives_change_no_output():
    rollout, start, u, column, _ = case(1, True)
    kept, plain, alone = rollout(start, u, column, True), rollout(start, u, column), rollout(start, u, None)
    assert (kept[0] == plain[0]).all()
    assert (kept[1] == plain[1]).all()
    assert (alone[0] == plain[0]).all()


def test_inputs_that_are_given_have_no_column():
    rollout, start, u, column, _ = case(2, False)
    only = np.where(np.arange(INPUTS) == 0, column // INPUTS, -1)
    np.testing.assert_allclose(rollout(start, u, only)[1], rollout(start, u, column)[1][:, :, ::INPUTS], atol=1e-14)


def test_compiled_and_stepped_outlook_agree():
    from controlled import mixed_members, ph_network

    for model in (ph_network(), mixed_members()[0]):
        predictor = Predictor(model)
        state = predictor.start(np.array([15.0]), np.array([7.2]))
        u = np.random.default_rng(0).uniform(13, 16.5, (16, 1))
        column = np.minimum(np.arange(16), 14)[:, None]
        arguments = (state, np.array([7.1]), np.array([0.02]), u, column)
        compiled = predictor.outlook(*arguments)
        predictor._rollout = None
        stepped = predictor.outlook(*arguments)
        np.testing.assert_allclose(compiled[0], stepped[0], rtol=1e-11)
        np.testing.assert_allclose(compiled[1], stepped[1], atol=1e-10)
