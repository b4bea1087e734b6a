"""Coverage of the inputs, and that extrapolation is said: on the terminal, in JSON and in the file."""

import csv
import json

import numpy as np
import pytest
from test_cli import echobound

from echobound import Record, identify
from echobound.diagnostics.coverage import coverage_of, excursions


@pytest.fixture(scope="module")
def desk(ph_records, tmp_path_factory):
    desk = tmp_path_factory.mktemp("desk")
    training, validation = ph_records
    identify(training, validation, law="broad", order=8, networks=20, beta=1e-2, washout=60, run=desk / "run")
    for name, factor in (("same", 1.0), ("units", 1000.0)):
        rows = ["q3", *(repr(factor * float(u)) for u in training.u[:200, 0])]
        (desk / f"{name}.csv").write_text("\n".join(rows) + "\n")
    return desk


def test_a_mistaken_unit_is_said_everywhere(desk):
    done = echobound("simulate", "run", "units.csv", "--output", "out.csv", cwd=desk)
    assert done.stdout.startswith("do not use: "), "a useless result is called so on the first line"
    assert "in most samples q3 is beyond its training range" in " ".join(done.stdout.split())
    assert "warning: q3 leaves its training range" in " ".join(done.stdout.split())
    assert "in 100 % of the samples" in " ".join(done.stdout.split())
    rows = list(csv.DictReader((desk / "out.csv").read_text().splitlines()))
    assert {row["beyond training range"] for row in rows} == {"q3"}
    found = json.loads(echobound("simulate", "run", "units.csv", "--json", cwd=desk).stdout)
    [one] = found["extrapolation"]
    assert (one["channel"], one["share"]) == ("q3", 1.0)
    assert found["notes"][0].startswith("warning: q3 leaves its training range")
    assert found["useless"].startswith("do not use: ")


def test_inputs_within_the_range_are_not_worth_a_word(desk):
    done = echobound("simulate", "run", "same.csv", "--output", "out.csv", cwd=desk)
    assert "warning" not in done.stdout
    assert "beyond" not in (desk / "out.csv").read_text()
    found = json.loads(echobound("simulate", "run", "same.csv", "--json", cwd=desk).stdout)
    assert (found["extrapolation"], found["useless"]) == ([], "")


def test_a_little_beyond_does_not_count():
    known = Record(u=[0.0, 100.0, 50.0], y=[0.0, 1.0, 2.0])
    assert excursions([known], np.array([[100.5], [-0.5]])) == []
    [one] = excursions([known], np.array([[102.0], [-3.0], [50.0], [50.0]]))
    assert (one.share, one.furthest) == (0.5, -3.0)


def test_what_data_lack_is_named():
    k = np.arange(1.0, 600.0)
    steps = np.where(k < 300, 1.0, 2.0)
    found = {one.name: one for one in coverage_of([Record(u=steps, y=np.minimum(np.sin(k / 9), 0.5))])}
    assert all(found[name].alarm for name in ("input range", "excitation", "saturation"))
    assert "two values only" in found["input range"].words
    assert "u1 (1 times)" in found["excitation"].words
    fine = {one.name: one for one in coverage_of([Record(u=np.sin(k**1.3), y=np.sin(k / 200) + 0.001 * k)])}
    assert not any(fine[name].alarm for name in ("input range", "excitation"))
    assert "--decimate" in fine["sampling time"].advice
