"""The commands on a run of `CertifiedSearch`: it stores plan, ledger, certificate and page, but no data or models."""

import json

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor
from test_cli import echobound, refused

from echobound.estimators import CertifiedSearch
from echobound.runs import RunFolder

X = np.linspace(0, 1, 60)[:, None]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    desk = tmp_path_factory.mktemp("desk")
    perceptron = MLPRegressor(hidden_layer_sizes=(3,), solver="lbfgs")
    CertifiedSearch(perceptron, networks=8, beta=0.5, run=str(desk / "mlp")).fit(X, X[:, 0] ** 2)
    echobound("simulate-plant", "--samples", "50", "--output", "plant.csv", cwd=desk)
    return desk


def test_show_derives_the_certificate_and_names_no_model(desk):
    certificate = RunFolder(desk / "mlp").certificate
    shown = echobound("show", "mlp", "--rank", "2", "--quantile", "0.5", cwd=desk).stdout
    assert shown.startswith(f"Certificate: {certificate.statement}\n")
    assert f"picked: network {certificate.winner}\n" in shown
    assert "rank: With confidence" in shown
    assert "model" not in shown
    content = json.loads(echobound("show", "mlp", "--json", cwd=desk).stdout)
    assert {name: content[name] for name in ("run", "certificate")} == {
        "run": "mlp",
        "certificate": certificate.to_dict(),
    }
    assessed = {"summary", "verdict", "linear", "scores", "diagnostics"}
    named = {"run", "certificate", "search", "ended", "delivered", "reason", "bound", "bounded", "held", "notes"}
    assert set(content) == assessed | named
    assert content["verdict"] is content["linear"] is content["summary"] is None, "there are no data to judge it by"
    assert content["delivered"] is content["bound"] is None, "nothing is stored that could be delivered"


def test_report_writes_its_page(desk):
    page = desk / "mlp" / "report.html"
    page.unlink()
    assert echobound("report", "mlp", cwd=desk).stdout.strip() == "mlp/report.html"
    assert "MLPRegressor" in page.read_text()


def test_watch_and_audit(desk):
    assert echobound("watch", "mlp", cwd=desk).stdout.startswith("mlp: 8/8, ")
    done = echobound("audit", "mlp", cwd=desk)
    assert done.stdout.startswith("Nothing was found.")
    assert "note: nothing was drawn again, since this run stores neither its data nor what it drew" in done.stdout
    assert "probability" not in done.stdout, "nothing was sampled"
    assert "does not store its data" in refused("audit", "mlp", "--data", "plant.csv", cwd=desk)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["verify", "mlp", "--fresh", "3"], "stores neither its data nor what it drew (MLPRegressor)"),
        (["simulate", "mlp", "plant.csv"], "no stored model, only the scores of what it drew (MLPRegressor)"),
        (["adapt", "mlp", "plant.csv", "--output", "adapted.npz"], "mlp has no stored model"),
        (["generalise", "mlp", "plant.csv"], "mlp does not hold its data"),
        (["renew", "mlp", "plant.csv", "--open-loop"], "mlp does not hold its data"),
    ],
)
def test_what_cannot_be_redone_is_said_in_one_sentence(desk, arguments, expected):
    before = {path: path.stat().st_mtime_ns for path in (desk / "mlp").iterdir() if path.suffix != ".sqlite"}
    assert expected in refused(*arguments, cwd=desk)
    assert {path: path.stat().st_mtime_ns for path in before} == before, "nothing was changed"
    assert not (desk / "adapted.npz").exists()
