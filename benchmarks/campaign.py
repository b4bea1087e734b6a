"""What a campaign survives and costs: kills, the ledger, engines, stopping. Saved beside the other results.

Usage: python benchmarks/campaign.py [kills ledger overhead batches stop]   (ten minutes on two quiet cores)
Needs the extra `dask`.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

HERE = Path(__file__).parent
SURVIVAL = HERE.parent / "tests" / "survival.py"
MILLION = 1_000_000


def kills() -> dict:
    """Random SIGKILLs, each time resumed, until so many have hit; the result against one never interrupted."""
    found = {}
    for engine, count in (("threads", 100), ("processes", 20)):
        done = subprocess.run(
            [sys.executable, str(SURVIVAL), str(count), "0", engine], capture_output=True, text=True, check=True
        )
        found[engine] = json.loads(done.stdout)
    return found


def ledger() -> dict:
    """A million rows, in a process of its own so that its memory can be told."""
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import campaign; campaign.fill()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def fill() -> None:
    """Append a million rows in batches of a thousand, read them, pick the best and certify it."""
    import resource

    from echobound.kernels import get_kernel, row_dtype
    from echobound.network import paper
    from echobound.plan.numbers import settle_networks
    from echobound.runs.ledger import Ledger, rows_digest
    from echobound.runs.provenance import here
    from echobound.scenario import certify, select

    get_kernel("cpu")  # what a client has loaded anyway
    rng = np.random.default_rng(0)
    found = {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        with Ledger(path, "p", ["fit", "rmse"]) as book:
            book.begin(range(MILLION), "max")
            seconds = 0.0
            for start in range(0, MILLION, 1000):
                rows = np.zeros(1000, dtype=row_dtype(2))
                rows["index"] = np.arange(start, start + 1000)
                rows["order"], rows["ridge"] = rng.integers(10, 500, 1000), 1e-8
                rows["scores"], rows["seconds"] = rng.normal(size=(1000, 2)), rng.random(1000)
                began = time.perf_counter()
                book.append(rows, engine="threads", kernel="cpu", place=here())
                seconds += time.perf_counter() - began
        found["rows_per_second"] = MILLION / seconds
        found["megabytes"] = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
        began = time.perf_counter()
        with Ledger(path, "p", ["fit", "rmse"]) as book:
            found["open_seconds"] = time.perf_counter() - began
            assert list(book.missing(range(MILLION))) == []
            found["missing_seconds"] = time.perf_counter() - began - found["open_seconds"]
            began, worked = time.perf_counter(), time.process_time()
            rows = book.rows()
        scores = rows["scores"][:, 0]
        _, epsilon = settle_networks(None, 1e-7, MILLION)
        winner = select(scores, "max")
        certificate = certify(
            scores, score="fit", direction="max", unit="%", horizon=None, epsilon=epsilon, beta=1e-7, bound="exact",
            law=paper().to_dict(), seed=0, digests={"ledger": rows_digest(rows)},
        )  # fmt: skip
        found["certify_seconds"] = time.perf_counter() - began
        found["certify_cpu_seconds"] = time.process_time() - worked
        assert certificate.winner == winner
    found["memory_megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps(found))


def overhead() -> dict:
    """The same networks in batches of about a second on each engine, taken in turn, in wall-clock and in CPU time.

    Other work on the machine only adds to a time, so the smallest of several is the one to compare.
    """
    import psutil
    from run import CPU, problem

    from echobound.campaign import get_engine, run_campaign, usable_cores
    from echobound.candidates import Networks
    from echobound.runs import Ledger

    networks, wall, cpu = Networks(CPU, problem(100)), {}, {}
    engines = {name: get_engine(name) for name in ("threads", "processes", "dask")}

    def worked() -> float:
        """CPU seconds of this process and all that it started."""
        processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
        return sum(sum(process.cpu_times()[:2]) for process in processes)

    def measure(name, count, batch):
        with Ledger(None, "bench", ["fit", "rmse"]) as book:
            start, before = time.perf_counter(), worked()
            run_campaign(networks, range(count), book, engines[name], batch=batch)
            return time.perf_counter() - start, worked() - before

    try:
        for name in engines:
            measure(name, 40, 10)  # load the compiled code everywhere
        batch = max(1, round(200 / measure("threads", 200, 20)[1]))
        for _ in range(9):
            for name in engines:
                one, other = measure(name, 4 * batch * usable_cores(), batch)
                wall.setdefault(name, []).append(one)
                cpu.setdefault(name, []).append(other)
    finally:
        for engine in engines.values():
            engine.close()
    return {
        "batch": batch,
        "wall_over_threads": {name: min(wall[name]) / min(wall["threads"]) for name in ("processes", "dask")},
        "cpu_over_threads": {name: min(cpu[name]) / min(cpu["threads"]) for name in ("processes", "dask")},
        "wall": wall,
        "cpu": cpu,
    }


class Nothing:
    """A kernel that costs nothing, so that only the handing out is left."""

    name = "nothing"

    def evaluate(self, problem, indices):
        """Rows of zeros."""
        from echobound.kernels import row_dtype

        rows = np.zeros(len(indices), dtype=row_dtype(len(problem.scores)))
        rows["index"] = indices
        return rows


def batches() -> dict:
    """Milliseconds that a batch of a thousand rows costs the client, from handing out to the ledger."""
    from run import problem

    from echobound.campaign import get_engine, run_campaign
    from echobound.candidates import Networks
    from echobound.runs import Ledger

    sys.modules["campaign"] = sys.modules[__name__]  # workers find the kernel by this name
    Nothing.__module__ = "campaign"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    found = {}
    for name, count in (("threads", 2000), ("processes", 1000), ("dask", 600)):
        with get_engine(name) as engine, TemporaryDirectory() as folder:
            times = []
            for number in range(4):
                with Ledger(Path(folder) / f"{number}.sqlite", "bench", ["fit", "rmse"]) as book:
                    start = time.perf_counter()
                    networks = Networks(Nothing(), problem(10))
                    run_campaign(networks, range(1000 * count), book, engine, batch=1000)
                    times.append(1e3 * (time.perf_counter() - start) / count)
            found[name] = statistics.median(times[1:])
    return found


def stop() -> dict:
    """Seconds from SIGTERM to the end of the process, in batches of about a second."""
    found = {}
    with TemporaryDirectory() as folder:
        call = [sys.executable, "-m", "echobound"]
        subprocess.run([*call, "simulate-plant", "--output", "d.csv"], cwd=folder, check=True, capture_output=True)
        for engine in ("threads", "processes", "dask"):
            times = []
            for number in range(5):
                run = f"{engine}-{number}"
                options = ["--networks", "100000", "--engine", engine, "--run", run]
                process = subprocess.Popen(
                    [*call, "identify", "d.csv", "--inputs", "q3", "--outputs", "pH", *options], cwd=folder,
                    stderr=subprocess.PIPE, text=True,
                )  # fmt: skip
                while True:  # until batches have grown to a second
                    time.sleep(0.2)
                    assert process.poll() is None, process.communicate()
                    seen = subprocess.run([*call, "watch", run, "--json"], cwd=folder, capture_output=True, text=True)
                    if seen.returncode == 0 and (json.loads(seen.stdout)["done"] or 0) > 600:
                        break
                time.sleep(0.3 * number)
                start = time.perf_counter()
                process.send_signal(signal.SIGTERM)
                process.communicate()
                times.append(time.perf_counter() - start)
                assert process.returncode == 143
            found[engine] = {"median": statistics.median(times), "longest": max(times)}
    return found


SECTIONS = {"kills": kills, "ledger": ledger, "overhead": overhead, "batches": batches, "stop": stop}


def section(results: dict) -> list[str]:
    """The results in Markdown."""
    lines = ["## Campaigns (`benchmarks/campaign.py`)", ""]
    if "kills" in results:
        lines += [
            "| engine | random SIGKILLs, resumed each time | runs finished in between | rows lost | rows changed |"
            " table, winner and certificate |",
            "|---|---|---|---|---|---|",
            *(
                f"| {name} | {r['kills']} ({r['killed before the first row']} before the first row,"
                f" {r['killed after the last row']} after the last) | {r['finished']} | {r['lost']} | {r['changed']} |"
                f" {'identical bit for bit' if r['identical'] else 'DIFFERENT'} |"
                for name, r in results["kills"].items()
            ),
            "",
        ]
    if "ledger" in results:
        r = results["ledger"]
        lines += [
            f"Ledger of 1,000,000 rows: written at {r['rows_per_second']:,.0f} rows/s in batches of 1000,"
            f" {r['megabytes']:.0f} MB on disk, opened and checked in {r['open_seconds']:.2f} s, searched for missing"
            f" rows in {r['missing_seconds']:.2f} s; read, best picked and certified in {r['certify_seconds']:.2f} s"
            f" ({r['certify_cpu_seconds']:.2f} s of CPU)."
            f" Peak memory of that process: {r['memory_megabytes']:.0f} MB.",
            "",
        ]
    if "overhead" in results:
        r = results["overhead"]
        ratios = ", ".join(
            f"{label} {r['wall_over_threads'][name]:.3f} by the clock and {r['cpu_over_threads'][name]:.3f} in CPU time"
            for name, label in (("processes", "processes"), ("dask", "Dask on one machine"))
        )
        lines += [
            f"The same networks (order 100, batches of {r['batch']}, about a second) on two cores, shortest of nine"
            f" times relative to threads: {ratios}.",
            "",
        ]
    if "batches" in results:
        lines += [
            "Overhead of a batch of 1000 rows, from handing it out to the ledger, with a kernel that does nothing: "
            + ", ".join(f"{name} {value:.1f} ms" for name, value in results["batches"].items())
            + ".",
            "",
        ]
    if "stop" in results:
        lines += [
            "From SIGTERM to the end of the process, with the batch in progress (about 1 s), median and longest of 5: "
            + ", ".join(f"{name} {r['median']:.1f} s and {r['longest']:.1f} s" for name, r in results["stop"].items())
            + ".",
            "",
        ]
    machine = results["machine"]
    return [*lines, "Campaigns were measured on: " + ", ".join(f"{k} {v}" for k, v in machine.items()) + ".", ""]


def main() -> None:
    sys.path.insert(0, str(HERE))
    from run import HERE as FOLDER
    from run import load, report

    results = load()
    for name in sys.argv[1:] or SECTIONS:
        print(f"{name} ...", file=sys.stderr)
        results.setdefault("campaign", {})[name] = SECTIONS[name]()
        results["campaign"]["machine"] = {
            "load of the machine": round(os.getloadavg()[1]),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            **{package: version(package) for package in ("echobound", "numpy", "distributed")},
        }
        (FOLDER / "results.json").write_text(json.dumps(results, indent=2) + "\n")
        (FOLDER / "RESULTS.md").write_text(report(results))
    print("\n".join(section(results["campaign"])))


if __name__ == "__main__":
    main()
