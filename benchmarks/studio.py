"""The studio in figures: first view, lag of a dot, memory of the browser, and a server that is killed twenty times.

Run with ``python benchmarks/studio.py [OUTPUT.json]``; it needs Chromium and playwright, and takes a few minutes.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from echobound.kernels.base import row_dtype
from echobound.plants import ph_experiment
from echobound.runs.ledger import Ledger
from echobound.runs.tail import LedgerTail
from echobound.studio.jobs import Jobs
from echobound.studio.workspace import Workspace

KILLS = 20
ROWS = 100_000
SERVER = [sys.executable, "-m", "echobound", "studio", ".", "--port", "0", "--no-open"]
IDENTIFY = ["identify", "plant.csv", "--inputs", "q3", "--outputs", "pH", "--law", "paper", "--order", "60"]
CHROMIUM = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)


def start(folder):
    server = subprocess.Popen(SERVER, cwd=folder, stdout=subprocess.PIPE, text=True, start_new_session=True)
    return server, server.stdout.readline().strip()


def kill(server):
    os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def cpu_of(server):
    """Seconds of a processor that a process has used."""
    words = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def crowding():
    """How much longer than alone a process takes just now: wall time over processor time of one that only computes."""
    before, begin = os.times(), time.perf_counter()
    subprocess.run([sys.executable, "-c", "sum(range(10_000_000))"], check=True)
    after, wall = os.times(), time.perf_counter() - begin
    return wall / (after.children_user - before.children_user + after.children_system - before.children_system)


def first_view(browser, folder):
    """Seconds from the command to the first view with its content, on the clock and of the server's processor."""
    found = []
    for _ in range(5):
        page = browser.new_context().new_page()
        begin = time.perf_counter()
        server, address = start(folder)
        listening = time.perf_counter() - begin
        page.goto(address)
        page.wait_for_selector("#files li")
        found.append((time.perf_counter() - begin, listening, cpu_of(server), crowding()))
        page.context.close()
        kill(server)
    whole, listening, computing, crowded = zip(*sorted(found), strict=True)
    return {
        "first_view_s": round(whole[2], 2),
        "address_s": round(listening[2], 2),
        "server_cpu_s": round(computing[2], 2),
        "crowding": round(float(np.median(crowded)), 1),
    }


def lag_and_memory(browser, folder):
    """Seconds from a row in a ledger of 100,000 to its dot, and the browser's memory there and at 200,000."""
    run = folder / "runs" / "long"
    run.mkdir(parents=True)
    (run / "plan.json").write_text(json.dumps({"networks": 2 * ROWS, "scores": ["fit"], "law": {"name": "paper"}}))
    rng = np.random.default_rng(0)
    server, address = start(folder)
    lags = []
    with Ledger(run / "ledger.sqlite", plan="p", scores=["fit"]) as ledger:
        ledger.begin(range(2 * ROWS), "max")

        def append(indices):
            rows = np.zeros(len(indices), dtype=row_dtype(1))
            rows["index"], rows["scores"][:, 0] = indices, 80 + rng.normal(size=len(indices))
            ledger.append(rows)

        append(np.arange(ROWS))
        page = browser.new_context().new_page()
        client = page.context.new_cdp_session(page)
        page.goto(address)
        page.goto(address.split("/?")[0] + "/run?name=runs/long")
        page.wait_for_selector(f'#dots[data-newest="{ROWS - 1}"]')

        def heap():
            client.send("HeapProfiler.collectGarbage")
            return client.send("Runtime.getHeapUsage")["usedSize"] / 2**20

        append(np.arange(ROWS, ROWS + 1000))
        page.wait_for_selector(f'#dots[data-newest="{ROWS + 999}"]')
        before = heap()
        for k in range(ROWS + 1000, ROWS + 1040):
            begin = time.perf_counter()
            append(np.array([k]))
            page.wait_for_selector(f'#dots[data-newest="{k}"]')
            lags.append(time.perf_counter() - begin)
        for k in range(ROWS + 1040, 2 * ROWS, 2000):
            append(np.arange(k, min(k + 2000, 2 * ROWS)))
            page.wait_for_timeout(300)
        page.wait_for_selector(f'#dots[data-newest="{2 * ROWS - 1}"]')
        after, dots = heap(), int(page.get_attribute("#dots", "data-dots"))
        page.context.close()
    kill(server)
    lags = np.array(lags)
    return {
        "lag_median_s": round(float(np.median(lags)), 3),
        "lag_largest_s": round(float(lags.max()), 3),
        "heap_after_100000_MiB": round(before, 1),
        "heap_after_200000_MiB": round(after, 1),
        "dots": dots,
    }


def killed(browser, folder):
    """A run whose server is killed again and again, with the browser reloaded each time, against an undisturbed one."""
    [record] = ph_experiment(samples=(1200,))
    np.savetxt(folder / "plant.csv", np.column_stack([record.u, record.y]), delimiter=",", header="q3,pH", comments="")
    jobs, ledger = Jobs(Workspace(folder)), folder / "runs/killed/ledger.sqlite"
    networks = ["--networks", "8000"]
    jobs.add("identify", "runs/killed", [*IDENTIFY, *networks, "--run", "runs/killed", "--json"])
    page = browser.new_context().new_page()
    kills = during = 0
    while kills < KILLS:
        server, address = start(folder)
        page.goto(address)
        page.goto(address.split("/?")[0] + "/run?name=runs/killed")
        page.wait_for_selector("#figures dd")
        while not (ledger.exists() and LedgerTail(ledger).look()[0]):
            time.sleep(0.1)
        time.sleep(0.4)
        during += jobs.all()[0].state == "running"
        kill(server)
        kills += 1
    server, address = start(folder)
    page.goto(address)
    page.goto(address.split("/?")[0] + "/run?name=runs/killed")
    while jobs.all()[0].state == "running":
        time.sleep(0.5)
    page.wait_for_selector("#statement:not(:empty)", timeout=120_000)
    page.context.close()
    kill(server)
    command = [sys.executable, "-m", "echobound", *IDENTIFY, *networks, "--run", "runs/undisturbed", "--json"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    certificates = []
    for name in ("killed", "undisturbed"):
        content = json.loads((folder / "runs" / name / "certificate.json").read_text())
        content.pop("provenance")
        certificates.append(content)
    same = certificates[0] == certificates[1]
    return {"kills": kills, "kills_while_running": during, "finished": jobs.all()[0].state == "done", "identical": same}


def main():
    from playwright.sync_api import sync_playwright

    found = {}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as temporary:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for name, measure in (("first", first_view), ("lag", lag_and_memory), ("kills", killed)):
            folder = Path(temporary) / name
            folder.mkdir()
            (folder / "some.csv").write_text("u,y\n1,2\n2,3\n3,4\n")
            found |= measure(browser, folder)
            print(json.dumps(found), flush=True)
        browser.close()
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
