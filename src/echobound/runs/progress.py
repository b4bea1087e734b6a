"""Progress: how far a campaign is, for those who watch it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a campaign is, for those who watch it.

    Examples
    --------
    >>> event = Progress(done=50, planned=90, best=91.2, worst=3.4, failures=0, seconds=10.0, fresh=40)
    >>> event.rate, event.remaining
    (4.0, 10.0)
    """

    done: int
    planned: int
    best: float | None  # by the first score; None before the first row
    worst: float | None
    failures: int  # diverged networks
    seconds: float  # since this start
    fresh: int  # networks evaluated since this start; the others were in the ledger already

    @property
    def rate(self) -> float | None:
        """Networks per second since this start."""
        return self.fresh / self.seconds if self.fresh and self.seconds > 0 else None

    @property
    def remaining(self) -> float | None:
        """Seconds still needed at the rate so far."""
        return None if self.rate is None else (self.planned - self.done) / self.rate


class TotalProgress:
    """Progress of several campaigns as one: pass it to each of them in turn, and call `next` after each.

    Examples
    --------
    >>> events = []
    >>> whole = TotalProgress(events.append, planned=20, direction="max")
    >>> whole(Progress(done=10, planned=10, best=90.0, worst=1.0, failures=1, seconds=2.0, fresh=10))
    >>> whole.next()
    >>> whole(Progress(done=5, planned=10, best=80.0, worst=0.5, failures=0, seconds=1.0, fresh=5))
    >>> events[-1].done, events[-1].planned, events[-1].best, events[-1].worst, events[-1].failures
    (15, 20, 90.0, 0.5, 1)
    """

    def __init__(self, tell: Callable[[Progress], None] | None, planned: int, direction: Literal["max", "min"]) -> None:
        self._tell, self._planned = tell, planned
        self._better, self._worse = (max, min) if direction == "max" else (min, max)
        self._before = self._last = Progress(0, planned, None, None, 0, 0.0, 0)

    def __call__(self, event: Progress) -> None:
        """Take the progress of the current campaign, and pass on that of the whole, at the rate of the current one."""
        before = self._before
        self._last = replace(
            event,
            done=before.done + event.done,
            planned=max(self._planned, before.done + event.planned),
            best=self._better((v for v in (before.best, event.best) if v is not None), default=None),
            worst=self._worse((v for v in (before.worst, event.worst) if v is not None), default=None),
            failures=before.failures + event.failures,
        )
        if self._tell is not None:
            self._tell(self._last)

    def next(self) -> None:
        """The current campaign is done."""
        self._before = self._last
