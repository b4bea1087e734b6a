"""What the commands do when nothing is said, and the exit code when the answer is no."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from campaigns import UNCLIPPED
from test_cli import echobound, refused
from typer.testing import CliRunner

import echobound as echobound_package
from echobound import identify
from echobound.cli.main import app
from echobound.network import broad, mixed, paper, quick
from echobound.runs import RunFolder

# Of these, without limits, no network does anything but diverge.
NO_NETWORK_OF_THESE = ["--law", "broad", "--order", "3", "--networks", "1", "--beta", "0.5", "--seed", "3"]


def planned(*arguments, cwd, run):
    """Start a command, stop it as soon as it has written its plan, and return that plan."""
    process = subprocess.Popen(
        [sys.executable, "-m", "echobound", *arguments, "--run", run],
        cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    path = cwd / run / "plan.json"
    try:
        for _ in range(1200):
            if path.exists() or process.poll() is not None:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=120)
    finally:
        process.kill()
    assert path.exists(), error
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    desk = tmp_path_factory.mktemp("desk")
    echobound("simulate-plant", "--samples", "800", "--output", "d.csv", cwd=desk)
    return desk


# ---------------------------------------------------------------- identify


def test_identify_by_default(desk):
    plan = planned("identify", "d.csv", "--inputs", "q3", "--outputs", "pH", cwd=desk, run="default")
    assert plan["law"] == mixed().to_dict()
    assert (plan["bound"], plan["beta"], plan["epsilon"], plan["networks"]) == ("exact", 1e-7, 0.05, 315)
    assert (plan["seed"], plan["horizon"], plan["scores"]) == (0, None, ["robust", "fit", "rmse"])
    assert (plan["validation"], plan["committee"]) == ("4 blocks in turn, then refit on all", 10)
    assert [fold["scored"] for fold in plan["folds"]] == [[[0, 200 * j, 200 * (j + 1), 40]] for j in range(4)]
    assert plan["folds"][1]["training"] == [[0, 0, 200, 40], [0, 400, 800, 40]], "what is left, with washouts"


def test_identify_quick(desk):
    plan = planned("identify", "d.csv", "--inputs", "q3", "--outputs", "pH", "--quick", cwd=desk, run="quick")
    assert plan["law"] == quick().to_dict()
    assert (plan["networks"], plan["scores"], plan["committee"]) == (315, ["robust", "fit", "rmse"], 10)
    line = refused("identify", "d.csv", "--inputs", "q3", "--outputs", "pH", "--quick", "--law", "paper", cwd=desk)
    assert "quick is a law of its own" in line


def test_identify_holds_out_the_end_of_long_data(tmp_path):
    k = np.arange(24_000)
    rows = np.stack([np.sin(0.1 * k), np.sin(0.1 * k - 1)], axis=1).tolist()
    (tmp_path / "long.csv").write_text("u,y\n" + "".join(f"{u!r},{y!r}\n" for u, y in rows))
    plan = planned("identify", "long.csv", "--inputs", "u", "--outputs", "y", "--order", "5", cwd=tmp_path, run="long")
    [fold] = plan["folds"]
    assert (fold["training"], fold["scored"]) == ([[0, 0, 18_000, 100]], [[1, 0, 6000, 100]])
    assert plan["law"]["training"]["ridges"] == [1e-10, 1e-8, 1e-6, 1e-4], "what is left to train on is not long"


def test_identify_with_columns_alone_says_what_it_chose_and_why(desk):
    small = ["--networks", "20", "--order", "5"]
    done = echobound("identify", "d.csv", "--inputs", "q3", "--outputs", "pH", *small, "--run", "said", cwd=desk)
    for words in (
        "note: validation: 4 blocks of the training data in turn, then the picked network is trained again on all",
        "since 800 samples are too few to give some away",
        "note: washout: 40 samples, a fifth of the shortest block",
        "note: law: broad",
        "note: sampling time: one second between samples was assumed",
        "delivered: the committee (the certificate is about its best network)",
    ):
        assert words in done.stdout
    details = echobound("show", "said", "--details", cwd=desk).stdout
    for words in (
        "delivered: the committee (the certificate is about the picked network, not about the committee)",
        "committee: median of networks",
        "bound: of the committee: every free run stays within ",
    ):
        assert words in details


def test_identify_with_a_few_networks_of_several_kinds(desk):
    arguments = ["identify", "d.csv", "--inputs", "q3", "--outputs", "pH", "--networks", "8", "--run", "kinds"]
    done = echobound(*arguments, cwd=desk)
    for words in (
        "note: law: mixed, which draws networks of several kinds",
        "a robust FIT above",
        "delivered: the committee",
    ):
        assert words in done.stdout
    details = echobound("show", "kinds", "--details", cwd=desk).stdout
    for words in ("networks: 8, 0 of them diverged", "bound: of the committee: every free run stays within "):
        assert words in details
    folder = RunFolder(desk / "kinds")
    assert len(folder.search) == 8
    shown = json.loads(echobound("show", "kinds", "--json", cwd=desk).stdout)
    assert (shown["delivered"], shown["certificate"]["score"]) == ("committee", "robust")
    [[low, high]] = shown["bound"]
    simulated = json.loads(echobound("simulate", "kinds", "d.csv", "--json", cwd=desk).stdout)["outputs"]["pH"]
    assert low <= min(simulated) < max(simulated) <= high


def test_identify_with_networks_alone_derives_epsilon_from_the_default_beta(desk):
    done = echobound(
        "identify", "d.csv", "--inputs", "q3", "--outputs", "pH", "--order", "5", "--networks", "20", "--run", "20",
        "--json", cwd=desk,
    )  # fmt: skip
    certificate = json.loads(done.stdout)["certificate"]
    assert (certificate["bound"], certificate["beta"], certificate["networks"]) == ("exact", 1e-7, 20)
    assert certificate["epsilon"] == pytest.approx(1 - 1e-7 ** (1 / 20), rel=1e-12)
    assert certificate["law"] == broad(5).to_dict(), "the order replaces that of the broad law"


def test_identify_with_the_papers_law_takes_its_200_states(desk):
    plan = planned("identify", "d.csv", "--inputs", "q3", "--outputs", "pH", "--law", "paper", cwd=desk, run="paper")
    assert plan["law"] == paper(200).to_dict()
    assert (plan["bound"], plan["networks"]) == ("exact", 315)


def test_identify_takes_validation_data_whole(desk):
    echobound("simulate-plant", "--samples", "300", "--output", "v.csv", "--seed", "1", cwd=desk)
    arguments = ["identify", "d.csv", "--inputs", "q3", "--outputs", "pH", "--validation", "v.csv"]
    [fold] = planned(*arguments, cwd=desk, run="validation")["folds"]
    assert (fold["training"], fold["scored"]) == ([[0, 0, 800, 60]], [[1, 0, 300, 60]]), "a fifth of the shortest"


# ---------------------------------------------------------------- demo


def test_demo_by_default_is_the_papers(tmp_path):
    plan = planned("demo", cwd=tmp_path, run="demo")
    assert plan["law"] == paper(200).to_dict()
    assert (plan["bound"], plan["beta"], plan["epsilon"], plan["networks"]) == ("explicit", 1e-7, 0.05, 645)
    [fold] = plan["folds"]
    assert (fold["training"], fold["scored"]) == ([[0, 0, 5000, 100]], [[1, 0, 3000, 100]])
    assert plan["seed"] == 0


def test_simulate_plant_by_default(tmp_path):
    done = echobound("simulate-plant", "--output", "d.csv", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["samples"] == [5000]
    table = np.loadtxt(tmp_path / "d.csv", delimiter=",", skiprows=1)
    assert np.diff(table[:, 0]) == pytest.approx(10.0)
    assert 12.7 <= table[:, 1].min() < table[:, 1].max() <= 16.7
    assert set(np.flatnonzero(np.diff(table[:, 1])) % 100) == {99}, "q3 is switched every 100 samples"


@pytest.mark.parametrize(("command", "options"), [("reproduce", ["645", "500"]), ("verify", ["500"])])
def test_other_defaults_are_said_in_the_help(command, options, tmp_path):
    page = echobound(command, "--help", cwd=tmp_path, env={"COLUMNS": "200"}).stdout
    assert re.findall(r"\[default: (\d+)\]", page)[: len(options)] == options


# ---------------------------------------------------------------- exit code 1: the answer is no


def growing(path, samples):
    """An output that grows e-fold every five samples and starts again every 300: what learns it overflows."""
    k = np.arange(samples)
    rows = np.stack([np.sin(0.1 * k), np.exp(0.2 * (k % 300))], axis=1).tolist()
    path.write_text("u,y\n" + "".join(f"{u!r},{y!r}\n" for u, y in rows))


def test_identify_ends_with_1_and_a_statement_when_all_networks_diverge(tmp_path):
    growing(tmp_path / "d.csv", 300)
    growing(tmp_path / "v.csv", 8000)
    command = ["identify", "d.csv", "--inputs", "u", "--outputs", "y", "--validation", "v.csv", *NO_NETWORK_OF_THESE]
    done = echobound(*command, "--run", "text", cwd=tmp_path, code=1, env=UNCLIPPED)
    assert done.stdout.startswith("There is no model: all ")
    assert "Verdict: do not use\nbecause: All networks diverged: there is no model." in done.stdout
    done = echobound(*command, "--run", "json", "--json", cwd=tmp_path, code=1, env=UNCLIPPED)
    result = json.loads(done.stdout)
    assert result["certificate"]["status"] == "all diverged"
    assert result["certificate"]["winner"] is result["certificate"]["threshold"] is result["stability"] is None
    assert result["scores"] == {}
    assert result["delivered"] is result["bound"] is result["network"] is result["committee"] is None
    names = {path.name for path in (tmp_path / "json").iterdir()}
    assert {"plan.json", "data.npz", "ledger.sqlite", "certificate.json", "assessment.json", "report.html"} == names
    shown = echobound("show", "json", cwd=tmp_path).stdout
    assert "All networks diverged" in shown, "to show it is no failure"


def outcome(best, worst):
    case = {"fresh": 500, "violations": 9, "ties": 0, "epsilon_combined": 0.1, "epsilon_fresh": 0.1, "statement": "s"}
    return {**case, "p_value": best, "worst": {**case, "p_value": worst}}


@pytest.fixture(scope="module")
def finished(tmp_path_factory, ph_records):
    """A run folder, as small as they come."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    return identify(*ph_records, law="paper", order=3, networks=3, beta=0.5, washout=60, run=folder).run


@pytest.mark.parametrize(
    ("best", "worst", "code"),
    [(0.9e-4, 0.5, 1), (0.5, 0.9e-4, 1), (1e-9, 1e-9, 1), (1.1e-4, 0.5, 0), (0.5, 1.1e-4, 0), (1.0, 1.0, 0)],
)
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_verify_ends_with_1_when_so_many_violations_are_implausible(monkeypatch, finished, best, worst, code, options):
    seen = []

    def verify(run, fresh, **_):
        seen.append((str(run), fresh))
        return outcome(best, worst)

    monkeypatch.setattr(echobound_package, "verify", verify)
    result = CliRunner().invoke(app, ["verify", str(finished), *options])
    assert result.exit_code == code
    assert seen == [(str(finished), 500)], "500 fresh networks by default"
    if options:
        assert json.loads(result.stdout) == outcome(best, worst), "printed all the same"
    else:
        assert result.stdout.split() == ["s", "s"]
