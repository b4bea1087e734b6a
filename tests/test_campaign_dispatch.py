import time

import numpy as np
import pytest
from campaigns import campaign, same

from echobound.campaign import Computing, dispatch, evaluate_draws, get_engine, run_campaign
from echobound.campaign.engines import base, cluster, threads
from echobound.candidates import Networks
from echobound.errors import InputError, RunError
from echobound.kernels import get_kernel, hold_out
from echobound.network import broad
from echobound.runs.ledger import Ledger
from echobound.runs.progress import Progress
from echobound.scores import get_score


@pytest.fixture(scope="module")
def problem(ph_records):
    return hold_out(*ph_records, law=broad(order=12), scores=[get_score("fit"), get_score("rmse")], washout=60)


def table(problem, count, **options):
    with Ledger(None, "p", ["fit", "rmse"]) as ledger:
        return campaign(problem, range(count), ledger, **options)


def test_rows_are_the_same_for_any_workers_and_batches(problem):
    expected = table(problem, 70, workers=1, batch=64)
    assert expected["index"].tolist() == list(range(70))
    for workers in (1, 2, 3):
        for batch in (1, 7, 64):
            assert same(table(problem, 70, workers=workers, batch=batch), expected), (workers, batch)
    assert same(table(problem, 70), expected)


def test_an_interrupted_campaign_is_resumed(problem):
    class Interrupted(Exception):
        pass

    def stop(event):
        if event.fresh >= 5:
            raise Interrupted

    with Ledger(None, "p", ["fit", "rmse"]) as ledger:
        with pytest.raises(Interrupted):
            campaign(problem, range(30), ledger, workers=2, batch=2, on_progress=stop)
        kept = len(ledger.rows())
        assert 5 <= kept < 30
        seen = []
        rows = campaign(problem, range(30), ledger, workers=2, batch=2, on_progress=seen.append)
    assert same(rows, table(problem, 30))
    assert seen[0].done == kept
    assert seen[-1].fresh == 30 - kept


def test_progress_tells_best_worst_and_how_long(problem):
    seen: list[Progress] = []
    rows = table(problem, 20, batch=5, workers=1, on_progress=seen.append)
    assert [event.done for event in seen] == [0, 5, 10, 15, 20]
    assert seen[0].best is None
    assert seen[0].remaining is None
    assert seen[-1].best == rows["scores"][:, 0].max()
    assert seen[-1].worst == rows["scores"][:, 0].min()
    assert seen[2].remaining > 0
    assert seen[-1].remaining == 0
    assert all(event.planned == 20 for event in seen)


def test_a_part_of_the_indices_only(problem):
    with Ledger(None, "p", ["fit", "rmse"]) as ledger:
        first = campaign(problem, range(10), ledger)
        more = campaign(problem, range(4, 15), ledger)
    assert more["index"].tolist() == list(range(4, 15))
    assert same(more[:6], first[4:])


def test_submitted_batches_are_bounded(problem):
    started = []

    class Fast:
        name = "fast"

        def evaluate(self, problem, indices):
            started.append(indices)
            return get_kernel("reference").evaluate(problem, [])

    ahead = []

    class Counting(Ledger):
        def append(self, rows, **origin):
            ahead.append(len(started) - len(ahead))

    with Counting(None, "p", ["fit", "rmse"]) as ledger:
        campaign(problem, range(500), ledger, kernel=Fast(), workers=2, batch=1)
    assert len(ahead) == 500
    assert max(ahead) <= 8, "no more than a few batches are ahead of the ledger"


def test_errors_in_a_worker_are_raised(problem):
    class Broken:
        name = "broken"

        def evaluate(self, problem, indices):
            raise ZeroDivisionError("in the worker")

    with Ledger(None, "p", ["fit", "rmse"]) as ledger, pytest.raises(ZeroDivisionError):
        campaign(problem, range(5), ledger, kernel=Broken())


@pytest.mark.parametrize("bad", [{"workers": 0}, {"batch": 0}])
def test_bad_numbers(problem, bad):
    with pytest.raises(InputError, match="at least 1"):
        table(problem, 3, **bad)


def test_best_and_worst_of_a_score_to_minimise(ph_records):
    problem = hold_out(*ph_records, law=broad(order=12), scores=[get_score("rmse")], washout=60)
    seen = []
    with Ledger(None, "p", ["rmse"]) as ledger:
        rows = campaign(problem, range(6), ledger, on_progress=seen.append)
    assert seen[-1].best == rows["scores"].min() < seen[-1].worst == rows["scores"].max()
    assert np.isfinite(seen[-1].worst)


def test_draws_without_a_ledger(problem):
    """What an audit does: any indices, and rows in their order."""
    networks, indices, seen = Networks(get_kernel("cpu"), problem), [17, 3, 4, 60, 9], []
    expected = table(problem, 61)
    with Computing(workers=2).open_engine() as engine:
        rows = evaluate_draws(networks, indices, engine, batch=2, on_progress=seen.append)
        assert len(evaluate_draws(networks, [], engine)) == 0
    assert rows["index"].tolist() == sorted(indices)
    assert same(rows, expected[sorted(indices)])
    assert (seen[-1].done, seen[-1].planned, seen[-1].best) == (5, 5, rows["scores"][:, 0].max())


def test_what_is_prepared_is_told_and_not_counted_as_drawing(problem, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("echobound.runs.ledger.time.time", lambda: now[0])

    class Slow(Networks):
        def prepare(self, tell):
            now[0] += 500.0
            tell("compiling")

    seen = []
    with Ledger(None, "clock", ["fit", "rmse"]) as ledger, get_engine("threads", 1) as engine:
        rows = run_campaign(Slow(get_kernel("reference"), problem), range(4), ledger, engine, on_progress=seen.append)
        assert len(rows) == 4
        assert [one.doing for one in seen[:3]] == ["", "compiling", ""]
        assert ledger.progress().seconds < 100, "the clock starts when draws do"
        told = []
        evaluate_draws(Slow(get_kernel("reference"), problem), [2, 3], engine, on_progress=told.append)
    assert [one.doing for one in told] == ["compiling", *[""] * (len(told) - 1)]
    assert told[0].done == 0


def test_a_campaign_that_waits_for_long_says_so(problem, monkeypatch):
    """A worker that was paused holds its batches without a word."""
    monkeypatch.setattr(dispatch, "STALLED", 0.3)
    monkeypatch.setattr(dispatch, "GLANCE", 0.05)
    real = base.evaluate
    monkeypatch.setattr(threads, "evaluate", lambda *given: (time.sleep(1.0), real(*given))[1])
    with pytest.warns(UserWarning, match="no batch was finished for .* Ctrl-C ends, and the same command resumes"):
        table(problem, 2, workers=1, batch=1)


def test_a_scheduler_that_never_answers_is_lost(monkeypatch):
    pytest.importorskip("distributed")
    with get_engine("dask", workers=1) as engine:

        def silent(**_):
            raise TimeoutError

        monkeypatch.setattr(engine._client, "nthreads", silent)
        monkeypatch.setattr(cluster, "REFRESH", -1.0)
        assert engine.workers == 1  # it may be busy
        engine._heard -= cluster.SILENT
        with pytest.raises(RunError, match=r"has not answered for 1.. s: finished rows are safe"):
            engine.check()
