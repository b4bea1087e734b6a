"""The figures that the paper's experiment must show, asserted on a whole run: about five minutes on two cores.

Usage: python benchmarks/paper.py [FOLDER]     (a folder of an earlier run is taken up again)
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from run import SCORES, campaign

from echobound.campaign import usable_cores
from echobound.kernels import hold_out
from echobound.network import paper
from echobound.reproduce import PAPER, paper_data, reproduce_paper


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "paper"
    start = time.perf_counter()
    outcome = reproduce_paper(folder=folder)
    print(outcome.text())
    print(f"\n{time.perf_counter() - start:.0f} s on {usable_cores()} cores")
    for row in outcome.orders:
        theirs = PAPER[row.order].best_fit
        assert row.best_fit >= theirs - 0.5, row
        assert row.order < 250 or abs(row.best_fit - theirs) <= 1.0, row
        assert min(row.best_probability, row.worst_probability) >= 1e-4, row
    for case in ("best", "worst"):
        total = sum(getattr(row, f"{case}_violations") for row in outcome.orders)
        assert 4 <= total <= 34, (case, total)
    gaps = []
    for seed in range(10):
        data = paper_data(seed)
        problem = hold_out(data.training, data.validation, law=paper(200), scores=SCORES)
        gaps.append(data.limit - campaign(problem, 120, usable_cores())["scores"][:, 0].max())
    print("noise limit - best FIT over data seeds 0-9:", ", ".join(f"{gap:.2f}" for gap in gaps))
    assert statistics.median(gaps) <= 1.0
    print(f"median {statistics.median(gaps):.2f}; all figures hold")


if __name__ == "__main__":
    main()
