"""The controller: what it promises (bounds, no offset), what it can (preview, several inputs), and bad input."""

import numpy as np
import pytest

pytest.importorskip("daqp")

from controlled import mimo_network, mixed_members, ph_network, ph_run, two_by_two
from hypothesis import given, settings
from hypothesis import strategies as st

from echobound.control import MPC, Effort, FunctionPlant, PHProcess, simulate_closed_loop
from echobound.errors import InputError

LEVELS = np.repeat([7.3, 6.9], 40)


def test_no_offset_after_a_disturbance_that_the_model_does_not_know():
    buffer = np.where(np.arange(160) < 20, 0.55, 0.62)
    loop = simulate_closed_loop(
        PHProcess(), MPC(ph_network(), horizon=15, gain=0.2), np.full(160, 7.2), disturbance=buffer
    )
    assert abs(loop.y[25:40] - 7.2).max() > 0.01  # it was felt
    assert loop.scores["offset"]["pH"] < 0.005


def test_preview_pays():
    rms = [
        simulate_closed_loop(PHProcess(), MPC(ph_network(), horizon=15), LEVELS, preview=known).scores["rms"]["pH"]
        for known in (True, False)
    ]
    assert rms[0] < 0.8 * rms[1]


def test_the_same_bits_again():
    loops = [simulate_closed_loop(PHProcess(), MPC(ph_network(), horizon=10), LEVELS, noise=0.05) for _ in range(2)]
    np.testing.assert_array_equal(loops[0].u, loops[1].u)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.one_of(st.floats(-50, 50), st.just(np.nan)), min_size=4, max_size=4),
    st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(np.nan), st.just(np.inf)), min_size=4, max_size=4),
    st.floats(0.01, 2.0),
)
def test_inputs_and_rates_are_within_bounds_whatever_comes(references, measurements, rate):
    controller = MPC(ph_network(), horizon=6, rate=rate, output_low=6.5, output_high=7.5, effort=Effort(iterations=3))
    controller.start(15.0, 7.0)
    before = np.array([15.0])
    for reference, measured in zip(references, measurements, strict=True):
        step = controller.step(reference, [measured])
        assert controller.bounds.low <= step.u <= controller.bounds.high
        assert abs(step.u - before) <= rate
        before = step.u


def test_several_inputs_and_outputs_with_a_known_disturbance():
    plant = FunctionPlant(two_by_two, state=np.zeros(2), u=[0.0, 0.0, 0.0], y=[0.0, 0.0])
    controller = MPC(mimo_network(), horizon=15, manipulated=["a", "b"], move_weight=0.02, gain=0.3)
    assert controller.disturbances == ("w",)
    wanted = np.repeat([[0.4, 0.1], [0.0, -0.2]], 40, axis=0)
    known = np.where(np.arange(80) < 60, 0.0, 0.5)
    loop = simulate_closed_loop(plant, controller, wanted, known=known)
    assert np.abs(loop.y[[38, 79]] - wanted[[38, 79]]).max() < 0.02
    assert loop.u.shape == (80, 2)


def test_prices_pull_the_input_down():
    plain, priced = (MPC(ph_network(), horizon=10, output_weight=0.0, input_price=price) for price in (0.0, 0.5))
    for controller in (plain, priced):
        controller.start(15.0, 7.0)
    assert plain.step(7.0, 7.0).u[0] == pytest.approx(15.0, abs=1e-6)
    assert priced.step(7.0, 7.0).u[0] < 14.9


def test_a_committee_keeps_every_member_within_the_bounds():
    controller = MPC(ph_run().committee, horizon=12, output_high=7.3, effort=Effort(iterations=40))
    controller.start(15.0, 7.0)
    step = controller.step(7.6, 7.0)
    assert step.active.output.any()
    assert step.active.slack.max() < 1e-4
    one = MPC(ph_network(), horizon=12, output_high=7.3, scenarios=ph_run().committee, effort=Effort(iterations=40))
    one.start(15.0, 7.0)
    alone = MPC(ph_network(), horizon=12, output_high=7.3, effort=Effort(iterations=40))
    alone.start(15.0, 7.0)
    assert one.step(7.6, 7.0).inputs.sum() < alone.step(7.6, 7.0).inputs.sum()


def test_members_of_any_structure():
    controller = MPC(mixed_members()[1], horizon=8, input_low=12.7, input_high=16.7, scenarios=[mixed_members()[0]])
    controller.start(15.0, 7.0)
    assert np.isfinite(controller.step(7.2, 7.0).cost)


