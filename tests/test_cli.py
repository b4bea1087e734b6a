"""The command line as a user meets it: real processes, real files, exit codes, one sentence for bad input."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from gpu_at_hand import reason

from echobound.runs.folder import RunFolder

SMALL = ["--law", "paper", "--order", "10", "--epsilon", "0.2", "--beta", "1e-3", "--washout", "60"]
COMMANDS = [
    "plan",
    "demo",
    "identify",
    "verify",
    "generalise",
    "simulate",
    "control",
    "predict",
    "compare",
    "inspect",
    "show",
    "renew",
    "adapt",
    "export",
    "audit",
    "watch",
    "report",
    "figures",
    "reproduce",
    "simulate-plant",
]


def echobound(*arguments, cwd, code=0, env=None):
    done = subprocess.run(
        [sys.executable, "-m", "echobound", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100", **(env or {})},
        check=False,
    )
    assert done.returncode == code, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def refused(*arguments, cwd):
    """Exit code 2, one sentence on stderr, nothing on stdout."""
    done = echobound(*arguments, cwd=cwd, code=2)
    assert done.stdout == ""
    [line] = done.stderr.strip().splitlines()
    assert line.startswith("echobound: ")
    return line


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with data files and one finished run."""
    desk = tmp_path_factory.mktemp("desk")
    echobound("simulate-plant", "--samples", "700,500,400", "--output", "train.csv,val.csv,test.csv", cwd=desk)
    done = echobound(
        "identify", "train.csv", "--inputs", "q3", "--outputs", "pH", "--time", "time", "--validation", "val.csv",
        "--test", "test.csv", *SMALL, "--run", "ph", "--json", cwd=desk,
    )  # fmt: skip
    (desk / "identify.json").write_text(done.stdout)
    assert done.stderr == "", "quiet when piped"
    return desk


def test_help_of_every_command_has_an_example(tmp_path):
    overview = echobound("--help", cwd=tmp_path).stdout
    for command in COMMANDS:
        assert command in overview
        page = echobound(command, "--help", cwd=tmp_path).stdout
        assert f"echobound {command}" in page.split("Example:")[1]
        assert "--json" in page


def test_version(tmp_path):
    assert echobound("--version", cwd=tmp_path).stdout.startswith("echobound 0.")


def test_plan_in_all_directions(tmp_path):
    result = json.loads(echobound("plan", "--epsilon", "0.05", "--beta", "1e-7", "--json", cwd=tmp_path).stdout)
    assert (result["explicit"], result["exact"]) == (645, 315)
    result = json.loads(echobound("plan", "--networks", "645", "--beta", "1e-7", "--json", cwd=tmp_path).stdout)
    assert result["exact"] == pytest.approx(0.0246796477917, rel=1e-11)
    assert result["explicit"] == pytest.approx(0.0499785911657, rel=1e-9)
    result = json.loads(echobound("plan", "--networks", "645", "--epsilon", "0.05", "--json", cwd=tmp_path).stdout)
    assert result["exact"] == pytest.approx(4.28277650308e-15, rel=1e-9)
    result = json.loads(
        echobound("plan", "--epsilon", "0.05", "--beta", "1e-7", "--d", "5", "--json", cwd=tmp_path).stdout
    )
    assert (result["explicit"], result["exact"]) == (805, 512)
    text = echobound("plan", cwd=tmp_path).stdout
    assert "645" in text
    assert "315" in text
    assert "0.0246796477917" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["--epsilon", "0", "--beta", "0.1"],
        ["--epsilon", "1.5"],
        ["--beta", "nan"],
        ["--beta", "small"],
        ["--d", "0"],
        ["--networks", "0"],
        ["--networks", "many"],
        ["--epsilon", "0.1", "--beta", "0.1", "--networks", "3"],
        ["--wrong"],
    ],
)
def test_plan_refuses(arguments, tmp_path):
    refused("plan", *arguments, cwd=tmp_path)


