"""The paper's experiment: for each order, pick from 645 networks and test with 500 fresh ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Unpack

from echobound.arrays import Rows
from echobound.campaign import Computing, ComputingSettings
from echobound.candidates import Candidates
from echobound.errors import InputError
from echobound.files import write_json, write_whole
from echobound.identify import identify
from echobound.kernels import Status
from echobound.plan import Plan
from echobound.report import ScorePanel, networks_figure, outputs_figure
from echobound.reproduce.data import RULE, PaperData, default_data_seed, paper_data
from echobound.reproduce.table import PAPER, PAPER_ORDERS
from echobound.runs import Progress, RunFolder
from echobound.runs.derivation import by_family
from echobound.scenario import count_violations, networks_explicit, select, verify_counts
from echobound.scenario.ordering import Case
from echobound.scores import Direction
from echobound.verify import verify

__all__ = ["OrderResult", "Reproduction", "reproduce_paper"]

BETA = 1e-7
SCORES = ("fit", "rmse")


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
            theirs = PAPER.get(row.order)
            fit, best, worst = (
                (f"{theirs.best_fit:6.2f}", str(theirs.best_violations), str(theirs.worst_violations))
                if theirs
                else ("-", "-", "-")
            )
            lines.append(
                f"{row.order:6d} | {row.best_fit:9.2f} {fit:>6s} | {row.worst_rmse:10.4g} |"
                f" {row.best_violations:10d} {row.best_probability:11.3g} {best:>7s} |"
                f" {row.worst_violations:10d} {row.worst_probability:11.3g} {worst:>7s}"
            )
        best_total, worst_total = (sum(getattr(r, f"{c}_violations") for r in self.orders) for c in ("best", "worst"))
        expected = len(self.orders) * self.fresh / (self.networks + 1)
        lines += [
            "",
            f"Violations in all: best case {best_total}, worst case {worst_total} of {len(self.orders) * self.fresh}"
            f" (theory expects {expected:.1f} each).",
            f"Written to {self.folder}: table.txt, table.json, networks.csv, figures as PNG and SVG.",
        ]
        return "\n".join(lines)


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
    data = paper_data(default_data_seed() if data_seed is None else data_seed)
    how = Computing.of(computing, settings)
    plan = Plan(
        law="paper",
        order=tuple(orders),
        numbering=tuple(orders),
        networks=networks,
        beta=BETA,
        bound="explicit" if networks >= networks_explicit(0.05, BETA) else "exact",
        scores=SCORES,
        committee=0,
        washout=100,
        seed=seed,
    )
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
        data_choice="chosen by the data alone, before any network was drawn: " + RULE
        if data_seed is None
        else "as given",
        noise_limit=data.limit,
        orders=tuple(_result(n, search[n], tests[n]) for n in orders),
    )
    write_json(path / "table.json", outcome.to_dict())
    write_whole(path / "table.txt", (outcome.text() + "\n").encode())
    write_whole(path / "networks.csv", _csv(orders, search, tests).encode())
    shown = 200 if 200 in orders else orders[len(orders) // 2]
    _figures(path, run.candidates(how.kernel)[list(orders).index(shown)], data, search[shown], tests[shown], shown)
    return outcome


def _result(order: int, rows: Rows, fresh: Rows) -> OrderResult:
    best_fit, worst_rmse = float(rows["scores"][:, 0].max()), float(rows["scores"][:, 1].max())
    better, best_ties = count_violations(fresh["scores"][:, 0], best_fit, "max", "best")
    worse, worst_ties = count_violations(fresh["scores"][:, 1], worst_rmse, "min", "worst")
    best = verify_counts(len(rows), len(fresh), better, best_ties, BETA)
    worst = verify_counts(len(rows), len(fresh), worse, worst_ties, BETA)
    winner = select(rows["scores"][:, 0], "max")
    return OrderResult(
        order=order,
        best_fit=best_fit,
        worst_rmse=worst_rmse,
        best_violations=better,
        best_probability=best.p_value,
        worst_violations=worse,
        worst_probability=worst.p_value,
        failures=int((rows["status"] != 0).sum()),
        winner=winner,
    )


def _csv(orders: Sequence[int], search: dict[int, Rows], tests: dict[int, Rows]) -> str:
    lines = ["order,stream,index,status,fit,rmse"]
    for n in orders:
        for name, rows in (("search", search[n]), ("fresh", tests[n])):
            lines += [
                f"{n},{name},{row['index']},{Status(row['status']).name.lower()},{float(row['scores'][0])!r},"
                f"{float(row['scores'][1])!r}"
                for row in rows
            ]
    return "\n".join(lines) + "\n"


def _figures(path: Path, networks: Candidates, data: PaperData, rows: Rows, fresh: Rows, order: int) -> None:
    """The paper's three figures, for one order."""
    fits, errors = rows["scores"].T
    winner = select(fits, "max")
    figures = {}
    if winner is not None:
        [simulated] = networks.make(winner).outputs
        record = data.validation
        figures["validation"] = outputs_figure(
            record.time[len(record) - len(simulated) :],
            record.y[len(record) - len(simulated) :],
            {"model": simulated},
            record.output_names,
            record.output_units,
            title=f"Validation data: plant and network of {order} states",
        )
    cases: tuple[tuple[int, float, Direction, Case, str], ...] = (
        (0, float(fits.max()), "max", "best", "FIT (%)"),
        (1, float(errors.max()), "min", "worst", "RMSE (pH)"),
    )
    for name, table, testing in (("sampling", rows, False), ("testing", fresh, True)):
        if not len(table):
            continue
        panels = [
            ScorePanel(
                scores=table["scores"][:, i],
                threshold=limit,
                direction=direction,
                case=case,
                label=label,
                circle_violations=testing,
            )
            for i, limit, direction, case, label in cases
        ]
        what = f"{len(table)} fresh networks" if testing else f"{len(table)} networks to pick from"
        figures[name] = networks_figure(panels, title=f"{name.capitalize()}: {what}, {order} states")
    for name, figure in figures.items():
        for kind in ("png", "svg"):
            figure.savefig(path / f"{name}.{kind}", dpi=150)
