"""Committees from end to end: identify, resume, verify, audit, renew, the page, the command line, the estimators."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from campaigns import same
from sklearn.neural_network import MLPRegressor
from typer.testing import CliRunner

from echobound.audit import audit
from echobound.cli.main import app
from echobound.errors import DamagedFile, InputError, RunError
from echobound.estimators import CertifiedSearch, EchoStateCommittee, EchoStateSearch
from echobound.files import digest, jsonable, read_json, write_json
from echobound.identify import identify
from echobound.network import Committee
from echobound.network.adaptation import Adaptation
from echobound.plan import Plan, SettledPlan
from echobound.plants import ph_experiment
from echobound.renew import renew
from echobound.report import write_page
from echobound.runs import rows_digest
from echobound.runs.derivation import certificate_of
from echobound.runs.folder import RunFolder
from echobound.runs.ranks import ranks_and_quantiles
from echobound.scenario import Certificate
from echobound.scores import fit
from echobound.verify import verify

SMALL = {"law": "paper", "order": 6, "networks": 20, "beta": 1e-2, "washout": 60, "members": 3}


@pytest.fixture(scope="module")
def records():
    return ph_experiment(samples=(300, 250, 300, 250))


@pytest.fixture(scope="module")
def original(records, tmp_path_factory):
    """A run of 20 committees, with 10 fresh ones."""
    run = tmp_path_factory.mktemp("committees") / "run"
    result = identify(*records[:2], **SMALL, run=run)
    verify(run, fresh=10)
    return run, result


@pytest.fixture
def run(original, tmp_path):
    return shutil.copytree(original[0], tmp_path / "run")


def only_committees(text):
    """Whether a text speaks of committees, and of networks only as what these are made of."""
    rest = re.sub(r"committee of \d networks", "committee", text)
    return "ommittee" in rest and not re.search(r"\bnetworks?\b", rest, re.IGNORECASE)


# The run ----------------------------------------------------------------------------------------------------------


def test_the_best_committee_is_picked_and_certified(original, records):
    run, result = original
    scores, certificate = result.table["scores"][:, 0], result.certificate
    assert (len(scores), certificate.networks, certificate.members) == (20, 20, 3)
    assert certificate.winner == int(scores.argmax())
    assert certificate.threshold == scores.max() == result.scores["validation"]["fit"]
    assert isinstance(result.model, Committee)
    assert len(result.model.members) == 2
    assert (result.delivered, result.committee, result.network) == ("committee", result.model, None)
    first = 3 * certificate.winner
    assert {member.origin["index"] for member in result.model.members} <= set(range(first, first + 3))
    # The certificate speaks of the model that is delivered.
    assert fit(records[1].y[60:], result.model.simulate(records[1]).y) == pytest.approx(scores.max(), rel=1e-9)
    assert Committee.load(run / "model.npz").digest == result.model.digest == certificate.digests["model"]
    assert not (run / "committee.npz").exists()


def test_the_words_are_about_committees(original):
    _, result = original
    certificate = result.certificate
    start = "With confidence 1 - 0.01, a new committee of 3 networks, drawn and trained in the same way, scores a FIT"
    assert certificate.statement.startswith(start)
    said = [certificate.statement, certificate.worst.statement, *(one.words for one in certificate.statements)]
    assert [text for text in said if not only_committees(text)] == []
    assert any("better half of which (2)" in text for text in certificate.not_stated)
    assert not any(re.search(r"(new|[0-9]) networks?\b", text) for text in certificate.not_stated)


def test_the_certificate_has_the_number_of_members(original):
    run, result = original
    stored = read_json(run / "certificate.json")
    assert stored["members"] == 3
    assert {one["members"] for one in stored["statements"]} == {3}
    assert Certificate.from_dict(stored) == result.certificate
    result.certificate.check(result.table["scores"])
    with pytest.raises(DamagedFile):
        Certificate.from_dict({name: value for name, value in stored.items() if name != "members"})
    single = identify(*ph_experiment(samples=(300, 250)), **SMALL | {"members": 1, "networks": 10, "beta": 0.1})
    assert "members" not in json.dumps(single.certificate.to_dict())
    assert single.certificate.members == 1


def test_the_plan_records_them(original):
    plan = RunFolder(original[0]).plan
    assert (plan.members, plan.committee, plan.asked().members) == (3, 0, 3)
    assert read_json(original[0] / "plan.json")["members"] == 3


def test_the_folder_is_read_and_resumed(run, original, records):
    opened = RunFolder(run)
    assert opened.certificate == original[1].certificate
    assert opened.model.digest == original[1].model.digest
    again = identify(*records[:2], **SMALL, run=run)
    assert same(again.table, original[1].table)
    with pytest.raises(RunError, match="another plan"):
        identify(*records[:2], **SMALL | {"members": 5}, run=run)
    repeated = identify(*records[:2], plan=opened.plan, workers=1)
    assert repeated.certificate == original[1].certificate


def test_an_interrupted_search_is_resumed(original, records, tmp_path):
    """Committees that are in the ledger stay, and the others follow."""

    class Enough(Exception):
        pass

    def stop(progress):
        if progress.done >= 5:
            raise Enough

    with pytest.raises(Enough):
        identify(*records[:2], **SMALL, workers=1, run=tmp_path / "run", on_progress=stop)
    kept = RunFolder(tmp_path / "run").rows()
    assert 5 <= len(kept) < 20
    result = identify(*records[:2], **SMALL, run=tmp_path / "run")
    assert same(result.table, original[1].table)
    assert (result.table["seconds"][kept["index"]] == kept["seconds"]).all(), "what was there was not drawn again"


def test_workers_and_engines_give_the_same_rows(original, records):
    for options in ({"workers": 1}, {"workers": 2, "engine": "processes"}):
        assert same(identify(*records[:2], **SMALL, **options).table, original[1].table)


def test_verification_counts_fresh_committees(run, original):
    outcome = verify(run, fresh=5)
    assert outcome["fresh"] == 15
    assert only_committees(outcome["statement"])
    assert only_committees(outcome["worst"]["statement"])
    fresh = RunFolder(run).fresh
    assert not set(fresh["scores"][:, 0]) & set(original[1].table["scores"][:, 0])
    assert outcome["violations"] == (fresh["scores"][:, 0] > original[1].certificate.threshold).sum()


def test_blocks_in_turn_refit_each_member(records, tmp_path):
    result = identify(records[0], **SMALL | {"washout": 20}, blocks=3, run=tmp_path / "run")
    assert result.scores["validation"]["fit"] == pytest.approx(result.certificate.threshold, rel=1e-12)
    assert any("picked committee trained again" in text for text in result.certificate.not_stated)
    (tmp_path / "run" / "report.html").unlink()
    write_page(RunFolder(tmp_path / "run"))  # the committee is formed again for the outputs
    assert audit(tmp_path / "run", sample=3).findings == ()


SEARCHES = {
    "families": {"order": [4, 6]},
    "patience": {"networks": None, "stop": "patience:8", "epsilon": 0.3},
    "anytime": {"networks": None, "stop": "anytime", "epsilon": 0.4},
    "between": {"networks": None, "stop": "between:10,40", "epsilon": 0.4},
    "looks": {"networks": None, "stop": "looks:12,30", "epsilon": 0.4},
    "mixture": {"networks": None, "stop": "mixture", "epsilon": 0.5},
    "a target": {"networks": None, "target": 10.0, "epsilon": 0.5},
    "set aside": {"discarded": 2},
    "joint": {"joint": True},
    "prediction": {"horizon": 2},
}


@pytest.mark.parametrize("name", SEARCHES)
def test_every_search(records, tmp_path, name):
    result = identify(*records[:2], **SMALL | SEARCHES[name], run=tmp_path / "run")
    opened = RunFolder(tmp_path / "run")
    assert opened.certificate == result.certificate
    said = [result.certificate.statement, *(one.words for one in result.certificate.statements)]
    assert [text for text in said if not only_committees(text)] == []
    assert not re.search(r"\d networks\b(?<!3 networks)", " ".join(said))
    verify(tmp_path / "run", fresh=2)
    outcome = audit(tmp_path / "run", sample=2)
    assert outcome.findings == ()
    assert only_committees(outcome.statement)


def test_test_data_have_a_second_certificate(records, tmp_path):
    result = identify(*records[:2], test=records[2:], **SMALL, run=tmp_path / "run")
    second = result.generalisation
    assert second.members == 3
    assert all(only_committees(says) for about, says in second.words if about in ("on test data", "assumption"))
    assert {about for about, _ in second.words} >= {"picked committee"}
    assert audit(tmp_path / "run", sample=2).findings == ()


def test_ranks_and_quantiles(run):
    found = ranks_and_quantiles(RunFolder(run), rank=2, quantile=0.5)
    assert only_committees(found["rank"]["words"])
    assert only_committees(found["quantile"]["words"])


def test_they_can_be_renewed(run, records, tmp_path):
    result = renew(run, *records[2:], closed_loop=False, into=tmp_path / "new")
    renewal = result.certificate.statements[0]
    assert (renewal.kind, renewal.members) == ("renewal", 3)
    assert only_committees(renewal.words)
    assert audit(tmp_path / "new", sample=2).findings == ()


# The audit ---------------------------------------------------------------------------------------------------------


def test_an_honest_run_passes(run, records):
    outcome = audit(run, data=records[:2], everything=True)
    assert (outcome.findings, outcome.retrained) == ((), 30)
    assert outcome.statement.endswith("30 of 30 committees were drawn and trained again.")


def parts_of(run, **options):
    return [finding.part for finding in audit(run, seed=1, sample=0, **options).findings]


def test_a_member_that_was_not_kept_is_found(run, records):
    model = Committee.load(run / "model.npz")
    drawn = RunFolder(run).candidates()[0]
    kept = [member.origin["index"] for member in model.members]
    left = next(draw for draw in drawn.draws(kept[0] // 3) if draw not in kept)
    Committee((model.members[0], drawn.networks.make(left).model)).save(run / "model.npz")
    assert "model.npz, members" in parts_of(run)


def test_swapped_members_are_found(run):
    model = Committee.load(run / "model.npz")
    Committee(model.members[::-1]).save(run / "model.npz")
    assert "model.npz, members" in parts_of(run)


def test_a_changed_member_is_found(run):
    model = Committee.load(run / "model.npz")
    changed = replace(model.members[1], readout=model.members[1].readout * 1.001)
    Committee((model.members[0], changed)).save(run / "model.npz")
    [draw] = [member.origin["index"] for member in model.members[1:]]
    assert f"model.npz, network {draw}" in parts_of(run)


def with_other_members(run):
    """Change the plan, and the ledger's note of it; return what the certificate would be."""
    content = read_json(run / "plan.json") | {"members": 4}
    del content["digest"]
    write_json(run / "plan.json", {**content, "digest": digest(jsonable(content))})
    plan = SettledPlan.from_dict(read_json(run / "plan.json"))
    with closing(sqlite3.connect(run / "ledger.sqlite")) as db, db:
        db.execute("UPDATE about SET value = ? WHERE name = 'plan'", (plan.digest,))
    rows = RunFolder(run).search
    digests = {"data": plan.data, "plan": plan.digest, "ledger": rows_digest(rows), "committee": ""}
    return certificate_of(plan, rows, digests=digests | {"model": Committee.load(run / "model.npz").digest})


