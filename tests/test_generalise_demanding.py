"""A score that asks for more than outputs selects; test data are then scored by the first one that does not."""

import json
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from echobound.audit import audit
from echobound.cli.main import app
from echobound.errors import DamagedFile
from echobound.identify import identify
from echobound.plan import Plan, settle_validation
from echobound.plants import ph_experiment
from echobound.runs.folder import RunFolder
from echobound.scenario import Generalisation
from echobound.scores import fit

SMALL = {"law": "paper", "order": 6, "networks": 30, "beta": 1e-2, "washout": 60, "committee": 4}


@pytest.fixture(scope="module")
def records():
    return ph_experiment(samples=(300, 250, 150, 150, 150))


@pytest.fixture(scope="module", params=[("robust", "rmse", "fit"), ("robust",)], ids=["three scores", "robust alone"])
def tested(request, records, tmp_path_factory):
    """An honest run selected by the robust FIT, with test data of its own."""
    run = tmp_path_factory.mktemp("demanding") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["echobound.identify"], "write_page", lambda folder: None)
        result = identify(*records[:2], test=records[2:], scores=request.param, **SMALL, run=run)
    return run, result


@pytest.mark.parametrize(
    ("asked", "settled", "plain"),
    [
        (("robust",), ("robust", "fit"), 1),
        (("robust", "peak", "fit"), ("robust", "peak", "fit"), 1),
        (("rmse", "robust"), ("rmse", "robust"), 0),
        (None, ("fit", "rmse"), 0),
    ],
)
def test_one_score_asks_for_nothing_but_outputs(records, asked, settled, plain):
    plan = Plan(**SMALL, scores=asked).settle(settle_validation(*records[:2], washout=60))
    assert plan.scores == tuple(measure.name for measure in plan.measures) == settled
    assert plan.plain == plain
    again = plan.asked().settle(settle_validation(*records[:2], washout=60))
    assert (again.scores, again.digest) == (settled, plan.digest)


def test_optimism_compares_like_with_like(records, tested):
    """FIT with FIT, or RMSE with RMSE: never the robust FIT with anything on test data."""
    run, result = tested
    folder = RunFolder(run)
    plain = folder.plan.plain
    measure, found = folder.plan.measures[plain], result.optimism
    assert (measure.name, found.score, plain) in {("rmse", "rmse", 1), ("fit", "fit", 1)}
    assert (found.direction, found.unit) == (measure.direction, measure.unit)

    row = result.table[result.certificate.winner]
    assert found.validation == row["scores"][plain] == folder.picked_score
    assert row["scores"][0] == result.certificate.threshold == result.table["scores"][:, 0].max()
    simulated = result.network.simulate(records[1]).y
    assert found.validation == pytest.approx(float(measure(records[1].y[60:], simulated)), rel=1e-9)
    pooled = [np.concatenate(each) for each in zip(
        *((r.y[60:], result.network.simulate(r).y) for r in records[2:]), strict=True)]  # fmt: skip
    assert found.test == pytest.approx(float(measure(*pooled)), rel=1e-9)
    assert result.certificate.score == "robust"
    if measure.name == "fit":
        assert row["scores"][0] <= row["scores"][plain], "what is asked for in addition is taken off"
        assert found.test == pytest.approx(float(fit(*pooled)), rel=1e-9)


def test_it_passes_an_audit_and_show_says_the_same(tested):
    run, result = tested
    assert audit(run, sample=4, seed=1).findings == ()
    printed = CliRunner().invoke(app, ["show", str(run), "--json"])
    assert printed.exit_code == 0, printed.output
    content = json.loads(printed.stdout)
    assert content["generalisation"]["optimism"]["validation"] == result.optimism.validation
    assert content["certificate"]["score"] == "robust"


@pytest.mark.parametrize("forged", ["threshold", "better"])
def test_another_score_on_validation_data_is_found(tested, tmp_path, forged):
    """The robust FIT in the place of the plain score, or a better number: with all digests made again."""
    run, result = tested
    copied = shutil.copytree(run, tmp_path / "run")
    folder = RunFolder(copied)
    made = folder.generalisation
    value = result.certificate.threshold if forged == "threshold" else made.optimism.validation + 1.0
    assert value != made.optimism.validation
    changed = replace(made, optimism=replace(made.optimism, validation=value))
    (copied / "generalisation.json").write_text(json.dumps(changed.to_dict()))
    assert Generalisation.from_dict(changed.to_dict(), "here") == changed, "it is consistent in itself"
    assert "generalisation.json, optimism, validation" in [finding.part for finding in audit(copied, sample=0).findings]
    with pytest.raises(DamagedFile, match="optimism"):
        _ = RunFolder(copied).generalisation
