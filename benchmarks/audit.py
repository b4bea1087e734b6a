"""Honest runs and forged ones under audit: no honest one may be accused, no forged one may pass. Writes AUDIT.md.

Honest: 50 searches of every kind, audited with other batch sizes, on other numbers of workers and by the reference
kernel. Forged: rows of chaotic networks, whose scores rounding moves visibly, given scores that nobody can compute,
with the certificate derived anew. The other kinds of forgery are those of tests/test_audit.py.

Usage: python benchmarks/audit.py [RUNS] [LARGEST ORDER]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neural_network import MLPRegressor

from echobound import audit, identify, ph_experiment, verify
from echobound.audit import Audit
from echobound.candidates import Candidates
from echobound.estimators import CertifiedSearch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from test_audit import FORGERIES  # noqa: E402 (they live with the tests)
from test_audit_confirming import CHAOS, chaotic, forge, sensitive  # noqa: E402

# Training in free run takes the reference kernel minutes: of these, it makes what carries a claim alone.
FEW: dict[str, Any] = {"networks": 8, "epsilon": None, "beta": 0.1}
SLOW: dict[str, Any] = {**FEW, "committee": 0, "order": None}
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("of one order", {}),
    ("of two orders", {}),
    ("by patience", {"stop": "patience:10", "discarded": 1}),
    ("with three scores jointly", {"scores": ("fit", "rmse", "peak"), "joint": True}),
    ("that stopped at will", {"stop": "anytime:10"}),
    ("of committees of four", {"members": 4, **FEW}),
    ("by predictions three samples ahead", {"horizon": 3}),
    ("of the law mixed", {"law": "mixed", **SLOW}),
    ("of cascades", {"law": "cascade", **SLOW}),
    ("trained in free run", {"law": "paper", "trainer": "free run", **SLOW, "order": 8}),
    ("of any estimator", {}),
]
AUDITS: tuple[dict[str, Any], ...] = ({"workers": 1, "batch": 4}, {"workers": 2}, {"kernel": "reference"})
CHAOTIC = 2  # searches whose rows are forged
FORGED = 99.9, 75.0, 0.0  # FIT that a network is given; it is the best by far, or merely better


def searched(kind: str, more: dict[str, Any], seed: int, order: int, folder: Path) -> Sequence[Candidates] | None:
    """Search, honestly; what was drawn, where the run does not store it."""
    if kind == "of any estimator":
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(60, 2))
        estimator = MLPRegressor(hidden_layer_sizes=(3,), max_iter=20)
        search = CertifiedSearch(estimator, networks=8, beta=0.2, random_state=seed, run=str(folder))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [search.fit(x, x[:, 0] * x[:, 1]).candidates_]
    training, validation = ph_experiment(samples=(300, 200) if more.get("networks") else (600, 400), seed=seed)
    states = 5 + seed * 7 % (order - 4)
    asked = {"law": ("paper", "broad")[seed % 2], "order": states, "epsilon": 0.2, "beta": 1e-2} | more
    if kind == "of two orders":
        asked["order"] = [states, states + 3]
    identify(
        training,
        None if seed % 3 == 2 else validation,
        seed=seed,
        workers=1 + seed % 2,
        kernel="reference" if seed % 10 == 7 and "law" not in more else "cpu",
        run=folder,
        **asked,
    )
    return None


Found = dict[str, tuple[int, list[Audit]]]  # of each kind: how many runs, and all audits of them


def honest(runs: int, order: int) -> Iterator[tuple[int, Found]]:
    """Every kind in turn: how many runs so far, and what their audits found."""
    found: Found = {kind: (0, []) for kind, _ in KINDS}
    for seed in range(runs):
        kind, more = KINDS[seed % len(KINDS)]
        count, audits = found[kind]
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            drawn = searched(kind, more, seed, order, run)
            for options in AUDITS:
                slow = "committee" in more and "kernel" in options
                if slow and seed >= len(KINDS):
                    continue
                how = {"sample": 0} if slow else {"everything": True}
                outcome = audit(run, candidates=drawn, seed=seed, **how, **options)
                audits.append(outcome)
                for said in (*outcome.findings, *outcome.unconfirmed):
                    print(f"seed {seed}, {kind}, {options}: {said}", flush=True)
        found[kind] = count + 1, audits
        print(f"seed {seed}, {kind}", flush=True)
        yield seed + 1, found


def forged(runs: int) -> Counter[str]:
    """Rows of chaotic runs, one after the other, given another score; what all audits came to."""
    outcomes: Counter[str] = Counter()
    for seed in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            identify(chaotic(600, 2 * seed), chaotic(400, 2 * seed + 1), **CHAOS, confirm=0, seed=seed, run=run)
            verify(run, fresh=0)
            for index in sensitive(run):
                for score in FORGED:
                    other = Path(shutil.copytree(run, Path(folder) / "forged"))
                    forge(other, index, score)
                    outcomes[audit(other, everything=True, seed=seed, workers=1).outcome] += 1
                    shutil.rmtree(other)
        print(f"forged, seed {seed}: {dict(outcomes)}", flush=True)
    return outcomes


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    order = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    outcomes, started = forged(CHAOTIC), time.process_time()
    for count, found in honest(runs, order):  # written after each, so that what was done is not lost
        write(count, order, time.process_time() - started, found, outcomes)


def write(runs: int, order: int, seconds: float, found: Found, outcomes: Counter[str]) -> None:
    audits = [one for _, of_kind in found.values() for one in of_kind]
    table = "\n".join(
        f"| {kind} | {count} | {len(of_kind)} | {sum(one.retrained for one in of_kind)}"
        f" | {sum(len(one.sensitive) for one in of_kind)} | {sum(bool(one.unconfirmed) for one in of_kind)}"
        f" | **{sum(bool(one.findings) for one in of_kind)}** |"
        for kind, (count, of_kind) in found.items()
    )
    text = f"""# Runs under audit

Made by `python benchmarks/audit.py`.

## Honest runs

{runs} searches of order 5 to {order}, laws `paper` and `broad` where the kind names none, with separate validation data
or with blocks in turn, on 1 or 2 workers, some by the reference kernel. Each was audited three times: in batches of 4
on 1 worker, on 2 workers, and by the reference kernel. Every network was trained again. Of the kinds that train in free
run, which takes the reference kernel minutes, it made those that carry a claim, of the first run of each kind.
{seconds:.0f} s of processor time.

| searches | runs | audits | networks trained again | sensitive to rounding | cannot be confirmed | accused |
|---|---|---|---|---|---|---|
{table}

Accused in all: **{sum(bool(one.findings) for one in audits)}** of {len(audits)} audits.

## Forged rows of chaotic networks

Each row that rounding moves visibly, of {CHAOTIC} searches over chaotic data, was given a FIT of
{", ".join(map(str, FORGED))} % in turn, and the certificate was derived anew. Of {outcomes.total()} audits
{outcomes["found"]} found something, {outcomes["cannot be confirmed"]} said that a number cannot be confirmed, and
**{outcomes["passed"]}** passed.

{len(FORGERIES)} other kinds of forgery of run folders, every field of certificate and plan, 15 kinds of forgery of
second certificates, and triggers, views and links in folders from somebody else are in `tests/test_audit.py` and
`tests/test_runs_database.py`: all are found or refused.
"""
    HERE.joinpath("AUDIT.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