def test_what_is_not_a_number_is_replaced_and_said():
    controller = MPC(ph_network(), horizon=5)
    controller.start(15.0, 7.0)
    step = controller.step(np.nan, np.nan)
    assert step.notes == ("the reference is not a number: the last one is held",)
    assert step.reading.lost.all()
    assert np.isfinite(step.u).all()


def test_a_known_disturbance_that_is_not_a_number_is_said():
    controller = MPC(mimo_network(), horizon=5, manipulated=["a", "b"])
    controller.start([0.0, 0.0], [0.0, 0.0], disturbance=0.1)
    step = controller.step([0.1, 0.0], [0.0, 0.0], disturbance=np.nan)
    assert step.notes == ("the known disturbance is not a number: the last one is held",)
    with pytest.raises(InputError, match="must be numbers when the controller is started"):
        controller.start([0.0, 0.0], [0.0, 0.0], disturbance=np.nan)


@pytest.mark.filterwarnings("error")
def test_a_sensor_that_is_broken_does_no_lasting_harm():
    controller = MPC(ph_network(), horizon=6)
    controller.start(15.0, 7.0)
    readings = [controller.step(7.0, far).reading for k in range(40) for far in (1.7e308, -1.7e308, np.inf, 1e200)]
    assert all(one.lost.all() for one in readings)
    for _ in range(40):
        step = controller.step(7.2, 7.0)
    assert step.converged
    assert step.notes == ()
    assert step.u[0] != 15.0


def test_a_model_that_overflows_holds_the_input():
    from dataclasses import replace

    wild = replace(ph_network(), readout=1e200 * ph_network().readout)
    controller = MPC(wild, horizon=6, output_high=8.0)
    controller.start(15.0, 7.0)
    for _ in range(3):
        step = controller.step(7.2, 7.0)
        assert controller.bounds.low <= step.u <= controller.bounds.high
    beside = MPC(ph_network(), horizon=6, output_high=8.0, scenarios=[wild])
    beside.start(15.0, 7.0)
    assert np.isfinite(beside.step(7.2, 7.0).u).all()


def test_what_is_active_is_said():
    controller = MPC(ph_network(), horizon=6, rate=0.2)
    controller.start(15.0, 7.0)
    assert controller.step(9.9, 7.0).active.words == "rate"
    assert "upper bound" in MPC_at_top().active.words


def MPC_at_top():
    controller = MPC(ph_network(), horizon=6)
    controller.start(15.0, 7.0)
    return controller.step(12.0, 7.0)


def test_a_time_limit_stops_after_the_first_program():
    controller = MPC(ph_network(), horizon=6, effort=Effort(seconds=0.0, tolerance=0.0))
    controller.start(15.0, 7.0)
    step = controller.step(7.5, 7.0)
    assert step.iterations == 1
    assert not step.converged


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon": 0}, "horizon must be a whole number of samples, at least 1, got 0"),
        ({"horizon": 2.5}, "whole number"),
        ({"control_horizon": 30}, "must not exceed the horizon"),
        ({"input_low": 17, "input_high": 15}, "q3 would lie between 17 and 15"),
        ({"output_low": 8, "output_high": 7}, "pH would lie between 8 and 7"),
        ({"rate": 0.0}, "rate of an input must be positive"),
        ({"rate": np.nan}, "must be a number"),
        ({"manipulated": ["q9"]}, "must be among those of the model"),
        ({"move_weight": -1}, "must not be below 0"),
        ({"output_weight": [1, 2]}, "one number, or one for each of pH: got 2"),
        ({"starts": 3}, "1 start or 2"),
        ({"slack_weight": (1.0, 0.0)}, "weights of a slack"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(arguments, message):
    with pytest.raises(InputError, match=message):
        MPC(ph_network(), **{"horizon": 10, **arguments})


def test_bad_use_is_refused_in_one_sentence():
    controller = MPC(ph_network(), horizon=5)
    with pytest.raises(InputError, match="has not been started"):
        controller.step(7.0, 7.0)
    with pytest.raises(InputError, match="must lie within its bounds"):
        controller.start(20.0, 7.0)
    controller.start(15.0, 7.0)
    with pytest.raises(InputError, match=r"reference must be \(step, 1\)"):
        controller.step(np.zeros((3, 2)), 7.0)
    disturbed = MPC(mimo_network(), horizon=5, manipulated=["a"])
    with pytest.raises(InputError, match=r"does not move \(b, w\)"):
        disturbed.start(0.0, [0.0, 0.0])
    with pytest.raises(InputError, match="range of its inputs"):
        MPC(next(m for m in (_standard(),)), horizon=5)


def _standard():
    from dataclasses import replace

    network = ph_network()
    return replace(network, scaling=replace(network.scaling, kind="standard"))
