"""The one reader of a run folder: each file is read once, the ledger is opened once, models run once."""

from collections import Counter
from pathlib import Path

import pytest

from echobound import audit, generalise, identify, ph_experiment, verify
from echobound.data.experiments import Experiments
from echobound.network import Committee, EchoStateNetwork
from echobound.runs import RunFolder, reader
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
    assert read == Counter(files | {"data.npz", "model.npz", "network.npz"})


@pytest.mark.parametrize("horizon", [None, 2])
def test_models_run_over_the_test_data_once(records, tmp_path, monkeypatch, horizon):
    """With scores, second certificate and page: each model once for each test record."""
    runs, inside = Counter(), []

    def counted(kind, name):
        real = getattr(kind, name)

        def run(self, record, *arguments, **options):
            if not inside:  # members of a committee run for the committee
                runs[kind.__name__, record.name] += 1
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
