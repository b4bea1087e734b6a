"""The pH plant drifts and the readout follows; writes benchmarks/ADAPTATION.md and a figure.

Usage: python benchmarks/adaptation.py      (about ten minutes)

A network is identified on the nominal plant. In the middle of a record of 6000 samples, the buffer flow q2 changes from
0.55 to 0.65 mL/s; q3 is switched every 30 samples, which is about the settling time, or every 100, as in the paper. The
readout is adapted sample by sample up to sample 4500; then every model is scored in free run on the last 1500 samples,
after a washout on the 100 samples before.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from echobound import identify
from echobound.data import Record
from echobound.kernels import get_kernel, hold_out
from echobound.kernels.training import train_network
from echobound.network import EchoStateNetwork, ReservoirLaw, respond
from echobound.network.adaptation import Adaptation
from echobound.plants import PHPlant, noise_limit, ph_experiment
from echobound.plants.excitation import multilevel
from echobound.scenario import Renewal
from echobound.scores import fit, get_score

HERE = Path(__file__).parent
SAMPLES, DRIFT, KNOWN, WASHOUT = 6000, 3000, 4500, 100
NETWORKS, SEEDS = 59, (30, 31, 32, 33, 34, 35)
CASES = ((50, 30), (200, 30), (50, 100), (200, 100))  # order, samples between switches of q3
FORGETTING, KEPT = 0.999, 60.0
OTHERS = (1.0, 0.9995, 0.999, 0.998)

# The settings were chosen on other data, by a rule written down before: most networks within 1 point of retraining;
# among those within 1 % of the most, the fewest that adaptation makes worse than they were; then the smallest mean of
# what they are behind, cut at 20 points. The five best networks of each data seed.
SETTLING, BEST = range(10), 5
SETTINGS = ((0.999, 60.0), (0.9995, 60.0), (0.998, math.inf))


def drifting(seed: int, period: int) -> tuple[Record, np.ndarray]:
    """The record, and its output without noise."""
    q2 = np.repeat([0.55, 0.65], [DRIFT, SAMPLES - DRIFT])
    q3 = multilevel(SAMPLES, period, seed=seed, family=1, index=2)
    record = PHPlant().simulate(q3, q2=q2, noise=0.05, seed=seed, family=1, index=2, name="drifting")
    return record, PHPlant().response(q3, q2)


def score(model: EchoStateNetwork, record: Record) -> float:
    """FIT of the free run on the last samples."""
    last = record.part(KNOWN - WASHOUT, SAMPLES)
    [(measured, simulated)] = respond(model, [last])
    return float(fit(measured, simulated))


def problem(training: Record, validation: Record, law: ReservoirLaw, seed: int):
    return hold_out(training, validation, law=law, scores=[get_score("fit")], seed=seed)


def one(order: int, period: int, seed: int) -> dict:
    nominal, validation = ph_experiment(seed=seed, period=period)
    record, clean = drifting(seed, period)
    law = ReservoirLaw(order=order)
    found = identify(nominal, validation, law=law, networks=NETWORKS, beta=0.05, seed=seed)
    model, winner = found.network, found.certificate.winner
    after = record.part(DRIFT, KNOWN, "after the drift")
    retrained, _ = train_network(get_kernel("cpu"), problem(after, after, law, seed), winner)
    # The same networks trained and scored again on new data: the certificate renewed. New data, new best network.
    rows = get_kernel("cpu").evaluate(
        problem(record.part(DRIFT, 4000), record.part(4000, KNOWN), law, seed), range(NETWORKS)
    )
    renewed = Renewal.of(
        rows["scores"][:, 0], networks=NETWORKS, beta=0.05, depends_on_model=False, score="fit", unit="%"
    )
    last = record.part(KNOWN - WASHOUT, SAMPLES)
    result = {
        "unadapted": score(model, record),
        "retrained": score(retrained, record),
        "limit": noise_limit(last, clean[KNOWN - WASHOUT :], WASHOUT),
        "adapted": {},
        "renewed": renewed,
    }
    for forgetting in sorted({FORGETTING, *OTHERS}, reverse=True):
        adaptation = Adaptation(model, nominal, forgetting, KEPT)
        start = time.perf_counter()
        with threadpool_limits(1, user_api="blas"):
            for u, y in zip(record.u[:KNOWN], record.y[:KNOWN], strict=True):
                adaptation.update(u, y)
        each = (time.perf_counter() - start) / KNOWN
        with threadpool_limits(1, user_api="blas"):
            start = time.perf_counter()
            adapted = adaptation.model
            readout = time.perf_counter() - start
        result["adapted"][forgetting] = score(adapted, record)
        if forgetting == FORGETTING:
            result |= {"us": 1e6 * each, "readout_ms": 1e3 * readout, "model": adapted, "before": model}
            result["seen"] = ", ".join(str(WASHOUT + samples) for samples in adaptation.changes) or "never"
    return result


def settle(case: tuple[tuple[int, int], int]) -> list[tuple[float, float, list[float]]]:
    """FIT as trained, retrained and adapted by each setting: the best networks of a data seed that is not reported."""
    (order, period), seed = case
    nominal, validation = ph_experiment(seed=seed, period=period)
    record, _ = drifting(seed, period)
    law, kernel = ReservoirLaw(order=order), get_kernel("cpu")
    before, after = (
        problem(*records, law, seed)
        for records in ((nominal, validation), (record.part(DRIFT, KNOWN), record.part(DRIFT, KNOWN)))
    )
    scores = kernel.evaluate(before, range(NETWORKS))["scores"][:, 0]
    found = []
    with threadpool_limits(1, user_api="blas"):
        for network in np.argsort(-scores, kind="stable")[:BEST].tolist():
            model, retrained = (train_network(kernel, data, network)[0] for data in (before, after))
            adapted = []
            for setting in SETTINGS:
                adaptation = Adaptation(model, nominal, *setting)
                adaptation.update(record.u[:KNOWN], record.y[:KNOWN])
                adapted.append(score(adaptation.model, record))
            found.append((score(model, record), score(retrained, record), adapted))
    return found


def settled() -> list[str]:
    """The settings tried on other data, as a table."""
    with ProcessPoolExecutor() as pool:
        found = [row for rows in pool.map(settle, product(CASES, SETTLING)) for row in rows]
    before, retrained = (np.array([row[k] for row in found]) for k in (0, 1))
    lines = [
        "",
        "| forgetting | kept | within 1 point | worse than as trained | mean shortfall | largest shortfall |",
        "|---|---|---|---|---|---|",
    ]
    for k, (forgetting, kept) in enumerate(SETTINGS):
        adapted = np.array([row[2][k] for row in found])
        behind = retrained - adapted
        lines.append(
            f"| {forgetting} | {f'{kept:.0f}' if kept < math.inf else 'all (no detector)'} |"
            f" {(behind <= 1).sum()} of {len(found)} | {(adapted < before).sum()} |"
            f" {np.clip(behind, 0, 20).mean():.3f} | {behind.max():.2f} |"
        )
    return lines


def figure(results: dict, path: Path) -> None:
    from matplotlib.figure import Figure

    (order, period), seed = CASES[0], SEEDS[0]
    record, _ = drifting(seed, period)
    nominal, _ = ph_experiment(seed=seed, period=period)
    drawing = Figure(figsize=(10, 5), layout="constrained")
    upper, lower = drawing.subplots(2, 1, height_ratios=[1, 1])
    last = record.part(KNOWN - WASHOUT, SAMPLES)
    k = np.arange(KNOWN, SAMPLES)
    result = results[order, period, seed]
    upper.plot(k, last.y[WASHOUT:], color="#c0392b", lw=0.8, label="measured")
    for name, model, style in (("as trained", result["before"], ":"), ("adapted", result["model"], "-")):
        upper.plot(
            k, model.simulate(last).y, style, color="#1f5fa8", lw=1.1, label=f"{name}, FIT {score(model, record):.1f} %"
        )
    upper.set(xlabel="sample", ylabel="pH")
    upper.set_title("Free run on the last 1500 samples, 50 states", loc="left", fontsize=10)
    upper.legend(frameon=False, fontsize=8, ncols=3)
    adaptation = Adaptation(result["before"], nominal, FORGETTING, KEPT)
    steps, fits = range(2500, KNOWN + 1, 100), []
    start = 0
    for stop in steps:
        adaptation.update(record.u[start:stop], record.y[start:stop])
        start = stop
        fits.append(score(adaptation.model, record))
    lower.plot(steps, fits, "o-", color="#1f5fa8", ms=3, label="adapted up to this sample")
    lower.axhline(result["retrained"], color="#2e7d32", lw=1, label="retrained on samples 3000 to 4500")
    lower.axhline(result["unadapted"], color="#6b7280", lw=1, ls=":", label="as trained")
    lower.axvline(DRIFT, color="#c0392b", lw=1, ls="--", label="q2 moves")
    low = min(result["unadapted"], *[f for f in fits if f > 0]) - 5
    lower.set(xlabel="sample", ylabel="FIT on the last 1500 (%)", ylim=(max(low, 0), 100))
    lower.legend(frameon=False, fontsize=8, ncols=2, loc="lower right")
    drawing.savefig(path, dpi=120)


def table(results: dict, cases) -> list[str]:
    lines = [
        "",
        "| order | q3 held for | data seed | as trained | adapted | retrained | adapted - retrained | gain | limit |"
        " seen at | us a sample | ms a readout | " + " | ".join(f"with {value}" for value in OTHERS) + " |",
        "|---|" + "---|" * (11 + len(OTHERS)),
    ]
    for (order, period, seed), r in results.items():
        if (order, period) in cases:
            adapted = r["adapted"][FORGETTING]
            lines.append(
                f"| {order} | {period} | {seed} | {r['unadapted']:.2f} | {adapted:.2f} | {r['retrained']:.2f} |"
                f" {adapted - r['retrained']:+.2f} | {adapted - r['unadapted']:+.2f} | {r['limit']:.2f} |"
                f" {r['seen']} | {r['us']:.0f} | {r['readout_ms']:.1f} | "
                + " | ".join(f"{r['adapted'][value]:.2f}" for value in OTHERS)
                + " |"
            )
    return lines


def summary(results: dict, cases) -> str:
    chosen = [r for (order, period, _), r in results.items() if (order, period) in cases]
    behind = [r["retrained"] - r["adapted"][FORGETTING] for r in chosen]
    gains = [r["adapted"][FORGETTING] - r["unadapted"] for r in chosen]
    lost, gone = (
        sum(value < 0 for value in values)
        for values in ([r["retrained"] for r in chosen], [r["adapted"][FORGETTING] for r in chosen])
    )
    return (
        f"{sum(b <= 1 for b in behind)} of {len(chosen)} networks come within 1 point of retraining or exceed it"
        f" (largest shortfall: {max(behind):.2f} points); compared with the network as trained they gain"
        f" {min(gains):.1f} to {max(gains):.1f} points (median {np.median(gains):.1f}). In free run, {gone} of the"
        f" adapted and {lost} of the retrained networks diverge (FIT below 0)."
    )


def main() -> None:
    tried = settled()
    results = {(*case, seed): one(*case, seed) for case in CASES for seed in SEEDS}
    text = [
        "# Adaptation with online data",
        "",
        "Made by `python benchmarks/adaptation.py`. " + __doc__.split("\n\n")[2].strip().replace("\n", " "),
        f"The network is the best of {NETWORKS} of law `paper`. *Retrained*: the same reservoir with batch least"
        " squares on samples 3000 to 4500 and the ridge of the law. *Limit*: FIT of the true output relative to the"
        " noisy one. *Seen at*: the sample at which the change detector raised an alarm. FIT is in per cent; times"
        f" are for one core of a busy machine. The forgetting factor is {FORGETTING}; after an alarm, the past is"
        f" weighted as {KEPT:.0f} samples; the last columns show other factors.",
        "",
        "**q3 switched every 30 samples.** " + summary(results, CASES[:2]),
        *table(results, CASES[:2]),
        "",
        "**q3 switched every 100 samples**, as in the paper's experiment: there are only 15 levels between the drift"
        " and sample 4500, and the last 1500 samples visit other levels. " + summary(results, CASES[2:]),
        *table(results, CASES[2:]),
        "",
        "## How the settings were chosen",
        "",
        f"They were chosen on data seeds {SETTLING[0]} to {SETTLING[-1]}, none of which is shown above: {len(CASES)}"
        f" cases, {len(SETTLING)} seeds, and the {BEST} best networks of each. The criterion was written down first:"
        " most networks within 1 point of retraining; among settings within 1 % of the maximum, the fewest networks"
        " that became worse than as trained; then the smallest mean shortfall relative to retraining (each capped at"
        " 20 points). The reported seeds were run once, with the chosen settings. (Two free runs of data seed 33"
        " that an earlier version got wrong were examined to find out why, not to choose.) More than a hundred"
        " settings were tried, so the numbers in this table are optimistic; those above are not. The share of the"
        " training data that does not fade, 0.001, was a requirement, not chosen here: it is for a plant at rest;"
        " without it, the mean shortfall is 0.002 smaller. A plant that drifts slowly instead of jumping was not"
        " tried.",
        "",
        "Plain forgetting must be fast to forget the old plant within 1500 samples, so it also forgets what the"
        " plant does rarely: the free runs that diverged did so at a level of q3 outside the range visited after the"
        " drift, or in the jump back from it. A rectangular window, a lower bound on the information in every"
        " direction, a stronger pull towards the trained readout (by hand or by marginal likelihood) and a choice by"
        " free run on recent samples were tried too: each fixes either the free runs that diverge or the points lost"
        " elsewhere, but not both. With a change detector the memory can be long, and the settings matter little.",
        *tried,
        "",
        "## The certificate, renewed",
        "",
        "For the same networks, trained on samples 3000 to 4000 and scored on 4000 to 4500 of the drifted plant, order"
        f" {CASES[0][0]}, data seed {SEEDS[0]}: {results[*CASES[0], SEEDS[0]]['renewed'].words}",
    ]
    (HERE / "ADAPTATION.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    print("\n".join(text))
    figure(results, HERE.parent / "docs" / "images" / "adaptation.png")


if __name__ == "__main__":
    main()
