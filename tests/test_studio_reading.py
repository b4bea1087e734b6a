"""Files in the studio: read with every option of the command line, and what is shown to copy does the same."""

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass, fields
from datetime import datetime, timedelta

import pytest
from studio_at_work import studio_of

from echobound import RunFolder, identify
from echobound.data.options import ReadingOptions
from echobound.plan import Plan
from echobound.plants import ph_experiment
from echobound.studio import form as forms
from echobound.studio.drafts import Draft
from echobound.studio.workspace import Workspace
from echobound.typed import setting

SAMPLES = 400
BLANK = 200  # samples before a blank line of the file


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    """Files as people have them: dates that two continents read differently, gaps, a blank line, two sheets."""
    from openpyxl import Workbook

    folder, book = tmp_path_factory.mktemp("space"), Workbook()
    for name, record in zip(("dates.csv", "new.csv"), ph_experiment(samples=(SAMPLES, SAMPLES)), strict=True):
        lines = ["Logger 7", "Date,q3 [ml/s],pH,valve"]
        for k, (u, y) in enumerate(zip(record.u[:, 0], record.y[:, 0], strict=True)):
            lines += [""] if k == BLANK else []
            when = (datetime(2024, 3, 1) + timedelta(minutes=24 * k)).strftime("%d/%m/%Y %H:%M")
            lines.append(f"{when},{u:.6g},{'' if k in (50, 51) else f'{y:.6g}'},7")
        (folder / name).write_text("\n".join([*lines, ""]))
    for sheet in (book.active, book.create_sheet("night")):
        for row in [("u", "y"), *zip(record.u[:, 0].tolist(), record.y[:, 0].tolist(), strict=True)]:
            sheet.append(row)
    book.save(folder / "book.xlsx")
    return folder


@pytest.fixture(scope="module")
def studio(space):
    with studio_of(space) as client:
        yield client


def test_the_form_has_every_setting_and_every_option_of_reading(studio, monkeypatch):
    found = studio.json("GET", "/api/form")
    known = {one["name"] for group in found["groups"] for one in group["fields"]}
    assert known >= {one.name for one in fields(Plan) if one.metadata.get("help")}
    reading = {one["name"]: one for one in found["reading"]}
    assert set(reading) == {one.name for one in fields(ReadingOptions)} - {"inputs", "outputs", "time", "rows"}
    assert reading["dates"]["help"] == "How dates are written: european (31/12/2024) or american (12/31/2024)."

    @dataclass(frozen=True)
    class Longer(Plan):
        patience: int = setting(3, "A setting of tomorrow.")

    monkeypatch.setattr(forms, "Plan", Longer)
    forms.form.cache_clear()
    try:
        [others] = [group for group in forms.form() if group["title"] == forms.OTHERS]
        [field] = [one for one in others["fields"] if one["name"] == "patience"]
        assert (field["kind"], field["default"], field["option"]) == ("integer", 3, "--patience")
        assert forms.read_settings(Longer, {"patience": "5"}) == {"patience": 5}
    finally:
        forms.form.cache_clear()


def test_a_file_that_has_to_be_told_its_dates_or_its_sheet_can_be_opened(studio):
    refused = studio.json("GET", "/api/file?name=dates.csv", status=400)
    assert "--dates european" in refused["error"]
    found = studio.json("GET", "/api/file?name=dates.csv&dates=european")
    assert found["sampling_time"] == 24 * 60
    assert found["proposed"] == {"dates": "european", "missing": "interpolate:2"}
    assert found["command"] == "echobound inspect dates.csv --dates european"
    said = {column["key"]: " ".join(column["notes"]) for column in found["columns"]}
    assert "7 throughout" in said["valve"]
    assert not any("throughout" in note for note in found["notes"]), "it stands with its column"
    assert "Sheet, night" in studio.json("GET", "/api/file?name=book.xlsx", status=400)["error"]
    assert studio.json("GET", "/api/file?name=book.xlsx&sheet=night")["rows"] == SAMPLES
    assert studio.json("GET", "/api/curves?name=book.xlsx&sheet=night")["length"] == SAMPLES


def test_what_is_suspected_is_about_the_columns_that_were_chosen(studio):
    asked = "/api/file?name=dates.csv&dates=european&time=Date&inputs=pH&outputs=q3"
    columns = {one["key"]: one for one in studio.json("GET", asked)["columns"]}
    assert (columns["pH"]["role"], columns["q3"]["role"]) == ("input", "output")


def draft(**more):
    return {
        "files": {"training": ["dates.csv"]}, "inputs": ["q3"], "outputs": ["pH"], "time": "Date",
        "reading": {"dates": "european", "missing": "interpolate:2"},
        "plan": {"law": "paper", "order": "8", "networks": "20", "beta": "0.1", "committee": "3"}, **more,
    }  # fmt: skip