def test_identify_writes_what_it_says(desk):
    result = json.loads((desk / "identify.json").read_text())
    assert set(result) >= {"run", "certificate", "scores"}
    for role in ("validation", "test"):
        assert isinstance(result["scores"][role]["fit"], float)
        assert isinstance(result["scores"][role]["rmse"], float)
        assert set(result["scores"][role]["per_output"]) == {"pH"}
    stored = json.loads((desk / "ph" / "certificate.json").read_text())
    assert stored == result["certificate"]
    assert set(stored) >= {"epsilon", "beta", "networks", "score", "threshold", "winner", "statement"}
    assert (stored["networks"], stored["epsilon"], stored["beta"]) == (31, 0.2, 1e-3)
    assert stored["threshold"] == result["network"]["scores"]["validation"]["fit"]
    assert result["delivered"] == "committee"
    assert result["scores"] == result["committee"]["scores"]


def test_default_folder_resumes(desk):
    command = ["identify", "train.csv", "--inputs", "2", "--outputs", "3", *SMALL]
    first = echobound(*command, cwd=desk)
    assert "one second between samples was assumed" in first.stdout
    assert "4 blocks of the training data in turn" in first.stdout
    [run] = [p for p in (desk / "runs").iterdir() if p.name.startswith("train-")]
    before = RunFolder(run).search
    echobound(*command, cwd=desk)
    assert (RunFolder(run).search == before).all(), "to the second each network took"


def test_networks_alone_give_epsilon(desk):
    done = echobound(
        "identify", "train.csv", "--inputs", "q3", "--outputs", "pH", "--law", "paper", "--order", "8",
        "--networks", "20", "--beta", "0.01", "--run", "twenty", "--json", cwd=desk,
    )  # fmt: skip
    certificate = json.loads(done.stdout)["certificate"]
    assert certificate["networks"] == 20
    assert certificate["epsilon"] == pytest.approx(1 - 0.01 ** (1 / 20))


def test_show(desk):
    text = echobound("show", "ph", cwd=desk).stdout
    stored = json.loads((desk / "ph" / "certificate.json").read_text())
    assert stored["statement"] in text.replace("\n", " ")
    shown = json.loads(echobound("show", "ph", "--json", cwd=desk).stdout)
    assert shown["certificate"] == stored
    assert (shown["delivered"], shown["bound"], shown["held"]) == ("committee", None, None), "the paper's law has none"
    assert "no bound" in shown["bounded"]


def test_verify_pools(desk):
    first = json.loads(echobound("verify", "ph", "--fresh", "12", "--json", cwd=desk).stdout)
    assert first["fresh"] == 12
    again = json.loads(echobound("verify", "ph", "--fresh", "8", "--json", cwd=desk).stdout)
    assert again["fresh"] == 20
    assert set(again) >= {"fresh", "violations", "p_value", "epsilon_combined", "worst"}
    assert set(again["worst"]) >= {"fresh", "violations", "p_value", "epsilon_combined"}
    assert "20 fresh networks" in echobound("verify", "ph", "--fresh", "0", cwd=desk).stdout
    assert "verified" in echobound("show", "ph", cwd=desk).stdout


