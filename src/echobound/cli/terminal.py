"""What the commands share: printing for people or as JSON, and progress on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from echobound.files import jsonable

if TYPE_CHECKING:
    from rich.console import Console

    from echobound.campaign import Progress

__all__ = ["AsJson", "Device", "Quiet", "console", "numbers", "print_json", "progress", "words"]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Device = Annotated[str, typer.Option("--device", help="cpu, gpu, or auto: the GPU where there is one.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def console(*, error: bool = False) -> Console:
    """A console; plain text without styles when it is not a terminal."""
    from rich.console import Console

    return Console(stderr=error, highlight=False, soft_wrap=not (sys.stderr if error else sys.stdout).isatty())


def print_json(value: Any) -> None:
    """Print a value as JSON; non-finite numbers become null."""
    print(json.dumps(jsonable(value), indent=2, ensure_ascii=False))


def words(text: str | None) -> list[str]:
    """Split a comma-separated list."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def numbers(text: str, name: str) -> list[int]:
    """Split a comma-separated list of whole numbers."""
    try:
        return [int(word) for word in words(text)]
    except ValueError:
        raise typer.BadParameter(f"{name} must be whole numbers separated by commas, got {text!r}") from None


@contextmanager
def progress(what: str, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show a progress bar on the terminal while inside; nothing when piped or quiet."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    with Bar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[seen]}"),
        console=console(error=True),
        transient=True,
    ) as bar:
        task = bar.add_task(what, total=None, seen="starting")

        def show(event: Progress) -> None:
            seen = "compiling and starting" if event.best is None else f"best {event.best:.5g}  worst {event.worst:.5g}"
            if event.failures:
                seen += f"  {event.failures} diverged"
            bar.update(task, completed=event.done, total=event.planned, seen=seen)

        yield show
