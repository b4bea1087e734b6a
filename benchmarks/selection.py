"""How the defaults were chosen: kinds of networks, score and size of the committee, on training rows alone.

Usage: python benchmarks/selection.py --pool FOLDER [--sets tanks,emps] [--data FOLDER]

The rule, written before any test row was opened with these kinds:

1. Of the training rows of each set, the first 70 % are trained on (4 blocks in turn, as by default); the last 30 %
   stand in for test data. A pool of draws of each kind is trained, with its scores and its outputs on the last 30 %.
2. A setting is the weights of the kinds, the score that selects, and how many of the best make the committee. 200 draws
   are taken from the pool by the weights, 12 times; the error is the rms error of what is delivered in standard
   deviations of the output, mean over outputs and repetitions.
3. The setting with the least mean over sets of log(error / least error of any setting), each at most log 3, is taken;
   among settings within 0.02 of it, the one with the larger committee, and of these the one that trains fewer small
   networks and cascades.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
from accuracy import HERE, SETS

from echobound.candidates import Networks
from echobound.kernels import Problem, get_kernel
from echobound.kernels.blas import one_blas_thread
from echobound.kernels.problem import block_folds
from echobound.network import Shape, mixed
from echobound.scores import get_score

COUNTS = {"broad": 120, "without feedback": 50, "small": 70, "cascade": 35}
WEIGHTS = {
    "broad alone": {"broad": 1.0},
    "large ones": {"broad": 0.8, "without feedback": 0.2},
    "with small ones": {"broad": 0.6, "small": 0.4},
    "all, fewer small ones": {"broad": 0.5, "without feedback": 0.1, "small": 0.25, "cascade": 0.15},
    "all, mostly large ones": {"broad": 0.6, "without feedback": 0.1, "small": 0.2, "cascade": 0.1},
    "all": {"broad": 0.4, "without feedback": 0.1, "small": 0.35, "cascade": 0.15},
}
SCORES = ("fit", "robust")
COMMITTEES = (1, 3, 5, 10, 20)


def fill(name: str, data: Path, pool: Path) -> None:
    """Train the pool of one set, a file for each kind; what is there already is kept."""
    training, _, _ = SETS[name].load(data)
    washout, kernel = SETS[name].initial, get_kernel("cpu")
    first = [record.part(0, round(0.7 * len(record))) for record in training]
    rest = [record.part(round(0.7 * len(record)), len(record)) for record in training]
    shape = Shape(sum(map(len, first)), first[0].inputs, first[0].outputs)
    share = min(1.0, 2.5 / (shape.outputs * (shape.inputs + shape.outputs)))
    measured = np.concatenate([record.y[washout:] for record in rest])
    for law in mixed(shape).laws:
        path = pool / f"{name}-{law.name}.npz"
        if path.exists():
            continue
        count = COUNTS[law.name] if law.name in WEIGHTS["large ones"] else max(12, round(COUNTS[law.name] * share))
        folds, scores = block_folds(first, 4, washout), tuple(get_score(one) for one in SCORES)
        networks = Networks(kernel, Problem(tuple(first), folds, law, scores))
        found, outputs = [], []
        with one_blas_thread():
            for index in range(count):
                made = networks.make(index)
                runs = [made.model.simulate(one, washout=washout).y for one in rest]
                found.append(made.scores)
                outputs.append(np.concatenate(runs))
        np.savez_compressed(path, scores=np.array(found), outputs=np.array(outputs), measured=measured)
        print(f"{name}, {law.name}: best {np.max(found, axis=0).round(2)}", flush=True)


def error(pool: dict, weights: dict[str, float], column: int, members: int) -> float:
    """Mean error on the last rows of what would be delivered."""
    random, errors = np.random.default_rng(1), []
    measured = pool["broad"]["measured"]
    for _ in range(12):
        scores, outputs = [], []
        for kind, weight in weights.items():
            drawn = round(200 * weight / sum(weights.values()))
            taken = np.unique(random.choice(len(pool[kind]["scores"]), size=drawn))
            scores.append(pool[kind]["scores"][taken, column])
            outputs.append(pool[kind]["outputs"][taken])
        best = np.argsort(-np.concatenate(scores), kind="stable")[:members]
        delivered = np.median(np.concatenate(outputs)[best], axis=0)
        errors.append(np.mean(np.sqrt(np.mean((measured - delivered) ** 2, axis=0)) / measured.std(axis=0)))
    return float(np.mean(errors))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(name for name in SETS if name not in ("steamgen", "silverbox")))
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--pool", type=Path, required=True, help="folder for the trained draws")
    options = parser.parse_args()
    options.pool.mkdir(exist_ok=True)
    sets = options.sets.split(",")
    for name in sets:
        fill(name, options.data, options.pool)
    pools = {name: {kind: dict(np.load(options.pool / f"{name}-{kind}.npz")) for kind in COUNTS} for name in sets}
    settings = list(product(WEIGHTS, range(len(SCORES)), COMMITTEES))
    table = np.array([[error(pools[name], WEIGHTS[w], s, c) for name in sets] for w, s, c in settings])
    losses = np.log(np.minimum(table / table.min(axis=0), 3.0)).mean(axis=1)
    print("| loss | kinds | score | committee | " + " | ".join(sets) + " |")
    print("|---" * (len(sets) + 4) + "|")
    for row in np.argsort(losses):
        weights, score, members = settings[row]
        cells = [f"{losses[row]:.3f}", weights, SCORES[score], str(members), *(f"{one:.3f}" for one in table[row])]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
