"""The committee: a median of free runs, one model to simulate, predict, save and load."""

import dataclasses
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from echobound.errors import DamagedFile, InputError, RunError
from echobound.files import write_npz
from echobound.kernels import get_kernel, hold_out
from echobound.kernels.training import train_network
from echobound.network import Committee, EchoStateNetwork, bound_words, broad, dynamics, holdings, load_model
from echobound.network.committee import median_of
from echobound.scores import get_score


@pytest.fixture(scope="module")
def committee(mimo_records):
    problem = hold_out(*mimo_records, law=broad(order=12), scores=[get_score("fit")], washout=30)
    return Committee(tuple(train_network(get_kernel("reference"), problem, index)[0] for index in range(4)))


def test_outputs_are_the_median_of_the_members_own_runs(committee, mimo_records):
    record = mimo_records[1][0]
    for run in (lambda m: m.simulate(record), lambda m: m.predict(record, 3), lambda m: m.simulate(record.u)):
        own = np.stack([run(member).y for member in committee.members])
        assert (run(committee).y == np.median(own, axis=0)).all(), "of four, the mean of the middle two"
        assert run(committee).first == run(committee.members[0]).first
    assert committee.simulate(record).start.startswith("median of 4 networks, each: free run after 30 samples")
    given = committee.simulate(record.u, initial=record.y[:30])
    assert (given.y == committee.simulate(record).y).all()
    assert committee.simulate(record, washout=50).first == 50


def test_compiled_runs_agree_with_plain_ones(committee, mimo_records):
    record, plain = mimo_records[1][0], {"dynamics": dynamics}
    assert committee.simulate(record).y == pytest.approx(committee.simulate(record, **plain).y, rel=1e-7)
    assert committee.predict(record, 3).y == pytest.approx(committee.predict(record, 3, **plain).y, rel=1e-7)


def test_members_run_at_the_same_time_and_in_the_callers_context(committee, mimo_records):
    meeting, seen = threading.Barrier(len(committee.members), timeout=20), []

    @dataclasses.dataclass(frozen=True)
    class Meeting:  # goes on only when all members have come
        def free_run(self, *arguments):
            meeting.wait()
            seen.append(np.geterr()["under"])
            return dynamics.free_run(*arguments)

    with np.errstate(under="print"):
        committee.simulate(mimo_records[1][0].u[:40], dynamics=Meeting())
    assert seen == ["print"] * len(committee.members)


def test_a_member_that_diverges_is_left_out_from_there_on(committee, mimo_records):
    record = mimo_records[1][0]
    first = committee.members[0]
    wild = dataclasses.replace(first, readout=np.full_like(first.readout, 1e308), limits=None)
    assert not np.isfinite(wild.simulate(record).y).all()
    mixed = Committee((wild, *committee.members[1:]))
    own = np.stack([member.simulate(record).y for member in committee.members[1:]])
    finite = np.isfinite(wild.simulate(record).y).all(axis=1)
    assert (mixed.simulate(record).y[~finite] == np.median(own, axis=0)[~finite]).all()
    assert np.isnan(Committee((wild,)).simulate(record).y).any(), "nobody left"


@settings(deadline=None)
@given(arrays(float, (5, 4), elements=st.floats(-1e9, 1e9) | st.sampled_from([np.nan, np.inf, -np.inf])))
def test_the_median_is_over_what_is_finite(values):
    found = median_of(list(values))
    for column, median in zip(values.T, found, strict=True):
        finite = column[np.isfinite(column)]
        assert np.isnan(median) if not len(finite) else median == np.median(finite)


def test_save_and_load_give_the_same_bits(committee, mimo_records, tmp_path):
    committee.save(tmp_path / "committee.npz")
    again = Committee.load(tmp_path / "committee.npz")
    assert again.digest == committee.digest
    assert [member.digest for member in again.members] == [member.digest for member in committee.members]
    assert (again.simulate(mimo_records[1][0]).y == committee.simulate(mimo_records[1][0]).y).all()
    assert Committee(committee.members[::-1]).digest != committee.digest


