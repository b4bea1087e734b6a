"""The verdict and the linear baseline on the public sets of ACCURACY.md; saves JSON and writes VERDICTS.md.

Usage: python benchmarks/verdicts.py --networks 60 --sets tanks,emps --data FOLDER --runs FOLDER --out FILE.json

Each set is identified from its training rows alone and judged without test data; then each of its test parts is opened,
and the verdict is made again with it. The rule stands in `src/echobound/diagnostics/verdict.py` and was written before.
What is finished is kept in the JSON file and not computed again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np
from accuracy import FIGURES, SETS

from echobound import RunFolder, identify
from echobound.data import Record
from echobound.data.experiments import Experiments
from echobound.diagnostics.arx import Regression, Structure
from echobound.diagnostics.linear import responses
from echobound.files import write_json, write_whole
from echobound.runs.assessment import Assessment, assess
from echobound.scores import fit, rmse

HERE = Path(__file__).parent
PICKED = (2, 4, 6)  # the orders from which the ARX figures of ACCURACY.md were picked, on the test part


def rows(name: str, tests: list[Record], initial: int) -> dict[str, list[Record]]:
    """The rows of ACCURACY.md: which test records each is about."""
    if name == "ph":
        return {"rows 700-1100": tests[:1], "rows 1700-2001": tests[1:]}
    if name == "silverbox":
        return {"multisine": tests[:1], "arrow": tests[1:], "no extrapolation": [tests[1].part(0, 32000)]}
    return {"test": tests}


def judged(folder: Path, tests: list[Record], outputs: dict) -> tuple[Assessment, dict]:
    """The assessment of a run with these test data; outputs on the blocks are those of the first one."""
    run = RunFolder(folder)
    data, _, _ = run.experiments, run.models, run.generalisation  # checked as they are, before test data are put in
    run.outputs = outputs
    run.__dict__["experiments"] = Experiments(data.training, data.validation, tuple(tests))
    return assess(run), run.outputs


def run_set(name: str, networks: int, data: Path, runs: Path, out: Path) -> None:
    done = json.loads(out.read_text()) if out.exists() else {}
    if name in done:
        return
    one = SETS[name]
    training, tests, _ = one.load(data)
    start = time.perf_counter()
    identify(training, networks=networks, washout=one.initial, seed=0, workers=1, run=runs / name)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    blind, outputs = judged(runs / name, [], {})
    start = time.perf_counter()
    blind, outputs = judged(runs / name, [], outputs)  # without training again what blocks were scored by
    found = {
        "networks": networks,
        "seconds": seconds,
        "assessing": time.perf_counter() - start,
        "validation": blind.evidence.fit,
        "linear": blind.evidence.linear,
        "linear kind": blind.linear.words,
        "without": blind.verdict.to_dict(),
        "rows": {},
    }
    for part, records in rows(name, tests, one.initial).items():
        seen, _ = judged(runs / name, records, outputs)
        difference = seen.linear.test_difference
        found["rows"][part] = {
            "fit": seen.evidence.test,
            "linear": seen.evidence.linear_test,
            "difference": None if difference is None else [difference.fit, difference.low, difference.high],
            "arx": arx(name, training, records, one.initial),
            **seen.verdict.to_dict(),
        }
    done = json.loads(out.read_text()) if out.exists() else {}
    done[name] = found
    write_json(out, done)
    said = ", ".join(f"{part} {row['fit']:.1f} {row['grade']}" for part, row in found["rows"].items())
    print(f"{name}: without {found['without']['grade']}; {said}; {seconds:.0f} s", flush=True)


def arx(name: str, training: list[Record], tests: list[Record], initial: int) -> float:
    """As the ARX references of ACCURACY.md were made: coupled, from u(k) on, the order picked on the test part."""
    regression = Regression([(record.u, record.y) for record in training], max(PICKED))
    measured = np.concatenate([record.y[initial:] for record in tests])
    larger = SETS[name].larger_is_better
    scale = 1000.0 if SETS[name].unit in ("mV", "mm") else 1.0
    found = []
    for order in PICKED:
        simulated = np.concatenate(responses(regression.model(Structure(order, order, 0, True)), tests, initial))
        found.append(float(fit(measured, simulated)) if larger else scale * float(rmse(measured, simulated)))
    return max(found) if larger else min(found)


HEAD = """# The verdict on public data

