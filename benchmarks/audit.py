"""Honest runs under audit: 50 searches on 1 and 2 workers, audited with other block sizes and the reference kernel.

None may be accused. Every network is trained again, by the CPU kernel and by the reference, whatever the search used.

Usage: python benchmarks/audit.py [RUNS] [LARGEST ORDER]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from echobound import audit, identify, ph_experiment


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    order = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    accused = sensitive = trained = 0
    for seed in range(runs):
        training, validation = ph_experiment(samples=(600, 400), seed=seed)
        with tempfile.TemporaryDirectory() as folder:
            run = identify(
                training,
                None if seed % 5 == 4 else validation,
                law=("paper", "broad")[seed % 2],
                order=5 + seed * 7 % (order - 4),
                networks=25,
                beta=1e-2,
                seed=seed,
                workers=1 + seed % 2,
                kernel="reference" if seed % 10 == 7 else "cpu",
                run=Path(folder) / "run",
            ).run
            assert run is not None
            for options in ({"workers": 1, "block": 4}, {"workers": 2}, {"kernel": "reference"}):
                outcome = audit(run, everything=True, **options)
                trained += outcome.retrained
                sensitive += len(outcome.sensitive)
                accused += not outcome.passed
                for finding in outcome.findings:
                    print(f"seed {seed}, {options}: {finding}", flush=True)
    print(f"{runs} honest runs, {3 * runs} audits, {trained} networks trained again: {sensitive} sensitive,", end=" ")
    print(f"{accused} audits with findings")


if __name__ == "__main__":
    main()
