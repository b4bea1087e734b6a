"""The paper's experiment: for each order, pick from 645 networks and test with 500 fresh ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from echobound.arrays import Rows
from echobound.campaign import Computing, ComputingSettings
from echobound.candidates import Candidates
from echobound.data import Record
from echobound.errors import InputError
from echobound.files import write_json, write_whole
from echobound.identify import identify
from echobound.kernels import Status
from echobound.plan import Plan
from echobound.plan.numbers import Bound
from echobound.report import ScorePanel, networks_figure, outputs_figure
from echobound.reproduce.data import RULE, default_data_seed, paper_data
from echobound.reproduce.table import PAPER, PAPER_ORDERS
from echobound.runs import Progress, RunFolder
from echobound.runs.derivation import by_family
from echobound.scenario import count_violations, networks_explicit, select, verify_counts
from echobound.verify import verify

BETA = 1e-7
PLAN = Plan(law="paper", beta=BETA, scores=("fit", "rmse"), committee=0, washout=100)
CASES: tuple[dict[str, Any], ...] = (  # one for each score
    {"direction": "max", "case": "best", "label": "FIT (%)"},
    {"direction": "min", "case": "worst", "label": "RMSE (pH)"},
)


@dataclass(frozen=True)
class OrderResult:
    """One row of our table; probabilities are P(X >= count) under the exact theory."""

    order: int
    best_fit: float
    worst_rmse: float
    best_violations: int
    best_probability: float
    worst_violations: int
    worst_probability: float
    failures: int
    winner: int | None


@dataclass(frozen=True)
class Reproduction:
    """The whole experiment."""

    folder: Path
    networks: int
    fresh: int
    seed: int
    data_seed: int
    data_choice: str
    noise_limit: float
    orders: tuple[OrderResult, ...]

    def to_dict(self) -> dict[str, Any]:
        """The outcome as JSON, each order beside the paper's row where there is one."""
        content = {"run": str(self.folder), **asdict(self)}
        del content["folder"]
        for row in content["orders"]:
            row["paper"] = PAPER[row["order"]]._asdict() if row["order"] in PAPER else None
        return content

    def text(self) -> str:
        """The table beside the paper's."""
        lines = [
            f"Data seed {self.data_seed}, {self.data_choice}. The FIT of a perfect model on these noisy validation data"
            f" is {self.noise_limit:.2f}.",
            f"{self.networks} networks and {self.fresh} fresh ones for each order, seed {self.seed};"
            " P is the probability of so many violations or more under the exact theory.",
            "",
            "states |  best FIT  paper | worst RMSE | best-case violations P   paper | worst-case violations P  paper",
            "-------+------------------+------------+--------------------------------+--------------------------------",
        ]
        for row in self.orders:
            fit, best, worst = "-", "-", "-"
            if paper := PAPER.get(row.order):
                fit, best, worst = f"{paper.best_fit:.2f}", str(paper.best_violations), str(paper.worst_violations)
            lines.append(
                f"{row.order:6d} | {row.best_fit:9.2f} {fit:>6s} | {row.worst_rmse:10.4g} |"
                f" {row.best_violations:10d} {row.best_probability:11.3g} {best:>7s} |"
                f" {row.worst_violations:10d} {row.worst_probability:11.3g} {worst:>7s}"
            )
        best_total, worst_total = (sum(getattr(r, f"{c}_violations") for r in self.orders) for c in ("best", "worst"))
        tested = len(self.orders) * self.fresh
        return "\n".join(lines) + (
            f"\n\nViolations in all: best case {best_total}, worst case {worst_total} of {tested}"
            f" (theory expects {tested / (self.networks + 1):.1f} each).\n"
            f"Written to {self.folder}: table.txt, table.json, networks.csv, figures as PNG and SVG."
        )


