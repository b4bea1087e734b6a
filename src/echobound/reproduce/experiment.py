"""The paper's experiment: for each order, pick from 645 networks and test with 500 fresh ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from echobound.arrays import Rows
from echobound.campaign.dispatch import run_campaign
from echobound.campaign.engines import Engine, opened
from echobound.draws import SEARCH, VERIFICATION
from echobound.errors import InputError, RunError
from echobound.files import digest, jsonable, read_json, write_json, write_whole
from echobound.kernels import Kernel, Problem, Status, get_kernel, hold_out
from echobound.kernels.training import train_network
from echobound.network import paper
from echobound.report import ScorePanel, networks_figure, outputs_figure
from echobound.reproduce.data import RULE, PaperData, default_data_seed, paper_data
from echobound.reproduce.table import PAPER, PAPER_ORDERS
from echobound.runs.folder import make_folder
from echobound.runs.ledger import Ledger
from echobound.runs.progress import Progress, TotalProgress
from echobound.scenario import count_violations, select, verify_counts
from echobound.scenario.ordering import Case
from echobound.scores import Direction, get_score

__all__ = ["OrderResult", "Outcome", "reproduce_paper"]

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
class Outcome:
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
    workers: int | None = None,
    kernel: str = "cpu",
    engine: str | Executor | Engine = "threads",
    folder: str | Path,
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Run the experiment and write table, scores and figures to a folder.

    Each order is a family of draws of its own, so that orders are independent of each other and an order's networks
    are the same whatever the other orders are.
    """
    if not orders or min(orders) < 1 or len(set(orders)) != len(orders):
        raise InputError(f"the orders must be different whole numbers of at least 1, got {list(orders)}")
    if networks < 1 or fresh < 0:
        raise InputError(f"at least 1 network is needed and no negative number of fresh ones, got {networks}, {fresh}")
    data = paper_data(default_data_seed() if data_seed is None else data_seed)
    code, path = get_kernel(kernel), Path(folder)
    measure = [get_score(name) for name in SCORES]
    problems = {
        n: hold_out(data.training, data.validation, law=paper(n), scores=measure, seed=seed).on(family=n)
        for n in orders
    }
    plan = _start(path, data, {"orders": list(orders), "networks": networks, "fresh": fresh, "seed": seed})
    search: dict[int, Rows] = {}
    tests: dict[int, Rows] = {}
    whole = TotalProgress(on_progress, len(orders) * (networks + fresh), measure[0].direction)
    with Ledger(path / "ledger.sqlite", plan, SCORES) as ledger, opened(engine, workers) as crew:
        for n in sorted(orders, reverse=True):  # the long ones first: what is left is then never underestimated
            for stream, size, table in ((SEARCH, networks, search), (VERIFICATION, fresh, tests)):
                problem = problems[n].on(stream=stream)
                table[n] = run_campaign(code, problem, range(size), ledger, engine=crew, on_progress=whole)
                whole.next()
    outcome = Outcome(
        folder=path,
        networks=networks,
        fresh=fresh,
        seed=seed,
        data_seed=data.seed,
        data_choice="chosen on the data alone, by no network: " + RULE if data_seed is None else "as given",
        noise_limit=data.limit,
        orders=tuple(_result(n, search[n], tests[n]) for n in orders),
    )
    write_json(path / "table.json", outcome.to_dict())
    write_whole(path / "table.txt", (outcome.text() + "\n").encode())
    write_whole(path / "networks.csv", _csv(orders, search, tests).encode())
    shown = 200 if 200 in orders else orders[len(orders) // 2]
    _figures(path, code, problems[shown], data, search[shown], tests[shown])
    return outcome


def _start(path: Path, data: PaperData, parameters: dict[str, Any]) -> str:
    """Record what will be done before it is, or go on with the same; anything else in the folder is refused."""
    plan = {
        **parameters,
        "data_seed": data.seed,
        "data": [data.training.digest, data.validation.digest],
        "law": paper().to_dict(),
        "bound": "explicit",
        "beta": BETA,
    }
    file = path / "experiment.json"
    if file.exists():
        if read_json(file) != jsonable(plan):
            raise RunError(f"{path} holds another experiment: nothing was changed; choose another folder with --run")
        return digest(jsonable(plan))
    make_folder(path, "holds no such experiment")
    write_json(file, plan)
    return digest(jsonable(plan))


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


def _figures(path: Path, kernel: Kernel, problem: Problem, data: PaperData, rows: Rows, fresh: Rows) -> None:
    """The paper's three figures."""
    order = problem.law.order
    fits, errors = rows["scores"].T
    winner = select(fits, "max")
    figures = {}
    if winner is not None:
        _, [simulated] = train_network(kernel, problem, winner)
        record = data.validation
        figures["validation"] = outputs_figure(
            record.time[len(record) - len(simulated) :],
            problem.measured[0],
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
