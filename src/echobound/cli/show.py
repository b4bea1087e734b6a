"""A result set for the terminal: certificate, scores, verification, files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from echobound.cli.terminal import console
from echobound.scenario.verification import upward

__all__ = ["print_result"]


def print_result(content: Mapping[str, Any]) -> None:
    """Print what `identify`, `demo` and `show` give: set in a panel on a terminal, plain lines when piped."""
    out, certificate = console(), content["certificate"]
    title = "Certificate" if certificate["status"] == "certified" else "All networks diverged"
    if not out.is_terminal:
        print(f"{title}: {certificate['statement']}\n{certificate['worst']['statement']}")
        print("\n".join(f"{name}: {value}" for name, value in _facts(content)))
        return
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    body = Text(certificate["statement"])
    body.append("\n\n" + certificate["worst"]["statement"], style="dim")
    width = min(out.width, 100)
    out.print(Panel(body, title=title, title_align="left", width=width, padding=(1, 2)))
    table = Table(box=None, show_header=False, pad_edge=False, width=width)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _facts(content):
        table.add_row(name, Text(value))
    out.print(table)


def _facts(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    certificate, run = content["certificate"], Path(content["run"])
    yield (
        "networks",
        f"{certificate['networks']}, {certificate['failures']} of them diverged; together they certify"
        f" epsilon = {upward(certificate['epsilon_exact'])} exactly",
    )
    if certificate["winner"] is not None:
        yield "picked", f"network {certificate['winner']}"
    for role, scores in content.get("scores", {}).items():
        for name, entry in scores["per_output"].items():
            yield role, f"{name}: FIT {_number(entry['fit'])} %, RMSE {_number(entry['rmse'])}"
    if content.get("stability"):
        yield "stability", content["stability"]["statement"]
    if content.get("verification"):
        yield "verified", content["verification"]["statement"]
        yield "", content["verification"]["worst"]["statement"]
    for choice in content.get("chosen", ()):
        yield "note", choice
    if certificate["winner"] is not None:
        yield "model", str(run / "model.npz")
    yield "certificate", str(run / "certificate.json")
    yield "page", str(run / "report.html")


def _number(value: float) -> str:
    return f"{value:.5g}"
