"""A result set for the terminal: certificate, scores, verification, files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from echobound.cli.terminal import console
from echobound.scenario.verification import upward

if TYPE_CHECKING:
    from echobound.network import Committee

__all__ = ["committee_facts", "print_result"]

STATEMENTS = {"stopped": "stopped", "removal": "set aside", "both ends": "both ends", "gain": "more networks"}


def committee_facts(committee: Committee) -> dict[str, Any]:
    """Which networks a committee is made of, and that the certificate does not cover it."""
    from echobound.campaign.outcome import NOT_COVERED

    return {"members": [member.origin["index"] for member in committee.members], "statement": NOT_COVERED}


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
        f" epsilon = {upward(certificate['epsilon_exact'])}"
        f" {'exactly' if certificate['rule'] in ('fixed', 'patience') else 'by the rule ' + certificate['rule']}",
    )
    for statement in certificate["statements"]:
        yield STATEMENTS[statement["kind"]], statement["words"]
    if certificate["winner"] is not None:
        yield "picked", f"network {certificate['winner']}"
    yield from _scores(content.get("scores", {}))
    for name, key in (("on test data", "optimism"), ("new episodes", "episodes")):
        if content.get(key):
            yield name, content[key]["words"]
    if content.get("stability"):
        yield "stability", content["stability"]["statement"]
    if content.get("committee"):
        committee = content["committee"]
        yield (
            "committee",
            f"median of networks {', '.join(map(str, committee['members']))}; not covered by the certificate",
        )
        yield from _scores(committee.get("scores", {}), "committee, ")
        if committee.get("episodes"):
            yield "committee, new episodes", committee["episodes"]["words"]
    if content.get("verification"):
        yield "verified", content["verification"]["statement"]
        yield "", content["verification"]["worst"]["statement"]
    for choice in content.get("chosen", ()):
        yield "note", choice
    if certificate["winner"] is not None:
        yield "model", str(run / "model.npz")
    yield "certificate", str(run / "certificate.json")
    yield "page", str(run / "report.html")


def _scores(scores: Mapping[str, Any], whose: str = "") -> Iterator[tuple[str, str]]:
    for role, part in scores.items():
        for name, entry in part["per_output"].items():
            yield f"{whose}{role}", f"{name}: FIT {_number(entry['fit'])} %, RMSE {_number(entry['rmse'])}"


def _number(value: float) -> str:
    return f"{value:.5g}"
