"""Honest runs under audit: 50 searches on 1 and 2 workers, audited with other batch sizes and the reference kernel.

None may be accused. Every network is trained again, by the CPU kernel and by the reference, whatever the search used.
Writes AUDIT.md.

Usage: python benchmarks/audit.py [RUNS] [LARGEST ORDER]
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from echobound import audit, identify, ph_experiment

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("of one order", {}),
    ("of two orders", {}),
    ("by patience", {"stop": "patience:10", "discarded": 1}),
    ("with three scores jointly", {"scores": ("fit", "rmse", "peak"), "joint": True}),
    ("that stopped at will", {"stop": "anytime:10"}),
]


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    order = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    accused = sensitive = trained = 0
    kinds: Counter[str] = Counter()
    for seed in range(runs):
        training, validation = ph_experiment(samples=(600, 400), seed=seed)
        states = 5 + seed * 7 % (order - 4)
        kind, more = KINDS[seed % len(KINDS)]
        kinds[kind] += 1
        with tempfile.TemporaryDirectory() as folder:
            run = identify(
                training,
                None if seed % 3 == 2 else validation,
                law=("paper", "broad")[seed % 2],
                order=[states, states + 3] if kind == "of two orders" else states,
                epsilon=0.2,
                beta=1e-2,
                **more,
                seed=seed,
                workers=1 + seed % 2,
                kernel="reference" if seed % 10 == 7 else "cpu",
                run=Path(folder) / "run",
            ).run
            assert run is not None
            for options in ({"workers": 1, "batch": 4}, {"workers": 2}, {"kernel": "reference"}):
                outcome = audit(run, everything=True, **options)
                trained += outcome.retrained
                sensitive += len(outcome.sensitive)
                accused += not outcome.passed
                for finding in outcome.findings:
                    print(f"seed {seed}, {options}: {finding}", flush=True)
    said = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    text = f"""# Honest runs under audit

Made by `python benchmarks/audit.py`. {runs} searches ({said}) of order 5 to {order}, laws `paper` and `broad`,
with separate validation data or with blocks in turn, on 1 or 2 workers, some by the reference kernel. Each was audited
three times, training every network again: in batches of 4 on 1 worker, on 2 workers, and by the reference kernel.

| audits | networks trained again | called sensitive to rounding | audits with findings |
|---|---|---|---|
| {3 * runs} | {trained} | {sensitive} | **{accused}** |
"""
    Path(__file__).with_name("AUDIT.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