def test_simulate_says_how_it_starts(desk):
    result = json.loads(echobound("simulate", "ph", "test.csv", "--json", cwd=desk).stdout)
    assert "measured outputs fed back" in result["start"]
    assert len(result["outputs"]["pH"]) == 340
    scores = json.loads((desk / "identify.json").read_text())["scores"]["test"]
    assert result["scores"]["fit"] == pytest.approx(scores["fit"], rel=1e-12)
    other = json.loads(echobound("simulate", "ph", "test.csv", "--model", "network", "--json", cwd=desk).stdout)
    picked = json.loads((desk / "identify.json").read_text())["network"]["scores"]["test"]
    assert other["scores"]["fit"] == pytest.approx(picked["fit"], rel=1e-12)
    assert other["held"] is None
    # The test record goes below what was trained on, which is said for both models, once.
    assert [note.split(" (")[0] for note in other["notes"]] == ["warning: q3 leaves its training range"]
    assert other["notes"] == result["notes"]
    done = echobound("simulate", "ph", "test.csv", "--from-mean", "--output", "sim.csv", cwd=desk)
    assert "training mean" in done.stdout
    lines = (desk / "sim.csv").read_text().splitlines()
    assert lines[0] == "sample,time,q3,pH (simulated),beyond training range"
    assert len(lines) == 401
    piped = echobound("simulate", "ph", "test.csv", cwd=desk)
    assert piped.stdout.splitlines()[0] == "sample,time,q3,pH (measured),pH (simulated),beyond training range"
    assert "FIT" in piped.stderr


def test_reproduce(desk):
    done = echobound(
        "reproduce", "--orders", "5,10", "--networks", "30", "--fresh", "20", "--data-seed", "1", "--run", "paper",
        "--json", cwd=desk,
    )  # fmt: skip
    result = json.loads(done.stdout)
    assert [row["order"] for row in result["orders"]] == [5, 10]
    for row in result["orders"]:
        assert set(row) >= {"best_fit", "worst_rmse", "best_violations", "worst_violations"}
    names = {path.name for path in (desk / "paper").iterdir()}
    assert names >= {
        "table.txt",
        "table.json",
        "networks.csv",
        "sampling.png",
        "sampling.svg",
        "testing.png",
        "validation.svg",
    }
    assert len((desk / "paper" / "networks.csv").read_text().splitlines()) == 1 + 2 * 50


def test_demo_starts_a_new_folder_each_time(tmp_path):
    for number in (1, 2):
        done = echobound("demo", "--order", "5", "--networks", "40", cwd=tmp_path)
        assert f"demo-{number}" in done.stdout
        assert (tmp_path / "runs" / f"demo-{number}" / "report.html").exists()


BASE = ["identify", "--inputs", "q3", "--outputs", "pH"]


def altered(desk, name, change):
    lines = (desk / "train.csv").read_text().splitlines()
    (desk / name).write_text("\n".join(change(lines)) + "\n")
    return name


@pytest.mark.parametrize(
    ("name", "change", "arguments", "expected"),
    [
        ("nan.csv", lambda rows: [*rows[:9], "90,nan,7", *rows[10:]], BASE, "row 10"),
        ("inf.csv", lambda rows: [*rows[:9], "90,inf,7", *rows[10:]], BASE, "row 10"),
        ("text.csv", lambda rows: [*rows[:9], "90,closed,7", *rows[10:]], BASE, "'closed' in row 10"),
        ("empty.csv", lambda rows: [*rows[:9], "90,,7", *rows[10:]], BASE, "row 10"),
        ("gap.csv", lambda rows: rows[:50] + rows[55:], [*BASE, "--time", "time"], "irregular at row 51"),
        ("short.csv", lambda rows: rows[:90], [*BASE, "--washout", "100"], "washout"),
        (
            "flat.csv",
            lambda rows: [rows[0]] + [r.rsplit(",", 1)[0] + ",7.0" for r in rows[1:]],
            BASE,
            "FIT is undefined",
        ),
        ("good.csv", lambda rows: rows, ["identify", "--inputs", "q9", "--outputs", "pH"], "time, q3, pH"),
        ("good.csv", lambda rows: rows, ["identify", "--inputs", "q3", "--outputs", "q3"], "twice"),
        ("good.csv", lambda rows: rows, ["identify", "--inputs", "q3", "--outputs", "7"], "time, q3, pH"),
        ("good.csv", lambda rows: rows, [*BASE, "--epsilon", "1.2"], "epsilon"),
        ("good.csv", lambda rows: rows, [*BASE, "--beta", "0"], "beta"),
        ("good.csv", lambda rows: rows, [*BASE, "--order", "0"], "order"),
        ("good.csv", lambda rows: rows, [*BASE, "--law", "narrow"], "narrow"),
        ("good.csv", lambda rows: rows, [*BASE, "--bound", "loose"], "loose"),
        ("good.csv", lambda rows: rows, [*BASE, "--stop", "peeking"], "unknown stopping rule 'peeking'"),
        ("good.csv", lambda rows: rows, [*BASE, "--stop", "patience:20", "--networks", "9"], "patience:20,9"),
        ("good.csv", lambda rows: rows, [*BASE, "--discarded", "-1"], "not negative"),
        ("good.csv", lambda rows: rows, [*BASE, "--workers", "0"], "workers"),
        ("good.csv", lambda rows: rows, [*BASE, "--networks", "0"], "networks"),
        ("good.csv", lambda rows: rows, [*BASE, "--networks", "10", "--epsilon", "0.05"], "315"),
        ("good.csv", lambda rows: rows, [*BASE, "--sampling-time", "-1"], "sampling time"),
        ("good.csv", lambda rows: rows, [*BASE, "--validation", "none.csv"], "none.csv"),
    ],
)
def test_identify_refuses(desk, name, change, arguments, expected):
    file = altered(desk, name, change)
    before = set(desk.rglob("*"))
    assert expected in refused(arguments[0], file, *arguments[1:], "--run", "refused", cwd=desk)
    assert set(desk.rglob("*")) == before, "nothing is left behind"


