"""`report` and `figures`: a run to look at and to print."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from echobound.cli.runs import Run
from echobound.cli.terminal import AsJson, console, print_json, print_lines, words
from echobound.report import write_figures, write_page
from echobound.runs import RunFolder

__all__ = ["figures", "report"]


def report(
    run: Run,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the page of a run again, and open it.

    Every run folder has its page already; this writes it anew after an update, or for a folder that came without one.
    """
    page = write_page(RunFolder(run))
    if as_json:
        print_json({"run": str(run), "page": str(page), "bytes": page.stat().st_size})
    else:
        print_lines([str(page)])
    if open_page and not webbrowser.open(page.resolve().as_uri()):
        console(error=True).print(f"no browser was found: open {page} in yours", markup=False)


def figures(
    run: Run,
    output: Annotated[Path | None, typer.Option(help="Folder for the figures; RUN/figures if not given.")] = None,
    kinds: Annotated[
        str, typer.Option("--format", help="pdf, svg or png; several are separated by commas.")
    ] = "pdf,svg",
    as_json: AsJson = False,
) -> None:
    """Write the figures of a run for a paper: vector graphics in one style, with a unit on every axis."""
    files = [str(path) for path in write_figures(run, run / "figures" if output is None else output, words(kinds))]
    if as_json:
        print_json({"run": str(run), "figures": files})
    else:
        print_lines(files)
