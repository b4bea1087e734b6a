"""The CPU kernel against the reference over whole searches: 645 networks at several orders, both cores, many minutes.

Of the rows beyond 1e-9, the ten that differ most are probed: is the row sensitive to rounding itself (contract 2)?

Usage: python benchmarks/agreement.py 10 50 200 500
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from run import CPU, load, problem, report, save

from echobound.campaign import usable_cores
from echobound.kernels import get_kernel
from echobound.kernels.sensitivity import moves

NETWORKS, PROBED = 645, 10


def batch(order: int, start: int, stop: int) -> np.ndarray:
    return get_kernel("reference").evaluate(problem(order), range(start, stop))["scores"]


def main() -> None:
    results = load()
    rows = {row["order"]: row for row in results.get("agreement", [])}
    for order in map(int, sys.argv[1:] or (10, 50, 200)):
        ours = CPU.evaluate(problem(order), range(NETWORKS))["scores"]
        with ProcessPoolExecutor(usable_cores()) as pool:
            starts = range(0, NETWORKS, 15)
            pieces = [pool.submit(batch, order, s, min(s + 15, NETWORKS)) for s in starts]
            reference = np.concatenate([piece.result() for piece in pieces])
        difference = np.abs(ours / reference - 1).max(axis=1)
        worst = [int(i) for i in np.argsort(difference)[::-1][:PROBED] if difference[i] > 1e-9]
        task, kernel = problem(order), get_kernel("reference")
        sensitive = sum(moves(task, kernel, row) >= difference[row["index"]] for row in kernel.evaluate(task, worst))
        rows[order] = {
            "order": order,
            "probed": len(worst),
            "sensitive": int(sensitive),
            "within": int((difference <= 1e-9).sum()),
            "beyond": int((difference > 1e-9).sum()),
            "largest": float(difference.max()),
            "same_winner": bool(ours[:, 0].argmax() == reference[:, 0].argmax()),
        }
        results["agreement"] = [rows[n] for n in sorted(rows)]
        save(results)
        print(rows[order])
    print(report(results))


if __name__ == "__main__":
    main()