Made by `benchmarks/verdicts.py` on {day} from `benchmarks/verdicts.json`: one seed, {networks} networks of the default
law, washout by the protocol, everything else by default. The rule stands in `src/echobound/diagnostics/verdict.py`; it
was written and committed before test rows were opened for it, on 2026-11-18, and was not changed after.

*Without* is the verdict from training rows alone, *with* the one once the test part was opened. FIT in per cent, in
free run, of the delivered model and of the linear one that blocks of the training rows chose. *Ahead* is the difference
on the test part, with its 95 % interval over blocks.

| set | held-out FIT | linear | without | test FIT | linear | ahead | with |
|---|---|---|---|---|---|---|---|
"""

FOUND = """
**The figure**: of {count} rows, {wrong} are called good or usable with a test FIT below 30 %, or poor or unusable with
one above 70 %{wrongs}. Without test data there are {blind}{blinds}. The two parts of pH are one run: what no
training row shows, no verdict without test data can know.

## The linear baseline

The ARX references of ACCURACY.md had their order (2, 4 or 6) picked on the test part, outputs coupled, from u(k) on.
Made in the same way by our code they are in the column *ours*. The baseline of a run is chosen by blocks of the
training rows from more candidates (orders up to 10, from u(k) or u(k-1) on, coupled or not, a finite impulse response,
output error), so it may be better or worse.

| set | unit | ACCURACY.md | ours | baseline of a run |
|---|---|---|---|---|
"""

COST = """
Assessing a run (baseline, diagnostics, verdict) took {median:.1f} % of its search in the median and {most:.0f} % at
most ({slow}), with {networks} networks; a search of 315 networks takes about five times as long, its assessment as
long.
"""


def table(results: dict) -> str:
    """The page, from what is finished."""
    networks = next(iter(results.values()))["networks"]
    lines, wrong, blind, linear = [], [], [], []
    for name in (name for name in SETS if name in results):
        one = results[name]
        for part, row in one["rows"].items():
            title = SETS[name].title + ("" if part == "test" else f", {part}")
            ahead = "" if row["difference"] is None else "{:+.1f} [{:+.1f}, {:+.1f}]".format(*row["difference"])
            cells = [title, number(one["validation"]), number(one["linear"]), one["without"]["grade"]]
            cells += [number(row["fit"]), number(row["linear"]), ahead, row["grade"]]
            lines.append(f"| {' | '.join(cells)} |\n")
            wrong += [title] if broken(row["grade"], row["fit"]) else []
            blind += [title] if broken(one["without"]["grade"], row["fit"]) else []
    for (name, part), (_, _, reference) in FIGURES.items():
        if reference.startswith("ARX") and name in results:
            row, one = results[name]["rows"][part], SETS[name]
            ours = f"{reference.removeprefix('ARX ')} | {row['arx']:.3g}"
            baseline = f"FIT {number(row['linear'])} %, {results[name]['linear kind']}"
            linear.append(f"| {one.title} | {one.unit} | {ours} | {baseline} |\n")
    shares = {name: 100 * one["assessing"] / one["seconds"] for name, one in results.items()}
    slow = max(shares, key=lambda name: shares[name])
    count = sum(len(one["rows"]) for one in results.values())
    found = {"count": count, "wrong": len(wrong), "wrongs": listed(wrong), "blind": len(blind), "blinds": listed(blind)}
    cost = {"median": float(np.median(list(shares.values()))), "most": shares[slow], "slow": SETS[slow].title}
    head = HEAD.format(day=f"{date.today():%Y-%m-%d}", networks=networks)
    return "".join([head, *lines, FOUND.format(**found), *linear, COST.format(**cost, networks=networks)])


def broken(grade: str, fit: float | None) -> bool:
    value = -np.inf if fit is None else fit
    return value < 30 if grade in ("good", "usable") else value > 70


def listed(names: list[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def number(value: float | None) -> str:
    return "ran off" if value is None else f"{value:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(SETS), help="separated by commas")
    parser.add_argument("--networks", type=int, default=60)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--runs", type=Path, default=None, help="folder to keep the runs in")
    parser.add_argument("--out", type=Path, default=HERE / "verdicts.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.sets.split(","):
            run_set(name, options.networks, options.data, options.runs or Path(folder), options.out)
    write_whole(options.out.with_name("VERDICTS.md"), table(json.loads(options.out.read_text())).encode())


if __name__ == "__main__":
    main()
