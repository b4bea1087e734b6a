"""The committee: a median of free runs, one model to simulate, predict, save and load."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from echobound.errors import DamagedFile, InputError, RunError
from echobound.files import write_npz
from echobound.kernels import compiled_dynamics, get_kernel, hold_out
from echobound.kernels.training import train_network
from echobound.network import Committee, EchoStateNetwork, broad
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


def test_compiled_runs_agree(committee, mimo_records):
    record, fast = mimo_records[1][0], compiled_dynamics()
    assert committee.simulate(record, dynamics=fast).y == pytest.approx(committee.simulate(record).y, rel=1e-7)
    assert committee.predict(record, 3, dynamics=fast).y == pytest.approx(committee.predict(record, 3).y, rel=1e-7)


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
    with pytest.raises(DamagedFile, match="'model' was expected"):
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
