"""The contract of every export: what was written runs as the model does, and says where it comes from."""

import os
import shutil

import model_zoo
import numpy as np
import pytest

from echobound.errors import EchoboundError, InputError, RunError
from echobound.export import TARGETS, export_model
from echobound.export.base import difference
from echobound.export.card import card_of, identifier
from echobound.network import Committee

MODELS = model_zoo.zoo()
# What a target needs to run here besides its Python packages: skipped where absent, except where all must be there.
PROGRAMS = {"matlab": "octave-cli", "c": "cc", "fmu": "cc"}
# Starting a program or compiling takes longer than all runs together: fewer models, of each structure. An FMU is made
# of the exported C, which is compiled for all of them.
FEW = ("all features", "late readout", "even committee")
SLOW = {"matlab": FEW, "fmu": FEW}
CASES = [(target, name) for target in TARGETS for name in SLOW.get(target, MODELS)]


def require(target):
    program = PROGRAMS.get(target)
    if program and not shutil.which(program) and not os.environ.get("CI"):
        pytest.skip(f"{program} is not installed")


def exported(target, model, folder, **options):
    require(target)
    return export_model(model, place(folder, target), target, **options)


def place(folder, target):
    """Where a target can be written."""
    return folder / ("plant" if TARGETS[target].folder else f"plant{TARGETS[target].suffix}")


@pytest.mark.parametrize(("target", "name"), CASES)
def test_an_export_runs_as_the_model(target, name, tmp_path):
    done = exported(target, MODELS[name], tmp_path)
    assert all(file.is_file() for file in done.files)
    check = done.check(samples=120)
    assert check.largest_difference < 1e-12
    assert check.samples == 120 + 100  # from the mean, and after 20 measured outputs


@pytest.mark.parametrize("target", TARGETS)
def test_an_export_says_where_it_comes_from(target, tmp_path):
    model = MODELS["even committee"]
    certificate = {"digest": "c" * 64, "statement": "With confidence 0.9 it holds.", "digests": {"model": model.digest}}
    done = exported(target, model, tmp_path, certificate=certificate)
    texts = target_text(done)
    for text in (model.digest, "c" * 64, "About this model: With confidence 0.9 it holds.", "u 1", "y_1", "l/min"):
        assert text in texts, text
    assert "0.5 s" in texts or 'stepSize="0.5"' in texts
    assert "training mean" in texts  # how to start it
    assert "minmax" in texts


def target_text(done):
    """All texts of an export, with those inside of archives."""
    import zipfile

    texts = []
    for file in done.files:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                texts += [archive.read(name).decode("utf-8", "replace") for name in archive.namelist()]
        texts.append(file.read_bytes().decode("utf-8", "replace"))
    return " ".join("\n".join(texts).split())


def test_a_certificate_of_another_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="about another model"):
        card_of(MODELS["plain"], "m", {"digest": "c", "statement": "s", "digests": {"model": "other"}})


def test_a_committee_of_the_best_is_not_covered():
    model = MODELS["committee"]
    card = card_of(model, "m", {"digest": "c", "statement": "Promised.", "digests": {"committee": model.digest}})
    assert card.statement == "About the best network of the search, not this committee of the best: Promised."


def test_what_a_target_cannot_do_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(InputError, match="unknown target 'pascal': known are c"):
        export_model(MODELS["plain"], tmp_path / "m", "pascal")
    with pytest.raises(InputError, match="precision must be one of double, float"):
        export_model(MODELS["plain"], tmp_path / "m", "c", precision="half")
    with pytest.raises(InputError, match="version 2 or 3"):
        export_model(MODELS["plain"], tmp_path / "m.fmu", "fmu", fmi=1)
    for name, target in TARGETS.items():
        if "float" not in target.precisions:
            with pytest.raises(InputError, match="in double precision, not in float"):
                export_model(MODELS["plain"], place(tmp_path, name), name, precision="float")
    assert not list(tmp_path.iterdir())


def test_a_member_that_may_diverge_is_refused_where_it_cannot_be_left_out(tmp_path):
    runaway, tame = model_zoo.network(output_delays=1), model_zoo.network(seed=1)
    committee = Committee((runaway, tame, model_zoo.cascade()))
    for name, target in TARGETS.items():
        if not target.leaves_out_diverged:
            with pytest.raises(InputError, match="cannot leave out a member that diverges"):
                export_model(committee, place(tmp_path, name), name)
            export_model(runaway, place(tmp_path, name), name)


@pytest.mark.parametrize("target", [name for name, target in TARGETS.items() if target.leaves_out_diverged])
def test_a_member_that_diverges_is_left_out(target, tmp_path):
    runaway = model_zoo.network(output_delays=1, seed=2)
    runaway.readout[:] = 50.0
    model = Committee((runaway, model_zoo.network(seed=1), model_zoo.network(seed=3)))
    assert not np.isfinite(runaway.simulate(model_zoo.excitation(model, 300)).y).all()
    check = exported(target, model, tmp_path).check(model_zoo.excitation(model, 300))
    assert check.largest_difference < 1e-12


BROKEN = ("full", "interrupted")


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("target", TARGETS)
def test_an_export_that_fails_leaves_nothing(target, how, tmp_path, monkeypatch):
    """The disk is full, or the user interrupts, at the last of its files; an export that was there stays as it was."""
    before = exported(target, MODELS["plain"], tmp_path / "old").files
    kept = {file: file.read_bytes() for file in before}
    count, raised, real = [0], [], os.fsync

    def fsync(handle):
        count[0] += 1
        if count[0] == len(before):
            raised.append(handle)
            raise OSError(28, "No space left on device") if how == "full" else KeyboardInterrupt
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    for folder in (tmp_path / "old", tmp_path / "new" / "deeper"):
        count[0] = 0
        with pytest.raises(RunError if how == "full" else KeyboardInterrupt):
            exported(target, MODELS["committee"], folder)
    assert len(raised) == 2
    assert {file: file.read_bytes() for file in (tmp_path / "old").rglob("*") if file.is_file()} == kept
    assert [file.name for file in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize("target", TARGETS)
def test_a_place_that_it_cannot_be_written_to_is_refused_in_a_sentence(target, tmp_path):
    (tmp_path / "file.txt").write_text("mine")
    good = place(tmp_path, target)
    wrong = good.with_suffix(TARGETS[target].suffix) if TARGETS[target].folder else good.with_suffix(".txt")
    refused = {wrong: "several files: give a folder" if TARGETS[target].folder else "a file that ends in"}
    refused |= {tmp_path / "file.txt" / good.name: r"cannot write .*file.txt \(it is a file, and a folder"}
    if TARGETS[target].folder:
        refused |= {tmp_path / "file.txt": "several files: give a folder"}
    else:
        (tmp_path / "taken" / good.name).mkdir(parents=True)
        refused |= {tmp_path / "taken" / good.name: "there is a folder of that name"}
    before = sorted(tmp_path.rglob("*"))
    for path, why in refused.items():
        with pytest.raises(EchoboundError, match=why):
            export_model(MODELS["plain"], path, target)
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "file.txt").read_text() == "mine"


def test_a_difference_that_is_not_a_number_is_not_small():
    want = np.array([[0.0], [1.0]])
    assert difference(np.array([[0.0], [np.nan]]), want) == float("inf")
    assert difference(want[:1], want) == float("inf")


@pytest.mark.parametrize(("text", "name"), [("a b", "a_b"), ("Größe", "Gr_e"), ("__x__", "x"), ("1", "m_1")])
def test_names_are_identifiers_everywhere(text, name):
    assert identifier(text) == name
