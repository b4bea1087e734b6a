"""The closed loop: scores against their definitions, faults, plants, and the PI baseline."""

import shutil
import sys

import numpy as np
import pytest

pytest.importorskip("daqp")

from controlled import mimo_network, ph_network, ph_run

from echobound.control import MPC, PI, Effort, Faults, FunctionPlant, PHProcess, plant_of, simulate_closed_loop
from echobound.errors import InputError
from echobound.plants import PHPlant

WANTED = np.repeat([7.2, 6.9], 30)


def test_the_built_in_plant_is_that_of_the_records():
    plant, flows = PHProcess(), np.random.default_rng(0).uniform(13, 16, 30)
    buffer = np.random.default_rng(1).uniform(0.5, 0.6, 30)
    _, y = plant.start()
    outputs = [y[0], *(plant.step(np.array([q]), np.array([w]))[0] for q, w in zip(flows, buffer, strict=True))]
    np.testing.assert_array_equal(outputs[:-1], PHPlant().response(flows, buffer))


def test_scores_are_what_they_say():
    loop = simulate_closed_loop(PHProcess(), MPC(ph_network(), horizon=8, output_high=7.1), WANTED, noise=0.02)
    scores = loop.scores
    assert scores["rms"]["pH"] == pytest.approx(np.sqrt(np.mean((loop.y[:, 0] - WANTED) ** 2)))
    assert scores["effort"]["q3"] == pytest.approx(np.abs(np.diff(np.concatenate([[15.6], loop.u[:, 0]]))).sum())
    assert scores["output_violations"] == (loop.y > 7.1).sum()
    assert scores["input_violations"] == scores["rate_violations"] == 0
    assert np.std(loop.measured - loop.y) == pytest.approx(0.02, rel=0.4)


def test_faults_do_not_stop_the_loop():
    faults = Faults(lost=0.2, outliers=0.1, size=3.0, delay=2)
    controller = MPC(ph_network(), horizon=8, rate=0.5, effort=Effort(iterations=2))
    wanted = np.repeat([7.2, 30.0, np.nan, 6.8, -5.0], 40)
    loop = simulate_closed_loop(PHProcess(), controller, wanted, faults=faults, noise=0.05)
    assert loop.scores["input_violations"] == loop.scores["rate_violations"] == 0
    assert np.isfinite(loop.y).all()
    assert loop.lost > 20
    assert any("reference is not a number" in note for _, note in loop.notes)


def test_faults_are_as_frequent_as_asked():
    y = Faults(lost=0.3, outliers=0.2, size=2.0).applied(np.zeros((4000, 1)), 0, 0)
    assert np.isnan(y).mean() == pytest.approx(0.3, abs=0.03)
    assert (np.abs(np.nan_to_num(y)) > 0).mean() == pytest.approx(0.2 * 0.7, abs=0.03)
    with pytest.raises(InputError, match="between 0 and 1"):
        Faults(lost=1.2)


def test_pi_settles_and_keeps_its_bounds():
    controller = PI.tuned(ph_network(), y=7.0, rate=0.3)
    loop = simulate_closed_loop(PHProcess(), controller, np.repeat(WANTED, 3))
    assert loop.scores["offset"]["pH"] < 0.01
    assert loop.scores["rate_violations"] == 0


def test_pi_follows_its_rule():
    """A first-order lag is tuned to T1 / (k (Tc + D)) and min(T1, 4 (Tc + D))."""
    controller = PI.tuned(ph_network(), y=7.0, closed_loop_time=1000.0)
    other = PI.tuned(ph_network(), y=7.0, closed_loop_time=0.0)
    delay = ph_network().sampling_time
    assert other.gain / controller.gain == pytest.approx((1000 + delay) / delay)
    assert other.integral_time == pytest.approx(4 * delay)
    with pytest.raises(InputError, match="positive integral time"):
        PI(ph_network(), 1.0, 0.0)


def test_ones_own_plant(tmp_path):
    file = tmp_path / "plant.py"
    file.write_text(
        "from echobound.control import FunctionPlant\n"
        "def lag(x, u, w):\n    after = 0.9 * x + 0.1 * u\n    return after, after\n"
        "def make():\n    return FunctionPlant(lag, state=15.0, u=15.0, y=15.0)\n"
        "def number():\n    return 3\n"
        "def broken():\n    return 1 / 0\n"
    )
    plant = plant_of(f"{file}:make")
    plant.start()
    assert plant.step(np.array([16.0]), np.zeros(0))[0] == pytest.approx(15.1)
    for function, message in [
        ("number", "returned int: a"),
        ("broken", "ZeroDivisionError"),
        ("none", "no function"),
    ]:
        with pytest.raises(InputError, match=message):
            plant_of(f"{file}:{function}")
    for name, message in [("pH2", "a plant is ph, or file.py:function"), ("no.py:make", "not a file")]:
        with pytest.raises(InputError, match=message):
            plant_of(name)


def test_a_plant_that_fails_is_named():
    def fails(state, u, disturbance):
        raise ZeroDivisionError("no flow")

    plant = FunctionPlant(fails, state=0.0, u=15.0, y=7.0)
    with pytest.raises(InputError, match="the plant failed at sample 1"):
        simulate_closed_loop(plant, MPC(ph_network(), horizon=3), [7.0, 7.0])


def test_bad_signals():
    controller = MPC(ph_network(), horizon=3)
    with pytest.raises(InputError, match="1 outputs, but the reference has 2"):
        simulate_closed_loop(PHProcess(), controller, np.zeros((5, 2)))
    with pytest.raises(InputError, match="3 samples, the reference 5"):
        simulate_closed_loop(PHProcess(), controller, np.full(5, 7.0), disturbance=[0.5] * 3)


