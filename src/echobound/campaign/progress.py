"""Progress: how far a campaign is, for those who watch it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Progress"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a campaign is, for those who watch it.

    Parameters
    ----------
    done, planned
        Networks.
    best, worst
        By the first score, so far; None before the first row.
    failures
        Diverged networks so far.
    seconds
        Since this start.
    fresh
        Networks evaluated since this start (the others were in the ledger already).

    Examples
    --------
    >>> event = Progress(done=50, planned=90, best=91.2, worst=3.4, failures=0, seconds=10.0, fresh=40)
    >>> event.rate, event.remaining
    (4.0, 10.0)
    """

    done: int
    planned: int
    best: float | None
    worst: float | None
    failures: int
    seconds: float
    fresh: int

    @property
    def rate(self) -> float | None:
        """Networks per second since this start."""
        return self.fresh / self.seconds if self.fresh and self.seconds > 0 else None

    @property
    def remaining(self) -> float | None:
        """Seconds still needed at the rate so far."""
        return None if self.rate is None else (self.planned - self.done) / self.rate
