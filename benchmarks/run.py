"""All speed figures of the CPU kernel, each a ratio within one run; prints them and saves JSON and Markdown.

Usage: make bench            (a few minutes on two quiet cores)
       python benchmarks/run.py speed roofline ...   for some sections only
"""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from echobound.campaign import get_engine, run_campaign, usable_cores
from echobound.candidates import Networks
from echobound.kernels import get_kernel, hold_out
from echobound.network import ReservoirLaw
from echobound.plants import ph_experiment
from echobound.runs.ledger import Ledger
from echobound.runs.provenance import here
from echobound.scores import get_score

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import around  # noqa: E402 (beside this file, from wherever it is run)

SCORES = [get_score("fit"), get_score("rmse")]
CPU = get_kernel("cpu")


def seconds(function, repeats: int = 5) -> float:
    """Median of several runs, after one to warm up."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def problem(order: int, samples=(5000, 3000), **law):
    return hold_out(*ph_experiment(samples=samples), law=ReservoirLaw(order=order, **law), scores=SCORES)


def campaign(one_problem, count: int, workers: int):
    with Ledger(None, "bench", ["fit", "rmse"]) as ledger:
        batch = max(1, count // (8 * workers))
        with get_engine("threads", workers) as engine:
            return run_campaign(Networks(CPU, one_problem), range(count), ledger, engine, batch=batch)


def speed() -> list[dict]:
    """Time a network on one core against reservoirpy, and against the roofline of the machine."""
    from peers import reservoirpy_by_hand, reservoirpy_esn, scaled

    data = scaled(*ph_experiment())
    bandwidth = load_bandwidth()
    rows = []
    for order in (50, 200, 500):
        task = problem(order)
        # Medians, taken in turn with the peers', so that a noisy minute hits all of them alike.
        ours, theirs, esn, scattered = [], [], [], []
        random, count = problem(order, pattern="random"), max(8, 3200 // order)
        for seed in range(7):
            block = range(count * seed, count * (seed + 1))
            for times, function in (
                (ours, lambda t=task, b=block: CPU.evaluate(t, b)),
                (scattered, lambda t=random, b=block: CPU.evaluate(t, b)),
                (theirs, lambda s=seed, n=order: reservoirpy_by_hand(data, n, s)),
                (esn, lambda s=seed, n=order: reservoirpy_esn(data, n, s)),
            ):
                with threadpool_limits(1, user_api="blas"):
                    start = time.perf_counter()
                    function()
                    times.append(time.perf_counter() - start)
        own, spread = statistics.median(ours) / count, statistics.median(scattered) / count
        gram = dsyrk_seconds(order + 2, 4900)
        # Each step loads the weights and the state for every non-zero, and W_u, W_y and bias once.
        states = 8000 * order * (2 * 10 + 3) * 8 / bandwidth
        rows.append(
            {
                "order": order,
                "ms": 1e3 * own,
                "ms_random_pattern": 1e3 * spread,
                "reservoirpy_ms": 1e3 * statistics.median(theirs),
                "reservoirpy_esn_ms": 1e3 * statistics.median(esn),
                "times_reservoirpy": statistics.median(theirs) / own,
                "times_reservoirpy_esn": statistics.median(esn) / own,
                "gram_ms": 1e3 * gram,
                "roofline_ms": 1e3 * (gram + states),
                "over_roofline": own / (gram + states),
            }
        )
    return rows


def dsyrk_seconds(width: int, rows: int) -> float:
    """The Gram matrix alone, by one call of dsyrk on one core."""
    from scipy.linalg.blas import dsyrk

    matrix = np.asfortranarray(np.random.default_rng(0).random((width, rows)))
    with threadpool_limits(1, user_api="blas"):
        return seconds(lambda: dsyrk(1.0, matrix), repeats=9)


def load_bandwidth() -> float:
    """Bytes a second that one core loads from a working set of 40 kB, as the weights of 500 states are."""
    from numba import njit

    @njit(fastmath=True)
    def total(array, times):
        result = 0.0
        for _ in range(times):
            for i in range(array.size):
                result += array[i]
            array[0] = result * 1e-30
        return result

    array = np.ones(5000)
    return 2000 * array.nbytes / seconds(lambda: total(array, 2000), repeats=9)


def cores() -> list[dict]:
    """Throughput of all cores against one."""
    rows = []
    for order in (50, 200, 500):
        task, count = problem(order), max(32, 12_000 // order)
        campaign(task, 4, 1)
        ratios = []
        for _ in range(5):
            start = time.perf_counter()
            campaign(task, count, 1)
            middle = time.perf_counter()
            campaign(task, count, usable_cores())
            ratios.append((middle - start) / (time.perf_counter() - middle))
        rows.append({"order": order, "all_cores_over_one": statistics.median(ratios), "cores": usable_cores()})
    return rows


def job() -> dict:
    """645 networks of 100 states on all cores, against a loop over reservoirpy with joblib."""
    from joblib import Parallel, delayed
    from peers import reservoirpy_by_hand, scaled

    data = scaled(*ph_experiment())
    task = problem(100)
    campaign(task, 4, usable_cores())
    start = time.perf_counter()
    campaign(task, 645, usable_cores())
    own = time.perf_counter() - start
    with Parallel(n_jobs=usable_cores()) as pool:
        pool(delayed(reservoirpy_by_hand)(data, 100, seed) for seed in range(4))
        start = time.perf_counter()
        pool(delayed(reservoirpy_by_hand)(data, 100, seed) for seed in range(645))
        theirs = time.perf_counter() - start
    return {"seconds": own, "reservoirpy_joblib_seconds": theirs, "times": theirs / own}


def memory() -> dict:
    """Peak memory of a process that evaluates 500 states on a record of a million samples."""
    code = (
        "import resource, sys; sys.path.insert(0, {here!r}); import run;"
        "t = run.problem(500, samples=(750_000, 250_000)); run.CPU.evaluate(t, range({count}));"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks = {}
    for count in (1, 3):
        done = subprocess.run(
            [sys.executable, "-c", code.format(here=str(HERE), count=count)], capture_output=True, text=True, check=True
        )
        peaks[count] = int(done.stdout) / 2**20
    return {"gib_one_network": peaks[1], "gib_three_networks": peaks[3]}


def growth() -> dict:
    """How the time grows with record length K, number of networks N and order n; slopes of log-log fits."""

    def of(task, count):
        with threadpool_limits(1, user_api="blas"):
            return seconds(lambda: CPU.evaluate(task, range(count)), 3)

    lengths = {k: of(problem(100, (k, k)), 4) for k in (2000, 6000, 20_000, 60_000)}
    counts = {n: of(problem(50), n) for n in (10, 30, 100, 300)}
    orders = {n: of(problem(n), 4) for n in (25, 50, 100, 200, 400, 800)}
    result = {}
    for name, times in {"samples K": lengths, "networks N": counts, "order n": orders}.items():
        slope = float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])
        result[name] = {"slope": slope, "seconds": {str(x): y for x, y in times.items()}}
    draw_growth(result)
    return result | {"time_at_10K_over_K": lengths[60_000] / lengths[6000]}


def draw_growth(result: dict) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3), layout="constrained")
    for ax, (name, curve) in zip(figure.subplots(1, 3), result.items(), strict=True):
        x, y = [int(value) for value in curve["seconds"]], list(curve["seconds"].values())
        ax.loglog(x, y, "o-", ms=4)
        ax.set(xlabel=name, ylabel="seconds", title=f"slope {curve['slope']:.2f}")
        ax.minorticks_off()
        ax.set_xticks(x, labels=[str(value) for value in x])
        ax.grid(alpha=0.3)
    figure.savefig(HERE / "growth.svg")


def patterns() -> list[dict]:
    """Scores of the two sparsity patterns: Kolmogorov distance and 95 % quantiles over 1000 networks each."""
    from scipy.stats import ks_2samp

    rows = []
    for order in (20, 100, 300):
        diagonals, random = (
            campaign(problem(order, pattern=pattern), 1000, usable_cores())["scores"][:, 0]
            for pattern in ("diagonals", "random")
        )
        high = [float(np.quantile(scores, 0.95)) for scores in (diagonals, random)]
        distance = float(ks_2samp(diagonals, random).statistic)
        rows.append({"order": order, "kolmogorov": distance, "q95_diagonals": high[0], "q95_random": high[1]})
    return rows


FIRST_NETWORK = """
import numpy as np
from echobound import Record, paper
from echobound.kernels import get_kernel, hold_out
from echobound.scores import get_score
u = np.sin(0.1 * np.arange(500.0)) ** 3
problem = hold_out(Record(u=u, y=u), Record(u=u, y=u), law=paper(50), scores=[get_score("fit")])
get_kernel("cpu").evaluate(problem, [0])
"""


def start() -> dict:
    """Seconds until a fresh process is ready, compiled code cached on disk."""
    commands = {
        "import echobound": ["-c", "import echobound"],
        "echobound --help": ["-m", "echobound", "--help"],
        "first network of a second process": ["-c", FIRST_NETWORK],
    }
    found = {}
    for name, command in commands.items():
        # The CPU time too, since on a busy machine the clock says little.
        times, used = [], []
        for _ in range(6):
            start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *command], capture_output=True, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(time.perf_counter() - start)
            used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        found[name] = {"seconds": min(times[1:]), "cpu_seconds": min(used[1:])}
    return found


SECTIONS = {
    "speed": speed,
    "cores": cores,
    **around.SECTIONS,
    "job": job,
    "memory": memory,
    "growth": growth,
    "patterns": patterns,
    "start": start,
}


def limit(row: dict) -> str:
    by_hand, esn = (row[name] / row["roofline_ms"] for name in ("reservoirpy_ms", "reservoirpy_esn_ms"))
    return (
        f"At order {row['order']} a kernel on the roofline would be {by_hand:.1f} times faster than reservoirpy by hand"
        f" and {esn:.1f} times faster than its `ESN`:\nthe Gram matrix in double precision sets the limit, and dsyrk"
        " runs at the rate of dgemm."
    )


def report(results: dict) -> str:
    lines = [
        "# Benchmark results",
        "",
        "Made by `make bench`. Ratios are within one run. Law `paper`: one input,",
    ]
    lines += ["one output, 10 non-zeros per row, 5000 training and 3000 free-run samples, double precision.", ""]
    if "speed" in results:
        lines += [
            "## One network on one core",
            "",
            "| order | ms | ms, random pattern | reservoirpy by hand | reservoirpy `ESN` | times faster than by hand |"
            " times faster than `ESN` | Gram by dsyrk alone, ms | roofline, ms | time / roofline |",
            "|---|---|---|---|---|---|---|---|---|---|",
            *(
                f"| {r['order']} | {r['ms']:.2f} | {r['ms_random_pattern']:.2f} | {r['reservoirpy_ms']:.0f} ms |"
                f" {r['reservoirpy_esn_ms']:.0f} ms | {r['times_reservoirpy']:.1f} | {r['times_reservoirpy_esn']:.1f} |"
                f" {r['gram_ms']:.2f} | {r['roofline_ms']:.2f} | {r['over_roofline']:.2f} |"
                for r in results["speed"]
            ),
            "",
            "The roofline is the Gram matrix at the rate of dsyrk alone, plus loading every weight and state once per",
            "step at the bandwidth measured for a working set of that size; tanh, Cholesky and the rest are overhead.",
            limit(results["speed"][-1]),
            "",
        ]
    if "cores" in results:
        pairs = ", ".join(f"{r['all_cores_over_one']:.2f} at order {r['order']}" for r in results["cores"])
        lines += [
            "## All cores",
            "",
            f"Throughput of {results['cores'][0]['cores']} cores relative to one: {pairs}.",
            "",
        ]
    lines += around.section(results)
    if "job" in results:
        j = results["job"]
        lines += [
            "## The whole job",
            "",
            f"645 networks of order 100 on all cores: {j['seconds']:.1f} s; a loop over reservoirpy with joblib:"
            f" {j['reservoirpy_joblib_seconds']:.0f} s, {j['times']:.1f} times as long.",
            "",
        ]
    if "memory" in results:
        m = results["memory"]
        lines += [
            "## Memory",
            "",
            f"Peak of a process with 500 states and 1,000,000 samples: {m['gib_one_network']:.2f} GiB for one network,"
            f" {m['gib_three_networks']:.2f} GiB for three.",
            "",
        ]
    if "growth" in results:
        slopes = ", ".join(f"{v['slope']:.2f} in {k}" for k, v in results["growth"].items() if isinstance(v, dict))
        lines += [
            "## Growth",
            "",
            f"Log-log slopes of time: {slopes}; time at 10 K over K: {results['growth']['time_at_10K_over_K']:.1f}.",
            "",
            "![growth](growth.svg)",
            "",
        ]
    if "patterns" in results:
        lines += [
            "## Cyclic diagonals compared with a freely random pattern, 1000 networks each",
            "",
            "| order | Kolmogorov distance of FIT | 95 % quantile, diagonals | 95 % quantile, random |",
            "|---|---|---|---|",
            *(
                f"| {r['order']} | {r['kolmogorov']:.3f} | {r['q95_diagonals']:.3f} | {r['q95_random']:.3f} |"
                for r in results["patterns"]
            ),
            "",
            "At small orders the two cannot be told apart. At order 300 the distributions differ slightly: FIT varies",
            "by a few hundredths of a point there, and the diagonals are better by about two hundredths.",
            "",
        ]
    if "start" in results:
        lines += ["## Start", "", "Shortest of five, compiled code kept from an earlier process.", ""]
        for name, found in results["start"].items():
            lines.append(f"- {name}: {found['seconds']:.2f} s ({found['cpu_seconds']:.2f} s of CPU time)")
        lines.append("")
    if "agreement" in results:
        lines += [
            "## Agreement with the reference kernel, 645 networks each (`benchmarks/agreement.py`)",
            "",
            "| order | within 1e-9 | beyond, largest difference | probed / sensitive to rounding | same winner |",
            "|---|---|---|---|---|",
            *(
                f"| {r['order']} | {r['within']} | {r['beyond']}, {r['largest']:.1e} |"
                f" {r['probed']} / {r['sensitive']} | {'yes' if r['same_winner'] else 'no'} |"
                for r in results["agreement"]
            ),
            "",
        ]
    if "campaign" in results:
        from campaign import section

        lines += section(results["campaign"])
    if "export" in results:
        from export import section as exports

        lines += exports(results["export"])
    lines += ["Machine: " + ", ".join(f"{k} {v}" for k, v in results["machine"].items()) + ".", ""]
    # The GPU section is written by hand from gpu.json, since few machines that run this script have a GPU.
    return "\n".join([*lines, (HERE / "gpu.md").read_text()])


def save(results: dict) -> None:
    results["machine"] = {
        "processor": f"{here().processor} ({platform.machine()})",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        **{name: version(name) for name in ("echobound", "numpy", "scipy", "numba", "reservoirpy")},
    }
    (HERE / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    (HERE / "RESULTS.md").write_text(report(results))


def load() -> dict:
    path = HERE / "results.json"
    return json.loads(path.read_text()) if path.exists() else {}


def main() -> None:
    sys.path.insert(0, str(HERE))
    results = load()
    for name in sys.argv[1:] or SECTIONS:
        print(f"{name} ...", file=sys.stderr)
        results[name] = SECTIONS[name]()
        save(results)
    print(report(results))
    print(f"peak memory of this run: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
