"""What is around the kernel: threads against processes, models in use, what follows the search, and very many.

Sections of `benchmarks/run.py`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scaling

import echobound
from echobound.campaign import get_engine, run_campaign, usable_cores
from echobound.candidates import Networks
from echobound.kernels import get_kernel, hold_out
from echobound.kernels.training import train_network
from echobound.network import Committee, ReservoirLaw, dynamics
from echobound.plants import ph_experiment
from echobound.runs.ledger import Ledger
from echobound.scores import get_score

HERE = Path(__file__).parent
SCORES = [get_score("fit"), get_score("rmse")]
CPU = get_kernel("cpu")


def problem(order: int, samples=(5000, 3000)):
    return hold_out(*ph_experiment(samples=samples), law=ReservoirLaw(order=order), scores=SCORES)


def median_seconds(function, repeats: int) -> float:
    """Median of several runs, after one to warm up."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def simulate() -> dict:
    """A model over a long record as a user calls it, by compiled code and by plain NumPy; and a committee of ten."""
    task = problem(386, samples=(2000, 500))
    models = [train_network(CPU, task, index)[0] for index in range(10)]
    [record] = ph_experiment(samples=(100_000,), seed=1)
    one, committee = models[0], Committee(tuple(models))
    plain = record.u[:2000]  # a fiftieth: all of it would take a quarter of a minute
    return {
        "compiled_seconds": median_seconds(lambda: one.simulate(record.u), 5),
        "plain_seconds": 50 * median_seconds(lambda: one.simulate(plain, dynamics=dynamics), 3),
        "committee_seconds": median_seconds(lambda: committee.simulate(record.u), 3),
        "cores": usable_cores(),
    }


def afterwards() -> list[dict]:
    """What an identification takes besides the search: networks that are kept, test data, and the page."""
    rows = []
    *records, test = ph_experiment(samples=(1000, 600, 600))
    for name, options in {"quick": {"quick": True}, "defaults": {}}.items():
        found = {}
        for kind in ("rest", "rest_with_page"):
            times = [time.perf_counter()]

            def note(event, times=times):
                if event.done == event.planned:
                    times.append(time.perf_counter())

            with tempfile.TemporaryDirectory() as folder:
                where = {"run": f"{folder}/run"} if kind == "rest_with_page" else {}
                echobound.identify(*records, test=test, on_progress=note, **options, **where)
                found |= {"search": times[-1] - times[0], kind: time.perf_counter() - times[-1]}
        rows.append({"what": name, **found})
    return rows


CAMPAIGN = """
import resource, sys
sys.path.insert(0, {here!r})
import around
around.tiny({count})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
RECORD = """
import resource, sys
sys.path.insert(0, {here!r})
import around
around.long({count})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def many() -> dict:
    """Peak memory of a campaign of tiny networks, and of networks on a long record, as their numbers grow."""
    found: dict[str, dict[str, float]] = {}
    for name, code in (("networks", CAMPAIGN), ("samples", RECORD)):
        found[name] = {}
        for count in (10_000, 100_000, 1_000_000):
            command = [sys.executable, "-c", code.format(here=str(HERE), count=count)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[name][str(count)] = int(done.stdout) / 2**10
    return found


def tiny(count: int) -> None:
    """A campaign with a ledger on disk, as `identify` has one, and the table of all rows that it returns."""
    task = problem(2, samples=(200, 200))
    with (
        tempfile.TemporaryDirectory() as folder,
        get_engine("threads", usable_cores()) as engine,
        Ledger(Path(folder) / "ledger.sqlite", "bench", ["fit", "rmse"]) as ledger,
    ):
        assert len(run_campaign(Networks(CPU, task), range(count), ledger, engine)) == count


def long(count: int) -> None:
    """Two networks on a record of so many samples, one of them as a model that runs over all of it."""
    record = echobound.Record(u=np.random.default_rng(0).random((count, 1)), y=np.arange(float(count)) % 7)
    halves = record.part(0, count // 2), record.part(count // 2, count)
    task = hold_out(*halves, law=ReservoirLaw(order=20), scores=SCORES)
    CPU.evaluate(task, range(2))
    train_network(CPU, task, 0)[0].simulate(record.u)


SECTIONS = {"scaling": scaling.scaling, "simulate": simulate, "afterwards": afterwards, "many": many}


def section(results: dict) -> list[str]:
    """What `RESULTS.md` says about it."""
    lines: list[str] = []
    if "scaling" in results:
        lines += [
            "## Threads and processes",
            "",
            "What workers are worth, in cores, each with its own share of the same networks at the same time: as",
            "separate processes, and as threads of one. The campaign ends with its last worker. Outside of compiled",
            "code is all that one thread can keep another waiting for.",
            "",
            *scaling.table(results["scaling"]),
            "",
        ]
    if "simulate" in results:
        m = results["simulate"]
        times = m["plain_seconds"] / m["compiled_seconds"]
        lines += [
            "## A model over 100,000 samples, order 386",
            "",
            f"`model.simulate(u)`: {m['compiled_seconds']:.2f} s, {times:.0f} times faster than plain NumPy.",
            f"A committee of ten on {m['cores']} cores: {m['committee_seconds']:.2f} s.",
            "",
        ]
    if "afterwards" in results:
        lines += [
            "## After the search",
            "",
            "Seconds of `identify` on the pH plant with test data: the search, and all that follows it.",
            "",
            "| settings | search | rest, without a run folder | rest, with run folder and page |",
            "|---|---|---|---|",
            *(
                f"| {r['what']} | {r['search']:.1f} | {r['rest']:.2f} | {r['rest_with_page']:.2f} |"
                for r in results["afterwards"]
            ),
            "",
        ]
    if "many" in results:
        both = {k: ", ".join(f"{mb:.0f} MB at {int(n):,}" for n, mb in v.items()) for k, v in results["many"].items()}
        lines += [
            "## Very many",
            "",
            f"Peak memory of a campaign of tiny networks, by their number: {both['networks']}.",
            "What grows is the table that is returned.",
            "",
            f"Peak memory of training networks and running one, by the samples of a record: {both['samples']}.",
            "",
        ]
    return lines
