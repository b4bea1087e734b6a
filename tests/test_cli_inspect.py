"""`inspect`, and what `identify` shows without columns; rows by role; gaps filled and said; compare and predict."""

import json
import shlex

import numpy as np
import pandas
import pytest
from test_cli import echobound, refused

from echobound.runs.folder import RunFolder

SMALL = ["--law", "paper", "--order", "5", "--networks", "5", "--beta", "0.5", "--washout", "20"]
ROWS = "training=2-201,232-331,validation=202-231,test=332-401"


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    desk = tmp_path_factory.mktemp("desk")
    echobound("simulate-plant", "--samples", "400", "--output", "plant.csv", cwd=desk)
    frame = pandas.read_csv(desk / "plant.csv")
    frame.assign(pH=frame.pH.where(~frame.index.isin([200, 201]))).to_csv(desk / "hole.csv", index=False)
    frame.rename(columns={"q3": "=q3", "pH": "=1+1"}).to_csv(desk / "formula.csv", index=False)
    return desk


def test_inspect_prints_a_command_that_works(desk):
    found = json.loads(echobound("inspect", "plant.csv", "--json", cwd=desk).stdout)
    assert {"columns", "sampling_time", "inputs", "outputs", "command"} <= set(found)
    assert (found["inputs"], found["outputs"], found["time"], found["sampling_time"]) == (["q3"], ["pH"], "time", 10.0)
    assert [one["kind"] for one in found["columns"]] == ["time", "number", "number"]
    printed = echobound("inspect", "plant.csv", cwd=desk).stdout
    assert printed.splitlines()[-1] == f"next: {found['command']}"
    command = shlex.split(found["command"])[1:]
    done = json.loads(echobound(*command, *SMALL, "--run", "proposed", "--json", cwd=desk).stdout)
    assert done["certificate"]["networks"] == 5


def test_identify_without_columns_shows_the_file(desk):
    done = echobound("identify", "plant.csv", "--run", "never", cwd=desk, code=2)
    assert "next: echobound identify plant.csv --inputs q3 --outputs pH --time time" in done.stdout
    assert "say which columns are meant with --inputs and --outputs" in done.stderr
    assert not (desk / "never").exists()
    given = echobound("identify", "plant.csv", "--outputs", "q3", "--json", cwd=desk, code=2)
    assert json.loads(given.stdout)["inputs"] == ["pH"]


def test_rows_by_role(desk):
    base = ["--inputs", "q3", "--outputs", "pH", "--time", "time", *SMALL]
    echobound("identify", "plant.csv", *base, "--rows", ROWS, "--run", "rows", cwd=desk)
    records = RunFolder(desk / "rows").experiments
    whole = pandas.read_csv(desk / "plant.csv")
    assert [(role, len(record)) for role, record in records.roles] == [
        ("training", 200), ("training", 100), ("validation", 30), ("test", 70),
    ]  # fmt: skip
    assert records.training[1].name == "plant.csv (rows 232 to 331)"
    assert (records.test[0].y[:, 0] == whole.pH.to_numpy()[330:]).all()
    audited = json.loads(echobound("audit", "rows", "--data", "plant.csv", "--time", "time", "--json", cwd=desk).stdout)
    assert audited["passed"]
    for rows, message in (
        ("validation=2-90", "no rows for training"),
        ("training=2-90,validation=90-120", "row 90 is in two of the ranges"),
        ("training=2-90,later=91-120", "not for 'later'"),
        ("2-x", "must be ranges of row numbers"),
        ("training=2-90,test=500-600", "has no samples in rows 500 to 600: give rows that it has"),
    ):
        assert message in refused("identify", "plant.csv", *base, "--rows", rows, "--run", "never", cwd=desk)
    assert "--validation and --rows validation=" in refused(
        "identify", "plant.csv", *base, "--rows", ROWS, "--validation", "plant.csv", cwd=desk
    )


def test_what_was_filled_is_in_the_certificate(desk):
    base = ["--inputs", "q3", "--outputs", "pH", "--time", "time", *SMALL]
    said = refused("identify", "hole.csv", *base, cwd=desk)
    assert "--missing interpolate:2" in said
    done = echobound("identify", "hole.csv", *base, "--missing", "interpolate:2", "--run", "hole", "--json", cwd=desk)
    note = "2 samples interpolated in rows 2 to 401 of hole.csv"
    assert json.loads(done.stdout)["certificate"]["provenance"]["data"] == [note]
    assert f"data: {note}" in json.loads(done.stdout)["chosen"]
    assert RunFolder(desk / "hole").experiments.training[0].note == note
    assert "has a gap of 2 samples" in refused("simulate", "hole", "hole.csv", "--missing", "interpolate:1", cwd=desk)


def test_compare_and_predict(desk):
    base = ["--inputs", "q3", "--outputs", "pH", "--time", "time", *SMALL]
    for number in "12":
        echobound("identify", "plant.csv", *base, "--seed", number, "--run", f"run{number}", cwd=desk)
    both = json.loads(echobound("compare", "run1", "run2/network.npz", "plant.csv", "--json", cwd=desk).stdout)
    assert set(both["models"]) == {"run1", "network.npz"}
    simulated = json.loads(echobound("simulate", "run1", "plant.csv", "--json", cwd=desk).stdout)["scores"]
    assert both["models"]["run1"]["fit"] == pytest.approx(simulated["fit"])
    printed = echobound("compare", "run1", "run2", "plant.csv", "--horizon", "3", cwd=desk).stdout
    assert "prediction 3 samples ahead" in printed
    assert printed.count("best") == 1
    assert "no data to compare them on" in refused("compare", "run1", "run2", cwd=desk)
    assert "no run folders" in refused("compare", "plant.csv", cwd=desk)
    ahead = echobound("predict", "run1", "plant.csv", "--horizon", "2", "--output", "p.csv", cwd=desk)
    assert "prediction 2 samples ahead" in ahead.stdout
    table = pandas.read_csv(desk / "p.csv")
    assert list(table.columns) == ["sample", "time", "q3", "pH (measured)", "pH (predicted)"]
    assert np.allclose(table.time, 10 * (table["sample"] - 1))


def test_names_that_look_like_formulas_are_text(desk):
    base = ["--inputs", "=q3", "--outputs", "=1+1", *SMALL]
    echobound("identify", "formula.csv", *base, "--run", "formula", cwd=desk)
    printed = echobound("simulate", "formula", "formula.csv", cwd=desk).stdout
    assert printed.splitlines()[0] == "sample,time,'=q3,'=1+1 (measured),'=1+1 (simulated)"
