"""Runs of any estimator: verified, audited, shown and stopped as runs of networks are; what is not stored is said."""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from docs_blocks import this_tree
from sklearn.ensemble import RandomForestRegressor
from test_estimators_certified import Chance, Moody, rows_of

from echobound import RunFolder, audit, verify
from echobound.draws import VERIFICATION
from echobound.errors import InputError, RunError
from echobound.estimators import CertifiedSearch, draw_estimator
from echobound.files import write_json
from echobound.report import run_figures
from echobound.runs.derivation import certificate_of
from echobound.runs.ledger import Ledger, rows_digest


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "chance"
    return CertifiedSearch(Chance(), networks=30, beta=0.1, random_state=3, run=run).fit(*rows_of())


@pytest.fixture
def search(fitted, tmp_path):
    """The search, with a copy of its folder."""
    shutil.copytree(fitted.run, tmp_path / "run")
    return fitted, tmp_path / "run"


# Verification.


def test_fresh_draws_are_counted(search):
    found, run = search
    outcome = verify(run, 20, candidates=[found.candidates_])
    fresh = np.array([draw_estimator(Chance(), 3, i, VERIFICATION).fit(None).value_ for i in range(20)])
    assert (RunFolder(run).rows(VERIFICATION)["scores"][:, 0] == fresh).all()
    assert outcome["violations"] == (fresh > found.best_score_).sum()
    assert outcome["worst"]["violations"] == (fresh < found.results_["score"].min()).sum()
    assert verify(run, 10, candidates=[found.candidates_])["fresh"] == 30
    folder = RunFolder(run)
    assert folder.certificate == found.certificate_
    assert "30 fresh networks against the certificate" in (run / "report.html").read_text()


def test_without_candidates_nothing_is_verified(search):
    _, run = search
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    with pytest.raises(RunError, match=r"neither its data nor what it drew \(Chance\).* pass candidates=") as said:
        verify(run, 5)
    assert "\n" not in str(said.value)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"random_state": 4}, "seed"),
        ({"estimator": RandomForestRegressor(2)}, "name, estimator, parameters"),
        ({"scoring": "r2"}, "scores"),
    ],
)
def test_candidates_of_another_search_are_refused(search, change, named):
    _, run = search
    options = {"estimator": Chance(), "networks": 3, "beta": 0.5, "random_state": 3, **change}
    other = CertifiedSearch(**options).fit(*rows_of()).candidates_
    for ask in (verify, audit):
        with pytest.raises(InputError, match=rf"not those of the run \(other {named}\)"):
            ask(run, candidates=[other])
    X, y = rows_of()
    other = CertifiedSearch(Chance(), networks=3, beta=0.5, random_state=3).fit(X, y + 1).candidates_
    with pytest.raises(InputError, match=r"not those of the run \(other data\)"):
        verify(run, candidates=[other])
    with pytest.raises(InputError, match=r"not those of the run \(other families\)"):
        verify(run, candidates=[])


# Audit.


def test_an_audit_says_what_it_cannot_redo(search):
    _, run = search
    outcome = audit(run)
    assert outcome.passed
    assert (outcome.retrained, outcome.others) == (0, 30)
    assert [row["probability"] for row in outcome.detection] == [0.0] * 3
    assert "0 of 30 networks were drawn and trained again" in outcome.statement
    assert len(outcome.notes) == 1
    assert "stores neither its data nor what it drew" in outcome.notes[0]


def test_an_audit_with_candidates_draws_again(search):
    found, run = search
    verify(run, 10, candidates=[found.candidates_])
    outcome = audit(run, candidates=[found.candidates_], sample=4)
    assert outcome.passed
    assert not outcome.notes
    assert (outcome.claimed, outcome.others, outcome.retrained) == (2, 38, 6)
    assert audit(run, candidates=[found.candidates_], everything=True).retrained == 40


def forge(run, number, score):
    """Change a row, and make certificate and digests fit again, as a clever forger would."""
    with sqlite3.connect(run / "ledger.sqlite") as db:
        db.execute("UPDATE rows SET score_0 = ? WHERE number = ?", (score, number))
    db.close()
    folder = RunFolder(run)
    rows, plan = folder.search, folder.plan
    digests = {"data": plan.data, "plan": plan.digest, "ledger": rows_digest(rows)}
    certificate = certificate_of(plan, rows, digests=digests, provenance=folder.json("certificate.json")["provenance"])
    write_json(run / "certificate.json", certificate.to_dict())


def test_a_forged_row_is_found_by_drawing_again(search):
    found, run = search
    forge(run, 7, 2.0)
    assert RunFolder(run).certificate.winner == 7, "the files fit together"
    assert audit(run).passed, "files alone cannot show it"
    outcome = audit(run, candidates=[found.candidates_], sample=0)
    assert [finding.part for finding in outcome.findings] == ["ledger.sqlite, network 7 of the search"]
    assert "SCORE 2" in outcome.findings[0].found
    assert "ridge" not in outcome.findings[0].found
    # What carries no claim is found where it is among those drawn again.
    shutil.rmtree(run)
    shutil.copytree(found.run, run)
    plain = int(np.argsort(found.results_["score"])[15])
    forge(run, plain, found.results_["score"][plain] + 1e-4)
    assert audit(run, candidates=[found.candidates_], sample=0).passed
    assert not audit(run, candidates=[found.candidates_], everything=True).passed


