"""Jobs: orders are files, what runs is a process of its own, and everything is found again by what is on disk."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from studio_at_work import studio_of

from echobound import RunFolder, identify
from echobound.errors import InputError
from echobound.plants import ph_experiment
from echobound.runs.ledger import Ledger
from echobound.runs.tail import LedgerTail
from echobound.studio.jobs import Jobs
from echobound.studio.live import EACH, STRETCHES, LiveRun
from echobound.studio.workspace import Workspace

QUICK = ["--law", "paper", "--order", "8", "--networks", "30", "--beta", "0.01", "--committee", "0"]


def until(true, seconds=240):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


@pytest.fixture
def space(tmp_path):
    [record] = ph_experiment(samples=(500,))
    table = np.column_stack([record.u, record.y])
    np.savetxt(tmp_path / "plant.csv", table, delimiter=",", header="q3,pH", comments="")
    return Workspace(tmp_path)


def order(jobs, run="runs/a", *more):
    arguments = ["identify", "plant.csv", "--inputs", "q3", "--outputs", "pH", *QUICK, *more, "--run", run, "--json"]
    return jobs.add("identify", run, arguments)


def test_orders_wait_their_turn_and_answer(space):
    jobs = Jobs(space)
    first, second = order(jobs), order(jobs, "runs/b", "--seed", "1")
    assert [job.state for job in jobs.all()] == ["queued", "queued"]
    assert jobs.start_next() == first
    assert jobs.start_next() is None, "one at a time"
    assert Jobs(space).job(first).state == "running", "another server sees it too"
    until(lambda: jobs.job(first).state != "running")
    found = jobs.find(first.key)
    assert found.state == "done"
    assert found.answer["certificate"]["networks"] == 30
    jobs.stop(second.key)
    assert [job.order.key for job in jobs.all()] == [first.key], "taken off the queue"
    assert found.command.startswith("echobound identify plant.csv --inputs q3")
    assert "--json" not in found.command


def test_an_error_is_the_sentence_of_the_command_line(space):
    jobs = Jobs(space)
    wrong = jobs.add("identify", "runs/a", ["identify", "plant.csv", "--inputs", "q9", "--outputs", "pH", "--json"])
    jobs.start_next()
    until(lambda: jobs.job(wrong).state != "running")
    assert jobs.job(wrong).state == "failed"
    assert "q9" in jobs.job(wrong).sentence
    assert not jobs.job(wrong).sentence.startswith("echobound:")


def test_stop_keeps_what_is_finished_and_go_on_resumes_it(space):
    jobs = Jobs(space)
    long = order(jobs, "runs/a", "--networks", "4000")
    jobs.start_next()
    ledger = space.path / "runs/a/ledger.sqlite"
    until(lambda: LedgerTail(ledger).look()[0])
    jobs.stop(long.key)
    until(lambda: jobs.job(long).state != "running")
    assert jobs.job(long).state == "stopped"
    assert "kept" in jobs.job(long).sentence
    kept = len(LedgerTail(ledger).look()[0])
    assert 0 < kept < 4000
    jobs.go_on(long.key)
    assert jobs.job(long).state == "queued"
    with pytest.raises(InputError, match="nothing to resume"):
        jobs.go_on(long.key)
    assert jobs.start_next() == long
    until(lambda: len(LedgerTail(ledger).look()[0]) > kept)
    jobs.stop(long.key)
    until(lambda: jobs.job(long).state == "stopped")


KILLED = 3  # times here; twenty in benchmarks/studio.py
SERVER = [sys.executable, "-m", "echobound", "studio", ".", "--port", "0", "--no-open"]


@pytest.mark.slow
def test_a_server_that_is_killed_again_and_again_does_not_touch_the_run(space):
    jobs = Jobs(space)
    order(jobs, "runs/a", "--networks", "800")
    addresses = set()
    for _ in range(KILLED):
        server = subprocess.Popen(SERVER, cwd=space.path, stdout=subprocess.PIPE, text=True, start_new_session=True)
        address = server.stdout.readline().strip()
        addresses.add(address.partition("token=")[2])
        until(lambda: [job.state for job in jobs.all()] in (["running"], ["done"]))
        ledger = LedgerTail(space.path / "runs/a/ledger.sqlite")
        until(lambda ledger=ledger: ledger.look()[0] or jobs.all()[0].state == "done")
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        until(lambda ledger=ledger: ledger.look()[0] or jobs.all()[0].state == "done")
    assert len(addresses) == 1, "open pages find the studio again"
    until(lambda: jobs.all()[0].state == "done")
    content = json.loads((space.path / "runs/a/certificate.json").read_text())
    [arguments] = [job.order.arguments for job in jobs.all()]
    other = [*arguments[:-3], "--run", "runs/undisturbed", "--json"]
    subprocess.run([sys.executable, "-m", "echobound", *other], cwd=space.path, check=True, capture_output=True)
    undisturbed = json.loads((space.path / "runs/undisturbed/certificate.json").read_text())
    for one in (content, undisturbed):
        one.pop("provenance")
    assert content == undisturbed


def test_a_file_that_is_no_order_is_passed_over(space):
    jobs = Jobs(space)
    kept = order(jobs)
    for name, text in (("a", "{}"), ("b", "nonsense"), ("c", '{"key": "../x"}')):
        (space.desk / "jobs" / f"{name}.json").write_text(text)
    assert [one.key for one in jobs.orders()] == [kept.key]


def test_an_order_that_came_with_a_folder_waits_for_its_user(space):
    """A folder from somebody else may hold orders; whoever only opens it has nothing done."""
    jobs = Jobs(space)
    kept = order(jobs)
    path = space.desk / "jobs" / f"{kept.key}.json"
    content = json.loads(path.read_text())
    for changed in ({"seal": ""}, {"arguments": ["export", "runs/a", "--output", "/tmp/elsewhere"]}):
        path.write_text(json.dumps(content | changed))
        assert jobs.start_next() is None
        [job] = jobs.all()
        assert job.state == "interrupted"
        assert "not given by you" in job.sentence
    path.write_text(json.dumps(content | {"seal": "", "about": {"columns": {"inputs": ["x"]}}}))
    assert jobs.columns_of("runs/a") == {}, "nor is it believed"
    path.write_text(json.dumps(content | {"seal": ""}))
    assert "seal" not in jobs.all()[0].to_dict() or not jobs.all()[0].to_dict()["seal"]
    jobs.go_on(kept.key)
    assert [job.state for job in jobs.all()] == ["queued"], "after a look at its command"


def test_orders_of_another_shape_do_not_keep_others_from_being_drawn(space):
    jobs = Jobs(space)
    kept = order(jobs)
    content = json.loads((space.desk / "jobs" / f"{kept.key}.json").read_text())
    wrong = [{"seal": 5}, {"about": 7}, {"made": "now"}, {"arguments": "verify"}, {"run": "../../etc"}, {"run": "/etc"}]
    for number, changed in enumerate(wrong):
        other = {**content, "key": f"{number}", **changed}
        (space.desk / "jobs" / f"{number}.json").write_text(json.dumps(other))
    (space.desk / "jobs" / "9.json").write_text(json.dumps({**content, "key": "9", "about": {"files": 3}}))
    assert [one.key for one in jobs.orders()] == [kept.key, "9"]
    with studio_of(space.path) as client:
        assert len(client.json("GET", "/api/folder")["jobs"]) == 2
    assert jobs.start_next().key == kept.key
    until(lambda: jobs.job(kept).state != "running")
    assert jobs.start_next() is None


def test_a_killed_run_of_the_studio_is_resumed_on_the_command_line(space):
    """And then it is finished: there is nothing to go on with."""
    jobs = Jobs(space)
    one = order(jobs, "runs/a", "--networks", "3000")
    jobs.start_next()
    ledger = space.path / "runs/a/ledger.sqlite"
    until(lambda: LedgerTail(ledger).look()[0])
    os.kill(int((space.desk / "jobs" / f"{one.key}.run").read_text()), signal.SIGKILL)
    until(lambda: jobs.job(one).state != "running")
    assert jobs.job(one).state == "interrupted"
    with studio_of(space.path) as client:
        shown = client.json("GET", "/api/run?name=runs/a")
        assert shown["facts"]["state"] == "unfinished"
        command = [sys.executable, "-m", *shlex.split(shown["command"])]
        subprocess.run(command, cwd=space.path, check=True, capture_output=True)
        shown = client.json("GET", "/api/run?name=runs/a")
        assert shown["facts"]["state"] == "finished"
        assert client.json("GET", "/api/result?name=runs/a")["certificate"]["networks"] == 3000


def test_the_folder_itself_may_be_a_run(space):
    identify(*ph_experiment(samples=(400, 300)), law="paper", order=6, networks=20, beta=0.1, run=space.path / "own")
    with studio_of(space.path / "own") as client:
        assert [one["name"] for one in client.json("GET", "/api/folder")["runs"]] == ["own"]
        shown = client.json("GET", "/api/run?name=own")
        assert shown["command"] == "echobound show ."
        assert len(shown["looks"]) == 1
        assert client.json("GET", "/api/result?name=own")["certificate"]["networks"] == 20
        acted = client.json("POST", "/api/act", {"kind": "export", "run": "own", "given": {"to": "control"}})
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(acted["command"])],
            cwd=space.path / "own",
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert client.json("GET", "/api/run?name=own")["exports"]


def test_the_oldest_of_what_is_done_is_forgotten(space, monkeypatch):
    monkeypatch.setattr("echobound.studio.jobs.FORGOTTEN", 2)
    jobs = Jobs(space)
    keys = [jobs.add("audit", "runs/a", ["audit", "runs/a"]).key for _ in range(4)]
    for key in keys[:3]:
        (space.desk / "jobs" / f"{key}.run").write_text("1")
        (space.desk / "jobs" / f"{key}.out").write_text("{}")
    jobs.tidy()
    assert [one.key for one in jobs.orders()] == keys[1:]
    assert [job.state for job in jobs.all()] == ["done", "done", "queued"]


def some_rows(ledger, indices, family=0):
    from echobound.kernels.base import row_dtype

    rows = np.zeros(len(indices), dtype=row_dtype(2))
    rows["index"], rows["family"] = indices, family
    rows["scores"][:, 0] = np.sin(np.asarray(indices, dtype=float))
    ledger.append(rows)


def test_the_tail_sees_each_row_once_in_any_order(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite", plan="p", scores=["fit", "rmse"]) as ledger:
        ledger.begin(range(100), "max")
        tail, seen = LedgerTail(tmp_path / "ledger.sqlite"), []
        for part in (range(10, 20), range(10), range(40, 50), [21], range(22, 40), [20], range(50, 100)):
            some_rows(ledger, list(part))
            rows, progress = tail.look(most=1000)
            seen += [row.index for row in rows]
        assert sorted(seen) == list(range(100))
        assert len(seen) == 100
        assert progress[0].done == 100
        assert not tail._beyond[0], "nothing is remembered once there is no gap"


def test_a_hundred_thousand_rows_are_a_bounded_picture(tmp_path):
    """What a browser gets stays the same however long the ledger is, and every improvement is in it."""
    (tmp_path / "plan.json").write_text('{"networks": 100000, "scores": ["fit"]}')
    with Ledger(tmp_path / "ledger.sqlite", plan="p", scores=["fit", "rmse"]) as ledger:
        ledger.begin(range(100_000), "max")
        some_rows(ledger, list(range(60_000)))
        live = LiveRun(tmp_path, {"networks": 100_000, "score": "fit"})
        while live.step():
            pass
        assert live.progress["done"] == 60_000
        assert live.progress["planned"] == 100_000
        first = len(live.dots)
        some_rows(ledger, list(range(60_000, 100_000)))
        while live.step():
            pass
    assert live.progress["done"] == 100_000
    assert first < len(live.dots) <= STRETCHES * EACH + 200  # beside the sample, the improvements
    best = max(range(100_000), key=lambda i: np.sin(float(i)))
    assert max(score for _, score, _ in live.dots) == pytest.approx(np.sin(float(best)))
    assert len(json.dumps(live.picture())) < 120_000
    event = live.since(live.version, len(live.dots))
    assert event["dots"] == []
    assert live.since(-1, 0)["dots"] == live.dots


def test_the_picture_of_families_has_them_side_by_side(tmp_path):
    identify(*ph_experiment(samples=(400, 300)), law="paper", order=(5, 6), networks=20, beta=0.1, run=tmp_path / "run")
    live = LiveRun(tmp_path / "run", {"networks": 20, "families": 2, "score": "fit"})
    live.step()
    assert sorted(position for position, *_ in live.dots) == list(range(40))
    rows = RunFolder(tmp_path / "run").search["scores"][:, 0]
    assert [score for _, score, _ in sorted(live.dots)] == pytest.approx(rows.tolist())


def test_looks_at_the_same_file_are_listed_however_it_is_cut(space):
    draft = {
        "files": {"training": ["plant.csv"]}, "inputs": ["q3"], "outputs": ["pH"],
        "plan": {"law": "paper", "order": "8", "networks": "30", "beta": "0.01"},
    }  # fmt: skip
    with studio_of(space.path) as client:
        first = client.json("POST", "/api/runs", draft)["run"]
        cut = {**draft, "cut": {"training": [2, 300], "validation": [301, 501]}}
        asked = client.json("POST", "/api/numbers", cut)
        assert [one["name"] for one in asked["settled"]["before"]] == [first]
        assert "--rows training=2-300,validation=301-501" in asked["command"]
        assert asked["settled"]["samples"] == {"training": 299, "validation": 201, "test": 0}
        second = client.json("POST", "/api/runs", cut)["run"]
        assert (first, second) == ("runs/plant", "runs/plant-2")
        looks = client.json("GET", f"/api/run?name={second}")["looks"]
        assert [one["name"] for one in looks] == [first, second]
        refused = client.json("POST", "/api/runs", {**draft, "run": first}, status=400)
        assert "exists already" in refused["error"]
        wrong = client.json("POST", "/api/runs", {**draft, "outputs": ["pX"]}, status=400)
        assert "pX" in wrong["error"]


def test_searches_whose_folders_are_gone_are_still_listed(space):
    import shutil

    records = ph_experiment(samples=(400, 300))
    law = {"law": "paper", "order": 6, "networks": 20, "beta": 0.1, "committee": 0}
    for seed, name in enumerate(("one", "two")):
        identify(*records, **law, seed=seed, run=space.path / "runs" / name)
    shutil.rmtree(space.path / "runs/one")
    with studio_of(space.path) as client:
        looks = client.json("GET", "/api/run?name=runs/two")["looks"]
        assert [(one["name"], one.get("gone", False)) for one in looks] == [("runs/one", True), ("runs/two", False)]
        result = client.json("GET", "/api/result?name=runs/two")
        assert result["certificate"]["provenance"]["search"]["number"] == 2


def test_the_python_that_is_shown_does_what_the_command_does(space, monkeypatch):
    from echobound.studio.drafts import Draft

    content = {
        "files": {"training": ["plant.csv"]}, "inputs": ["q3"], "outputs": ["pH"], "run": "runs/python",
        "plan": {"law": "paper", "order": "8", "networks": "30", "beta": "0.01", "committee": "0"},
        "cut": {"training": [2, 300], "validation": [301, 501]},
    }  # fmt: skip
    draft = Draft.from_json(content)
    monkeypatch.chdir(space.path)
    exec(draft.python(), {})
    arguments = draft.arguments()
    arguments[arguments.index("runs/python")] = "runs/command"
    subprocess.run([sys.executable, "-m", "echobound", *arguments], check=True, capture_output=True)
    one, other = (RunFolder(f"runs/{name}").certificate.digests for name in ("python", "command"))
    assert one == other


def test_a_run_by_hand_is_seen_and_its_events_are_told(space):
    with studio_of(space.path) as client:
        training, validation = ph_experiment(samples=(400, 300))
        identify(training, validation, law="paper", order=8, networks=25, beta=0.1, run=space.path / "runs/hand")
        [run] = client.json("GET", "/api/folder")["runs"]
        assert (run["name"], run["state"], run["networks"]) == ("runs/hand", "finished", 25)
        content = client.json("GET", "/api/run?name=runs/hand")
        assert content["plan"]["networks"] == 25
        assert [one["name"] for one in content["looks"]] == ["runs/hand"]
        assert client.json("GET", "/api/result?name=runs/hand")["certificate"]["networks"] == 25
        import http.client

        stream = http.client.HTTPConnection("127.0.0.1", client.port, timeout=20)
        host = f"127.0.0.1:{client.port}"
        stream.request(
            "GET", "/events?run=runs/hand",
            headers={"Host": host, "Cookie": f"{client.gate.cookie}={client.gate.pass_value}"},
        )  # fmt: skip
        answer = stream.getresponse()
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        for line in answer:
            if line.startswith(b"data: "):
                event = json.loads(line[6:])
                if event["progress"].get("done") == 25:
                    break
        stream.close()
        assert len(event["dots"]) == 25
        assert event["progress"]["score"] == "FIT"