def test_a_device_that_is_not_there(desk):
    sentence = refused("demo", "--device", "tpu", cwd=desk)
    assert "known are auto, cpu, gpu" in sentence
    if reason():
        assert "echobound[gpu]" in refused("demo", "--device", "gpu", cwd=desk) or "--device cpu" in reason()


def test_missing_file(desk):
    assert "none.csv" in refused("identify", "none.csv", "--inputs", "a", "--outputs", "b", cwd=desk)


def test_existing_folder_of_another_plan(desk):
    command = ["identify", "train.csv", "--inputs", "q3", "--outputs", "pH", *SMALL, "--run", "ph"]
    assert "another plan" in refused(*command, "--seed", "5", cwd=desk)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (["--order", "5,ten"], "whole numbers separated by commas"),
        (["--order", "5,5"], "given twice"),
        (["--order", "5,0"], "order must be an integer of at least 1"),
        (["--law", "paper,narrow", "--order", "5"], "unknown law 'narrow'"),
        (["--order", "5,8", "--stop", "patience:20"], "2 families were given"),
        (["--stop", "patience:20", "--target", "80"], "a target looks at the scores"),
        (["--scores", "fit,speed"], "unknown score 'speed'"),
        (["--stop", "anytime", "--joint"], "not under the rule anytime"),
    ],
)
def test_plans_that_do_not_go_together(desk, more, expected):
    command = ["identify", "train.csv", "--inputs", "q3", "--outputs", "pH", "--law", "paper", "--run", "never"]
    assert expected in refused(*command, *more, cwd=desk)
    assert not (desk / "never").exists()


def test_several_orders(desk):
    more = ["--order", "5,10", "--run", "orders", "--epsilon", "0.2", "--beta", "1e-3", "--washout", "60"]
    base = ["identify", "train.csv", "--inputs", "q3", "--outputs", "pH", "--validation", "val.csv", "--law", "paper"]
    done = echobound(*base, *more, cwd=desk)
    assert "from any of the 2 families (order 5, order 10)" in done.stdout
    assert "networks: 62, 31 of each family" in echobound("show", "orders", "--details", cwd=desk).stdout
    done = echobound("verify", "orders", "--fresh", "4", cwd=desk)
    assert "Of 8 fresh networks, 4 of each family" in done.stdout
    done = echobound("watch", "orders", "--once", cwd=desk)
    assert "family 1" in done.stdout
    page = (desk / "orders" / "report.html").read_text()
    assert "The families" in page


