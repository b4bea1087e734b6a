"""Tail: the rows of a ledger as they arrive, for those who look on while another process writes."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from echobound.draws import SEARCH
from echobound.runs.database import connect, require_schema, tables_of, time_limit
from echobound.runs.ledger import PROGRESS, TABLES, _progress, _sqlite_errors
from echobound.runs.progress import Progress

MOST = 20_000  # rows taken at one look: whoever comes late to a long ledger catches up in a few


@dataclass(frozen=True, slots=True)
class NewRow:
    """One row of the ledger, as much of it as a picture needs."""

    family: int
    index: int
    score: float  # the first one, which selects
    status: int


class LedgerTail:
    """Rows of a stream that were not seen before, each once, and the progress of each family.

    Rows are written in batches that finish in any order; only what is beyond the first gap has to be remembered, so
    that the memory does not grow with the ledger. Every look opens the file anew and closes it: a reader that stayed
    would keep the writer from leaving one plain file behind.

    Examples
    --------
    >>> LedgerTail(Path("no such folder/ledger.sqlite")).look()
    ([], {})
    """

    def __init__(self, path: Path, stream: int = SEARCH) -> None:
        self.path, self.stream = path, stream
        self.seen = 0
        self._next: dict[int, int] = {}  # by family: every index below was seen
        self._beyond: dict[int, set[int]] = {}  # seen beyond the first gap

    def look(self, most: int = MOST) -> tuple[list[NewRow], dict[int, Progress]]:
        """Rows that are new since the last look, at most so many, and the progress of each family."""
        if not self.path.exists():
            return [], {}
        with _sqlite_errors(self.path), closing(connect(self.path, write=False)) as db, time_limit(db, self.path):
            if not {"rows", "progress"} <= tables_of(db):
                return [], {}
            require_schema(db, {"progress": f"CREATE TABLE progress {TABLES['progress']}"}, self.path, others=True)
            query = f"SELECT family, {PROGRESS} FROM progress WHERE stream = ? ORDER BY family"
            progress = {family: _progress(rest) for family, *rest in db.execute(query, (self.stream,))}
            rows = list[NewRow]()
            for family in progress:
                start, beyond = self._next.get(family, 0), self._beyond.setdefault(family, set())
                query = (
                    "SELECT number, score_0, status FROM rows WHERE stream = ? AND family = ? AND number >= ?"
                    " ORDER BY number LIMIT ?"
                )
                found = db.execute(query, (self.stream, family, start, most + len(beyond)))
                rows += [NewRow(family, n, score, int(status)) for n, score, status in found if n not in beyond]
        for row in rows:
            self._beyond[row.family].add(row.index)
        for family, beyond in self._beyond.items():
            start = self._next.get(family, 0)
            while start in beyond:
                beyond.discard(start)
                start += 1
            self._next[family] = start
        self.seen += len(rows)
        return rows, progress
