"""What a step of an exported model costs, and how far it drifts from the model.

    python benchmarks/export.py            the cost of a step in C, against the compiled kernel
    python benchmarks/export.py c onnx     long free runs of these targets against the model

Timings are processor time, the best of 25 runs over 20,000 samples, of C compiled here and of the compiled kernel on
the same network.
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


def took(function: Callable[[], object]) -> float:
    """One run, in microseconds a step."""
    start = time.thread_time()
    function()
    return 1e6 * (time.thread_time() - start) / STEPS


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


def long_run(target: str, name: str) -> float:
    """The largest difference from a model over a long free run, relative to the range of an output."""
    model, u = zoo()[name], excitation(zoo()[name], LONG)
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/plant{'' if TARGETS[target].folder else TARGETS[target].suffix}"
        exported = export_model(model, place, target)
        got = exported.target.run(exported.job, exported.path, u, None)
    return difference(got, model.simulate(u, dynamics=compiled_dynamics()).y)


def section(results: dict) -> list[str]:
    """The results in Markdown."""
    lines = ["## Exported models (`benchmarks/export.py`)", ""]
    if costs := results.get("step"):
        names = list(costs[0]["us"])
        lines += [
            "A step of the exported C and of the compiled kernel on one core, ten non-zeros a row, in microseconds, and"
            " in brackets how many times as long as the kernel's own. The kernel is compiled for this processor, as is"
            " C with `-march=native`:",
            "",
            f"| order | pattern | {' | '.join(names)} |",
            "|" + (2 + len(names)) * "---|",
        ]
        for row in costs:
            own = row["us"][names[0]]
            cells = [f"{own:.2f}", *(f"{row['us'][n]:.2f} ({row['us'][n] / own:.2f})" for n in names[1:])]
            lines.append(f"| {row['order']} | {row['pattern']} | " + " | ".join(cells) + " |")
        lines += ["", f"The load of the machine was {results['load']}, on two cores.", ""]
    if runs := results.get("long"):
        lines += [
            f"Free runs over {LONG:,} samples against the model, relative to the range of an output, of the models in"
            " `tests/model_zoo.py` (every feature of a law, cascades, committees):",
            "",
            "| target | models | largest difference | of |",
            "|---|---|---|---|",
        ]
        for target, found in runs.items():
            worst = max(found, key=lambda name: found[name])
            lines.append(f"| {target} | {len(found)} of {len(zoo())} | {found[worst]:.1e} | {worst} |")
        lines.append("")
    return lines


def main() -> None:
    sys.path.insert(0, str(HERE))
    names = sorted(zoo(), key=lambda name: name not in FEW)  # those that have most in them first
    for target in sys.argv[1:]:
        for name in names:
            found = long_run(target, name)
            print(target, name, found, flush=True)
            keep(found, "long", target, name)
    if not sys.argv[1:]:
        keep(round(os.getloadavg()[1]), "load")
        keep(step_costs(), "step")


def keep(found: object, *keys: str) -> None:
    """Write what was found at once: a run of all targets takes an hour."""
    from run import load, report

    results = load()
    place = results.setdefault("export", {})
    for key in keys[:-1]:
        place = place.setdefault(key, {})
    place[keys[-1]] = found
    (HERE / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    (HERE / "RESULTS.md").write_text(report(results))


if __name__ == "__main__":
    main()
