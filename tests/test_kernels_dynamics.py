"""The compiled state equation against the plain one: same arguments, same outputs."""

import numpy as np
import pytest

from echobound.kernels import compiled_dynamics, get_kernel, hold_out
from echobound.kernels.training import train_network
from echobound.network import Committee, ReservoirLaw, draw_reservoir, dynamics, respond
from echobound.network.response import respond as same
from echobound.scores import get_score

FAST = compiled_dynamics()


def case(pattern, seed=0, outputs=2):
    law = ReservoirLaw(order=14, pattern=pattern, leak=0.6, leak_spread=0.3, bias_scale=0.4, input_delays=3,
                       present_input=True, output_delays=2, constant=True, feedback_scale=0.5)  # fmt: skip
    reservoir = draw_reservoir(law, 2, outputs, seed=seed)
    generator = np.random.default_rng(seed)
    readout = generator.normal(size=(outputs, reservoir.hyper.columns(2, outputs))) / 20
    return reservoir, readout, generator.normal(size=(120, 2)), generator.normal(size=(120, outputs))


@pytest.mark.parametrize("pattern", ["diagonals", "random"])
@pytest.mark.parametrize(("washout", "padding"), [(0, 0), (1, 5), (40, 20)])
def test_free_runs_and_predictions_agree(pattern, washout, padding):
    for seed in range(3):
        reservoir, readout, u, y = case(pattern, seed)
        expected = dynamics.free_run(reservoir, readout, u, y, washout, padding)
        assert FAST.free_run(reservoir, readout, u, y, washout, padding) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        for horizon in (1, 7):
            expected = dynamics.predictions(reservoir, readout, u, y, washout, horizon, padding)
            found = FAST.predictions(reservoir, readout, u, y, washout, horizon, padding)
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_only_the_initial_outputs_are_needed_and_nothing_is_changed():
    reservoir, readout, u, y = case("diagonals")
    before = [array.copy() for array in (reservoir.values, readout, u, y)]
    whole = FAST.free_run(reservoir, readout, u, y, 10, 3)
    assert (FAST.free_run(reservoir, readout, u, y[:10], 10, 3) == whole).all()
    assert (FAST.free_run(reservoir, readout, u, y[:1], 0, 3) == FAST.free_run(reservoir, readout, u, y, 0, 3)).all()
    for array, old in zip((reservoir.values, readout, u, y), before, strict=True):
        assert (array == old).all()


def test_arrays_of_any_layout_and_read_only_ones():
    reservoir, readout, u, y = case("random")
    expected = FAST.free_run(reservoir, readout, u, y, 10, 3)
    strided = [np.asfortranarray(a) for a in (readout, u, y)]
    for array in strided:
        array.flags.writeable = False
    assert (FAST.free_run(reservoir, *strided, 10, 3) == expected).all()


def test_a_run_that_diverges_is_not_finite_in_both():
    reservoir, readout, u, y = case("diagonals")
    runs = [one.free_run(reservoir, 1e200 * readout, u, y, 10, 0) for one in (dynamics, FAST)]
    assert all(not np.isfinite(run[-1]).all() for run in runs)


def test_models_run_by_compiled_code_however_they_are_called(ph_records):
    training, validation = ph_records
    problem = hold_out(training, validation, law=ReservoirLaw(order=9), scores=[get_score("fit")], washout=60)
    model = train_network(get_kernel("reference"), problem, 0)[0]
    committee, u = Committee((model,)), validation.u[:50]  # few samples take the same way as many
    assert (model.simulate(u).y == model.simulate(u, dynamics=FAST).y).all()
    assert (model.simulate(u).y != model.simulate(u, dynamics=dynamics).y).any(), "one can tell them apart by rounding"
    assert (committee.simulate(u).y == model.simulate(u).y).all()
    fast = model.predict(validation, 3, dynamics=FAST).y
    for found in (model.predict(validation, 3), committee.predict(validation, 3)):
        assert (found.y == fast).all()
    [(_, simulated)] = respond(model, [validation])
    assert (simulated == model.simulate(validation, dynamics=FAST).y).all()


def test_respond_is_exported():
    assert respond is same
