"""The Dask engine on a real cluster: scheduler and workers started by the `dask` command line, on loopback."""

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest
from campaigns import campaign, same
from test_cli import echobound, refused

from echobound.campaign import dispatch
from echobound.campaign.engines import cluster as cluster_module
from echobound.campaign.engines import get_engine
from echobound.campaign.engines.cluster import Dask
from echobound.errors import RunError
from echobound.kernels import hold_out
from echobound.network import broad
from echobound.runs.ledger import Ledger
from echobound.scores import get_score

pytest.importorskip("distributed")
NAMES = ["fit", "rmse"]
COUNT = 240


@pytest.fixture(scope="module")
def problem(ph_records):
    return hold_out(*ph_records, law=broad(order=30), scores=[get_score(name) for name in NAMES], washout=60)


@pytest.fixture(scope="module")
def expected(problem):
    with Ledger(None, "p", NAMES) as ledger:
        return campaign(problem, range(COUNT), ledger)


class Cluster:
    """Processes of the `dask` command."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self.file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", self.file)
        self._until(self.file.exists)
        self._until(lambda: self.file.read_text().endswith("}"))
        self.address = json.loads(self.file.read_text())["address"]

    def _start(self, *arguments, env=None):
        command = [sys.executable, "-m", "dask", *map(str, arguments)]
        loopback = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
        with (self.folder / "log.txt").open("a") as log:
            process = subprocess.Popen(
                [*command, *loopback], stdout=log, stderr=log, cwd=self.folder, env={**os.environ, **(env or {})}
            )
        self.processes.append(process)
        return process

    def _until(self, condition):
        for _ in range(1200):
            if condition():
                return
            assert all(process.poll() is None for process in self.processes), (self.folder / "log.txt").read_text()
            time.sleep(0.05)
        raise AssertionError((self.folder / "log.txt").read_text())

    def workers(self, count, env=None):
        options = ["--nthreads", "1", "--no-nanny"]
        return [self._start("worker", self.address, *options, env=env) for _ in range(count)]

    def alive(self):
        """Its workers that run."""
        return [process for process in self.processes[1:] if process.poll() is None]

    def exactly(self, count):
        """As many workers as a test needs, whatever the tests before left."""
        for process in self.alive()[count:]:
            process.kill()
            process.wait()
        self.workers(count - len(self.alive()))
        return self.alive()

    def close(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield cluster
    finally:
        cluster.close()


def listening(cluster):
    """Addresses on which the processes of a cluster accept connections."""
    inodes = set()
    for process in cluster.processes:
        if process.poll() is None:
            for handle in Path(f"/proc/{process.pid}/fd").iterdir():
                with contextlib.suppress(FileNotFoundError):  # closed since it was listed
                    inodes.add(str(handle.readlink())[8:-1])  # socket:[123]
    found = []
    for table in ("tcp", "tcp6"):
        rows = [line.split() for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
        found += [row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes]
    return found


@pytest.mark.slow
def test_two_of_three_workers_killed_during_the_run(cluster, problem, expected):
    workers = cluster.exactly(3)
    doomed, alive = workers[:2], workers[2]
    with get_engine("dask", scheduler=cluster.address) as engine, Ledger(None, "p", NAMES) as ledger:
        engine._client.wait_for_workers(3, timeout=60)
        assert engine.workers == 3
        ahead = []

        def kill(event):
            ahead.append(len(engine._tasks))
            if doomed and event.done >= COUNT // 4 * (3 - len(doomed)):
                os.kill(doomed.pop().pid, signal.SIGKILL)

        rows = campaign(problem, range(COUNT), ledger, engine=engine, batch=4, on_progress=kill)
        [origin] = ledger.origins()
    assert not doomed
    assert alive.poll() is None
    assert same(rows, expected)
    assert max(ahead) <= 6, "two batches for each worker"
    assert (origin["engine"], origin["networks"]) == ("dask", COUNT)
    assert set(listening(cluster)) == {"0100007F"}, "127.0.0.1, nothing else"


@pytest.mark.slow
def test_the_batches_of_a_stopped_worker_go_elsewhere(cluster, problem, expected, monkeypatch):
    """It keeps its connection, so that Dask waits for it for five minutes."""
    monkeypatch.setattr(dispatch, "STALLED", 1.0)
    monkeypatch.setattr(cluster_module, "LIFELESS", 3.0)
    monkeypatch.setattr(cluster_module, "ANSWER", 1.0)
    stopped, _ = cluster.exactly(2)
    with Dask(cluster.address) as engine, Ledger(None, "p", NAMES) as ledger:
        engine._client.wait_for_workers(2, timeout=60)
        taken, elsewhere = [], engine.elsewhere
        engine.elsewhere = lambda overdue: taken.append(elsewhere(overdue)) or taken[-1]

        def stop(event):
            if event.fresh and not taken:
                stopped.send_signal(signal.SIGSTOP)

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = campaign(problem, range(COUNT), ledger, engine=engine, batch=8, on_progress=stop)
            assert any(taken)
            assert same(rows, expected)
            # A worker that is stopped before it begins is waited for, and that is said.
            waker = threading.Timer(3.0, stopped.send_signal, [signal.SIGCONT])
            waker.start()
            with pytest.warns(UserWarning, match="not all workers of .* have said their versions: is one"):
                Dask(cluster.address).close()
        finally:
            stopped.send_signal(signal.SIGCONT)


@pytest.mark.slow
def test_data_that_went_with_the_last_worker_are_sent_again(cluster, problem, expected):
    """The only worker is lost, and another one comes: no data are left anywhere but here."""
    cluster.exactly(1)
    with Dask(cluster.address) as engine, Ledger(None, "p", NAMES) as ledger:
        killed, sent, scatter = [], [], engine._scatter
        engine._scatter = lambda: sent.append(1) or scatter()

        def replace(event):
            if event.fresh and not killed:
                killed.extend(cluster.alive())
                for process in killed:
                    process.kill()
                    process.wait()
                cluster.workers(1)

        rows = campaign(problem, range(COUNT), ledger, engine=engine, batch=8, on_progress=replace)
    assert len(killed) == 1
    assert len(sent) >= 2, "once at the start, and once more"
    assert same(rows, expected)


@pytest.mark.slow
def test_a_worker_with_another_numpy_is_refused_with_both_versions(cluster, problem, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.metadata as m; real = m.version\n"
        "m.version = lambda name: '1.0.0' if name == 'numpy' else real(name)\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    cluster.exactly(1)
    with Dask(cluster.address) as engine:
        before = len(engine._client.nthreads())
    [worker] = cluster.workers(1, env={"PYTHONPATH": path})
    try:
        from distributed import Client

        with Client(cluster.address, set_as_default=False) as client:
            client.wait_for_workers(before + 1, timeout=60)
            with pytest.raises(RunError, match=r"has numpy 1\.0\.0, but here it is \d"):
                Dask(client)
            assert client.status == "running", "the user's own client stays open"
    finally:
        worker.kill()
        worker.wait()


@pytest.mark.slow
def test_the_scheduler_is_lost_and_another_engine_resumes(problem, expected, tmp_path):
    cluster = Cluster(tmp_path)
    try:
        cluster.workers(1)
        path = tmp_path / "ledger.sqlite"

        def kill(event):
            if event.fresh:
                cluster.scheduler.kill()

        with Ledger(path, "p", NAMES) as ledger, Dask(cluster.address) as engine:
            with pytest.raises(RunError, match=r"scheduler at tcp://127\.0\.0\.1:\d+ is lost: finished rows are safe"):
                campaign(problem, range(COUNT), ledger, engine=engine, batch=8, on_progress=kill)
            kept = len(ledger.rows())
        assert 0 < kept < COUNT
        with Ledger(path, "p", NAMES) as ledger:
            rows = campaign(problem, range(COUNT), ledger, engine="threads")
            assert [origin["engine"] for origin in ledger.origins()] == ["dask", "threads"]
        assert same(rows, expected)
    finally:
        cluster.close()


def test_no_scheduler_and_no_workers(tmp_path):
    with pytest.raises(RunError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9 .*dask scheduler"):
        Dask("tcp://127.0.0.1:9", timeout=0.5)
    with pytest.raises(RunError, match="no Dask scheduler answers at nonsense"):
        Dask("nonsense", timeout=0.5)
    cluster = Cluster(tmp_path)
    try:
        with pytest.raises(RunError, match=r"has no workers: nothing was drawn; start some with 'dask worker tcp://"):
            Dask(cluster.address, timeout=0.5)
    finally:
        cluster.close()


def test_a_client_that_could_not_connect_is_gone_at_once():
    """Collected later, while another client starts, it would wait for a lock that its own thread holds."""
    import distributed

    gc.collect()
    before = {id(one) for one in gc.get_objects() if isinstance(one, distributed.Client)}
    gc.disable()
    try:
        with pytest.raises(RunError, match="no Dask scheduler answers"):
            Dask("tcp://127.0.0.1:9", timeout=0.5)
        assert not [one for one in gc.get_objects() if isinstance(one, distributed.Client) and id(one) not in before]
    finally:
        gc.enable()


@pytest.mark.slow
def test_dask_on_the_command_line(cluster, tmp_path):
    cluster.exactly(1)
    echobound("simulate-plant", "--samples", "600", "--output", "d.csv", cwd=tmp_path)
    options = ["--inputs", "q3", "--outputs", "pH", "--law", "paper", "--order", "10", "--networks", "40"]
    threads, dask = (
        json.loads(echobound("identify", "d.csv", *options, "--json", *more, cwd=tmp_path).stdout)["certificate"]
        for more in (["--run", "one"], ["--run", "two", "--engine", "dask", "--scheduler", cluster.address])
    )
    assert threads["digest"] == dask["digest"]
    assert [origin["engine"] for origin in dask["provenance"]["ran"]] == ["dask"]
    line = refused("identify", "d.csv", *options, "--scheduler", cluster.address, "--run", "three", cwd=tmp_path)
    assert "use the engine 'dask'" in line
    assert not (tmp_path / "three").exists()
