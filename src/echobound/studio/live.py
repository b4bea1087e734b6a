"""Live: a run as it goes, from its ledger alone: counts, best so far, rate, time left, and networks as dots.

Draws are independent and identically distributed, so a few of each stretch of indices are a fair sample of all: where
there are more than a picture can show, the first few of each stretch stand for it, and every improvement is kept. What
a browser holds is therefore bounded, however long the ledger is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echobound.draws import SEARCH, VERIFICATION
from echobound.errors import EchoboundError
from echobound.kernels import Status
from echobound.runs.progress import Progress
from echobound.runs.status import STREAMS, status_of
from echobound.runs.tail import LedgerTail, NewRow
from echobound.scenario.words import score_title
from echobound.scores import get_score

STRETCHES = 500  # of indices, across the picture
EACH = 4  # dots of a stretch
NEWEST = 60  # dots that are shown as the newest, whether they stay or not

Dot = tuple[int, float | None, int]  # position in the picture, score (None: diverged), status


@dataclass
class Thinned:
    """Dots of a long table: the first few of each stretch, and every improvement.

    Examples
    --------
    >>> thinned = Thinned(planned=100_000, larger_is_better=True)
    >>> kept = [thinned.add((i, float(i % 7), 0)) for i in range(100_000)]
    >>> sum(kept) <= STRETCHES * EACH + 7
    True
    """

    planned: int
    larger_is_better: bool
    best: float | None = None
    width: int = 1

    def __post_init__(self) -> None:
        self.width = max(1, math.ceil(self.planned / STRETCHES) if self.planned > STRETCHES * EACH else 1)
        self._counts: Counter[int] = Counter()

    def add(self, dot: Dot) -> bool:
        """Whether a dot stays in the picture."""
        position, score, _ = dot
        sign = 1.0 if self.larger_is_better else -1.0
        improves = score is not None and (self.best is None or sign * score > sign * self.best)
        if improves:
            self.best = score
        stretch = position // self.width
        self._counts[stretch] += 1
        return improves or self._counts[stretch] <= EACH

    @property
    def crowded(self) -> bool:
        """Whether a search that has no planned end has outgrown the stretches."""
        return len(self._counts) > 2 * STRETCHES * (1 if self.width > 1 else EACH)


def smaller_is_better(facts: Mapping[str, Any]) -> bool:
    """Whether the first score of a run is an error."""
    with suppress(EchoboundError):
        return get_score(str(facts.get("score"))).direction == "min"
    return False


class LiveRun:
    """What there is to see of one run, read in steps and shared by all who look on.

    `steps` counts them; `since(step)` is what came later. `picture` is all of it, for whoever comes new.
    """

    def __init__(self, path: Path, facts: Mapping[str, Any] | None = None) -> None:
        facts = facts or {}
        self.path, self.larger = path, not smaller_is_better(facts)
        self.score = score_title(str(facts.get("score") or "score"))
        self.networks, self.families = facts.get("networks") or 0, facts.get("families") or 1
        self.changed = False
        self._restart(VERIFICATION if self._verified() else SEARCH)

    def _verified(self) -> bool:
        status = status_of(self.path) if (self.path / "plan.json").exists() else None
        return status is not None and status.running and status.what.startswith(STREAMS[VERIFICATION])

    def _restart(self, stream: int, planned: int = 0) -> None:
        self.stream, self._tail = stream, LedgerTail(self.path / "ledger.sqlite", stream)
        self._thinned, self.dots = Thinned(planned, self.larger), list[Dot]()
        self.newest = list[Dot]()
        self.progress: dict[str, Any] = {}
        self.version = getattr(self, "version", 0) + 1  # of the picture: whoever has another one takes all of it
        self._starts: dict[int, int] = {}

    def step(self) -> bool:
        """Look once more, and return whether anything is new."""
        wanted = VERIFICATION if self._verified() else SEARCH
        if wanted != self.stream:
            self._restart(wanted)
        rows, families = self._tail.look()
        planned = max(sum(max(one.planned, one.done) for one in families.values()), self._due)
        if planned > self._thinned.planned and (not self.dots or self._thinned.crowded):
            self._restart(self.stream, planned)
            rows, families = self._tail.look()
        self._place(families)
        for row in rows:
            dot = self._dot(row)
            if self._thinned.add(dot):
                self.dots.append(dot)
        if rows:
            self.newest = [self._dot(row) for row in rows[-NEWEST:]]
        status = status_of(self.path)
        progress = self._words(families, status.running, status.what)
        fresh = bool(rows) or progress != self.progress
        self.progress = progress
        return fresh

    def _place(self, families: dict[int, Progress]) -> None:
        """Families stand one after the other in the picture, as in tables and certificates."""
        start = 0
        for family, progress in families.items():
            self._starts[family] = start
            start += max(progress.planned, progress.done)

    @property
    def _due(self) -> int:
        """Networks of all families, as far as the plan says; of fresh ones it says nothing."""
        return self.networks * self.families if self.stream == SEARCH else 0

    def _dot(self, row: NewRow) -> Dot:
        gone = row.status == int(Status.DIVERGED) or not math.isfinite(row.score)
        return (self._starts.get(row.family, 0) + row.index, None if gone else row.score, row.status)

    def _words(self, families: dict[int, Progress], running: bool, what: str) -> dict[str, Any]:
        pick = max if self.larger else min
        parts = list(families.values())
        bests = [one.best for one in parts if one.best is not None]
        done = sum(one.done for one in parts)
        planned = max(sum(max(one.planned, one.done) for one in parts), self._due)
        # The latest family tells the speed: the others are done, perhaps by an earlier start.
        going = next((one for one in parts if one.done < one.planned), parts[-1] if parts else None)
        rate = None if going is None else going.rate
        return {
            "running": running,
            "what": what,
            "stream": STREAMS.get(self.stream, ""),
            "done": done,
            "planned": planned,
            "best": pick(bests, default=None),
            "diverged": sum(one.failures for one in parts),
            "rate": rate,
            "remaining": None if rate is None or not running else max(0, planned - done) / rate,
            "finished": (self.path / "certificate.json").exists(),
            "shown": len(self.dots),
            "score": self.score,
            "larger": self.larger,
        }

    def picture(self) -> dict[str, Any]:
        """Everything, for whoever comes new."""
        return {"version": self.version, "dots": self.dots, "newest": self.newest, "progress": self.progress}

    def since(self, version: int, count: int) -> dict[str, Any]:
        """What came after the first `count` dots of a version of the picture."""
        if version != self.version:
            return self.picture()
        return {
            "version": version,
            "from": count,
            "dots": self.dots[count:],
            "newest": self.newest,
            "progress": self.progress,
        }
