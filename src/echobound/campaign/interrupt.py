"""Interrupts: the first signal lets the batches in hand finish, a second one does not wait."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupted(KeyboardInterrupt):
    """A campaign was stopped by a signal, after the batches in hand; the sentence says how to resume.

    Examples
    --------
    >>> Interrupted(signal.SIGTERM, "stopped").code
    143
    """

    def __init__(self, signum: int, sentence: str) -> None:
        super().__init__(sentence)
        self.signum = signum

    @property
    def code(self) -> int:
        """The exit code that a shell expects."""
        return 128 + self.signum


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], int | None]]:
    """Hold SIGINT and SIGTERM back while inside; the function yielded returns the one that came, or None.

    Only the main thread can do so; in other threads, signals are handled as before.
    """
    came: list[int] = []
    before: dict[int, Any] = {}

    def handle(signum: int, _: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(signum)

    if threading.current_thread() is threading.main_thread():
        for signum in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(signum) is not signal.SIG_IGN:  # nohup, or a job in the background
                before[signum] = signal.signal(signum, handle)
    try:
        yield lambda: came[0] if came else None
    finally:
        for kept, handler in before.items():
            signal.signal(kept, signal.SIG_DFL if handler is None else handler)
