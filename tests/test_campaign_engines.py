"""One contract for all engines: the same rows, bounded batches, lost workers replaced, what cannot travel refused."""

import dataclasses
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from campaigns import campaign, same

from echobound.campaign import Computing
from echobound.campaign.engines import AnyExecutor, Engine, Processes, Report, Threads, get_engine
from echobound.campaign.engines.base import evaluate
from echobound.candidates import Networks
from echobound.errors import InputError, MissingExtra, RunError
from echobound.identify import identify
from echobound.kernels import get_kernel, hold_out
from echobound.network import broad
from echobound.runs.ledger import Ledger
from echobound.runs.provenance import here
from echobound.scores import Score, get_score

NAMES = ["fit", "rmse"]


@pytest.fixture(scope="module")
def problem(ph_records):
    return hold_out(*ph_records, law=broad(order=12), scores=[get_score(name) for name in NAMES], washout=60)


@pytest.fixture(scope="module")
def expected(problem):
    return table(problem, "threads")


def table(problem, engine, count=60, **options):
    with Ledger(None, "p", NAMES) as ledger:
        return campaign(problem, range(count), ledger, engine=engine, **options)


def executors():
    return {
        "threads": lambda: "threads",
        "processes": lambda: "processes",
        "dask": lambda: "dask",
        "a pool of threads": lambda: ThreadPoolExecutor(2),
        "a pool of processes": lambda: ProcessPoolExecutor(2, get_context("spawn")),
    }


@pytest.mark.parametrize("make", executors().values(), ids=executors())
def test_rows_are_the_same_on_every_engine(problem, expected, make):
    engine = make()
    try:
        rows = table(problem, engine, workers=2)
    finally:
        if not isinstance(engine, str):
            engine.shutdown()
    assert same(rows, expected)


def test_an_engine_serves_several_campaigns(problem, expected):
    with get_engine("processes", 1) as engine:
        assert same(table(problem, engine), expected)
        other = problem.on(stream=1)
        assert same(table(other, engine), table(other, "threads"))
    with Threads(1) as lent:
        with Computing(engine=lent).open_engine() as engine:
            assert engine is lent
        assert same(table(problem, lent), expected), "whoever lent it closes it"


def test_a_process_that_is_lost_is_replaced(problem, expected):
    with Processes(2) as engine:
        killed = []

        def kill(event):
            if event.fresh and len(killed) < 2 and event.done > 20 * len(killed):
                pid = next(iter(engine._executor._processes))
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

        assert same(table(problem, engine, batch=3, on_progress=kill), expected)
    assert len(killed) == 2


class Deadly:
    """A kernel whose process dies."""

    name = "deadly"

    def evaluate(self, problem, indices):
        os._exit(1)


def test_a_batch_that_kills_every_worker_ends_the_campaign(problem):
    with Ledger(None, "p", NAMES) as ledger, pytest.raises(RunError, match=r"draws 0 to 1 was lost .* 4 times"):
        campaign(problem, range(2), ledger, kernel=Deadly(), engine="processes", workers=1, batch=2)


def test_a_broken_executor_of_the_users_is_said(problem):
    class Broken(ThreadPoolExecutor):
        def submit(self, *_):
            raise BrokenExecutor("the nodes are gone")

    with pytest.raises(RunError, match=r"executor Broken is broken \(the nodes are gone\): finished rows are safe"):
        table(problem, Broken(1))


def test_how_many_workers_an_executor_has():
    assert AnyExecutor(ThreadPoolExecutor(5)).workers == 5
    assert AnyExecutor(ThreadPoolExecutor(5), workers=3).workers == 3


def test_data_are_unpacked_once_in_a_worker(problem, expected, monkeypatch):
    from echobound.campaign.engines import executors as module

    unpacked = []
    real = module.pickle.loads
    monkeypatch.setattr(module, "_unpacked", module._Unpacked())
    monkeypatch.setattr(module.pickle, "loads", lambda content: unpacked.append(1) or real(content))
    with ThreadPoolExecutor(2) as pool:
        assert same(table(problem, pool, batch=2), expected)
    assert len(unpacked) == 1


@pytest.mark.parametrize("engine", ["processes", "dask"])
def test_a_score_that_cannot_travel_is_refused(ph_records, engine):
    peak = Score("peak", lambda y, yhat: np.abs(y - yhat).max(), "min")
    with pytest.raises(InputError, match=r"score 'peak' cannot be sent to other processes: define its function"):
        identify(*ph_records, law="paper", order=5, networks=20, scores=[peak], engine=engine, workers=1)


def mean_error(measured, simulated):
    return abs(float((measured - simulated).mean()))