def test_a_plan_with_other_members_is_found(run):
    with_other_members(run)
    assert {"certificate.json, members", "certificate.json, statement"} <= set(parts_of(run))


def test_a_forger_who_makes_all_of_it_fit_is_found_by_drawing_again(run):
    write_json(run / "certificate.json", with_other_members(run).to_dict())
    parts = parts_of(run)
    assert not any(part.startswith("certificate.json") for part in parts)
    assert any(part.startswith("ledger.sqlite, committee") for part in parts)


# What is refused ---------------------------------------------------------------------------------------------------


def test_a_committee_beside_committees_is_refused(records):
    with pytest.raises(InputError, match=r"committee=5 keeps the best of single networks, but members=3 draws"):
        identify(*records[:2], **SMALL, committee=5)
    assert Plan(members=3, committee=0).members == 3


@pytest.mark.parametrize("members", [0, -1, 2.5])
def test_members_are_counted(members):
    with pytest.raises(InputError, match="members must be an integer of at least 1"):
        Plan(members=members)


def test_a_committee_cannot_be_adapted(original, records):
    with pytest.raises(InputError, match="of one echo state network, but this model is a Committee"):
        Adaptation(original[1].model, records[0])


# Estimators --------------------------------------------------------------------------------------------------------


def test_the_search_as_an_estimator(records):
    X, y = records[0].u, records[0].y[:, 0]
    search = EchoStateSearch(law="paper", order=5, networks=8, beta=0.1, members=3).fit(X, y)
    assert isinstance(search.best_estimator_, EchoStateCommittee)
    assert search.certificate_.members == 3
    members = [member.predict(X) for member in search.best_estimator_.members_]
    assert (search.predict(X) == np.median(members, axis=0)).all()
    refitted = EchoStateCommittee(search.best_estimator_.members).fit(X, y)
    assert refitted.predict(X).shape == y.shape


