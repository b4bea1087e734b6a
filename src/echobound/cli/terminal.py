"""What the commands share: printing as text or as JSON, and progress on a terminal."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from echobound.errors import printable
from echobound.files import jsonable

if TYPE_CHECKING:
    from rich.console import Console

    from echobound.runs.progress import Progress

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def console(*, error: bool = False) -> Console:
    """A console; plain text without styles when it is not a terminal, and no control characters but its own."""
    from rich.console import Console

    class Plain(Console):
        def render(self, *args: Any, **options: Any) -> Iterator[Any]:
            for segment in super().render(*args, **options):
                yield segment if segment.control else segment._replace(text=printable(segment.text))

    return Plain(stderr=error, highlight=False, soft_wrap=not (sys.stderr if error else sys.stdout).isatty())


def say(text: str, *, error: bool = False, end: str = "\n") -> None:
    """Print a text as it is, with the control characters in it written out."""
    print(printable(text), file=sys.stderr if error else sys.stdout, end=end, flush=error)


def text_cell(text: str) -> str:
    r"""A text as a cell of a CSV file: what a spreadsheet would take for a formula gets an apostrophe before it.

    Examples
    --------
    >>> text_cell("=1+1"), text_cell("level")
    ("'=1+1", 'level')
    """
    text = printable(text)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def print_json(value: Any) -> None:
    """Print a value as JSON; non-finite numbers become null."""
    say(json.dumps(jsonable(value), indent=2, ensure_ascii=False))


def print_lines(lines: Iterable[str], style: str | None = None) -> None:
    """Print lines as they are: square brackets in them are not markup."""
    for line in lines:
        console().print(line, markup=False, style=style)


def words(text: str | None) -> list[str]:
    """Split a comma-separated list."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def numbers(text: str, name: str) -> list[int]:
    """Split a comma-separated list of whole numbers."""
    try:
        return [int(word) for word in words(text)]
    except ValueError:
        raise typer.BadParameter(f"{name} must be whole numbers separated by commas, got {text!r}") from None


def stop(sentence: str, code: int) -> NoReturn:
    """End with one sentence on stderr."""
    say(f"echobound: {sentence}", error=True)
    sys.exit(code)


@contextmanager
def progress(what: str, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show a progress bar on the terminal while inside, or a line every minute when piped; nothing when quiet.

    A campaign that was stopped by a signal ends the command with the exit code of that signal.
    """
    from echobound.campaign.interrupt import Interrupted

    try:
        if quiet:
            yield None
        elif sys.stderr.isatty():
            with bar(what) as show:
                yield show
        else:
            yield lines(what)
    except Interrupted as interrupt:
        stop(str(interrupt), interrupt.code)


@contextmanager
def spinner(what: str, quiet: bool) -> Iterator[None]:
    """Say on the terminal what is being done while inside; nothing when piped or quiet."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    with console(error=True).status(what):
        yield


def lines(what: str, every: float = 60.0, clock: Callable[[], float] = time.monotonic) -> Callable[[Progress], None]:
    """Print a line on stderr at most once a minute: short runs stay silent in a log."""
    from echobound.runs.progress import status_line

    last = clock()

    def show(event: Progress) -> None:
        nonlocal last
        if clock() - last >= every:
            last = clock()
            say(f"{what}: {status_line(event)}", error=True)

    return show


@contextmanager
def bar(what: str) -> Iterator[Callable[[Progress], None]]:
    """A progress bar on stderr."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    from echobound.runs.progress import status_line

    name, status = TextColumn("{task.description}"), TextColumn("{task.fields[status]}")
    columns = (name, BarColumn(bar_width=20), MofNCompleteColumn(), status)
    with Bar(*columns, console=console(error=True), transient=True) as rich_bar:
        task = rich_bar.add_task(what, total=None, status="starting")

        def show(event: Progress) -> None:
            # The bar has its own column for what is done.
            text = event.doing or ("starting" if event.best is None else status_line(event).split(", ", 1)[1])
            rich_bar.update(task, completed=event.done, total=event.planned, status=text)

        yield show
