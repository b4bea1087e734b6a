"""What a step of an exported model costs, and how far it drifts from the model: `python benchmarks/export.py`.

Timings are the best of several runs over 20,000 samples, of C compiled here and of the compiled kernel on the same
network; one core, nothing else running if they are to be compared.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from model_zoo import excitation, network, zoo

from echobound.export import TARGETS, export_model
from echobound.export.base import difference
from echobound.kernels import compiled_dynamics

STEPS = 20_000
FLAGS = (("-O3",), ("-O3", "-march=native"))


def best(function, repeats: int = 7) -> float:
    """The shortest of several runs, in microseconds a step."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return 1e6 * min(times) / STEPS


def step_costs() -> None:
    """C against the compiled kernel, n = 50 and 200, ten non-zeros a row."""
    print(
        "| order | pattern | compiled kernel | "
        + " | ".join(f"{cc} {' '.join(f)}" for cc in compilers() for f in FLAGS)
    )
    for order, pattern in ((50, "diagonals"), (200, "diagonals"), (200, "random")):
        model = network(order=order, nonzeros=10, pattern=pattern, norm=0.95)
        u = np.ascontiguousarray(excitation(model, STEPS))
        fast = compiled_dynamics()
        kernel = best(lambda model=model, u=u, fast=fast: model.simulate(u, dynamics=fast))
        cells = []
        with tempfile.TemporaryDirectory() as folder:
            export_model(model, f"{folder}/plant", "c")
            for compiler in compilers():
                for number, flags in enumerate(FLAGS):
                    library = Path(folder) / f"{compiler}{number}.so"
                    command = [compiler, "-std=c99", *flags, "-shared", "-fPIC", f"{folder}/plant/plant.c"]
                    subprocess.run([*command, "-lm", "-o", str(library)], check=True)
                    cells.append(f"{_c(library, model, u):.2f}")
        print(f"| {order} | {pattern} | {kernel:.2f} us | " + " | ".join(cells), flush=True)


def _c(library: Path, model, u) -> float:
    loaded, out = ctypes.CDLL(str(library)), np.empty((len(u), 1))
    instance = (ctypes.c_double * (model.order + 8))()
    pointer = ctypes.POINTER(ctypes.c_double)
    loaded.plant_reset(instance, u.ctypes.data_as(pointer))
    arguments = instance, u.ctypes.data_as(pointer), ctypes.c_size_t(len(u)), out.ctypes.data_as(pointer)
    return best(lambda: loaded.plant_predict(*arguments))


def compilers() -> list[str]:
    """Compilers that are here."""
    return [name for name in ("gcc", "clang") if shutil.which(name)]


def long_runs(targets: list[str], steps: int = 100_000) -> None:
    """The largest difference over a long free run, of the worst model, relative to the range of an output."""
    fast = compiled_dynamics()
    for target in targets:
        worst = []
        for name, model in zoo().items():
            with tempfile.TemporaryDirectory() as folder:
                exported = export_model(model, f"{folder}/plant{TARGETS[target].suffix}", target)
                u = excitation(model, steps)
                got = exported.target.run(exported.job, exported.path, u, None)
                worst.append((difference(got, model.simulate(u, dynamics=fast).y), name))
        largest, name = max(worst)
        print(f"{target}: {largest:.2g} over {steps} samples ({name}), {len(worst)} models", flush=True)


if __name__ == "__main__":
    step_costs()
    long_runs(sys.argv[1:] or ["c"])
