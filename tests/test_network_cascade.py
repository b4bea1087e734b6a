"""Cascades: filters, features, outputs, the model and its file, the law and its draws."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echobound.data import Record
from echobound.errors import DamagedFile, InputError
from echobound.kernels import get_kernel, hold_out
from echobound.kernels.training import train_network
from echobound.network import (
    Adaptation,
    CascadeLaw,
    CascadeModel,
    Committee,
    EchoStateNetwork,
    MixedLaw,
    VariableProjection,
    load_model,
    model_from_content,
    network_law_from_dict,
    paper,
)
from echobound.network.cascade import (
    RADIUS,
    Cascade,
    energy_factors,
    free_parameters,
    sections_of,
    stable_sections,
)
from echobound.network.distribution import Choice, LogUniform
from echobound.scores import get_score

FRONT, BACK = np.array([[-1.5, 0.6], [-0.3, -0.2]]), np.array([[-1.2, 0.5], [0.1, 0.3], [-0.5, 0.06]])
QUICK = CascadeLaw(units=3, sections=1, training=VariableProjection((1e-8, 1e-4), shared=4, free=4))


def cascade_of(seed=0, inputs=2, units=3):
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((units, inputs * (2 * len(FRONT) + 1)))
    bias = rng.standard_normal(units)
    return Cascade(FRONT, energy_factors(FRONT), weights, bias, BACK, energy_factors(BACK))


def by_hand(cascade, readout, u):
    """Sample by sample, from the definition."""

    def run(section, x):
        v = [x[0] / (1 + section.sum())] * 2
        for value in x:
            v.append(value - section[0] * v[-1] - section[1] * v[-2])
        return np.array(v[1:])  # v(-1), v(0), ...

    def signals(sections, factors, x):
        found = []
        for section, (a, b) in zip(sections, factors, strict=True):
            v = run(section, x)
            found += [a * (v[1:] + v[:-1]), b * (v[1:] - v[:-1])]
        return found

    z = []
    for channel in u.T:
        z += [*signals(cascade.front, cascade.front_factors, channel), channel]
    features = []
    for w, b in zip(cascade.weights, cascade.bias, strict=True):
        h = np.tanh(w @ np.array(z) + b)
        features += [*signals(cascade.back, cascade.back_factors, h), h]
    return (readout @ np.array([*features, *z, np.ones(len(u))])).T


def plant(samples, seed=0):
    """Two inputs, two outputs: tanh between first-order filters."""
    rng = np.random.default_rng(seed)
    u, x = rng.standard_normal((samples, 2)), np.zeros((samples, 2))
    for k in range(1, samples):
        x[k] = 0.7 * x[k - 1] + np.tanh(u[k - 1] @ np.array([[0.5, 0.2], [0.1, -0.6]]))
    return Record(u=u, y=x + 0.01 * rng.standard_normal(x.shape))


@pytest.fixture(scope="module")
def trained():
    problem = hold_out(plant(300), plant(150, 1), law=QUICK, scores=[get_score("rmse")], washout=30)
    return problem, train_network(get_kernel("cpu"), problem, 2)[0]


def test_outputs_and_features_are_those_of_the_definition():
    cascade, rng = cascade_of(), np.random.default_rng(5)
    u, readout = rng.standard_normal((40, 2)), rng.standard_normal((2, cascade.columns))
    expected = by_hand(cascade, readout, u)
    assert np.allclose(cascade.features(u) @ readout.T, expected, atol=1e-12)
    assert np.allclose(cascade.response(readout, u), expected, atol=1e-12)


def test_a_constant_input_gives_a_constant_output():
    cascade = cascade_of()
    u = np.tile([[0.4, -1.1]], (50, 1))
    features = cascade.features(u)
    assert np.allclose(features, features[0], atol=1e-12)


def test_parameters_go_there_and_back():
    cascade = cascade_of()
    other = cascade.with_parameters(cascade.parameters + 1.0)
    assert (other.parameters == cascade.parameters + 1.0).all()
    assert (other.back == BACK + 1.0).all()
    assert (other.weights == cascade.weights + 1.0).all()


@given(st.floats(-30, 30), st.floats(-30, 30))
def test_sections_are_stable_whatever_their_parameters(p, q):
    sections, _ = stable_sections(np.array([[p, q]]))
    assert np.abs(np.roots([1.0, *sections[0]])).max(initial=0.0) <= RADIUS * (1 + 1e-6)


def test_slopes_of_sections_are_derivatives():
    free = np.array([[-1.3, 0.7], [0.2, -0.4]])
    _, slopes = stable_sections(free)
    for parameter in range(2):
        step = free.astype(complex)
        step[:, parameter] += 1e-30j
        moved, _ = stable_sections(step)
        assert np.allclose(moved.imag / 1e-30, slopes[:, :, parameter], atol=1e-12)


def test_sections_have_the_poles_that_they_are_made_of():
    poles = np.array([0.9, 0.5, 0.6 + 0.3j, 0.6 - 0.3j])
    found = np.concatenate([np.roots([1.0, *section]) for section in sections_of(poles)])
    assert np.allclose(np.sort_complex(found), np.sort_complex(poles))
    unstable = sections_of(np.array([1.25, 3.0, 1.0, 0.0]))
    sizes = np.sort(np.concatenate([np.abs(np.roots([1.0, *section])) for section in unstable]))
    assert np.allclose(sizes[-3:], [1 / 3, 0.8, RADIUS])
    assert np.allclose(stable_sections(free_parameters(unstable))[0], unstable, atol=1e-3)


def test_a_model_runs_as_its_draw_was_scored_and_stays_within_its_bound(trained):
    problem, model = trained
    assert isinstance(model, CascadeModel)
    assert model.order == 2 * 2 * (2 + 3)
    trial = get_kernel("cpu").trial(problem, 2)
    best, _ = trial.pick(problem)
    validation = problem.records[1]
    assert np.allclose(model.simulate(validation).y, trial.simulated(best)[0], rtol=1e-12)
    assert (model.predict(validation, 7).y == model.simulate(validation).y).all()
    low, high = model.bound.T
    for factor in (0.0, 3.0, 1e3, 1e200):
        y = model.simulate(factor * validation.u).y
        assert (y >= low).all()
        assert (y <= high).all()
    assert model.stability.contracts
    assert "No output is fed back" in model.stability.statement


def test_saving_and_loading_gives_the_same_bits(trained, tmp_path):
    _, model = trained
    model.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert isinstance(loaded, CascadeModel)
    assert loaded.digest == model.digest
    with pytest.raises(InputError, match="structure 'cascade', not 'echo state network': load_model loads any"):
        EchoStateNetwork.load(tmp_path / "model.npz")
    committee = Committee((model, model))
    committee.save(tmp_path / "committee.npz")
    assert Committee.load(tmp_path / "committee.npz").digest == committee.digest


@pytest.mark.parametrize("name", ["front", "front_factors", "weights", "bias", "back", "back_factors", "readout"])
def test_a_file_with_an_array_of_another_shape_is_refused(name, trained, tmp_path):
    header, arrays = trained[1].content()
    with pytest.raises(DamagedFile, match="array"):
        CascadeModel.from_content(header, {**arrays, name: arrays[name][..., :-1]}, tmp_path)
    with pytest.raises(DamagedFile, match="structure 'other'"):
        model_from_content({**header, "structure": "other"}, arrays, tmp_path)


def test_a_cascade_cannot_be_adapted(trained):
    problem, model = trained
    with pytest.raises(InputError, match="echo state network, but this model is a CascadeModel"):
        Adaptation(model, problem.records[0])


def test_a_law_is_stored_and_read_in_a_mixture_too():
    law = CascadeLaw(units=Choice((4, 6)), gain=LogUniform(0.1, 1.0), training=VariableProjection((1e-7,)))
    assert network_law_from_dict(law.to_dict()) == law
    mixed = MixedLaw((law, paper(10)), (1, 2))
    assert network_law_from_dict(mixed.to_dict()) == mixed
    with pytest.raises(InputError, match="fields"):
        CascadeLaw.from_dict({"kind": "cascade"})


@pytest.mark.parametrize(
    "wrong", [{"units": 0}, {"sections": 50}, {"gain": -1.0}, {"scaling": "log"}, {"clip": 1}, {"ridge": "x"}]
)
def test_what_cannot_be_drawn_is_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        CascadeLaw(**wrong)


def test_draws_differ_and_columns_are_counted():
    law = CascadeLaw()
    draws = [law.draw_at(2, 1, 0, 0, 0, index) for index in range(40)]
    assert {one.hyper.units for one in draws} <= set(range(4, 11))
    assert len({one.hyper.gain for one in draws}) == 40
    assert max(one.hyper.columns(2, 1) for one in draws) <= law.most_columns(2, 1) == (10 + 2) * 9 + 1
    with pytest.raises(InputError, match="train it first"):
        _ = draws[0].cascade
    assert dataclasses.replace(law, units=5).draw(draws[3].key).gain == draws[3].hyper.gain
