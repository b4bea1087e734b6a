"""The observer: it forgets where it started, and lives with samples that are lost, late or far off."""

import numpy as np
import pytest
from controlled import mixed_members, ph_network, ph_run

from echobound import ph_experiment
from echobound.control import Observer
from echobound.errors import InputError

RECORD = ph_experiment(samples=(300,), seed=5)[0]


def follow(observer, y, delay=0):
    observer.start(RECORD.u[0], RECORD.y[0])
    for k, u in enumerate(RECORD.u):
        observer.measure(y[k - delay] if k >= delay else [np.nan], age=min(delay, k))
        observer.advance(u)
    return observer


def test_it_forgets_its_start_at_the_rate_that_it_states():
    network = ph_network()
    rate, overshoot = network.stability.rate, network.stability.overshoot
    observers = [Observer(network, gate=np.inf) for _ in range(2)]
    for observer, start in zip(observers, (6.0, 8.0), strict=True):
        observer.start(RECORD.u[0], [start])
    first = np.linalg.norm(observers[0].states[0][:20] - observers[1].states[0][:20])
    assert first > 0.01
    for k in range(200):
        for observer in observers:
            observer.measure(RECORD.y[k])
            observer.advance(RECORD.u[k])
        apart = np.linalg.norm(observers[0].states[0][:20] - observers[1].states[0][:20])
        assert apart <= overshoot * rate ** (k + 1) * first * (1 + 1e-9)
    assert f"{network.stability.norm:.10g}" in observers[0].forgetting
    assert "says nothing about a free run" in observers[0].forgetting


def test_the_offset_explains_what_the_model_does_not():
    observer = Observer(ph_network(), gain=0.3, gate=np.inf)
    observer.start([15.0], [7.0])
    for _ in range(200):
        observer.measure([7.6])  # at this input the model rests elsewhere
        observer.advance([15.0])
    predictor = observer.predictors[0]
    held = np.full((41, 1), 15.0)
    outputs, _ = predictor.outlook(observer.states[0], observer.now[0], observer.offsets[0], held, None)
    np.testing.assert_allclose(outputs, 7.6, atol=1e-6)


def test_lost_samples_run_on_the_own_output():
    observer = Observer(ph_network())
    observer.start(RECORD.u[0], RECORD.y[0])
    reading = observer.measure([np.nan])
    assert reading.lost.all()
    assert not reading.used.any()
    own = observer.predictors[0].output(observer.states[0], RECORD.u[0]) + observer.offsets[0]
    np.testing.assert_allclose(observer.now[0], own)


def test_outliers_are_refused_until_there_are_too_many():
    observer = follow(Observer(ph_network(), patience=3), RECORD.y)
    far = RECORD.y[-1] + 2.0
    seen = []
    for _ in range(5):
        seen.append(bool(observer.measure(far).outlying[0]))
        observer.advance(RECORD.u[-1])
    assert seen == [True, True, True, False, False]


def test_late_measurements_end_in_the_same_state():
    """After the last late one has come in, nothing tells that they were late."""
    prompt, late = Observer(ph_network(), gate=np.inf), Observer(ph_network(), gate=np.inf)
    follow(prompt, RECORD.y)
    follow(late, RECORD.y, delay=3)
    for k in range(3, 0, -1):
        late.measure(RECORD.y[-k], age=k)
    np.testing.assert_array_equal(late.states[0], prompt.states[0])
    np.testing.assert_array_equal(late.offsets, prompt.offsets)


def test_too_late_is_lost():
    observer = Observer(ph_network(), latest=2)
    observer.start(RECORD.u[0], RECORD.y[0])
    for u in RECORD.u[:5]:
        observer.advance(u)
    assert observer.measure(RECORD.y[0], age=3).lost.all()
    assert observer.measure(RECORD.y[0], age=2).used.all()


def test_members_of_a_committee_are_followed_side_by_side():
    observer = follow(Observer(ph_run().committee), RECORD.y)
    assert len(observer.states) == len(ph_run().committee.members)
    alone = follow(Observer(ph_run().committee.members[1]), RECORD.y)
    np.testing.assert_allclose(observer.states[1], alone.states[0])
    assert "5 of 5 models forget" in observer.forgetting


def test_any_structure_is_followed():
    observer = follow(Observer(list(mixed_members())), RECORD.y)
    assert np.isfinite(observer.now).all()


@pytest.mark.parametrize("settings", [{"gain": 0.0}, {"gain": 1.5}, {"gate": 0.0}, {"patience": 0}, {"latest": -1}])
def test_bad_settings(settings):
    with pytest.raises(InputError, match="observer"):
        Observer(ph_network(), **settings)


def test_bad_use():
    observer = Observer(ph_network())
    with pytest.raises(InputError, match="not been started"):
        observer.advance([15.0])
    with pytest.raises(InputError, match="numbers"):
        observer.start([np.nan], [7.0])
    observer.start([15.0], [7.0])
    with pytest.raises(InputError, match="1 outputs was expected"):
        observer.measure([7.0, 7.0])