def test_a_plant_of_other_channels_or_without_numbers_is_refused():
    for u, y, after, message in [
        ([15.0, 1.0], [7.0], [7.0], "starts from 2 inputs, but the controller moves 1"),
        ([15.0], [7.0], [7.0, 7.0], "1 finite outputs, but at sample 1 came 7, 7"),
        ([15.0], [7.0], [np.nan], "1 finite outputs, but at sample 1 came nan"),
    ]:
        plant = FunctionPlant(lambda x, u, w, after=after: (x, after), state=0.0, u=u, y=y)
        with pytest.raises(InputError, match=message):
            simulate_closed_loop(plant, MPC(ph_network(), horizon=3), [7.0, 7.0])


def test_samples_without_a_reference_have_no_error():
    wanted = np.where(np.arange(60) < 30, np.nan, WANTED)
    loop = simulate_closed_loop(PHProcess(), PI(ph_network(), 2.0, 80.0), wanted, preview=False)
    assert loop.scores["rms"]["pH"] == pytest.approx(np.sqrt(np.mean((loop.y[30:, 0] - WANTED[30:]) ** 2)))


def test_adaptation_runs_in_the_loop():
    """The plant becomes another one; a readout that follows it controls it, and the one of before does not."""
    from echobound import ph_experiment
    from echobound.network import Adaptation

    training = ph_experiment(samples=(1500,))[0]

    def changing(state, u, disturbance):
        time, level = state
        pole, gain, shift = (0.95, 0.4, 0.0) if time < 100 else (0.6, 1.2, -0.4)
        level = pole * level + (1 - pole) * (gain * (float(u[0]) - 15.0) + shift)
        return (time + 1, level), 7.0 + level

    levels = 7.0 + 0.4 * np.sign(np.sin(np.arange(600) / 12.0))
    later = slice(400, None)

    def loop_of(adaptation):
        controller = MPC(ph_network(), horizon=5, effort=Effort(iterations=2), starts=1)
        plant = FunctionPlant(changing, state=(0, 0.0), u=15.0, y=7.0)
        settings = {"every": 50, "faults": Faults(lost=0.02), "noise": 0.01}
        loop = simulate_closed_loop(plant, controller, levels, adaptation=adaptation, **settings)
        assert loop.scores["input_violations"] == 0
        return controller, np.sqrt(np.mean((loop.y[later, 0] - levels[later]) ** 2))

    adaptation = Adaptation(ph_network(), training, forgetting=0.99)
    controller, adapted = loop_of(adaptation)
    assert controller.model.origin["adapted"] == adaptation.samples == 600 - ph_network().washout
    assert adapted < 0.3 * loop_of(None)[1]


def test_a_change_that_is_seen_is_followed_at_once():
    from echobound import ph_experiment
    from echobound.network import Adaptation

    class Alarm(Adaptation):
        def update(self, u, y):
            super().update(u, y)
            if self._position == 120:
                self.changes.append(self.samples)

    controller = MPC(ph_network(), horizon=3, effort=Effort(iterations=1))
    adaptation = Alarm(ph_network(), ph_experiment(samples=(1500,))[0])
    loop = simulate_closed_loop(PHProcess(), controller, np.full(125, 7.1), adaptation=adaptation, every=1000)
    assert controller.model.origin["adapted"] == adaptation.changes[-1] == 120 - ph_network().washout
    assert np.isfinite(loop.u).all()


def test_what_cannot_adapt_is_refused():
    from echobound import ph_experiment
    from echobound.network import Adaptation

    adaptation = Adaptation(ph_network(), ph_experiment(samples=(300,))[0])
    settings = {"adaptation": adaptation, "faults": Faults(delay=1)}
    with pytest.raises(InputError, match="without delay"):
        simulate_closed_loop(PHProcess(), MPC(ph_network(), horizon=3), WANTED, **settings)
    with pytest.raises(InputError, match="states and the scaling"):
        MPC(ph_network(), horizon=3).adapt(mimo_network())
    committee = MPC(ph_run().committee, horizon=3)
    with pytest.raises(InputError, match="has one model, and this one has 5"):
        committee.adapt(ph_network())


def test_without_the_solver_the_remedy_is_named(monkeypatch):
    from echobound.errors import MissingExtra

    monkeypatch.setitem(sys.modules, "daqp", None)
    controller = MPC(ph_network(), horizon=3)
    with pytest.raises(MissingExtra, match=r"echobound\[control\]"):
        controller.start(15.0, 7.0)


@pytest.mark.parametrize("fmi", [2, 3])
def test_an_fmu_is_a_plant(fmi, tmp_path):
    """The network itself as an FMU: the plant that the controller has a perfect model of."""
    pytest.importorskip("fmpy")
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    from echobound.control import FMUPlant
    from echobound.export import export_model
    from echobound.network import Stepper

    network, path = ph_network(), tmp_path / "plant.fmu"
    export_model(network, path, "fmu", fmi=fmi)
    plant = FMUPlant(path, ["q3"], ["pH"], u=15.0, sampling_time=network.sampling_time, settle=60)
    rest = Stepper(network).run(np.full((62, 1), 15.0))
    _, y = plant.start()
    assert y[0] == pytest.approx(rest[60, 0], abs=1e-3)
    loop = simulate_closed_loop(plant, MPC(network, horizon=8), np.full(15, y[0] + 0.2))
    assert loop.scores["offset"]["pH"] < 0.02
    with pytest.raises(InputError, match="no variable q9"):
        FMUPlant(path, ["q9"], ["pH"], u=15.0, sampling_time=10.0)
    with pytest.raises(InputError, match="not a file"):
        FMUPlant(tmp_path / "none.fmu", ["q3"], ["pH"], u=15.0, sampling_time=10.0)
