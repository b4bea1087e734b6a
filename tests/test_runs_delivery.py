"""One delivered model: the rule, where the models stand, and that whoever opens the folder derives it again."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echobound import audit, identify, load_model
from echobound.data import Record
from echobound.errors import DamagedFile
from echobound.network import Committee, EchoStateNetwork, ReservoirLaw
from echobound.runs.delivery import FEWEST, delivery_of
from echobound.runs.folder import RunFolder
from echobound.scores import fit

SMALL = {"law": "paper", "order": 6, "networks": 25, "beta": 1e-2, "washout": 60}


def kinds(run):
    """What the folder holds, by file."""
    return {path.name: type(load_model(path)) for path in run.glob("*.npz") if path.name != "data.npz"}


@given(committee=st.integers(0, 20), finite=st.integers(0, 20), members=st.none() | st.integers(1, 20))
def test_the_rule_follows_from_plan_and_count_alone(committee, finite, members):
    plan = SimpleNamespace(committee=committee, **({} if members is None else {"members": members}))
    found = delivery_of(plan, finite)
    if not finite:
        assert found is None
        return
    several = (members or 1) > 1 or (committee > 0 and finite >= FEWEST)
    assert found.delivered == ("committee" if several else "network")
    assert found.reason.endswith(".")
    assert found == delivery_of(plan, finite)


@pytest.mark.parametrize("asked", [0, 1, 2, 3, 10])
def test_the_delivered_model_is_the_file_model_npz_and_the_other_stays_beside(ph_records, tmp_path, asked):
    result = identify(*ph_records, **SMALL, committee=asked, run=tmp_path / "run")
    opened = RunFolder(result.run)
    if asked >= FEWEST:
        assert kinds(result.run) == {"model.npz": Committee, "network.npz": EchoStateNetwork}
        assert result.model is result.committee
    else:
        beside = {"committee.npz": Committee} if asked else {}
        assert kinds(result.run) == {"model.npz": EchoStateNetwork, **beside}
        assert result.model is result.network
    assert load_model(result.run / "model.npz").digest == result.model.digest == opened.model.digest
    assert (opened.delivery.delivered, opened.delivery.reason) == (result.delivered, result.reason)
    assert opened.network.digest == result.network.digest
    own = float(fit(ph_records[1].y[60:], result.model.simulate(ph_records[1]).y))
    assert result.scores["validation"]["fit"] == pytest.approx(own)
    assert audit(result.run, sample=0).findings == ()


def test_models_that_change_places_are_refused(ph_records, tmp_path):
    run = identify(*ph_records, **SMALL, run=tmp_path / "run").run
    (run / "model.npz").rename(run / "kept.npz")
    (run / "network.npz").rename(run / "model.npz")
    (run / "kept.npz").rename(run / "network.npz")
    with pytest.raises(DamagedFile, match=r"\.npz"):
        _ = RunFolder(run).model
    assert not audit(run, sample=0).passed


def test_a_missing_file_is_named(ph_records, tmp_path):
    run = identify(*ph_records, **SMALL, run=tmp_path / "run").run
    for name in ("model.npz", "network.npz"):
        copy = shutil.copytree(run, tmp_path / name.removesuffix(".npz"))
        (copy / name).unlink()
        with pytest.raises(Exception, match=name):
            _ = RunFolder(copy).model
        assert not audit(copy, sample=0).passed


def test_folders_of_earlier_versions_open(ph_records, tmp_path):
    """They have the pick in model.npz and the committee in committee.npz; what is delivered follows all the same."""
    result = identify(*ph_records, **SMALL, run=tmp_path / "run")
    (result.run / "model.npz").rename(result.run / "committee.npz")
    (result.run / "network.npz").rename(result.run / "model.npz")
    old = RunFolder(result.run)
    assert old.certificate == result.certificate
    assert old.model.digest == result.committee.digest
    assert old.network.digest == result.network.digest
    outcome = audit(result.run, sample=0)
    assert outcome.passed
    assert any("earlier versions" in note for note in outcome.notes)
    again = identify(*ph_records, **SMALL, run=tmp_path / "run")
    assert again.certificate == result.certificate
    assert kinds(result.run) == {"model.npz": Committee, "network.npz": EchoStateNetwork}


def test_a_run_that_is_finished_again_leaves_no_model_of_before(ph_records, tmp_path):
    result = identify(*ph_records, **SMALL, run=tmp_path / "run")
    (result.run / "committee.npz").write_bytes((result.run / "model.npz").read_bytes())
    again = identify(*ph_records, **SMALL, run=tmp_path / "run")
    assert again.certificate == result.certificate
    assert kinds(again.run) == {"model.npz": Committee, "network.npz": EchoStateNetwork}


def test_where_all_diverged_nothing_is_delivered(tmp_path):
    k = np.arange(400)
    record = Record(u=np.sin(0.1 * k), y=np.exp(0.05 * k))
    long = Record(u=np.sin(0.1 * np.arange(90_000)), y=np.exp(0.05 * (np.arange(90_000) % 400)))
    law = ReservoirLaw(order=3, output_delays=1, norm=0.1, feedback_scale=0.0, input_scale=0.01)
    result = identify(record, long, law=law, networks=3, beta=0.5, run=tmp_path / "run")
    assert (result.model, result.network, result.committee) == (None, None, None)
    assert (result.delivered, result.reason, result.scores, result.held) == ("", "", {}, {})
    assert kinds(result.run) == {}
    assert RunFolder(result.run).delivery is None