def test_other_versions_are_drawn_again_too(search, monkeypatch):
    found, run = search
    monkeypatch.setattr("sklearn.__version__", "0.1")
    with pytest.raises(InputError, match=r"\(other packages\)"):
        verify(run, 5, candidates=[found.candidates_])
    assert audit(run, candidates=[found.candidates_]).passed


def test_damage_is_collected(search):
    _, run = search
    with sqlite3.connect(run / "ledger.sqlite") as db:
        db.execute("DELETE FROM rows WHERE number = 29")
    db.close()
    outcome = audit(run)
    assert any("one for each of 30 networks" in str(finding) for finding in outcome.findings)


# The page.


def test_the_page_leaves_out_what_is_not_stored(search):
    found, run = search
    page = (run / "report.html").read_text()
    sections = re.findall(r'<section id="([a-z-]+)"', page)
    assert sections == ["certificate", "search", "distribution", "learning", "effort", "origin"]
    text = re.sub(r"<script>.*?</script>|<style>.*?</style>", "", page, flags=re.S)
    assert found.certificate_.statement.split(",")[1] in text
    assert "A network here is one draw of Chance" in text
    assert "Chance, seed 3" in text
    assert "random_state None" in text
    assert "candidates=[search.candidates_]" in text
    assert "states" not in re.sub("random states", "", text), "a draw has no order"
    assert set(run_figures(run)) == {"sampling", "distribution", "learning"}


def test_the_page_lists_draws_that_failed(tmp_path):
    with pytest.warns(UserWarning, match="draws failed"):
        search = CertifiedSearch(Moody(), networks=10, beta=0.1, run=tmp_path / "run").fit(*rows_of())
    first = int(np.argmax(search.results_["diverged"]))
    assert f"<td>network {first}, " in (tmp_path / "run" / "report.html").read_text()


# Stopping.


def test_a_target_is_searched_for(tmp_path):
    options = {"epsilon": 0.3, "beta": 0.1, "target": 0.998, "random_state": 1}
    search = CertifiedSearch(Chance(), **options, run=tmp_path / "run").fit(*rows_of())
    assert search.certificate_.rule == "anytime"
    assert search.best_score_ >= 0.998
    assert len(search.results_["score"]) > RunFolder(tmp_path / "run").plan.networks, "it continued from there"
    assert search.best_index_ == len(search.results_["score"]) - 1, "it stops at the first that reaches it"
    assert RunFolder(tmp_path / "run").certificate == search.certificate_


def test_an_interruption_is_a_reason_to_stop_at_will(tmp_path):
    (tmp_path / "slow.py").write_text(
        textwrap.dedent("""
        import sys, time
        import numpy as np
        from sklearn.base import BaseEstimator
        from echobound.estimators import CertifiedSearch

        class Slow(BaseEstimator):
            def __init__(self, random_state=None):
                self.random_state = random_state
            def fit(self, X, y=None):
                time.sleep(0.02)
                self.value_ = self.random_state.random_sample()
                return self
            def score(self, X, y=None):
                return self.value_

        at_will = {"epsilon": 0.05, "beta": 0.1, "stop": "anytime:5"}
        options = at_will if sys.argv[1] == "anytime" else {"networks": 2000}
        search = CertifiedSearch(Slow(), run="run", **options).fit(np.zeros((8, 1)))
        print(search.certificate_.networks, len(search.results_["score"]))
        """)
    )

    def rows_so_far():
        try:
            return len(RunFolder(tmp_path / "run").rows())
        except (RunError, OSError):  # it has only begun: the ledger is there before its first row
            return 0

    def interrupted(rule):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        code = [sys.executable, "slow.py", rule]
        env = {**os.environ, **this_tree()}
        running = subprocess.Popen(
            code, cwd=tmp_path, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            for _ in range(600):
                time.sleep(0.1)
                if rows_so_far() > 12:
                    break
            running.send_signal(signal.SIGINT)
            return *running.communicate(timeout=60), running.returncode
        finally:
            running.kill()

    out, err, code = interrupted("anytime")
    assert code == 0, err
    networks, rows = map(int, out.split())
    assert rows == networks == RunFolder(tmp_path / "run").certificate.networks > 12
    _, err, code = interrupted("fixed")
    assert code != 0
    assert "resumes from there" in err
    assert not (tmp_path / "run" / "certificate.json").exists()


def test_the_ledger_is_opened_once(tmp_path, monkeypatch):
    opened = []

    class Watched(Ledger):
        def __init__(self, *args, **options):
            opened.append(args)
            super().__init__(*args, **options)

    for module in ("folder", "rows"):
        monkeypatch.setattr(f"echobound.runs.{module}.Ledger", Watched)
    search = CertifiedSearch(Chance(), networks=8, beta=0.3, run=tmp_path / "run").fit(*rows_of())
    assert len(opened) == 1
    verify(tmp_path / "run", 5, candidates=[search.candidates_])
    assert len(opened) == 2
    audit(tmp_path / "run", candidates=[search.candidates_])
    assert len(opened) == 3
