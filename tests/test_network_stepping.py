"""A model one sample at a time is the model: against `simulate` and `predict`; its derivatives against differences."""

import model_zoo
import numpy as np
import pytest

from echobound.data import Record
from echobound.errors import InputError
from echobound.network.assembly import equations_of
from echobound.network.stepping import Stepper, middle_of

MODELS = model_zoo.zoo()
SAMPLES = 120


@pytest.fixture(params=MODELS, scope="module")
def model(request):
    return MODELS[request.param]


def _measured(model, u):
    """Outputs that a plant might have: those of the model, disturbed."""
    y = model.simulate(u).y
    return y + 0.1 * np.random.default_rng(2).standard_normal(y.shape)


def test_a_free_run_is_that_of_simulate(model):
    u = model_zoo.excitation(model, SAMPLES)
    want = model.simulate(u)
    assert np.ptp(want.y, axis=0).min() > 1e-3  # a model that does not move would agree with anything
    np.testing.assert_allclose(Stepper(model).run(u), want.y, rtol=1e-12, atol=1e-12)


def test_a_run_after_measured_outputs_is_that_of_simulate(model):
    u = model_zoo.excitation(model, SAMPLES)
    y = _measured(model, u)
    want = model.simulate(Record(u=u, y=y))
    assert want.first == model.washout == 20
    np.testing.assert_allclose(Stepper(model).run(u, y[:20]), want.y, rtol=1e-12, atol=1e-12)


def test_following_a_plant_predicts_one_step_ahead(model):
    u = model_zoo.excitation(model, SAMPLES)
    y = _measured(model, u)
    stepper, outputs = Stepper(model), []
    state = stepper.start(u[0], y[0])
    for now, measured in zip(u, y, strict=True):
        outputs.append(stepper.output(state, now))
        state = stepper.advance(state, now, measured)
    np.testing.assert_allclose(outputs[20:], model.predict(Record(u=u, y=y), 1).y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("fed", ["measured", "own"])
def test_derivatives_are_those_of_the_step(model, fed):
    stepper = Stepper(model)
    u = model_zoo.excitation(model, 30)
    state = stepper.start(u[0])
    for now in u:
        state = stepper.advance(state, now)
    now, h = u[-1], 1e-6
    own = stepper.output(state, now)
    y = own + 0.05 if fed == "measured" else None
    found = stepper.jacobians(state, now, y)

    def step(ds, du, dy):
        after, out = stepper.step(state + ds, now + du, None if y is None else y + dy)
        return np.concatenate([after, out])

    sizes = stepper.states, stepper.inputs, stepper.outputs
    columns = []
    for direction in h * np.eye(sum(sizes)):
        parts = np.split(direction, np.cumsum(sizes)[:-1])
        columns.append((step(*parts) - step(*(-part for part in parts))) / (2 * h))
    want = np.stack(columns, axis=1)
    got = np.block([[found.A, found.B, found.E], [found.C, found.D, np.zeros((len(own), len(own)))]])
    np.testing.assert_allclose(got, want, atol=2e-8 * max(1.0, np.abs(want).max()))
    if fed == "own":
        assert not found.E.any()

    ds, du, dy = (np.random.default_rng(i).standard_normal((size, 3)) for i, size in enumerate(sizes))
    after, out = stepper.tangents(state, now, y, ds=ds, du=du, dy=dy)
    np.testing.assert_allclose(after, found.A @ ds + found.B @ du + found.E @ dy, atol=1e-12)
    np.testing.assert_allclose(out, found.C @ ds + found.D @ du, atol=1e-12)


def test_an_output_at_its_limit_does_not_change():
    model = model_zoo.network(clip=True, output_delays=1)
    stepper = Stepper(model)
    high = float(model.bound[0, 1])
    u = model_zoo.excitation(model, 200)
    state, seen = stepper.start(u[0]), 0
    for now in u:
        if stepper.output(state, now)[0] == high:
            found = stepper.jacobians(state, now)
            assert not found.C.any()
            assert not found.D.any()
            seen += 1
        state = stepper.advance(state, now)
    assert seen > 3


def test_a_diverged_member_is_left_out_and_a_diverged_network_is_not_a_number():
    good, bad = model_zoo.network(seed=1), model_zoo.network(seed=2)
    bad.readout[:] = 1e200
    from echobound.network import Committee

    u = model_zoo.excitation(good, 30)
    for model in (Committee((good, bad)), bad):
        want = model.simulate(u).y
        np.testing.assert_array_equal(np.isfinite(Stepper(model).run(u)), np.isfinite(want))
        finite = np.isfinite(want)
        np.testing.assert_allclose(Stepper(model).run(u)[finite], want[finite], rtol=1e-12)


def test_the_middle_of_several_outputs():
    values = np.array([[1.0, 5.0, np.nan], [2.0, np.inf, np.nan], [3.0, 4.0, np.nan]])
    weights = middle_of(values)
    assert weights[:, 0].tolist() == [0.0, 1.0, 0.0]
    assert weights[:, 1].tolist() == [0.5, 0.0, 0.5]


def test_what_cannot_be_stepped_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="input of the next sample"):
        equations_of(model_zoo.network(late=True, present_input=True))
    stepper = Stepper(MODELS["all features"])
    with pytest.raises(InputError, match="a vector of 2 was expected for one sample, got shape"):
        stepper.start([1.0, 2.0, 3.0])
