"""The one reader of a run folder: each file is read once, the ledger is opened once, models run once."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from echobound import audit, generalise, identify, ph_experiment, verify
from echobound.campaign import search as search_module
from echobound.campaign.interrupt import Interrupted
from echobound.data.experiments import Experiments
from echobound.errors import DamagedFile, RunError
from echobound.network import Committee, EchoStateNetwork
from echobound.runs import RunFolder, reader
from echobound.runs import folder as folder_module
from echobound.runs import rows as module
from echobound.runs.ledger import Ledger
from echobound.runs.ranks import ranks_and_quantiles
from echobound.runs.scoring import scores_of
from echobound.runs.verification import verification_of

SMALL = {"law": "paper", "order": 6, "networks": 25, "beta": 1e-2, "washout": 60, "committee": 3}


@pytest.fixture(scope="module")
def records():
    return ph_experiment(samples=(400, 300, 150, 160))


def run_of(records, path, **more):
    return identify(*records[:2], test=records[2:], **SMALL, **more, run=path).run


def show(run):
    """What `echobound show` reads."""
    folder = RunFolder(run)
    _ = folder.certificate, folder.generalisation, folder.model, folder.committee
    return scores_of(folder), verification_of(folder), ranks_and_quantiles(folder, 2, 0.5)


COMMANDS = {
    "identify": lambda run, records: run_of(records, run.with_name("another")),
    "identify, resumed": lambda run, records: run_of(records, run),
    "verify": lambda run, _: verify(run, fresh=2),
    "audit": lambda run, _: audit(run, sample=2),
    "generalise": lambda run, _: generalise(run),
    "show": lambda run, _: show(run),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_ledger_is_opened_and_checked_once(records, tmp_path, monkeypatch, command):
    run = run_of(records, tmp_path / "run")
    verify(run, fresh=3)
    opened = []
    real = Ledger._open
    monkeypatch.setattr(Ledger, "_open", lambda self, plan: opened.append(self.path) or real(self, plan))
    COMMANDS[command](run, records)
    assert len(opened) == 1


@pytest.mark.parametrize("command", ["show", "audit", "verify"])
def test_each_file_is_read_once(records, tmp_path, monkeypatch, command):
    run = run_of(records, tmp_path / "run")
    verify(run, fresh=3)
    read = Counter()

    def counted(real):
        def reads(*arguments):
            [path] = [one for one in arguments if isinstance(one, Path)]
            read[path.name] += 1
            return real(*arguments)

        return reads

    monkeypatch.setattr(module, "read_json", counted(module.read_json))
    monkeypatch.setattr(reader, "load_model", counted(reader.load_model))
    for kind in (Experiments, Committee):
        real = kind.__dict__["load"].__func__
        monkeypatch.setattr(kind, "load", classmethod(counted(real)))
    COMMANDS[command](run, records)
    files = {"plan.json", "certificate.json", "verification.json", "generalisation.json"}
    read.pop("assessment.json", None)  # what was assessed before is read where a page is written again
    assert read == Counter(files | {"data.npz", "model.npz", "network.npz"})


@pytest.mark.parametrize("horizon", [None, 2])
def test_models_run_over_the_test_data_once(records, tmp_path, monkeypatch, horizon):
    """With scores, second certificate and page: each model once for each test record."""
    runs, inside = Counter(), []

    def counted(kind, name):
        real = getattr(kind, name)

        def run(self, record, *arguments, **options):
            if not inside:  # members of a committee run for the committee
                runs[kind.__name__, getattr(record, "name", "steps")] += 1
            inside.append(1)
            try:
                return real(self, record, *arguments, **options)
            finally:
                inside.pop()

        monkeypatch.setattr(kind, name, run)

    name = "simulate" if horizon is None else "predict"
    counted(EchoStateNetwork, name)
    counted(Committee, name)
    result = identify(*records[:2], test=records[2:], criterion="rmse<1", horizon=horizon, **SMALL, run=tmp_path / "r")
    assert result.generalisation is not None
    assert (tmp_path / "r" / "report.html").exists()
    tests = [record.name for record in records[2:]]
    assert len(set(tests)) == 2
    assert {key: runs[key] for key in runs if key[1] in tests} == {
        (kind, record): 1 for kind in ("EchoStateNetwork", "Committee") for record in tests
    }


def test_a_plan_of_another_run_does_the_same_again(records, tmp_path):
    """`identify(..., plan=RunFolder(old).plan)`: settings may be given on top of it."""
    old = run_of(records, tmp_path / "old", stop=None, discarded=1)
    plan = RunFolder(old).plan
    again = identify(*records[:2], test=records[2:], plan=plan)
    assert again.certificate == RunFolder(old).certificate
    other = identify(*records[:2], plan=plan, seed=7)
    assert other.certificate.seed == 7
    assert other.certificate.networks == again.certificate.networks


def test_of_two_plans_started_at_once_in_a_new_folder_one_is_refused(records, tmp_path, monkeypatch):
    """The second one starts while the first writes its plan, which is when two processes would meet."""
    other = []
    real = folder_module.write_json

    def write(path, content):
        if path.name == "plan.json" and not other:
            other.append(None)
            with pytest.raises(RunError, match="in use by process"):
                identify(*records[:2], **{**SMALL, "seed": 1}, run=tmp_path / "run")
        real(path, content)

    monkeypatch.setattr(folder_module, "write_json", write)
    run_of(records, tmp_path / "run")
    assert RunFolder(tmp_path / "run").plan.seed == 0
    _ = RunFolder(tmp_path / "run").certificate
    with pytest.raises(RunError, match=r"another plan \(other seed\)"):
        identify(*records[:2], test=records[2:], **{**SMALL, "seed": 1}, run=tmp_path / "run")


def test_what_a_kill_leaves_in_the_first_moments_is_a_new_folder(records, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "ledger.lock").write_text("")
    (run / ".plan.json.0a1b2c3d").write_text("{")
    (run / ".mine.txt.00000000").write_text("")
    with pytest.raises(RunError, match="not empty"):
        run_of(records, run)
    (run / ".mine.txt.00000000").unlink()
    run_of(records, run)
    (run / ".data.npz.0a1b2c3d").write_text("{")
    run_of(records, run)
    assert not list(run.glob(".*"))


def test_a_kill_between_other_models_and_their_certificate_leaves_a_run_to_be_resumed(records, tmp_path, monkeypatch):
    """A search that is continued may find another best network."""

    class Killed(BaseException):
        pass

    def write(path, content):
        if path.name == "certificate.json":
            raise Killed
        real(path, content)

    settings = {**SMALL, "networks": None, "epsilon": 0.05, "stop": "anytime:10"}
    stop_at = 20
    monkeypatch.setattr(search_module, "run_campaign", interrupted(search_module.run_campaign, lambda: stop_at))
    run = identify(*records[:2], **settings, run=tmp_path / "run").run
    first = RunFolder(run).certificate
    stop_at = 100
    real = folder_module.write_json
    monkeypatch.setattr(folder_module, "write_json", write)
    with pytest.raises(Killed):
        identify(*records[:2], **settings, run=run)
    monkeypatch.setattr(folder_module, "write_json", real)
    identify(*records[:2], **settings, run=run)
    second = RunFolder(run).certificate
    assert (first.networks, second.networks) == (20, 100)
    assert first.digests["committee"] != second.digests["committee"]  # otherwise nothing was tried


def interrupted(real, networks):
    """A campaign that draws so many networks, and is asked to stop then."""

    def run(candidates, indices, ledger, engine, **how):
        real(candidates, range(networks()), ledger, engine, **how)
        raise Interrupted(signal.SIGINT, "stopped")

    return run


@pytest.mark.parametrize("file", ["plan.json", "data.npz", "model.npz", "certificate.json", "verification.json"])
def test_links_in_a_folder_are_not_followed(records, tmp_path, file):
    run = run_of(records, tmp_path / "run")
    verify(run, fresh=2)
    (run / file).rename(tmp_path / "elsewhere")
    (run / file).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DamagedFile, match=f"{file}.*a link, which is not followed"):
        show(run)
    assert not audit(run, sample=1).passed
    (run / file).unlink()
    os.mkfifo(run / file)
    with pytest.raises(DamagedFile, match=f"{file}.*not a file"):
        show(run)
