"""What a step of an exported model costs, and how far it drifts from the model: `python benchmarks/export.py`.

Timings are the best of 25 runs over 20,000 samples, of C compiled here and of the compiled kernel on the same network.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from model_zoo import excitation, network, zoo

from echobound.export import TARGETS, export_model
from echobound.export.base import difference
from echobound.kernels import compiled_dynamics

STEPS = 20_000
FLAGS = (("-O3",), ("-O3", "-march=native"))


def took(function) -> float:
    """One run, in microseconds a step."""
    start = time.perf_counter()
    function()
    return 1e6 * (time.perf_counter() - start) / STEPS


def step_costs() -> None:
    """C against the compiled kernel, ten non-zeros a row; all take turns, so that each has the same share of noise."""
    names = [f"{compiler} {' '.join(flags)}" for compiler in compilers() for flags in FLAGS]
    print(f"| order | pattern | compiled kernel | {' | '.join(names)} |\n|{(3 + len(names)) * '---|'}")
    fast = compiled_dynamics()
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
        print(f"| {order} | {pattern} | " + " | ".join(f"{value:.2f} us" for value in best) + " |", flush=True)


def _predict(library: Path, model, u):
    """A call of the exported C over all inputs."""
    loaded, out = ctypes.CDLL(str(library)), np.empty((len(u), 1))
    instance = (ctypes.c_double * (model.order + 8))()
    pointer = ctypes.POINTER(ctypes.c_double)
    loaded.plant_reset(instance, u.ctypes.data_as(pointer))
    return lambda: loaded.plant_predict(
        instance, u.ctypes.data_as(pointer), ctypes.c_size_t(len(u)), out.ctypes.data_as(pointer)
    )


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
    long_runs(sys.argv[1:])  # targets
