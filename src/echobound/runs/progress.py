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
    idle: float = 0.0  # seconds since this start that do not count for the rate: code was being compiled
    early: int = 0  # networks that were evaluated in these
    doing: str = ""  # what is done before the first one, in a few words, such as compiling; the clock starts after it

    @property
    def rate(self) -> float | None:
        """Networks per second; None while too little is known."""
        count, seconds = self.fresh - self.early, self.seconds - self.idle
        return count / seconds if count > 0 and seconds > 0 else None

    @property
    def remaining(self) -> float | None:
        """Seconds still needed at the rate so far."""
        return None if self.rate is None else (self.planned - self.done) / self.rate


class SteadyRate:
    """Leaves the first batch out of the rate: its time is mostly that of compiling, which happens once.

    Until a second's worth of networks came after it, no rate is given: minutes of compiling would be taken for hours.

    Examples
    --------
    >>> steady = SteadyRate()
    >>> events = [Progress(n, 600, 90.0, 3.0, 0, seconds, n) for n, seconds in ((0, 0.0), (4, 60.0), (44, 62.0))]
    >>> [event.remaining for event in map(steady, events)]
    [None, None, 27.8]
    """

    def __init__(self) -> None:
        self._first: Progress | None = None

    def __call__(self, event: Progress) -> Progress:
        """The event with what its rate does not count."""
        if self._first is None or event.seconds < self._first.seconds or event.fresh < self._first.fresh:
            self._first = event if event.fresh else None  # another start
        first = self._first
        if first is None:
            return event
        if event.seconds - first.seconds < 1.0:
            return replace(event, idle=event.seconds, early=event.fresh)
        return replace(event, idle=first.seconds, early=first.fresh)


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
        self._steady = SteadyRate()

    def __call__(self, event: Progress) -> None:
        """Take the progress of the current campaign, and pass on that of the whole, at the rate of the current one."""
        before = self._before
        self._last = replace(
            self._steady(event),
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
        self._before, self._steady = self._last, SteadyRate()


def status_line(event: Progress) -> str:
    """The progress of a campaign on one line: networks done, speed, time left, best and worst score, failures."""
    if event.doing:
        return event.doing
    parts = [f"{event.done}/{event.planned}"]
    if event.rate is not None:
        parts.append(f"{event.rate:.3g}/s")
    if event.remaining:
        parts.append(f"{duration(event.remaining)} left")
    if event.best is None:
        return ", ".join([*parts, "no network yet"])
    parts += [f"best {event.best:.5g}", f"worst {event.worst:.5g}"]
    return ", ".join([*parts, f"{event.failures} diverged"] if event.failures else parts)


def duration(seconds: float) -> str:
    """Hours, minutes and seconds.

    Examples
    --------
    >>> duration(75), duration(90_061)
    ('1:15', '1 d 1:01:01')
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    clock = f"{hour}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
    return f"{days} d {clock}" if days else clock
