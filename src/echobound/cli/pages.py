"""`report` and `figures`: a run to look at and to print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from echobound.cli.terminal import AsJson, console, print_json, words

__all__ = ["register"]

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: echobound report runs/demo-1 --open")(report)
    app.command(epilog="Example: echobound figures runs/demo-1 --format pdf")(figures)


def report(
    run: Run,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the page of a run again, and open it.

    Every run folder has its page already; this makes it anew after an update, or from a folder that came without it.
    """
    from echobound.report import write_page
    from echobound.runs.folder import RunFolder

    page = write_page(RunFolder(run))
    if as_json:
        print_json({"run": str(run), "page": str(page), "bytes": page.stat().st_size})
    else:
        console().print(str(page), markup=False)
    if show:
        import webbrowser

        if not webbrowser.open(page.resolve().as_uri()):
            console(error=True).print(f"no browser was found: open {page} in yours", markup=False)


def figures(
    run: Run,
    output: Annotated[Path | None, typer.Option(help="Folder for the figures; RUN/figures if not given.")] = None,
    kinds: Annotated[str, typer.Option("--format", help="pdf, svg, png; several separated by commas.")] = "pdf,svg",
    as_json: AsJson = False,
) -> None:
    """Write the figures of a run for a paper: vector graphics in one style, with a unit on every axis."""
    from echobound.report import write_figures

    files = [str(path) for path in write_figures(run, run / "figures" if output is None else output, words(kinds))]
    if as_json:
        print_json({"run": str(run), "figures": files})
    else:
        console().print("\n".join(files), markup=False)
