"""The default law on few data, from end to end: every kind of network goes all the way, the same in every engine."""

import json
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from campaigns import same
from typer.testing import CliRunner

from echobound.audit import audit
from echobound.cli.main import app
from echobound.draws import draw_key
from echobound.identify import identify
from echobound.kernels import Status
from echobound.network import Committee, law_drawn_from, mixed, paper
from echobound.network.laws import Shape
from echobound.network.training import FreeRun
from echobound.plants import ph_experiment
from echobound.runs.drawn import candidates_of
from echobound.runs.folder import RunFolder
from echobound.scores import rmse
from echobound.verify import verify

FEW = {"networks": 12, "beta": 0.5, "workers": 2, "seed": 1}  # with this seed, all four kinds are among the draws


@pytest.fixture(scope="module")
def record():
    [training] = ph_experiment(samples=(500,))
    return training


@pytest.fixture(scope="module")
def original(record, tmp_path_factory):
    """Nothing but the number of networks is given."""
    run = tmp_path_factory.mktemp("defaults") / "run"
    return run, identify(record, **FEW, run=run)


@pytest.fixture
def run(original, tmp_path):
    return shutil.copytree(original[0], tmp_path / "run")


def kind_of(law, index):
    return law.component(draw_key(FEW["seed"], 0, 0, index)).name


def test_it_is_the_law_of_several_kinds_and_all_of_them_are_drawn(record, original):
    run, result = original
    plan = RunFolder(run).plan
    [law] = plan.law
    assert law.name == "mixed"
    assert law.to_dict() == mixed(Shape(500, record.u.shape[1], 1)).to_dict()
    assert plan.scores == ("robust", "fit", "rmse")
    assert {kind_of(law, index) for index in range(12)} == {one.name for one in law.laws}
    assert (result.table["status"] != Status.DIVERGED).all(), "with limits nothing diverges"
    assert result.certificate.score == "robust"
    assert result.certificate.threshold == result.table["scores"][:, 0].max()
    assert (result.table["scores"][:, 0] <= result.table["scores"][:, 1]).all()


def test_the_model_that_is_delivered_is_in_the_folder(record, original):
    run, result = original
    folder = RunFolder(run)
    assert result.delivered == folder.delivered == "committee"
    assert isinstance(result.model, Committee)
    assert (run / "model.npz").exists()
    assert (run / "network.npz").exists()
    assert folder.model.digest == result.model.digest
    assert folder.network.digest == result.network.digest
    assert (folder.model.simulate(record).y == result.model.simulate(record).y).all()


def test_show_has_the_bound_and_every_free_run_stays_within(record, original):
    run, result = original
    printed = CliRunner().invoke(app, ["show", str(run), "--json"])
    assert printed.exit_code == 0, printed.output
    content = json.loads(printed.stdout)
    assert content["delivered"] == "committee"
    [[low, high]] = content["bound"]
    assert low < record.y.min() < record.y.max() < high
    for factor in (0.0, 1.0, 3.0, 1000.0, -1000.0):
        y = result.model.simulate(factor * record.u).y
        assert low <= y.min() <= y.max() <= high


def test_the_card_says_what_the_pick_is_and_how_it_was_trained(original):
    run, result = original
    page, kind = (run / "report.html").read_text(), law_drawn_from(result.network.origin)
    assert f"law mixed (its kind: {kind.name})" in page
    assert f">{kind.training.kind}<" in page
    assert f">{kind.training.setting_name.capitalize()}</th>" in page
    assert kind.training.setting_unit in page


def test_it_is_put_to_the_test_and_audited(run):
    assert verify(run, fresh=6, workers=2)["fresh"] == 6
    outcome = audit(run, sample=12, seed=1)
    assert outcome.findings == ()


def test_an_interrupted_run_is_resumed_bit_for_bit(record, original, run):
    table = original[1].table
    for name in ("certificate.json", "report.html", "model.npz", "network.npz"):
        (run / name).unlink()
    with closing(sqlite3.connect(run / "ledger.sqlite")) as db, db:
        db.execute("DELETE FROM rows WHERE number % 3 = 1 OR number > 8")
    again = identify(record, **FEW, run=run)
    assert same(again.table, table)
    assert again.model.digest == original[1].model.digest
    assert again.certificate.to_dict()["digest"] == original[1].certificate.to_dict()["digest"]


@pytest.mark.parametrize("computing", [{"engine": "processes"}, {"engine": "threads", "workers": 1}], ids=str)
def test_rows_are_the_same_in_every_engine(record, original, computing):
    result = identify(record, **FEW | computing)
    assert same(result.table, original[1].table)
    assert result.model.digest == original[1].model.digest


def test_the_readout_of_the_paper_is_trained_on_the_free_run(record, tmp_path):
    """No network ends worse on its own training data than where it starts."""
    settings = {"law": "paper", "order": 5, "networks": 12, "beta": 0.5, "committee": 0, "blocks": 0, "washout": 50}
    folders = []
    for name, trainer in (("started", FreeRun(steps=(0,))), ("trained", "free run")):
        identify(record, **settings, trainer=trainer, run=tmp_path / name)
        folders.append(RunFolder(tmp_path / name))
    trained = folders[1]
    assert trained.plan.law == (paper(5, "free run"),)
    assert trained.plan.scores == ("fit", "rmse")
    assert set(trained.search["ridge"]) == set(FreeRun().settings), "the column has the number of steps"

    [known] = trained.experiments.training
    errors = np.zeros((2, 12))
    for row, folder in zip(errors, folders, strict=True):
        [candidates] = candidates_of(folder.plan, folder.experiments)
        for index in range(12):
            row[index] = rmse(known.y[50:], candidates.make(index).model.simulate(known).y)
    assert (errors[1] <= errors[0] * (1 + 1e-9)).all()
    assert np.median(errors[1]) < 0.98 * np.median(errors[0])
    assert audit(tmp_path / "trained", sample=12, seed=1).findings == ()
    page = (tmp_path / "trained" / "report.html").read_text()
    assert '<th scope="row">Steps</th><td>8, on the free-run error</td>' in page
