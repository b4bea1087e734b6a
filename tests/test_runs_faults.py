"""Faults of a run folder: the first one raised, or all of them collected."""

import json
import shutil

import pytest

from echobound.errors import DamagedFile, RunError
from echobound.files import read_json, write_json
from echobound.identify import identify
from echobound.runs.faults import Faults, Finding, Unusable
from echobound.runs.folder import RunFolder

SMALL = {"law": "paper", "order": 5, "networks": 20, "beta": 1e-2, "washout": 60, "committee": 2}


@pytest.fixture
def collecting(tmp_path):
    return Faults(tmp_path, collect=True)


@pytest.fixture(scope="module")
def honest(ph_records, tmp_path_factory):
    return identify(*ph_records, **SMALL, run=tmp_path_factory.mktemp("runs") / "honest").run


@pytest.fixture
def run(honest, tmp_path):
    return shutil.copytree(honest, tmp_path / "run")


def test_the_first_one_is_raised(tmp_path):
    faults = Faults(tmp_path)
    faults.require("plan.json", "seed", expected=1, found=1)
    with pytest.raises(DamagedFile, match=r"plan\.json is damaged or was changed \(seed: 1 follows, 2 is stated\)"):
        faults.require("plan.json", "seed", expected=1, found=2)
    with pytest.raises(DamagedFile, match=r"\(content: rows are missing\)"):
        faults.report("ledger.sqlite", "", 3, 2, why="rows are missing")
    assert not faults.findings


def test_all_are_collected(collecting):
    collecting.require("plan.json", "seed", expected=1, found=2)
    collecting.report("ledger.sqlite", "", "rows", "none", why="not said, since the finding says it")
    assert collecting.findings == [Finding("plan.json, seed", "1", "2"), Finding("ledger.sqlite", "rows", "none")]
    assert str(collecting.findings[0]) == "plan.json, seed: expected 1, found 2"


def test_true_is_not_one(collecting):
    collecting.require("plan.json", "joint", expected=True, found=1)
    collecting.require("plan.json", "joint", expected=True, found=True)
    assert len(collecting.findings) == 1


def test_objects_are_compared_key_by_key(collecting):
    ours = {"law": {"order": 5, "norm": 0.9}, "seed": 0, "beta": 0.1}
    collecting.compare("plan.json", ours, {"law": {"order": 6, "norm": 0.9}, "seed": 0, "more": [1]})
    assert collecting.findings == [
        Finding("plan.json, law, order", "5", "6"),
        Finding("plan.json, beta", "0.1", "nothing"),
        Finding("plan.json, more", "nothing", "[1]"),
    ]


def test_long_values_are_cut(collecting, tmp_path):
    collecting.report("plan.json", "folds", "x" * 1000, "y")
    assert len(collecting.findings[0].expected) == 300
    with pytest.raises(DamagedFile) as caught:
        Faults(tmp_path).report("plan.json", "folds", "x" * 1000, "y")
    assert len(caught.value.why) < 200


def failing(error):
    def read():
        raise error

    return read


def test_an_attempt_that_fails_is_a_finding_once(collecting, tmp_path):
    assert collecting.attempt("plan.json", lambda: 3) == 3
    assert collecting.attempt("model.npz", failing(DamagedFile("model.npz", "header", "not JSON"))) is None
    assert collecting.attempt("test.npz", failing(RunError("test.npz is missing"))) is None
    assert collecting.attempt("data.npz", failing(Unusable("known"))) is None
    assert [str(finding) for finding in collecting.findings] == [
        "model.npz, header: expected what was written, found not JSON",
        "test.npz: expected a file that can be used, found test.npz is missing",
    ]
    with pytest.raises(RunError, match="missing"):
        Faults(tmp_path).attempt("test.npz", failing(RunError("test.npz is missing")))
    with pytest.raises(ZeroDivisionError):  # not an error of ours: never hidden
        collecting.attempt("test.npz", failing(ZeroDivisionError()))


def test_a_reader_that_collects_finds_everything_and_one_that_raises_the_first(run):
    plan = read_json(run / "plan.json")
    write_json(run / "plan.json", plan | {"digest": "0" * 64})
    content = read_json(run / "certificate.json")
    write_json(run / "certificate.json", content | {"epsilon": 0.001, "winner": 19})
    (run / "committee.npz").write_bytes(b"nothing")
    faults = Faults(run, collect=True)
    folder = RunFolder(run, faults)
    for _ in range(2):  # asked for twice, reported once
        assert faults.attempt("certificate.json", lambda: folder.certificate) is None
    parts = [finding.part for finding in faults.findings]
    assert len(parts) == len(set(parts)), parts
    assert {"plan.json, digest", "certificate.json, epsilon", "certificate.json, winner"} <= set(parts)
    assert any(part.startswith("committee.npz") for part in parts)
    with pytest.raises(DamagedFile, match=r"plan\.json"):
        _ = RunFolder(run).certificate


def test_a_file_that_is_no_json(run):
    (run / "certificate.json").write_text("{")
    faults = Faults(run, collect=True)
    folder = RunFolder(run, faults)
    assert faults.attempt("certificate.json", lambda: folder.certificate) is None
    assert faults.attempt("certificate.json", lambda: folder.stated) is None
    assert len(faults.findings) == 1
    with pytest.raises(DamagedFile, match=r"certificate\.json is damaged"):
        _ = RunFolder(run).certificate


@pytest.mark.parametrize(
    ("file", "change", "sentence"),
    [
        ("certificate.json", {"epsilon": 0.001}, r"certificate\.json .*\(epsilon: 0\.2\d+ follows, 0\.001 is stated\)"),
        ("certificate.json", {"more": 1}, r"\(more: nothing follows, 1 is stated\)"),
        ("plan.json", {"seed": 1}, r"plan\.json .*\(digest: \w{64} follows, \w{64} is stated\)"),
    ],
)
def test_what_is_raised_is_one_sentence(run, file, change, sentence):
    (run / file).write_text(json.dumps(read_json(run / file) | change))
    with pytest.raises(DamagedFile, match=f"{sentence}: restore it from a copy or repeat the run$"):
        _ = RunFolder(run).certificate
