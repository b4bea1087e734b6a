import json
import sqlite3
import sys

import numpy as np
import pytest
import scipy.stats

from echobound.audit import audit
from echobound.campaign import Computing
from echobound.data import Record
from echobound.draws import VERIFICATION
from echobound.errors import DamagedFile, InputError, RunError
from echobound.identify import identify
from echobound.network import Choice, ReservoirLaw
from echobound.runs.folder import RunFolder
from echobound.runs.verification import verification_of
from echobound.scenario.sequences import sequential_limit
from echobound.verify import verify

SMALL = {"law": "paper", "order": 12, "epsilon": 0.2, "beta": 1e-3, "washout": 60}


@pytest.fixture
def folder(ph_records, tmp_path):
    identify(*ph_records, **SMALL, run=tmp_path / "run")
    return tmp_path / "run"


def test_counts_and_probabilities(folder):
    outcome = verify(folder, fresh=40)
    run = RunFolder(folder)
    fresh = run.rows(VERIFICATION)["scores"][:, 0]
    best, worst = run.search["scores"][:, 0].max(), run.search["scores"][:, 0].min()
    assert outcome["fresh"] == len(fresh) == 40
    assert outcome["violations"] == (fresh > best).sum()
    assert outcome["worst"]["violations"] == (fresh < worst).sum()
    law = scipy.stats.betabinom(40, 1, 31)
    assert outcome["p_value"] == pytest.approx(law.sf(outcome["violations"] - 1), rel=1e-9)
    # The sequence excludes v where the density of the posterior is below beta times that of Beta(1, c).
    posterior = scipy.stats.beta(1 + outcome["violations"], 31 + 40 - outcome["violations"])
    at, spread = outcome["epsilon_combined"], scipy.stats.beta(1, 31 / np.log(1000))
    assert posterior.pdf(at) == pytest.approx(1e-3 * spread.pdf(at), rel=1e-6)


def test_fresh_networks_are_none_of_the_search(folder):
    verify(folder, fresh=31)
    run = RunFolder(folder)
    assert not set(run.rows(VERIFICATION)["scores"][:, 0]) & set(run.search["scores"][:, 0])


def test_a_second_call_continues_and_pools(folder, tmp_path, ph_records):
    verify(folder, fresh=10)
    outcome = verify(folder, fresh=15)
    assert outcome["fresh"] == 25
    identify(*ph_records, **SMALL, run=tmp_path / "other")
    assert verify(tmp_path / "other", fresh=25) == outcome
    rows = RunFolder(folder).rows(VERIFICATION)
    assert rows["index"].tolist() == list(range(25))


def test_the_certificate_stays_as_it_is(folder):
    before = (folder / "certificate.json").read_bytes()
    verify(folder, fresh=5)
    assert (folder / "certificate.json").read_bytes() == before
    assert RunFolder(folder).certificate is not None
    assert "fresh" in (folder / "report.html").read_text()


def test_nothing_is_drawn_for_a_tampered_run(folder):
    path = folder / "certificate.json"
    path.write_text(path.read_text().replace('"epsilon": 0.2', '"epsilon": 0.1'))
    with pytest.raises(DamagedFile):
        verify(folder, fresh=5)
    assert len(RunFolder(folder).rows(VERIFICATION)) == 0


def test_bad_arguments(folder, tmp_path):
    with pytest.raises(InputError, match="whole number from 0"):
        verify(folder, fresh=-1)
    with pytest.raises(RunError, match="not a run folder"):
        verify(tmp_path / "nothing")
    assert verify(folder, fresh=0)["fresh"] == 0
    assert np.isclose(verify(folder, fresh=0)["p_value"], 1.0)