def test_the_search_over_any_estimator_refuses_members():
    X = np.linspace(0, 1, 30)[:, None]
    with pytest.raises(InputError, match="members=3 draws committees of networks"):
        CertifiedSearch(MLPRegressor(), networks=5, beta=0.5, members=3).fit(X, X[:, 0])


# The command line and the page -------------------------------------------------------------------------------------


def test_the_command_line(records, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = np.column_stack([records[0].u, records[0].y])
    np.savetxt("data.csv", table, delimiter=",", header="u,y", comments="")
    options = ["--inputs", "u", "--outputs", "y", "--law", "paper", "--order", "5", "--networks", "15", "--beta", "0.1"]
    call = lambda *words: CliRunner().invoke(app, list(words))  # noqa: E731
    made = call("identify", "data.csv", *options, "--members", "3", "--run", "run", "--washout", "20", "--blocks", "0")
    assert made.exit_code == 0, made.output
    assert "a new committee of 3 networks, drawn and trained in the same way" in made.output.replace("\n", " ")
    shown = call("show", "run", "--details")
    assert "committees: 15, 0 of them diverged" in shown.output
    assert "picked: committee" in shown.output
    assert "more committees:" in shown.output
    shown = call("show", "run", "--json")
    assert json.loads(shown.output)["certificate"]["members"] == 3
    assert call("verify", "run", "--fresh", "5", "--quiet").exit_code == 0
    assert call("audit", "run", "--sample", "2", "--quiet").exit_code == 0
    assert call("simulate", "run", "data.csv", "--output", "out.csv").exit_code == 0
    assert call("watch", "run", "--once").exit_code == 0
    refused = call("identify", "data.csv", *options, "--members", "3", "--committee", "4")
    assert "committee=4 keeps the best of single networks" in f"{refused.output}{refused.exception}"


def test_the_page(original):
    page = (original[0] / "report.html").read_text()
    body = re.sub(r"<script.*?</script>|<style.*?</style>|data:image[^\"]*", "", page, flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", " ", body)
    assert "N, committees drawn and trained" in text
    assert "Each dot is one committee" in text
    assert "the better half of 3 draws of its own" in text
    left = re.sub(r"committee of 3 networks|from the network", "", text)
    assert not re.search(r"\bnetworks?\b", left, re.IGNORECASE), re.findall(r".{40}\bnetworks?\b.{20}", left)
