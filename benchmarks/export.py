"""What a step of an exported model costs, and how far it drifts from the model.

    python benchmarks/export.py            the cost of a step in C, against the compiled kernel
    python benchmarks/export.py c onnx     and long free runs of these targets against the model

Timings are the best of 25 runs over 20,000 samples, of C compiled here and of the compiled kernel on the same network.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from model_zoo import excitation, network, zoo

from echobound.export import TARGETS, export_model
from echobound.export.base import difference
from echobound.kernels import compiled_dynamics

HERE = Path(__file__).parent
STEPS, LONG = 20_000, 100_000
FLAGS = ("-O3", "-O3 -march=native")
FEW = ("all features", "late readout", "cascade, clipped", "even committee")
SLOW = ("control", "matlab", "st")  # a step takes a tenth of a millisecond or more: four models instead of all


def took(function: Callable[[], object]) -> float:
    """One run, in microseconds a step."""
    start = time.perf_counter()
    function()
    return 1e6 * (time.perf_counter() - start) / STEPS


def step_costs() -> list[dict]:
    """C against the compiled kernel, ten non-zeros a row; all take turns, so that each has the same share of noise."""
    names = [f"{compiler} {flags}" for compiler in ("gcc", "clang") if shutil.which(compiler) for flags in FLAGS]
    rows, fast = [], compiled_dynamics()
    for order, pattern in ((50, "diagonals"), (200, "diagonals"), (200, "random")):
        model = network(order=order, nonzeros=10, pattern=pattern, norm=0.95)
        u = np.ascontiguousarray(excitation(model, STEPS))
        runs = [partial(model.simulate, u, dynamics=fast)]
        with tempfile.TemporaryDirectory() as folder:
            export_model(model, folder, "c", name="plant")
            for number, name in enumerate(names):
                library = Path(folder) / f"{number}.so"
                command = [*name.split(), "-std=c99", "-shared", "-fPIC", f"{folder}/plant.c", "-lm", "-o"]
                subprocess.run([*command, str(library)], check=True)
                runs.append(_predict(library, model, u))
            best = np.min([[took(run) for run in runs] for _ in range(25)], axis=0)
        costs = dict(zip(["compiled kernel", *names], best.round(3).tolist(), strict=True))
        rows.append({"order": order, "pattern": pattern, "us": costs})
    return rows


def _predict(library: Path, model, u) -> Callable[[], object]:
    """A call of the exported C over all inputs."""
    loaded, out = ctypes.CDLL(str(library)), np.empty((len(u), 1))
    instance = (ctypes.c_double * (model.order + 8))()
    pointer = ctypes.POINTER(ctypes.c_double)
    loaded.plant_reset(instance, u.ctypes.data_as(pointer))
    arguments = instance, u.ctypes.data_as(pointer), ctypes.c_size_t(len(u)), out.ctypes.data_as(pointer)
    return lambda: loaded.plant_predict(*arguments)


def long_run(target: str) -> dict:
    """The largest difference over a long free run, of the worst model, relative to the range of an output."""
    fast, found = compiled_dynamics(), []
    for name, model in zoo().items():
        if target in SLOW and name not in FEW:
            continue
        with tempfile.TemporaryDirectory() as folder:
            exported = export_model(model, f"{folder}/plant{TARGETS[target].suffix}", target)
            u = excitation(model, LONG)
            got = exported.target.run(exported.job, exported.path, u, None)
            found.append((difference(got, model.simulate(u, dynamics=fast).y), name))
    largest, worst = max(found)
    return {"largest": largest, "worst": worst, "models": len(found)}


def section(results: dict) -> list[str]:
    """The results in Markdown."""
    costs = results["step"]
    names = list(costs[0]["us"])
    lines = ["## Exported models (`benchmarks/export.py`)", ""]
    lines += [
        "A step of the exported C and of the compiled kernel on one core, ten non-zeros a row, in microseconds:",
        "",
    ]
    lines += [f"| order | pattern | {' | '.join(names)} |", "|" + (2 + len(names)) * "---|"]
    for row in costs:
        lines.append(
            f"| {row['order']} | {row['pattern']} | " + " | ".join(f"{row['us'][n]:.2f}" for n in names) + " |"
        )
    lines += ["", f"Free runs over {LONG:,} samples against the model, relative to the range of an output:", ""]
    lines += ["| target | models | largest difference | of |", "|---|---|---|---|"]
    for target, one in results.get("long", {}).items():
        lines.append(f"| {target} | {one['models']} | {one['largest']:.1e} | {one['worst']} |")
    return [*lines, "", f"The load of the machine was {results['load']}, on two cores.", ""]


def main() -> None:
    sys.path.insert(0, str(HERE))
    from run import load, report

    results = load()
    found = results.setdefault("export", {})
    for target in sys.argv[1:]:
        found.setdefault("long", {})[target] = long_run(target)
        print(f"{target}: {found['long'][target]}", flush=True)
    found |= {"step": step_costs(), "load": round(os.getloadavg()[1])}
    (HERE / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    (HERE / "RESULTS.md").write_text(report(results))
    print("\n".join(section(found)))


if __name__ == "__main__":
    main()
