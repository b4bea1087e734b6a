"""Certificates renewed on new data: the same networks, and the cases where they do not certify."""

import shutil

import jsonschema
import numpy as np
import pytest

from echobound import RunFolder, audit, identify, renew, verify
from echobound.errors import InputError, RunError
from echobound.network import draw_reservoir, paper
from echobound.plan import RenewalStep
from echobound.plants import ph_experiment
from echobound.scenario import Renewal, epsilon_exact, schema

SMALL = {"law": "paper", "order": 8, "epsilon": 0.2, "beta": 1e-2, "washout": 60, "committee": 3, "seed": 4}


@pytest.fixture(scope="module")
def new():
    """Another year: another excitation."""
    return ph_experiment(samples=(600, 450), seed=11)


@pytest.fixture(scope="module")
def run(ph_records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "first"
    return identify(*ph_records, **SMALL, run=folder)


@pytest.fixture(scope="module")
def renewed(run, new):
    return renew(run.run, *new, closed_loop=False, updates=4, into=run.run.parent / "renewed")


def test_the_same_networks_on_the_new_data(run, renewed, new):
    same = identify(*new, **SMALL)
    assert (renewed.table["scores"] == same.table["scores"]).all()
    assert renewed.certificate.networks == run.certificate.networks == 21
    origin = renewed.network.origin
    again = draw_reservoir(paper(8), 1, 1, 4, 0, 0, origin["index"])
    assert (renewed.network.reservoir.W_x == again.W_x).all()
    assert not (renewed.table["scores"] == run.table["scores"]).any()


def test_what_is_certified(run, renewed):
    statement = renewed.certificate.statements[0]
    assert isinstance(statement, Renewal)
    assert statement.epsilon == epsilon_exact(21, 0.01 / 4) > renewed.certificate.epsilon_exact
    assert statement.threshold == renewed.certificate.threshold == renewed.table["scores"][:, 0].max()
    assert "in all 4 planned renewals together" in statement.words
    jsonschema.validate(renewed.certificate.to_dict(), schema(), cls=jsonschema.Draft202012Validator)
    folder = RunFolder(renewed.run)
    assert folder.plan.renewal == RenewalStep(plan=RunFolder(run.run).plan.digest, update=1, updates=4)
    assert folder.certificate == renewed.certificate
    assert audit(renewed.run, sample=3).passed
    assert verify(renewed.run, fresh=3)["fresh"] == 3


def test_renewals_are_counted_from_folder_to_folder(run, renewed, ph_records, tmp_path):
    folder, plan = renewed.run, RunFolder(renewed.run).plan
    for update in (2, 3, 4):
        data = ph_experiment(samples=(500, 400), seed=20 + update)
        folder = renew(folder, *data, closed_loop=False, into=tmp_path / str(update)).run
        found = RunFolder(folder).plan.renewal
        assert (found.plan, found.update, found.updates) == (plan.renewal.plan, update, 4)
    with pytest.raises(InputError, match="4 renewals were planned, and this would be number 5"):
        renew(folder, *ph_records, closed_loop=False)
    with pytest.raises(InputError, match="4 renewals were planned at the first one, but 6"):
        renew(renewed.run, *ph_records, closed_loop=False, updates=6)
    with pytest.raises(InputError, match="at least one renewal"):
        renew(run.run, *ph_experiment(samples=(500, 400), seed=3), closed_loop=False, updates=0)


def test_old_data_are_refused_all_along_the_chain(run, renewed, new, ph_records, tmp_path):
    """The data of the first run, by way of a renewal; and a renewal made once more elsewhere, the best of many."""
    with pytest.raises(InputError, match="trained and scored on these data before, in first"):
        renew(renewed.run, *ph_records, closed_loop=False, into=renewed.run.parent / "back")
    swapped = renewed.run.parent / "swapped"
    with pytest.raises(InputError, match="trained and scored on these data before, in renewed"):
        renew(run.run, *new[::-1], closed_loop=False, updates=4, into=swapped)
    other = ph_experiment(samples=(600, 450), seed=12)
    with pytest.raises(InputError, match="renewal 1 of the 4 that were planned was made already, in renewed"):
        renew(run.run, *other, closed_loop=False, updates=4, into=renewed.run.parent / "again")
    assert {path.name for path in run.run.parent.iterdir() if path.is_dir()} == {"first", "renewed"}
    again = renew(run.run, *new, closed_loop=False, updates=4, into=renewed.run)  # this very one, resumed
    assert again.certificate == renewed.certificate


def test_the_best_of_several_first_renewals_misses():
    """Ten of them, each said to be one of three: so often are they wrong, where beta was promised for all together."""
    rng, beta, networks, campaigns = np.random.default_rng(6), 0.05, 30, 4000
    epsilon = epsilon_exact(networks, beta / 3)
    missed = (rng.random((campaigns, networks, 10)).min(axis=1) > epsilon).any(axis=1).mean()
    assert missed > 2 * beta


def test_where_it_does_not_hold(run, new, ph_records, tmp_path):
    with pytest.raises(InputError, match="depend on the network in use"):
        renew(run.run, *new, closed_loop=True)
    own = shutil.copytree(run.run, tmp_path / "own" / "first")
    with pytest.warns(UserWarning, match="holds only if the new data do not depend"):
        renew(own, *new)
    with pytest.raises(InputError, match=r"these are the data of .* itself"):
        renew(run.run, *ph_records, closed_loop=False)
    at_will = identify(*ph_records, **SMALL, stop="anytime:10", run=tmp_path / "at will").run
    with pytest.raises(InputError, match="depends on their scores, by the rule anytime"):
        renew(at_will, *new, closed_loop=False)
    families = identify(*ph_records, **(SMALL | {"order": (5, 8)}), run=tmp_path / "families").run
    with pytest.raises(InputError, match="2 families were given"):
        renew(families, *new, closed_loop=False)
    with pytest.raises(RunError, match="not a run folder"):
        renew(tmp_path / "nowhere", *new, closed_loop=False)


def test_networks_that_were_dropped_are_missed(run, new, tmp_path):
    import sqlite3

    copy = shutil.copytree(run.run, tmp_path / "pruned")
    with sqlite3.connect(copy / "ledger.sqlite") as db:
        db.execute("DELETE FROM rows WHERE number = 3")
    with pytest.raises(RunError, match=r"20 rows, none of network 3, but 21 networks are due"):
        renew(copy, *new, closed_loop=False)


def test_patience_found_a_number_that_counts(ph_records, new, tmp_path):
    patient = identify(*ph_records, **SMALL, stop="patience:12", run=tmp_path / "patient")
    found = renew(patient.run, *new, closed_loop=False)
    assert found.certificate.networks == patient.certificate.networks
    assert found.certificate.rule == "fixed"


def test_validation_and_washout_stay_as_they_were(ph_records, tmp_path):
    in_blocks = identify(ph_records[0], **SMALL, blocks=3, run=tmp_path / "blocks")
    found = renew(in_blocks.run, ph_experiment(samples=(600, 400), seed=9)[0], closed_loop=False, into=tmp_path / "r")
    assert found.certificate.blocks == 3
    plan = RunFolder(tmp_path / "r").plan
    assert {segment.washout for fold in plan.folds for segment in fold.scored} == {60}


def test_misses_are_as_rare_as_promised():
    """Two updates, planned: in either of them the true violation probability exceeds epsilon in beta of all cases."""
    rng, beta, networks, campaigns = np.random.default_rng(5), 0.1, 30, 4000
    epsilon = epsilon_exact(networks, beta / 2)
    first = rng.random((campaigns, networks, 1))  # the quality of a network in one year and in the next, related
    later = np.mod(first + 0.2 * rng.random((campaigns, networks, 2)), 1.0)  # each uniform
    missed = (1 - later.max(axis=1) > epsilon).any(axis=1).mean()
    assert missed <= beta + 3 * np.sqrt(beta * (1 - beta) / campaigns)
    assert missed > beta / 3, "the limit is not far from what is needed"
