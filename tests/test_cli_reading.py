"""Reading options of the commands: files of any kind, sampling, gaps; one sentence for what cannot be read."""

import json

import numpy as np
import pandas
import pytest
from test_cli import echobound, refused

from echobound.runs.folder import RunFolder

COLUMNS = ["--inputs", "q3", "--outputs", "pH"]
SMALL = [*COLUMNS, "--law", "paper", "--order", "5", "--networks", "5", "--beta", "0.5", "--washout", "20"]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    desk = tmp_path_factory.mktemp("desk")
    echobound("simulate-plant", "--samples", "400,300,300", "--output", "a.csv,b.csv,c.csv", cwd=desk)
    frame = pandas.read_csv(desk / "a.csv")
    frame.to_parquet(desk / "a.parquet")
    frame.to_excel(desk / "a.xlsx", index=False)
    np.savez(desk / "a.npz", **{name: column.to_numpy() for name, column in frame.items()})
    frame.assign(time=pandas.Timestamp("2024-01-01") + pandas.to_timedelta(frame.time, unit="s")).to_csv(
        desk / "stamps.csv", index=False
    )
    frame.drop(index=range(150, 160)).to_csv(desk / "gap.csv", index=False)
    frame.assign(pH=frame.pH.where(frame.index != 200)).to_csv(desk / "hole.csv", index=False)
    frame.assign(q3=15.0).to_csv(desk / "constant.csv", index=False)
    echobound("identify", "a.csv", *SMALL, "--time", "time", "--run", "run", cwd=desk)
    return desk


def identified(desk, *arguments):
    return json.loads(echobound("identify", *arguments, "--time", "time", *SMALL, "--json", cwd=desk).stdout)


def test_every_kind_of_file_gives_the_same_run(desk):
    same = {
        identified(desk, name, "--run", f"run-{name}")["certificate"]["digests"]["data"]
        for name in ("a.parquet", "a.npz", "stamps.csv")
    }
    assert same == {RunFolder(desk / "run").certificate.digests["data"]}


def test_several_files_of_several_kinds(desk):
    run = identified(desk, "a.xlsx", "b.csv", "--run", "both")["run"]
    records = RunFolder(desk / run).experiments.training
    assert [(record.name, len(record)) for record in records] == [("a.xlsx", 400), ("b.csv", 300)]


def test_decimation_holds_for_all_files_and_is_said(desk):
    result = identified(desk, "a.csv", "--validation", "b.csv", "--test", "c.csv", "--decimate", "2", "--run", "two")
    assert "--decimate 2: the sampling time is 20 s, behind an anti-aliasing filter" in result["chosen"]
    experiments = RunFolder(desk / "two").experiments
    assert [len(record) for _, record in experiments.roles] == [200, 150, 150]
    assert {record.sampling_time for _, record in experiments.roles} == {20.0}
    assert "give --resample 20" in refused("simulate", "two", "c.csv", "--time", "time", cwd=desk)
    done = echobound("simulate", "two", "c.csv", "--time", "time", "--resample", "20", "--json", cwd=desk)
    test = result["scores"]["test"]["fit"]
    assert json.loads(done.stdout)["scores"]["fit"] == pytest.approx(test, rel=1e-6)


def test_gaps_and_holes(desk):
    assert "irregular at row 152: a step of 10 was expected, found 110" in refused(
        "identify", "gap.csv", *SMALL, "--time", "time", cwd=desk
    )
    assert "column 'pH' of hole.csv is empty in row 202" in refused("identify", "hole.csv", *SMALL, cwd=desk)
    result = identified(desk, "gap.csv", "hole.csv", "--missing", "split", "--run", "split")
    assert "--missing split: 2 files gave 4 experiments" in result["chosen"]
    simulated = echobound("simulate", "run", "hole.csv", "--missing", "split", "--output", "s.csv", cwd=desk)
    assert simulated.stdout.startswith("hole.csv (rows 2 to 201): 180 samples from sample 21 on")
    table = pandas.read_csv(desk / "s.csv")
    assert list(table.columns) == ["experiment", "sample", "time", "q3", "pH (measured)", "pH (simulated)"]
    assert len(table) == 180 + 179


def test_generalise_splits_at_missing_values_too(desk):
    frame = pandas.read_csv(desk / "c.csv")
    frame.assign(pH=frame.pH.where(frame.index != 150)).to_csv(desk / "test.csv", index=False)
    assert "column 'pH' of test.csv is empty in row 152" in refused("generalise", "run", "test.csv", cwd=desk)
    done = echobound("generalise", "run", "test.csv", "--missing", "split", "--json", cwd=desk)
    assert json.loads(done.stdout)["generalisation"]["episodes"] == 2


def test_a_constant_input_is_warned_of_on_the_terminal(desk):
    done = echobound("identify", "constant.csv", *SMALL, "--run", "constant", cwd=desk)
    assert "warning: input 'q3' is 15 in all samples of constant.csv" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.csv", "--missing", "drop"], "missing must be one of error, split, interpolate:3, got 'drop'"),
        (["a.csv", "--decimate", "0"], "decimate must be a whole number"),
        (["a.csv", "--resample", "20"], "its own sampling time is unknown"),
        (["a.csv", "--sheet", "one"], "a.csv has no sheets"),
        (["a.csv", "--time", "nowhere"], "there is no column 'nowhere'"),
        (["a.csv", "missing.mat"], "there is no file missing.mat"),
    ],
)
def test_bad_reading_leaves_nothing_behind(desk, arguments, message):
    assert message in refused("identify", *arguments, *SMALL, "--run", "never", cwd=desk)
    assert not (desk / "never").exists()