def test_how_to_compute_may_be_given_in_both_ways(folder):
    with pytest.raises(InputError, match=r"unknown setting 'worker' .*known are workers, kernel, engine, scheduler"):
        verify(folder, fresh=1, worker=2)
    with pytest.raises(InputError, match="unknown setting 'order'"):
        audit(folder, order=5)
    with pytest.raises(InputError, match="unknown kernel"):  # a keyword takes precedence, and is not ignored
        verify(folder, fresh=1, computing=Computing(workers=1), kernel="tpu")
    assert verify(folder, fresh=1, computing=Computing(workers=1), kernel="reference")["fresh"] == 1


def changed(folder, statement):
    with sqlite3.connect(folder / "ledger.sqlite") as db:
        db.execute(statement)
    db.close()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM rows WHERE stream = 1 AND number = 3",
        "DELETE FROM rows WHERE stream = 1 AND number = 9",
        "UPDATE rows SET score_0 = -999 WHERE stream = 1 AND number = 2",
    ],
)
def test_tampering_with_fresh_rows_is_refused(folder, statement):
    verify(folder, fresh=10)
    changed(folder, statement)
    with pytest.raises(DamagedFile, match="fresh rows"):
        verification_of(RunFolder(folder))


def test_every_fresh_network_that_was_ever_drawn_counts(folder):
    """Interrupted after some networks, a verification could be started again with fewer, and forget them."""

    class Stop(Exception):
        pass

    def stop(event):
        if event.fresh >= 4:
            raise Stop

    verify(folder, fresh=6)
    with pytest.raises(Stop):
        verify(folder, fresh=30, on_progress=stop)
    drawn = len(RunFolder(folder).rows(VERIFICATION))
    assert drawn > 7
    outcome = verify(folder, fresh=1)
    assert outcome["fresh"] >= drawn
    assert outcome["fresh"] == 1 + int(RunFolder(folder).rows(VERIFICATION)["index"].max())
    assert verify(folder, fresh=2)["fresh"] == outcome["fresh"] + 2


def test_a_verification_that_was_written_but_interrupted_is_resumed(folder, monkeypatch):
    """Killed while its page was written, it drew another batch when it was started again."""
    verify(folder, fresh=6)

    def stop(_folder):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["echobound.verify"], "write_page", stop)
        with pytest.raises(KeyboardInterrupt):
            verify(folder, fresh=10)
    assert verification_of(RunFolder(folder))["fresh"] == 16, "what was drawn counts, and is shown"
    assert verify(folder, fresh=10)["fresh"] == 16, "the same act, finished"
    assert verify(folder, fresh=10)["fresh"] == 26, "another act"
    assert audit(folder, sample=2).passed


@pytest.mark.parametrize("before", [-1, 17, "6", True])
def test_an_impossible_beginning_is_refused(folder, before):
    verify(folder, fresh=16)
    stated = json.loads((folder / "verification.json").read_text())
    (folder / "verification.json").write_text(json.dumps({**stated, "before": before}))
    with pytest.raises(DamagedFile, match="before"):
        verification_of(RunFolder(folder))


def test_worst_case_after_divergence_pools_all_networks(tmp_path):
    k = np.arange(400)
    record = Record(u=np.sin(0.1 * k), y=np.exp(0.05 * k))
    long = Record(u=np.sin(0.1 * np.arange(60_000)), y=np.exp(0.05 * (np.arange(60_000) % 400)))
    law = ReservoirLaw(order=3, output_delays=Choice((0, 1)), norm=0.1, feedback_scale=0.0, input_scale=0.01)
    result = identify(record, long, law=law, epsilon=0.3, beta=0.05, washout=100, run=tmp_path / "r")
    failures = result.certificate.failures
    assert 0 < failures < result.certificate.networks, "the test needs some networks that diverge"
    outcome = verify(tmp_path / "r", fresh=12)["worst"]
    diverged = int((~np.isfinite(RunFolder(tmp_path / "r").fresh["scores"][:, 0])).sum())
    total, events = result.certificate.networks + 12, failures + diverged
    limit = sequential_limit(events, total, 0.05)
    assert outcome["violations"] == 0
    assert outcome["epsilon_combined"] == limit > scipy.stats.beta.isf(0.05, events + 1, total - events)