def run(command, folder):
    """A command as it was shown to copy."""
    words = shlex.split(command)
    assert words[0] == "echobound"
    done = subprocess.run([sys.executable, "-m", *words, "--json"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_cut_counts_the_rows_of_the_file_where_a_line_is_blank(studio, space):
    """The plot counts samples; the rows of the command line are those of the file."""
    jumps = studio.json("GET", "/api/curves?name=dates.csv&dates=european")["rows"]
    assert jumps == [[0, 3], [BLANK, BLANK + 4]]
    cut = Draft.from_json(draft(cut={"training": [3, BLANK + 2], "validation": [BLANK + 4, BLANK + 103]}))
    assert {role: sum(map(len, records)) for role, records in cut.records(Workspace(space)).items()} == {
        "training": BLANK, "validation": 100, "test": 0,
    }  # fmt: skip


def test_a_comma_in_the_name_of_a_further_file_is_refused(studio, space):
    (space / "a,b.csv").write_text("u,y\n1,2\n")
    asked = draft(files={"training": ["dates.csv"], "test": ["a,b.csv"]})
    assert "comma" in studio.json("POST", "/api/numbers", asked)["error"]


@pytest.fixture(scope="module")
def made(studio, space):
    """A run as the studio orders it, made by the command that it shows."""
    asked = draft(cut={"training": [3, 202], "validation": [204, 403]})
    told = studio.json("POST", "/api/numbers", {**asked, "run": "runs/dates"})
    studio.json("POST", "/api/runs", {**asked, "run": "runs/dates"})
    run(told["command"], space)
    return told


def test_command_and_python_of_a_run_do_the_same(made, space, monkeypatch):
    monkeypatch.chdir(space)
    exec(made["python"].replace("runs/dates", "runs/python"), {})
    one, other = (RunFolder(space / "runs" / name).certificate for name in ("python", "dates"))
    assert one.digests == other.digests
    assert one.threshold == other.threshold


def test_a_further_file_is_read_as_those_of_the_run(made, studio, space, monkeypatch):
    """Comparison and test data: command and Python read the new file with the options of the run, and agree."""
    monkeypatch.chdir(space)
    models = [["runs/dates", "network"], ["runs/dates", "committee"]]
    found = studio.json("POST", "/api/compare", {"models": models, "record": "file:new.csv"})
    assert "--dates european --missing interpolate:2" in found["command"]
    shown = [one["fit"] for one in found["scores"].values()]
    told = [one["fit"] for one in run(found["command"], space)["models"].values()]
    assert told == pytest.approx(shown, rel=1e-9)
    names = {}
    exec(found["python"].replace("print(compare(", "scores = (compare("), names)
    assert [one["fit"] for one in names["scores"].values()] == pytest.approx(shown, rel=1e-9)
    inside = studio.json("POST", "/api/compare", {"models": models, "record": "run:runs/dates:validation:0"})
    assert inside["command"] is None, "the command line compares on files"
    names = {}
    exec(inside["python"].replace("print(compare(", "scores = (compare("), names)
    expected = [one["fit"] for one in inside["scores"].values()]
    assert [one["fit"] for one in names["scores"].values()] == pytest.approx(expected, rel=1e-9)

    given = {"kind": "generalise", "run": "runs/dates", "given": {"files": ["new.csv"], "criterion": "rmse<9"}}
    second = studio.json("POST", "/api/act", given)
    first = run(second["command"], space)["generalisation"]
    names = {}
    exec(second["python"], names)  # test data are opened once: the same question has the same answer
    assert names["second"].to_dict() == first


@pytest.mark.parametrize(
    ("kind", "given"),
    [("verify", {"fresh": "20"}), ("audit", {"sample": "2"}), ("export", {"to": "control", "check": False})],
)
def test_the_python_of_an_action_is_python_and_its_command_works(made, studio, space, monkeypatch, kind, given):
    monkeypatch.chdir(space)
    shown = studio.json("POST", "/api/act", {"kind": kind, "run": "runs/dates", "given": given})
    answer = run(shown["command"], space)
    if kind == "export":
        for file in answer["files"]:
            (space / file).unlink(missing_ok=True)
    names = {}
    exec(shown["python"], names)
    if kind == "verify":
        assert names["outcome"]["fresh"] == answer["fresh"] + 20, "a second time adds to the first"
    if kind == "audit":
        assert names["outcome"].statement
        assert answer["statement"].split(":")[0] == names["outcome"].statement.split(":")[0]


def test_commands_of_a_run_from_elsewhere_look_at_it(studio, space):
    training, validation = ph_experiment(samples=(300, 200))
    identify(training, validation, law="paper", order=6, networks=20, beta=0.1, run=space / "runs/elsewhere")
    found = studio.json("GET", "/api/run?name=runs/elsewhere")
    assert found["command"] == "echobound show runs/elsewhere"
    (space / "runs/elsewhere/certificate.json").unlink()
    found = studio.json("GET", "/api/run?name=runs/elsewhere")
    assert found["command"] == "echobound watch runs/elsewhere"
    assert found["facts"]["state"] == "unfinished"