@pytest.mark.parametrize("command", [["show"], ["verify"], ["simulate"]])
def test_not_a_run_folder(desk, command):
    more = ["test.csv"] if command == ["simulate"] else []
    assert "not a run folder" in refused(*command, "nowhere", *more, cwd=desk)


def test_more_columns_than_samples_warns(desk):
    echobound("simulate-plant", "--samples", "400", "--output", "few.csv", cwd=desk)
    done = echobound(
        "identify", "few.csv", "--inputs", "q3", "--outputs", "pH", "--law", "paper", "--order", "300",
        "--networks", "3", "--washout", "50", "--run", "few", cwd=desk,
    )  # fmt: skip
    assert done.stderr.startswith("warning: 200 training samples are fewer than the 301 columns")


def in_a_terminal(*arguments, cwd):
    """Run with a terminal as output, and return what it showed."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "echobound", *arguments],
        cwd=cwd, stdout=child, stderr=child, env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(child)
    shown = b""
    while True:
        try:
            piece = os.read(parent, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    assert process.wait() == 0, shown.decode()
    return shown.decode()


def test_progress_on_a_terminal_and_not_when_quiet(desk):
    command = ["identify", "train.csv", "--inputs", "q3", "--outputs", "pH", *SMALL]
    shown = in_a_terminal(*command, "--run", "tty", cwd=desk)
    assert "best" in shown
    assert "31/31" in shown
    for said in ("Your model explains", "certificate", "tty --details"):
        assert said in shown
    quiet = in_a_terminal(*command, "--run", "tty-quiet", "--quiet", cwd=desk)
    assert "31/31" not in quiet


def test_interruption_keeps_batches_and_says_how_to_resume(tmp_path):
    import signal
    import time

    echobound("simulate-plant", "--samples", "3000", "--output", "d.csv", cwd=tmp_path)
    # So many networks that the run cannot end before it is interrupted.
    options = ["--inputs", "q3", "--outputs", "pH", "--law", "broad", "--networks", "20000", "--run", "r"]
    command = [sys.executable, "-m", "echobound", "identify", "d.csv", *options]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Background jobs start with SIGINT ignored; a user's do not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    ledger = Path(tmp_path / "r" / "ledger.sqlite-wal")
    for _ in range(600):
        if ledger.exists() and ledger.stat().st_size > 50_000:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "resumes from there" in error
    assert "Traceback" not in error
    assert (tmp_path / "r" / "plan.json").exists()
    assert not (tmp_path / "r" / "certificate.json").exists()


def test_bare_command_prints_help(tmp_path):
    assert "identify" in echobound(cwd=tmp_path).stdout


def test_simulate_refuses_a_wrong_number_of_outputs(desk):
    assert "1 outputs (pH)" in refused("simulate", "ph", "test.csv", "--outputs", "pH,time", cwd=desk)


def test_simulate_of_a_constant_output_has_no_fit(desk):
    rows = (desk / "test.csv").read_text().splitlines()
    (desk / "constant.csv").write_text("\n".join([rows[0], *(r.rsplit(",", 1)[0] + ",7.0" for r in rows[1:])]))
    done = echobound("simulate", "ph", "constant.csv", "--output", "constant-sim.csv", cwd=desk)
    assert "FIT undefined" in done.stdout
    assert done.stderr == ""
    assert json.loads(echobound("simulate", "ph", "constant.csv", "--json", cwd=desk).stdout)["scores"]["fit"] is None


def test_reproduce_refuses_a_folder_of_another_experiment(desk):
    small = ["reproduce", "--networks", "12", "--fresh", "5", "--data-seed", "1", "--run", "other-paper"]
    echobound(*small, "--orders", "5", cwd=desk)
    assert "another plan (other law, numbering)" in refused(*small, "--orders", "6", cwd=desk)
    assert "as given" in echobound(*small, "--orders", "5", cwd=desk).stdout