def reproduce_paper(
    orders: Sequence[int] = PAPER_ORDERS,
    *,
    networks: int = 645,
    fresh: int = 500,
    seed: int = 0,
    data_seed: int | None = None,
    folder: str | Path,
    computing: Computing | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Unpack[ComputingSettings],
) -> Reproduction:
    """Run the experiment and write table, scores and figures to a run folder; one that was interrupted is resumed.

    The orders are the families of one certified search. A family is numbered by its order, so that its networks are the
    same whatever the other orders are.
    """
    if not orders or min(orders) < 1 or len(set(orders)) != len(orders):
        raise InputError(f"the orders must be different whole numbers of at least 1, got {list(orders)}")
    if networks < 1 or fresh < 0:
        raise InputError(f"at least 1 network is needed and no negative number of fresh ones, got {networks}, {fresh}")
    choice = "as given"
    if data_seed is None:
        data_seed, choice = default_data_seed(), f"chosen by the data alone, before any network was drawn: {RULE}"
    data = paper_data(data_seed)
    how = Computing.of(computing, settings)
    bound: Bound = "explicit" if networks >= networks_explicit(0.05, BETA) else "exact"
    families = tuple(orders)
    plan = replace(PLAN, order=families, numbering=families, networks=networks, bound=bound, seed=seed)
    path = identify(data.training, data.validation, plan=plan, computing=how, run=folder, on_progress=on_progress).run
    assert path is not None
    done = len(RunFolder(path).fresh) // len(orders)  # of an earlier reproduction in the same folder
    verify(path, max(fresh - done, 0), computing=how, on_progress=on_progress)
    run = RunFolder(path)
    search, tests = (dict(zip(orders, by_family(run.plan, rows), strict=True)) for rows in (run.search, run.fresh))
    outcome = Reproduction(
        folder=path,
        networks=networks,
        fresh=max(fresh, done),
        seed=seed,
        data_seed=data.seed,
        data_choice=choice,
        noise_limit=data.limit,
        orders=tuple(_result(n, search[n], tests[n]) for n in orders),
    )
    write_json(path / "table.json", outcome.to_dict())
    write_whole(path / "table.txt", (outcome.text() + "\n").encode())
    write_whole(path / "networks.csv", _csv(orders, search, tests).encode())
    shown = 200 if 200 in orders else orders[len(orders) // 2]
    drawn = run.candidates(how.kernel)[families.index(shown)]
    _figures(path, drawn, data.validation, search[shown], tests[shown], shown)
    return outcome


def _result(order: int, rows: Rows, fresh: Rows) -> OrderResult:
    thresholds = rows["scores"].max(axis=0).tolist()  # the best FIT and the worst RMSE are both the largest
    counts: dict[str, Any] = {}
    for case, threshold, scores in zip(CASES, thresholds, fresh["scores"].T, strict=True):
        violations, ties = count_violations(scores, threshold, case["direction"], case["case"])
        counts[f"{case['case']}_violations"] = violations
        counts[f"{case['case']}_probability"] = verify_counts(len(rows), len(fresh), violations, ties, BETA).p_value
    failures, winner = int((rows["status"] == Status.DIVERGED).sum()), select(rows["scores"][:, 0], "max")
    best_fit, worst_rmse = thresholds
    return OrderResult(order, best_fit, worst_rmse, failures=failures, winner=winner, **counts)


def _csv(orders: Sequence[int], search: dict[int, Rows], tests: dict[int, Rows]) -> str:
    lines = ["order,stream,index,status,fit,rmse"]
    for n in orders:
        for name, rows in (("search", search[n]), ("fresh", tests[n])):
            for row in rows:
                fit, rmse = row["scores"].tolist()
                lines.append(f"{n},{name},{row['index']},{Status(row['status']).name.lower()},{fit!r},{rmse!r}")
    return "\n".join(lines) + "\n"


def _figures(path: Path, networks: Candidates, record: Record, rows: Rows, fresh: Rows, order: int) -> None:
    """The paper's three figures, for one order."""
    figures = {}
    winner = select(rows["scores"][:, 0], "max")
    if winner is not None:
        [simulated] = networks.make(winner).outputs
        time, measured = record.time[-len(simulated) :], record.y[-len(simulated) :]
        title = f"Validation data: plant and network of {order} states"
        names, units = record.output_names, record.output_units
        figures["validation"] = outputs_figure(time, measured, {"model": simulated}, names, units, title=title)
    for name, table, what in (("sampling", rows, "networks to pick from"), ("testing", fresh, "fresh networks")):
        if not len(table):
            continue
        panels = [
            ScorePanel(scores=scores, threshold=float(threshold), circle_violations=name == "testing", **case)
            for case, scores, threshold in zip(CASES, table["scores"].T, rows["scores"].max(axis=0), strict=True)
        ]
        figures[name] = networks_figure(panels, title=f"{name.capitalize()}: {len(table)} {what}, {order} states")
    for name, figure in figures.items():
        for kind in ("png", "svg"):
            figure.savefig(path / f"{name}.{kind}", dpi=150)