def test_files_that_are_no_committee_are_refused(committee, tmp_path):
    path = tmp_path / "committee.npz"
    with pytest.raises(RunError, match="missing"):
        Committee.load(path)
    committee.members[0].save(path)
    with pytest.raises(DamagedFile, match="'committee' was expected"):
        Committee.load(path)
    committee.save(path)
    with pytest.raises(InputError, match="holds a committee, not one network: open it with load_model"):
        EchoStateNetwork.load(path)
    header, content = committee.content()
    for changed, match in (
        (({**header, "format": 9}, content), "format 9"),
        (({**header, "members": []}, content), "at least one"),
        (({**header, "members": 3}, content), "not a complete committee"),
        (({**header, "members": [7]}, content), "not a complete"),
        ((header, {k: v for k, v in content.items() if k != "2.bias"}), "not a complete model"),
        ((header, content | {"1.readout": content["1.readout"][:, 1:]}), "readout"),
    ):
        write_npz(path, *changed)
        with pytest.raises(DamagedFile, match=match):
            Committee.load(path)


def test_members_must_fit_together(committee):
    with pytest.raises(InputError, match="at least one network"):
        Committee(())
    other = dataclasses.replace(committee.members[0], sampling_time=7.0)
    with pytest.raises(InputError, match="the same sampling_time"):
        Committee((other, *committee.members))


@settings(deadline=None)
@given(
    st.integers(1, 7).flatmap(
        lambda n: st.tuples(*(arrays(float, (n, 2), elements=st.floats(-1e6, 1e6)) for _ in range(3)))
    )
)
def test_the_bound_is_the_median_of_bounds_and_holds_for_any_outputs_within_them(signals):
    """Members with any limits, and any outputs within these: exactly, not up to rounding."""
    low, high = np.minimum(*signals[:2]), np.maximum(*signals[:2])
    y = np.clip(signals[2], low, high)
    bounds = [np.stack(pair, axis=1) for pair in zip(low, high, strict=True)]
    several = SimpleNamespace(members=[SimpleNamespace(bound=bound) for bound in bounds])
    found = Committee.bound.fget(several)
    median = median_of(list(y))
    assert (found[:, 0] <= median).all()
    assert (median <= found[:, 1]).all()
    assert (found == np.median(bounds, axis=0)).all()


@pytest.mark.parametrize("scale", [0.0, 1.0, 3.0, 1000.0])
def test_no_free_run_leaves_the_bound(committee, mimo_records, scale):
    record, noise = mimo_records[1][0], np.random.default_rng(1).normal(size=(240, 2))
    for u in (scale * record.u, scale * noise):
        runs = [committee.simulate(dataclasses.replace(record, u=u)), committee.simulate(u)]
        for run in runs:
            assert (run.y >= committee.bound[:, 0]).all()
            assert (run.y <= committee.bound[:, 1]).all()


def test_without_the_limits_of_one_member_there_is_no_bound(committee):
    assert committee.bound.shape == (2, 2)
    free = dataclasses.replace(committee.members[0], limits=None)
    assert Committee((free, *committee.members[1:])).bound is None
    assert bound_words(Committee((free,))).startswith("Its free runs have no bound")


def test_a_model_file_gives_whichever_kind_it_holds(committee, tmp_path):
    for model in (committee, committee.members[0]):
        model.save(tmp_path / "model.npz")
        found = load_model(tmp_path / "model.npz")
        assert type(found) is type(model)
        assert found.digest == model.digest
    write_npz(tmp_path / "model.npz", {"kind": "shoe"}, {})
    with pytest.raises(DamagedFile, match="kind 'model' or 'committee' was expected, found 'shoe'"):
        load_model(tmp_path / "model.npz")


def test_outputs_at_a_limit_are_counted_and_named(committee):
    low, high = committee.bound.T
    inside = (low + high) / 2
    y = np.array([inside] * 100)
    y[:37, 0], y[:3, 1] = high[0], low[1]
    first, second = holdings(committee, y)
    assert (first.share, first.limit, first.too_long) == (0.37, high[0], True)
    assert (second.share, second.limit, second.too_long) == (0.03, low[1], False)
    name, unit = committee.output_names[0], committee.output_units[0]
    shown = f"{high[0]:.6g}{' ' + unit if unit else ''}"
    assert first.words == f"{name} sits at its limit {shown} in 37 % of the samples: the model does not follow there"
    assert holdings(SimpleNamespace(), y) is None, "a model without limits"


def test_a_saturated_sensor_is_no_failure_of_the_model(committee):
    """Where the training data are at a limit themselves, a model may be, too."""
    members = [
        dataclasses.replace(one, limits=dataclasses.replace(one.limits, share=np.array([0.35, 0.0])))
        for one in committee.members
    ]
    y = np.tile(committee.bound[:, 1], (100, 1))
    y[38:] = committee.bound.mean(axis=1)
    first, second = holdings(Committee(tuple(members)), y)
    assert (first.share, first.usual, first.too_long) == (0.38, 0.35, False)
    assert second.too_long
