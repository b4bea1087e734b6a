"""Training on the free-run error against least squares: the paper's pH experiment, fresh draws, noise-free output.

Usage: python benchmarks/free_run.py [--order 50] [--draws 30]
"""

from __future__ import annotations

import argparse

import numpy as np

from echobound.draws import VERIFICATION
from echobound.kernels import get_kernel, hold_out
from echobound.network import paper
from echobound.plants import ph_experiment
from echobound.scores import fit, get_score

WASHOUT = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--order", type=int, default=50)
    parser.add_argument("--draws", type=int, default=30)
    options = parser.parse_args()
    training, validation = ph_experiment()
    _, clean = ph_experiment(noise=0.0)  # the same excitation
    kernel, found = get_kernel("cpu"), {}
    for trainer in ("least squares", "free run"):
        law = paper(options.order, training=trainer)
        problem = hold_out(training, validation, law=law, scores=[get_score("fit")], washout=WASHOUT).on(VERIFICATION)
        runs = kernel.runs(problem, range(options.draws))
        found[trainer] = np.array([float(fit(clean.y[WASHOUT:], run.outputs[0])) for run in runs])
    gain = found["free run"] - found["least squares"]
    for trainer, fits in found.items():
        print(f"{trainer}: median FIT {np.median(fits):.2f} % against the noise-free output, worst {fits.min():.2f} %")
    print(f"gain: median {np.median(gain):.2f} points, least {gain.min():.2f}, most {gain.max():.2f}")


if __name__ == "__main__":
    main()
