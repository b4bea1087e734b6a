"""Speed of the CPU kernel, as ratios within one run; prints a table and saves it as JSON and Markdown.

Usage: make bench
"""

from __future__ import annotations

import json
import platform
import statistics
import time
from importlib.metadata import version
from pathlib import Path

from echobound.campaign import Ledger, run_campaign, usable_cores
from echobound.kernels import get_kernel, hold_out
from echobound.network import paper
from echobound.plants import ph_experiment
from echobound.scores import get_score

HERE = Path(__file__).parent
ORDERS = (50, 200, 500)


def seconds(function, repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure() -> list[dict[str, float]]:
    training, validation = ph_experiment()
    cpu, reference = get_kernel("cpu"), get_kernel("reference")
    rows = []
    for order in ORDERS:
        problem = hold_out(training, validation, law=paper(order), scores=[get_score("fit"), get_score("rmse")])
        cpu.evaluate(problem, [0])  # compiled and warm
        count = max(8, 6000 // order)

        def campaign(workers: int, problem=problem, count=count) -> None:
            with Ledger(None, "bench", ["fit", "rmse"]) as ledger:
                run_campaign(cpu, problem, range(count), ledger, workers=workers, block=2)

        one, all_cores = seconds(lambda: campaign(1)), seconds(lambda: campaign(usable_cores()))
        plain = seconds(lambda problem=problem: reference.evaluate(problem, [0]), repeats=1)
        rows.append(
            {
                "order": order,
                "ms_per_network_one_core": 1e3 * one / count,
                "reference_over_cpu": plain / (one / count),
                "all_cores_over_one": one / all_cores,
            }
        )
    return rows


def main() -> None:
    rows = measure()
    machine = {
        "machine": platform.machine(),
        "cores": usable_cores(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("echobound", "numpy", "scipy", "numba")},
    }
    lines = [
        "# Benchmark results",
        "",
        "5000 training and 3000 free-run samples, one input, one output, 10 non-zeros a row; law `paper`.",
        "Made by `make bench`; ratios are within one run.",
        "",
        "| order | ms a network, one core | times faster than the reference kernel | all cores / one core |",
        "|---|---|---|---|",
        *(
            f"| {r['order']} | {r['ms_per_network_one_core']:.2f} | {r['reference_over_cpu']:.0f} |"
            f" {r['all_cores_over_one']:.2f} |"
            for r in rows
        ),
        "",
        "Machine: " + ", ".join(f"{k} {v}" for k, v in machine.items()) + ".",
    ]
    (HERE / "results.json").write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")
    (HERE / "RESULTS.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
