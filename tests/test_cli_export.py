"""`export` on the command line: a run or a file in, files and the largest difference out, one sentence if not."""

import json
import sys
from dataclasses import replace

import model_zoo
import pytest
from typer.testing import CliRunner

from echobound import RunFolder, identify, load_model
from echobound.cli import main as entry
from echobound.cli.main import app
from echobound.errors import InputError


@pytest.fixture(scope="module")
def run(ph_records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "plant"
    identify(*ph_records, law="paper", order=8, networks=20, washout=30, run=folder)
    return folder


def told(*arguments):
    done = CliRunner().invoke(app, ["export", *map(str, arguments)], env={"COLUMNS": "300"})
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_run_is_exported_with_its_certificate_and_checked(run, tmp_path):
    content = json.loads(told(run, "--to", "control", "--output", tmp_path / "plant.py", "--check", "--json"))
    assert content["largest_difference"] < 1e-12
    assert content["files"] == [str(tmp_path / "plant.py"), str(tmp_path / "plant_numbers.npz")]
    certificate = json.loads((run / "certificate.json").read_text())
    assert content["card"]["certificate"] == certificate["digest"]
    assert content["card"]["statement"].startswith("About the best network of the search, not this committee")
    network = json.loads(told(run, "--to", "st", "--model", "network", "--output", tmp_path / "n.st", "--json"))
    assert network["card"]["statement"] == f"About this model: {certificate['statement']}"
    assert network["largest_difference"] is None


def test_a_model_file_is_exported_without_a_certificate(run, tmp_path):
    text = told(run / "model.npz", "--to", "st", "--output", tmp_path / "m.st", "--check")
    assert "None was given." in text
    assert "largest difference from the model is" in text
    assert "Start from the first measured input and output" in text


def test_the_name_is_made_from_the_run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert json.loads(told(run, "--to", "st", "--json"))["files"] == ["plant.st"]
    monkeypatch.chdir(run.parent)  # never into the run folder itself
    done = json.loads(told(run, "--to", "matlab", "--json"))
    assert done["files"] == ["plant_matlab/plant.m", "plant_matlab/plant_data.mat"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--to", "pascal"], "unknown target 'pascal'"),
        (["--to", "st", "--precision", "float"], "not in float"),
        (["--to", "c", "--precision", "half"], "precision must be one of"),
        (["--to", "fmu", "--fmi", "1"], "version 2 or 3"),
        (["--to", "st", "--model", "network"], "leave it out with a model file"),
    ],
)
def test_bad_input_gets_one_sentence_and_nothing_is_written(arguments, why, tmp_path, monkeypatch, capsys):
    model_zoo.network().save(tmp_path / "m.npz")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["echobound", "export", "m.npz", *arguments])
    with pytest.raises(SystemExit) as stopped:
        entry.main()
    assert stopped.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert why in said
    assert "Traceback" not in said
    assert [file.name for file in tmp_path.iterdir()] == ["m.npz"]


def test_models_of_a_run_export_themselves_with_its_certificate(ph_records, run, tmp_path):
    in_memory = identify(*ph_records, law="paper", order=5, networks=20, washout=30)
    stored = json.loads((run / "certificate.json").read_text())["digest"]
    runs = (in_memory, in_memory.certificate.to_dict()["digest"]), (RunFolder(run), stored)
    for at, (result, digest) in enumerate(runs):
        for name, begins in (("model", "About the best network of the search"), ("network", "About this model")):
            exported = getattr(result, name).export(tmp_path / f"{name}{at}.st", "st")
            assert exported.card.model == getattr(result, name).digest
            assert exported.card.certificate == digest
            assert exported.card.statement.startswith(begins)
            assert exported.check(samples=60).largest_difference < 1e-12
    assert in_memory.export(tmp_path / "m.st", "st").card == in_memory.model.export(tmp_path / "m.st", "st").card


def test_what_is_not_the_model_of_a_run_has_no_certificate(run, tmp_path):
    model = RunFolder(run).model
    for other in (load_model(run / "model.npz"), replace(model), load_model(run / "network.npz")):
        exported = other.export(tmp_path / "m.st", "st")
        assert (exported.card.certificate, exported.card.statement) == ("", "None was given.")
    assert model.export(tmp_path / "m.st", "st", certificate={}).card.certificate == ""
    given = load_model(run / "model.npz").export(tmp_path / "m.st", "st", certificate=model.certificate)
    assert given.card == model.export(tmp_path / "m.st", "st").card


def test_a_model_that_was_changed_in_place_does_not_carry_what_is_promised_about_another(run, tmp_path):
    model = RunFolder(run).network
    model.readout[:] *= 2.0
    with pytest.raises(InputError, match="about another model"):
        model.export(tmp_path / "m.st", "st")
    assert not (tmp_path / "m.st").exists()


def test_an_identification_without_a_model_says_so(ph_records, tmp_path):
    result = replace(identify(*ph_records, law="paper", order=5, networks=20, washout=30), model=None)
    with pytest.raises(InputError, match="there is no model to export"):
        result.export(tmp_path / "m.st", "st")