def test_a_score_of_ones_own_that_can_travel(ph_records):
    options = {"law": "paper", "order": 5, "networks": 20, "scores": [Score("bias", mean_error, "min"), "fit"]}
    results = [identify(*ph_records, **options, engine=engine, workers=1) for engine in ("threads", "processes")]
    assert results[0].certificate == results[1].certificate


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("mpi",), "unknown engine 'mpi': known are threads, processes, dask"),
        ((None,), "unknown engine None"),
        (("threads", None, "tcp://127.0.0.1:1"), "a scheduler was given, but the engine is 'threads'"),
        (("threads", 0), "workers"),
        (("processes", -1), "workers"),
    ],
)
def test_bad_engines(arguments, match):
    with pytest.raises(InputError, match=match):
        get_engine(*arguments)


def test_a_bad_engine_leaves_nothing_behind(ph_records, tmp_path):
    with pytest.raises(InputError, match="unknown engine"):
        identify(*ph_records, law="paper", order=5, networks=20, engine="gpu", run=tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"pip install 'echobound\[dask\]'"):
        get_engine("dask")


class Alone:
    """A kernel that fills its device: large batches, one caller at a time."""

    name, batch, parallel = "alone", 25, False

    def __init__(self):
        self.sizes, self.inside, self.most, self._lock = [], 0, 0, threading.Lock()

    def evaluate(self, problem, indices):
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.sizes.append(len(indices))
        rows = get_kernel("cpu").evaluate(problem, indices)
        with self._lock:
            self.inside -= 1
        return rows


def test_a_kernel_says_how_it_wants_to_be_called(problem, expected):
    kernel = Alone()
    with Ledger(None, "p", NAMES) as ledger:
        rows = campaign(problem, range(60), ledger, kernel=kernel, workers=3)
    assert same(rows, expected)
    assert sorted(kernel.sizes) == [10, 25, 25]
    assert kernel.most == 1


def test_one_caller_at_a_time_also_in_a_worker_with_several_threads(problem):
    kernel = Alone()
    networks = Networks(kernel, problem)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda indices: evaluate(networks, indices), [range(k, k + 5) for k in range(0, 30, 5)]))
    assert (len(kernel.sizes), kernel.most) == (6, 1)


class Elsewhere(Engine):
    """Workers on a machine of another kind."""

    name, workers = "elsewhere", 2

    def __init__(self, **other):
        self.place = dataclasses.replace(here(), host="node 7", **other)

    def start(self, candidates):
        self.candidates = candidates

    def submit(self, indices):
        future = Future()
        report = evaluate(self.candidates, indices)
        future.set_result(Report(report.rows, report.seconds, self.place))
        return future


@pytest.mark.parametrize("package", ["echobound", "numpy"])
def test_rows_of_another_version_do_not_get_into_the_ledger(problem, package):
    with Ledger(None, "p", NAMES) as ledger:
        ours = getattr(here(), package)
        with pytest.raises(RunError, match=rf"worker on node 7 has {package} 0\.0\.1, but here it is {ours}"):
            campaign(problem, range(9), ledger, engine=Elsewhere(**{package: "0.0.1"}))
        assert len(ledger.rows()) == 0


def test_the_certificate_says_what_ran_where(ph_records, tmp_path):
    class Stop(Exception):
        pass

    def stop(event):
        if event.fresh:
            raise Stop

    options = {"law": "paper", "order": 5, "networks": 40, "run": tmp_path / "r"}
    with pytest.raises(Stop):
        identify(*ph_records, **options, on_progress=stop)
    result = identify(*ph_records, **options, engine=Elsewhere(processor="abacus"))
    first, second = result.certificate.provenance["ran"]
    assert (first["engine"], first["host"], first["kernel"]) == ("threads", here().host, "cpu")
    assert (second["engine"], second["host"], second["processor"]) == ("elsewhere", "node 7", "abacus")
    assert first["networks"] + second["networks"] == 40
    assert min(first["networks"], second["networks"]) > 0


def test_a_script_without_a_main_guard_is_not_needed_for_threads(tmp_path):
    """The default engine starts no processes, so a plain script works."""
    script = tmp_path / "plain.py"
    script.write_text(
        "from echobound import identify, ph_experiment\n"
        "print(len(identify(*ph_experiment(samples=(400, 300)), law='paper', order=5, networks=20).table))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "20\n"


def test_our_own_dask_cluster_has_no_port():
    """On 127.0.0.1 too, every user of the machine could connect to one, and run code as us."""
    psutil = pytest.importorskip("psutil")
    pytest.importorskip("distributed")
    here = psutil.Process()
    before = {one.laddr for one in here.net_connections() if one.status == "LISTEN"}
    with get_engine("dask", workers=2) as engine:
        assert engine.workers == 2
        assert engine.address.startswith("inproc://")
        everybody = [here, *here.children(recursive=True)]
        after = {one.laddr for process in everybody for one in process.net_connections() if one.status == "LISTEN"}
    assert after <= before
