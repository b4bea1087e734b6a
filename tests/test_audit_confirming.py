"""An audit of chaotic runs: what rounding can make worse cannot be forged better, and such a winner is refused."""

import json
import shutil
import sqlite3
import sys
from contextlib import closing

import numpy as np
import pytest
from test_cli import echobound

from echobound import Record, audit, identify, verify
from echobound.draws import SEARCH, VERIFICATION
from echobound.errors import InputError, RunError
from echobound.files import write_json
from echobound.kernels.sensitivity import VISIBLE, Spread, moves
from echobound.runs.derivation import certificate_of
from echobound.runs.folder import RunFolder
from echobound.runs.ledger import Ledger, rows_digest


def chaotic(samples, seed):
    """The logistic map in its chaotic regime, hardly driven: a free run of any model loses it in some fifty steps."""
    rng = np.random.default_rng(seed)
    u, y = rng.normal(size=samples), np.empty(samples)
    y[0] = 0.3 + 0.1 * rng.random()
    for k in range(1, samples):
        y[k] = min(max(3.9 * y[k - 1] * (1 - y[k - 1]) + 1e-4 * u[k - 1], 0.0), 1.0)
    return Record(u=u, y=y)


CHAOS = {"law": "paper", "order": 30, "networks": 12, "beta": 0.05, "washout": 50, "committee": 0}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chaos") / "run"
    identify(chaotic(600, 0), chaotic(400, 1), **CHAOS, confirm=0, run=folder)
    return folder


def sensitive(run):
    """Rows of the search that rounding moves visibly, by index, the worst first."""
    folder = RunFolder(run)
    [drawn] = folder.candidates()
    rows = folder.search[np.argsort(folder.search["scores"][:, 0])]
    rows = rows[np.isfinite(rows["scores"][:, 0])]
    return [int(row["index"]) for row in rows if moves(drawn.problem, drawn.kernel, row) >= VISIBLE]


def forge(run, index, score):
    """Give a network another score, make it the winner, and derive everything anew."""
    with closing(sqlite3.connect(run / "ledger.sqlite")) as db, db:
        db.execute("UPDATE rows SET score_0 = ? WHERE stream = 0 AND number = ?", (score, index))
    folder = RunFolder(run)
    with Ledger(run / "ledger.sqlite", folder.plan.digest, folder.plan.scores, write=False) as ledger:
        rows = ledger.rows(SEARCH)
    [drawn] = folder.candidates()
    model = drawn.make(int(rows["index"][np.argmax(rows["scores"][:, 0])])).model
    model.save(run / "model.npz")
    digests = {"data": folder.plan.data, "plan": folder.plan.digest, "ledger": rows_digest(rows)}
    digests |= {"model": model.digest, "committee": ""}
    write_json(run / "certificate.json", certificate_of(folder.plan, rows, digests=digests).to_dict())


@pytest.fixture
def forged(run, tmp_path):
    copied = shutil.copytree(run, tmp_path / "run")
    [index, *_] = sensitive(copied)
    forge(copied, index, 99.9)
    return copied, index


def test_an_honest_run_passes(run):
    """The same machine, and the reference kernel, whose rounding differs."""
    assert audit(run, everything=True).passed
    by_reference = audit(run, everything=True, kernel="reference")
    assert not by_reference.findings


def test_a_forged_score_of_a_chaotic_network_is_not_confirmed(forged):
    """From poor to 99.9 it passed as "sensitive": how far rounding moves a score does not say where to."""
    run, index = forged
    outcome = audit(run, everything=True)
    assert not outcome.passed
    assert outcome.outcome in ("cannot be confirmed", "found")
    assert any(f"network {index} " in sentence for sentence in (*outcome.unconfirmed, *map(str, outcome.findings)))
    assert outcome.to_dict()["outcome"] == outcome.outcome
    assert not any(f"network {index} " in sentence for sentence in outcome.sensitive)


def test_the_exit_code_counts_what_cannot_be_confirmed(forged):
    run, _ = forged
    outcome = audit(run, everything=True, seed=1)
    code = 1 if outcome.findings else 3
    done = echobound("audit", run, "--all", "--seed", "1", "--json", cwd=run.parent, code=code)
    assert json.loads(done.stdout)["outcome"] == outcome.outcome
    text = echobound("audit", run, "--all", "--seed", "1", cwd=run.parent, code=code).stdout
    assert "cannot be confirmed" in text or "finding" in text


def test_a_winner_that_cannot_be_confirmed_is_refused(tmp_path):
    with pytest.raises(RunError, match=r"changes when its readout changes in the twelfth digit.*confirm=0"):
        identify(chaotic(600, 0), chaotic(400, 1), **CHAOS, run=tmp_path / "run")
    assert not (tmp_path / "run" / "certificate.json").exists()
    with pytest.raises(InputError, match="confirm is a share"):
        identify(chaotic(600, 0), chaotic(400, 1), **CHAOS, confirm=-1)


def test_an_audit_applies_the_rule_of_the_plan_again(tmp_path, monkeypatch):
    """A folder made by a search that left the refusal out: all rows as computed, a best that nobody confirms."""
    monkeypatch.setattr(sys.modules["echobound.identify"], "_require_confirmable", lambda *given: None)
    run = identify(chaotic(600, 0), chaotic(400, 1), **CHAOS, run=tmp_path / "run").run
    outcome = audit(run, sample=0, seed=1)
    assert outcome.outcome == "cannot be confirmed"
    [said] = outcome.unconfirmed
    assert "the best" in said
    assert "where the plan refuses more than 0.1" in said


def test_ordinary_runs_are_not_refused(ph_records, tmp_path):
    run = identify(*ph_records, law="paper", order=12, networks=20, beta=1e-3, run=tmp_path / "run").run
    verify(run, fresh=3)
    folder = RunFolder(run)
    assert "confirm" not in json.loads((run / "plan.json").read_text()), "plans keep their digest"
    [drawn] = folder.candidates()
    assert drawn.moved(folder.search[folder.certificate.winner]) < 1e-6
    assert len(folder.rows(VERIFICATION)) == 3


def test_a_range_is_signed():
    found = Spread(np.array([[-40.0, 0.2], [-60.0, 0.1], [-50.0, 0.15], [-30.0, 0.3], [-20.0, 0.25]]))
    assert found.holds(np.array([-60.0, 0.3]))
    assert not found.holds(np.array([-61.0, 0.3]))
    assert not found.nearly(np.array([-60.1, 0.1])), "where it moves visibly, no further than it was seen to go"
    tails = Spread(np.array([[-1573.0], [-1600.0], [-86.0], [-28.0]]))
    assert tails.agreement(np.array([0.0]), 1.0) == "unconfirmed", "not what two tries at its end are apart"
    assert not found.nearly(np.array([-30.0, 0.5])), "each score by itself"
    assert found.agreement(np.array([99.9, 0.2]), 3.0) == "unconfirmed"
    worse = Spread(np.array([[-40.0], [-1e6], [-39.0], [-5000.0]]))
    assert worse.agreement(np.array([0.0]), 1.0) == "unconfirmed", "much worse, not better"
    still = Spread(np.array([[80.0], [80.0 + 1e-9]]))
    assert still.agreement(np.array([90.0]), 0.1) == "different"
    assert still.agreement(np.array([80.0 + 1.2e-9]), 1e-11) == "sensitive"
    diverging = Spread(np.array([[40.0], [-np.inf], [50.0]]))
    assert diverging.holds(np.array([-np.inf]))
    assert not diverging.nearly(np.array([61.0])), "what diverges sometimes is not free to be anything"
