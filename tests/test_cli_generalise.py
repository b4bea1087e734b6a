"""`generalise` as a user meets it, and what `show` and `identify` say of the second certificate."""

import json
import os
import pty
import subprocess
import sys

import pytest
from test_cli import echobound, refused

from echobound.diagnostics.telling import vacuous
from echobound.runs.folder import RunFolder

SMALL = ["--law", "paper", "--order", "6", "--networks", "20", "--beta", "1e-2", "--washout", "40", "--committee", "3"]
COLUMNS = ["--inputs", "q3", "--outputs", "pH", "--time", "time"]
EPISODES = [f"e{i}.csv" for i in range(1, 7)]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    desk = tmp_path_factory.mktemp("desk")
    samples, names = ["400,300", *["120"] * 6, "900"], ["train.csv,val.csv", *EPISODES, "long.csv"]
    plant = ["--samples", ",".join(samples), "--output", ",".join(names), "--period", "30"]
    echobound("simulate-plant", *plant, cwd=desk)
    echobound("identify", "train.csv", *COLUMNS, "--validation", "val.csv", *SMALL, "--run", "bare", cwd=desk)
    done = echobound("generalise", "bare", *EPISODES, "--time", "time", "--criterion", "fit>50", cwd=desk)
    (desk / "printed.txt").write_text(done.stdout)
    return desk


def test_files_are_episodes_and_show_says_what_was_certified(desk):
    printed = (desk / "printed.txt").read_text()
    second = RunFolder(desk / "bare").generalisation
    assert second.episodes == 6
    assert f"on test data: {second.optimism.words}\n" in printed
    for who, named in (("model", "picked network"), ("committee", "committee")):
        for statement in second.statements[who]:
            assert (f"new data, {named}: {statement.claim}\n" in printed) != vacuous(statement)
    for sentence in second.not_stated:
        assert f"not stated: {sentence}\n" in printed
    assert "page: bare/report.html" in printed
    assert not set(printed) & set("│\x1b")
    again = echobound("generalise", "bare", "--criterion", "fit>50", "--json", cwd=desk)
    assert json.loads(again.stdout) == {"run": "bare", "generalisation": second.to_dict()}
    assert again.stderr == ""
    shown = echobound("show", "bare", cwd=desk).stdout
    assert all(f"{line}\n" in shown for line in printed.splitlines() if line.startswith(("new data", "on test")))
    assert json.loads(echobound("show", "bare", "--json", cwd=desk).stdout)["generalisation"] == second.to_dict()
    line = refused("generalise", "bare", "--criterion", "fit>40", cwd=desk)
    assert "spent" in line


def test_on_a_terminal_it_is_set_in_two_columns_and_says_what_goes_on(desk):
    screen, terminal = pty.openpty()
    command = [sys.executable, "-m", "echobound", "generalise", "bare"]
    env = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    with subprocess.Popen(command, cwd=desk, stdout=terminal, stderr=terminal, env=env) as process:
        os.close(terminal)
        text = b""
        while True:
            try:
                part = os.read(screen, 65536)
            except OSError:
                break
            if not part:
                break
            text += part
    os.close(screen)
    assert process.returncode == 0
    shown = text.decode()
    assert "running the models over the test data" in shown
    lines = [line for line in shown.replace("\r", "").split("\n") if "With confidence" in line]
    assert lines
    assert shown.count("new data, picked network") == 1, "the name stands once beside its statements"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["bare", "nothing.csv"], "nothing.csv"),
        (["nowhere", "e1.csv"], "not a run folder"),
        (["bare", "e1.csv", "--outputs", "level"], "level"),
        (["bare", "e1.csv", "--criterion", "fit<3"], "write fit>3"),
        (["bare", "e1.csv", "--criterion", "speed>3"], "unknown score"),
        (["bare", "long.csv", "--blocks", "5"], "mixing coefficient"),
        (["bare", "val.csv"], "second certificate on test data that were given for it"),
    ],
)
def test_bad_input_is_one_sentence(desk, arguments, expected):
    assert expected in refused("generalise", *arguments, cwd=desk)


def test_identify_settles_the_criterion_before_the_test_data_are_opened(desk):
    tests = ["--test", "e1.csv,e2.csv", "--criterion", "rmse<2"]
    done = echobound(
        "identify", "train.csv", *COLUMNS, "--validation", "val.csv", *tests, *SMALL, "--run", "own", "--json", cwd=desk
    )
    content = json.loads(done.stdout)
    second = content["generalisation"]
    assert (second["settled"]["criterion"], second["late"], second["episodes"]) == ("rmse<2", False, 2)
    assert content["optimism"] == second["optimism"]
    assert content["episodes"] == second["statements"]["committee"][0], "of the delivered model"
    assert content["network"]["episodes"] == second["statements"]["model"][0]
    assert content["committee"]["episodes"] == second["statements"]["committee"][0]
    blocks = ["--blocks", "4", "--gap", "50", "--mixing", "0.001", "--time", "time"]
    done = echobound("generalise", "own", "long.csv", *blocks, cwd=desk)
    assert "is stationary, and that its mixing coefficient over the gaps is at most 0.001" in done.stdout
    assert "2 other test records of this run were opened before" in done.stdout
