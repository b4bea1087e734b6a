"""`watch` and the progress of a campaign: a bar on a terminal, a line a minute when piped."""

import threading
import time
from dataclasses import replace

import pytest
from test_cli import desk, echobound, in_a_terminal, refused  # noqa: F401 (a fixture)

from echobound.campaign import Computing
from echobound.campaign.dispatch import run_campaign
from echobound.candidates import Networks
from echobound.cli.terminal import lines
from echobound.kernels import get_kernel, hold_out
from echobound.network import paper
from echobound.runs.ledger import Ledger
from echobound.runs.progress import Progress, SteadyRate, duration, status_line
from echobound.runs.status import status_of
from echobound.scores import get_score

EVENT = Progress(done=450, planned=900, best=91.234567, worst=-3.5, failures=2, seconds=10.0, fresh=45)


def test_one_line_says_everything():
    assert status_line(EVENT) == "450/900, 4.5/s, 1:40 left, best 91.235, worst -3.5, 2 diverged"
    begun = Progress(done=0, planned=900, best=None, worst=None, failures=0, seconds=0.0, fresh=0)
    assert status_line(begun) == "0/900, no network yet"
    assert status_line(replace(begun, doing="compiling")) == "compiling", "before the first network, what is done"
    assert duration(86_400 * 3 + 59.6) == "3 d 0:01:00"


def test_a_line_a_minute_when_piped(capsys):
    now = [0.0]
    show = lines("networks", clock=lambda: now[0])
    for second in range(0, 200, 7):
        now[0] = second
        show(EVENT)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [f"networks: {status_line(EVENT)}"] * 3


def test_a_finished_run(desk):  # noqa: F811
    assert echobound("watch", "ph", cwd=desk).stdout.startswith("ph: 31/31, ")
    assert "(search), all drawn" in echobound("watch", "ph", cwd=desk).stdout


@pytest.mark.parametrize("folder", ["nowhere", "."])
def test_not_a_run_folder(desk, folder):  # noqa: F811
    assert "is not a run folder (it has no ledger.sqlite)" in refused("watch", folder, cwd=desk)


def test_a_damaged_ledger(tmp_path):
    (tmp_path / "ledger.sqlite").write_bytes(b"no database at all" * 100)
    assert "damaged" in refused("watch", ".", cwd=tmp_path)


def test_a_running_campaign_from_another_terminal(ph_records, tmp_path):
    """The campaign waits until it was seen, so nothing depends on how fast it is."""
    problem = hold_out(*ph_records, law=paper(5), scores=[get_score("fit")], washout=60)
    seen, shown = threading.Event(), []

    def follow():
        shown.append(in_a_terminal("watch", "r", "--every", "0.1", cwd=tmp_path))

    watcher = threading.Thread(target=follow)
    run = tmp_path / "r"
    run.mkdir()

    def hold(event):
        if event.fresh and not seen.is_set():
            seen.set()
            looked = status_of(run)
            assert looked.running
            assert looked.progress == event
            watcher.start()
            time.sleep(3.0)  # for the other process to come up; it would see the end otherwise

    networks = Networks(get_kernel("cpu"), problem)
    with Ledger(run / "ledger.sqlite", "p", ["fit"]) as ledger, Computing(workers=1).open_engine() as engine:
        run_campaign(networks, range(60), ledger, engine, batch=5, on_progress=hold)
    watcher.join()
    assert "60/60" in shown[0]
    assert "all drawn" in shown[0]
    assert not status_of(run).running
    assert [path.name for path in run.iterdir()] == ["ledger.sqlite"]


def test_ctrl_c_ends_the_look_and_not_the_campaign(monkeypatch, capsys, tmp_path):
    from echobound.cli import watch as module
    from echobound.runs.status import CampaignStatus

    event = Progress(done=5, planned=9, best=91.0, worst=3.0, failures=0, seconds=2.0, fresh=5)
    status = CampaignStatus(event, "search", {"pid": 7, "host": "here"})
    monkeypatch.setattr(module, "status_of", lambda run: status)

    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(module.time, "sleep", interrupted)
    with pytest.raises(SystemExit) as ended:
        module.watch(tmp_path)
    said = capsys.readouterr().err
    assert ended.value.code == 130
    assert "no longer watching" in said
    assert "the campaign goes on" in said
    assert "resumes it" not in said


def test_compiling_is_no_part_of_the_time_left():
    steady = SteadyRate()
    compiled = steady(Progress(done=4, planned=604, best=90.0, worst=3.0, failures=0, seconds=60.0, fresh=4))
    assert compiled.remaining is None, "not two and a half hours"
    later = steady(Progress(done=104, planned=604, best=90.0, worst=3.0, failures=0, seconds=70.0, fresh=104))
    assert later.remaining == pytest.approx(50.0)
    again = steady(Progress(done=110, planned=604, best=90.0, worst=3.0, failures=0, seconds=3.0, fresh=2))
    assert again.remaining is None, "another start compiles again"
