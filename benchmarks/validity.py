"""Every rule of the theory over many campaigns, at full size; writes benchmarks/VALIDITY.md and the figure of the page.

Usage: make validity                       (some minutes on one core)
       python benchmarks/validity.py 50000     with another number of campaigns

The rules and mutants are those of tests/validity_harness.py, which the tests run with fewer campaigns.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.stats import kstwo

from echobound import identify, ph_experiment
from echobound.scenario import Anytime, Between, DistributionBand, Mixture, epsilon_exact

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from validity_harness import BETA, LEVEL, MUTANTS, RULES, Outcome  # noqa: E402 (it lives with the tests)

CAMPAIGNS = 400_000


def row(outcome: Outcome) -> str:
    rule, rate = outcome.rule, outcome.misses / outcome.campaigns
    error = np.sqrt(rate * (1 - rate) / outcome.campaigns)
    promised = f"{rule.probability:.6f}" if rule.exact else f"at most {rule.probability:.6g}"
    return f"| {rule.name} | {promised} | {rate:.5f} ± {error:.5f} | {outcome.p_value:.3g} |"


def table(title: str, outcomes: list[Outcome]) -> list[str]:
    head = ["", f"## {title}", "", "| rule | misses promised | misses found | p-value |", "|---|---|---|---|"]
    return [*head, *(row(outcome) for outcome in outcomes)]


def judged(rules, campaigns: int) -> list[Outcome]:
    outcomes = []
    for rule in rules:
        outcomes.append(rule.judge(campaigns, seed=1))
        print(row(outcomes[-1]), flush=True)
    return outcomes


def figure(path: Path) -> None:
    """Left: the band for the FIT of 315 networks. Right: what the rules certify while networks arrive."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = drawing.subplots(1, 2)
    scores = identify(*ph_experiment(), law="paper", order=50, networks=315).table["scores"][:, 0]
    score, band = np.sort(scores)[::-1], DistributionBand.of(scores, beta=BETA)
    share = np.arange(1, len(score) + 1) / len(score)
    width = kstwo.isf(BETA, len(score))
    left.fill_between(
        score,
        np.maximum(share - width, 1e-5),
        share + width,
        color="#d9dee5",
        step="mid",
        label="constant width (Kolmogorov)",
    )
    left.fill_between(score, band.lower, band.upper, color="#1f5fa8", alpha=0.35, step="mid", label="equal local level")
    left.plot(score, share, color="#1f5fa8", lw=1.0, drawstyle="steps-mid", label="315 networks")
    left.set(yscale="log", ylim=(1e-4, 1.3), xlim=(np.quantile(scores, 0.02), score[0] + 0.05))
    left.set(xlabel="FIT (%)", ylabel="share of networks that are better")
    left.set_title("95 % bands, order 50 on the pH plant", loc="left", fontsize=10)
    left.legend(frameon=False, fontsize=8)
    n = np.unique(np.geomspace(100, 10_000, 200).astype(int))
    styles = {"between": "-", "anytime": "--", "mixture": ":"}
    for rule in (Between(beta=BETA, first=100, last=10_000), Anytime(beta=BETA), Mixture(beta=BETA)):
        right.plot(n, [rule.epsilon(int(k)) for k in n], styles[rule.kind], color="#1f5fa8", label=rule.kind)
    fixed = [epsilon_exact(int(k), BETA) for k in n]
    right.plot(n, fixed, color="#c0392b", label="n settled beforehand, or patience")
    right.set(xscale="log", yscale="log", xlabel="networks n", ylabel="epsilon, beta = 0.05")
    right.set_title("What is certified when one stops at n", loc="left", fontsize=10)
    right.annotate("stopping at will on this line\nmisses 44.7 %, not 5 %", (130, 0.0013), fontsize=8, color="#c0392b")
    right.legend(frameon=False, fontsize=8)
    drawing.savefig(path, dpi=120)


def main() -> None:
    campaigns = int(sys.argv[1]) if len(sys.argv) > 1 else CAMPAIGNS
    rules, mutants = judged(RULES, campaigns), judged(MUTANTS, campaigns)
    passed = all(outcome.p_value > LEVEL for outcome in rules)
    caught = all(outcome.p_value < LEVEL for outcome in mutants)
    text = [
        "# Validity of the statements",
        "",
        f"Made by `make validity`: {campaigns:,} campaigns for each rule, an exact binomial test at {LEVEL:g},"
        " two-sided where theory gives the exact probability. A rule may miss as often as its beta, 0.05, or what"
        " follows from it.",
        f"Rules: {'all pass' if passed else 'SOME FAIL'}. Mutants: {'all rejected' if caught else 'SOME PASS'}.",
        *table("Rules", rules),
        *table("Mutants, which must be rejected", mutants),
    ]
    (HERE / "VALIDITY.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    figure(HERE.parent / "docs" / "images" / "statements.png")
    if not (passed and caught):
        raise SystemExit("a rule failed or a mutant passed: see benchmarks/VALIDITY.md")


if __name__ == "__main__":
    main()
