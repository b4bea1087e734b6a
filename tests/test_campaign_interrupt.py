"""Signals: kept while a campaign runs, restored afterwards."""

import signal
import threading

import pytest
from campaigns import campaign

from echobound.campaign.interrupt import Interrupted, asked_to_stop
from echobound.kernels import hold_out
from echobound.network import paper
from echobound.runs.ledger import Ledger
from echobound.scores import get_score

BOTH = (signal.SIGINT, signal.SIGTERM)


@pytest.mark.parametrize("signum", BOTH)
def test_a_signal_is_kept_and_handlers_come_back(signum):
    before = [signal.getsignal(s) for s in BOTH]
    with asked_to_stop() as asked:
        assert asked() is None
        signal.raise_signal(signum)
        assert asked() == signum
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert asked() == signum
    assert [signal.getsignal(s) for s in BOTH] == before


def test_ignored_signals_stay_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with asked_to_stop() as asked:
            signal.raise_signal(signal.SIGINT)
            assert asked() is None
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_leaves_signals_alone():
    found = []

    def inside():
        with asked_to_stop() as asked:
            found.append((signal.getsignal(signal.SIGINT), asked()))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert found == [(signal.getsignal(signal.SIGINT), None)]


@pytest.mark.parametrize("kept", [True, False])
def test_a_campaign_says_how_far_it_came_and_how_to_resume(ph_records, tmp_path, kept):
    problem = hold_out(*ph_records, law=paper(5), scores=[get_score("fit")], washout=60)

    def once(event):
        if event.fresh:
            signal.raise_signal(signal.SIGTERM) if not raised else None
            raised.append(1)

    raised = []
    with Ledger(tmp_path / "ledger.sqlite" if kept else None, "p", ["fit"]) as ledger:
        with pytest.raises(Interrupted) as caught:
            campaign(problem, range(500), ledger, batch=2, workers=2, on_progress=once)
        done = len(ledger.rows())
        assert 2 <= done <= 2 * 5, "the batch that ended, and at most those submitted"
        assert caught.value.code == 143
        text = f"stopped by SIGTERM at {done} of 500 networks: they are "
        text += f"kept, and the same command with the run folder {tmp_path} resumes from there" if kept else "lost"
        assert str(caught.value).startswith(text)
        rows = campaign(problem, range(500), ledger)
    assert rows["index"].tolist() == list(range(500))
