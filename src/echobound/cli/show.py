"""A result set for the terminal: certificate, scores, verification, files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from echobound.cli.terminal import console

__all__ = ["print_result"]


def print_result(content: Mapping[str, Any]) -> None:
    """Print what `identify`, `demo` and `show` give."""
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    certificate, out = content["certificate"], console()
    body = Text(certificate["statement"])
    body.append("\n\n" + certificate["worst"]["statement"], style="dim")
    title = "Certificate" if certificate["status"] == "certified" else "All networks diverged"
    if out.is_terminal:
        out.print(Panel(body, title=title, title_align="left", width=min(out.width, 100)))
    else:
        out.print(f"{title}: {body.plain}", markup=False)

    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    exact = f"{certificate['epsilon_exact']:.6g}"
    facts.add_row(
        "networks", f"{certificate['networks']} ({certificate['failures']} diverged); exactly certify epsilon {exact}"
    )
    if certificate["winner"] is not None:
        facts.add_row("picked", f"network {certificate['winner']}")
    for role, scores in content.get("scores", {}).items():
        per_output = ", ".join(
            f"{name} FIT {_number(entry['fit'])} %, RMSE {_number(entry['rmse'])}"
            for name, entry in scores["per_output"].items()
        )
        facts.add_row(role, per_output)
    if content.get("stability"):
        facts.add_row("stability", content["stability"]["statement"])
    if content.get("verification"):
        facts.add_row("verified", content["verification"]["statement"])
        facts.add_row("", content["verification"]["worst"]["statement"])
    for choice in content.get("chosen", ()):
        facts.add_row("note", choice)
    run = Path(content["run"])
    facts.add_row("model", str(run / "model.npz") if certificate["winner"] is not None else "none")
    facts.add_row("certificate", str(run / "certificate.json"))
    facts.add_row("page", str(run / "report.html"))
    out.print(facts, markup=False)


def _number(value: float | None) -> str:
    return "none (diverged)" if value is None or value != value else f"{value:.5g}"
