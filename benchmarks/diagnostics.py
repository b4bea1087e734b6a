"""False alarms and detections of the diagnostics, on simulated cases whose truth is known; writes diagnostics.json.

Usage: python benchmarks/diagnostics.py --cases 200

Each case is a plant of second order with random poles, a random coloured input and coloured noise on its output, and a
model that is the truth itself or wrong in one known way. So what a model leaves over is known: the disturbance alone,
or what it lacks as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from echobound.diagnostics.drift import drift_of
from echobound.diagnostics.finding import RATE, Finding, Piece
from echobound.diagnostics.residuals import residuals_of
from echobound.files import write_json
from echobound.kernels.blas import one_blas_thread

HERE = Path(__file__).parent
SAMPLES, BLOCKS = 1200, 4
Case = Callable[[np.random.Generator, int], list[Piece]]


def plant(rng: np.random.Generator, delay: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Numerator and denominator, with a dead time."""
    radius, angle = rng.uniform(0.6, 0.9), rng.uniform(0.1, 0.8)
    a = np.array([1.0, -2 * radius * np.cos(angle), radius**2])
    b = np.r_[np.zeros(delay), rng.uniform(0.5, 1.0), rng.uniform(-0.4, 0.4)]
    return b, a


def excitation(rng: np.random.Generator, samples: int) -> np.ndarray:
    return lfilter([1.0], [1.0, -rng.uniform(0.0, 0.8)], rng.standard_normal(samples))


def noise(rng: np.random.Generator, samples: int, size: float, pole: float) -> np.ndarray:
    new = lfilter([1.0], [1.0, -pole], rng.standard_normal(samples + 200))[200:]
    return size * new / new.std()


def pieces(u: np.ndarray, y: np.ndarray, simulated: np.ndarray, blocks: int = BLOCKS) -> list[Piece]:
    u, y, simulated = (one[100:, None] for one in (u, y, simulated))
    edges = np.linspace(0, len(u), blocks + 1).astype(int)
    return [Piece(u[a:b], y[a:b], simulated[a:b]) for a, b in pairwise(edges)]


def true_white(rng: np.random.Generator, samples: int) -> list[Piece]:
    """The model is the plant, and the disturbance is white."""
    u = excitation(rng, samples + 100)
    free = lfilter(*plant(rng), u)
    return pieces(u, free + noise(rng, len(u), 0.3 * free.std(), 0.0), free)


def true_coloured(rng: np.random.Generator, samples: int) -> list[Piece]:
    """The model is the plant, and the disturbance is coloured."""
    u = excitation(rng, samples + 100)
    free = lfilter(*plant(rng), u)
    return pieces(u, free + noise(rng, len(u), 0.3 * free.std(), rng.uniform(0.3, 0.9)), free)


def missing_dynamics(rng: np.random.Generator, samples: int) -> list[Piece]:
    """The model lacks a slow, weak part of the plant: a tenth of its spread."""
    u = excitation(rng, samples + 100)
    free = lfilter(*plant(rng), u)
    slow = lfilter([0.0, 0.0, 0.0, 0.0, 1.0], [1.0, -0.95], u)
    slow *= 0.1 * free.std() / slow.std()
    return pieces(u, free + slow + noise(rng, len(u), 0.3 * free.std(), rng.uniform(0.3, 0.9)), free)


def wrong_delay(rng: np.random.Generator, samples: int) -> list[Piece]:
    """The model responds one to three samples too early."""
    u = excitation(rng, samples + 100)
    b, a = plant(rng, delay=5)
    free = lfilter(b, a, u)
    early = lfilter(b[rng.integers(1, 4) :], a, u)
    return pieces(u, free + noise(rng, len(u), 0.3 * free.std(), rng.uniform(0.3, 0.9)), early)


def feedback(rng: np.random.Generator, samples: int) -> list[Piece]:
    """The model is the plant, but a controller acted on the measured output."""
    count = samples + 100
    b, a = plant(rng, delay=1)
    b = b * a.sum() / b.sum()  # a gain of 1, so that the loop is stable
    reference, gain = 0.5 * excitation(rng, count), rng.uniform(0.3, 0.6)
    v = noise(rng, count, 0.5, rng.uniform(0.3, 0.9))
    u, y, free = np.zeros(count), np.zeros(count), np.zeros(count)
    for k in range(2, count):
        free[k] = b[1] * u[k - 1] + b[2] * u[k - 2] - a[1] * free[k - 1] - a[2] * free[k - 2]
        y[k] = free[k] + v[k]
        u[k] = reference[k] - gain * y[k - 1]
    return pieces(u, y, free)


def drift(rng: np.random.Generator, samples: int) -> list[Piece]:
    """The gain of the plant falls by a tenth and its offset moves by 0.2 spreads in the last block."""
    u = excitation(rng, samples + 100)
    free = lfilter(*plant(rng), u)
    moved = free.copy()
    last = len(u) - samples // BLOCKS
    moved[last:] = 0.9 * free[last:] + 0.2 * free.std()
    return pieces(u, moved + noise(rng, len(u), 0.3 * free.std(), rng.uniform(0.3, 0.9)), free)


CASES: dict[str, Case] = {
    "white residuals": true_white,
    "coloured residuals": true_coloured,
    "missing dynamics": missing_dynamics,
    "wrong delay": wrong_delay,
    "feedback": feedback,
    "drift": drift,
}


def found(case: list[Piece]) -> tuple[Finding, ...]:
    return (*residuals_of(case, ["u"], ["y"]).findings, drift_of(case, ["y"]))


def rates(cases: int, samples: int = SAMPLES, seed: int = 0) -> dict[str, dict[str, float]]:
    """The share of alarms of each diagnostic in each kind of case."""
    table: dict[str, dict[str, float]] = {}
    with one_blas_thread():
        for number, (name, make) in enumerate(CASES.items()):
            alarms: dict[str, int] = {}
            for i in range(cases):
                for one in found(make(np.random.default_rng([seed, number, i]), samples)):
                    alarms[one.name] = alarms.get(one.name, 0) + one.alarm
            table[name] = {what: count / cases for what, count in alarms.items()}
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--out", type=Path, default=HERE / "diagnostics.json")
    options = parser.parse_args()
    table = rates(options.cases)
    write_json(options.out, {"cases": options.cases, "samples": SAMPLES, "stated rate": RATE, "alarms": table})
    columns = list(next(iter(table.values())))
    print("| truth | " + " | ".join(columns) + " |\n|---" + "|---" * len(columns) + "|")
    for name, each in table.items():
        print(f"| {name} | " + " | ".join(f"{100 * each[column]:.1f} %" for column in columns) + " |")


if __name__ == "__main__":
    main()
