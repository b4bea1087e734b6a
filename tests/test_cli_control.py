"""`echobound control`: what is printed and written, and bad input in one sentence."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("daqp")

from typer.testing import CliRunner

from echobound import identify, ph_experiment
from echobound.cli.main import app
from echobound.errors import EchoboundError
from echobound.runs import RunFolder

runner = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("control")
    identify(*ph_experiment(samples=(800, 400)), law="paper", order=15, networks=20, committee=3, run=path / "run")
    level, buffer = np.repeat([7.2, 6.9], 20), np.where(np.arange(40) < 30, 0.55, 0.6)
    rows = "".join(f"{a},{b}\n" for a, b in zip(level, buffer, strict=True))
    (path / "wanted.csv").write_text("pH,q2\n" + rows)
    (path / "far.csv").write_text("pH,q2\n" + rows.replace("7.2", "13.0"))
    return path


def run(folder, *arguments, wanted="wanted.csv"):
    command = ["control", str(folder / "run"), "--reference", str(folder / wanted), "--horizon", "8", *arguments]
    return runner.invoke(app, command, catch_exceptions=True)


def test_text_csv_and_page(folder):
    done = run(folder, "--disturbance", "q2", "--output", str(folder / "o.csv"), "--page", str(folder / "o.html"))
    assert done.exit_code == 0, done.output
    assert "rms error of pH" in done.stdout
    assert "PI" in done.stdout
    assert "says nothing about a free run" in done.stdout
    lines = (folder / "o.csv").read_text().splitlines()
    assert lines[0] == "sample,pH reference,pH true,pH measured,q3"
    assert len(lines) == 41
    page = (folder / "o.html").read_text()
    assert "default-src 'none'" in page
    assert "Nothing is promised about the stability of the closed loop" in page
    assert page.count("<script") == 0


def test_names_that_look_like_formulas_are_text(folder, tmp_path):
    training, validation = (
        replace(one, input_names=("=q3",), output_names=("+pH\x1b[2J",)) for one in ph_experiment(samples=(300, 200))
    )
    identify(training, validation, law="paper", order=6, networks=12, beta=0.05, washout=40, run=tmp_path / "run")
    np.savez(tmp_path / "wanted.npz", **{"+pH\x1b[2J": np.full(8, 7.0)})
    command = ["control", str(tmp_path / "run"), "--reference", str(tmp_path / "wanted.npz"), "--horizon", "3"]
    assert runner.invoke(app, [*command, "--output", str(tmp_path / "o.csv")]).exit_code == 0
    head = (tmp_path / "o.csv").read_text().splitlines()[0].split(",")
    assert head == ["sample", *(f"'+pH\\u001b[2J {what}" for what in ("reference", "true", "measured")), "'=q3"]


def test_json_with_scenarios(folder):
    done = run(folder, "--json", "--model", "network", "--scenarios", "5", "--output-high", "7.1", "--no-pi")
    content = json.loads(done.stdout)
    assert content["scores"]["MPC"]["input_violations"] == 0
    assert content["scenarios"]["scenarios"] == 5
    assert 0 < content["scenarios"]["epsilon"] <= 1
    assert list(content["scores"]) == ["MPC"]
    committee = json.loads(run(folder, "--json", "--model", "network", "--scenarios", "committee").stdout)
    assert committee["scenarios"]["epsilon"] is None


def test_a_reference_out_of_reach_is_said(folder):
    done = run(folder, "--lost", "0.2", "--outliers", "0.1", "--noise", "0.02", wanted="far.csv")
    assert done.exit_code == 0
    assert "brought as near as it goes" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--horizon", "0"], "at least 1, got 0"),
        (["--input-low", "17", "--input-high", "15"], "between 17 and 15"),
        (["--rate", "fast"], "numbers separated by commas"),
        (["--plant", "tank"], "file.py:function"),
        (["--scenarios", "many"], "number of networks or 'committee'"),
        (["--scenarios", "50"], "between 1 and 19"),
        (["--model", "both"], "network or committee"),
        (["--disturbance", "q9"], r"each output (pH) and each disturbance (q9): q9 not found"),
        (["--page", "nowhere/loop.html"], "nowhere is not a folder"),
        (["--model", "network", "--export-c", __file__], "is a file: give another name"),
        (["--iterations", "0"], "at least 1"),
        (["--lost", "2"], "between 0 and 1"),
    ],
)
def test_bad_input(folder, arguments, message):
    done = run(folder, *arguments)
    assert isinstance(done.exception, EchoboundError)
    assert message in str(done.exception)


def test_what_stood_in_is_counted(folder):
    from echobound.cli.control import _stood_in
    from echobound.control import MPC, PHProcess, simulate_closed_loop

    controller = MPC(RunFolder(folder / "run").network, horizon=5)
    wanted = np.where(np.arange(10) < 4, np.nan, 7.1)
    loop = simulate_closed_loop(PHProcess(), controller, wanted, preview=False)
    assert _stood_in(loop) == ["At 4 of 10 samples the reference is not a number: the last one is held."]
