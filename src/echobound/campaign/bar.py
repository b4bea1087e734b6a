"""A progress bar for scripts and notebooks, in plain text on stderr; the command line has its own."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self, TextIO

from echobound.runs.progress import Progress, status_line

CELLS = 24


class ProgressBar:
    """Called with each `Progress`; draws one line over itself, which terminals and notebooks both do.

    Examples
    --------
    >>> import io
    >>> stream = io.StringIO()
    >>> with ProgressBar(stream) as bar:
    ...     bar(Progress(done=30, planned=60, best=91.2, worst=3.4, failures=0, seconds=10.0, fresh=30))
    >>> stream.getvalue().strip()
    '[############------------] 30/60, 3/s, 0:10 left, best 91.2, worst 3.4'
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._width = 0

    def __call__(self, event: Progress) -> None:
        """Draw how far it is."""
        full = CELLS * event.done // max(1, event.planned)
        line = f"[{'#' * full}{'-' * (CELLS - full)}] {status_line(event)}"
        # What a longer line left behind is blanked out.
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the line, so that what is printed next starts on its own."""
        if self._width:
            self._stream.write("\n")
            self._stream.flush()
