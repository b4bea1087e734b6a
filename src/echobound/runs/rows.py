"""Rows: the plan of a run folder and the rows of its ledger, each read once and checked."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from echobound.arrays import Rows
from echobound.draws import SEARCH, VERIFICATION
from echobound.errors import EchoboundError, InputError, RunError
from echobound.files import digest, read_json, require_plain
from echobound.kernels import Status
from echobound.plan import DescribedLaw, SettledPlan
from echobound.runs.derivation import by_family, networks_due, search_rows
from echobound.runs.faults import Faults, Unusable
from echobound.runs.keeping import kept_of
from echobound.runs.ledger import Ledger, rows_digest
from echobound.scenario import ranking

FILES = (
    *("plan.json", "data.npz", "ledger.sqlite", "model.npz", "network.npz", "committee.npz", "certificate.json"),
    *("verification.json", "generalisation.json", "assessment.json", "test.npz", "report.html"),
)
NAMED = 5  # rows that are named one by one
T = TypeVar("T")


def part(name: str | Callable[[Any], str]) -> Callable[[Callable[[Any], T]], cached_property[T]]:
    """A part of the folder that is read once; one that cannot be used is reported once, by the name of its file.

    The name may be that of a file that only the reader knows.
    """

    def reader(read: Callable[[Any], T]) -> cached_property[T]:
        def value(self: Any) -> T:
            file = name if isinstance(name, str) else name(self)
            if read.__name__ in self._unusable:
                raise Unusable(f"{file} cannot be used")
            try:
                return read(self)
            except EchoboundError as error:
                if not self.faults.collect:
                    raise
                self._unusable.add(read.__name__)
                self.faults.collect_error(file, error)
                raise Unusable(f"{file} cannot be used") from None

        value.__doc__ = read.__doc__
        return cached_property(value)

    return reader


class RowReader:
    """The plan and the rows of a run folder; without `faults`, the first fault is raised."""

    def __init__(self, path: str | Path, faults: Faults | None = None) -> None:
        self.path = Path(path)
        self.faults = Faults(self.path) if faults is None else faults
        self.stored = True  # False for a run that is kept in memory alone
        self.complete = False  # whether the search has a row for each network that is due
        self._ledger: Ledger | None = None  # while it is open for writing
        self._unusable: set[str] = set()
        self._read: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {}  # JSON files, and what they looked like
        self.verified = 0  # fresh networks of each family in verifications that have ended; known once `fresh` is read

    def has(self, file: str) -> bool:
        """Whether a file is there."""
        return self.stored and os.path.lexists(self.path / file)  # also a link that leads nowhere: it is refused

    def json(self, file: str) -> dict[str, Any]:
        """A JSON file as it stands; it is read again only if it is another one by now."""
        path = self.path / file
        try:
            now = path.lstat()
        except OSError:
            return read_json(path)  # which says what is wrong
        stamp = (now.st_ino, now.st_size, now.st_mtime_ns)
        if file not in self._read or self._read[file][0] != stamp:
            self._read[file] = (stamp, read_json(path))
        return self._read[file][1]

    @part("plan.json")
    def plan(self) -> SettledPlan:
        """What was planned."""
        if not self.has("plan.json"):
            raise RunError(f"{self.path} is not a run folder (it has no plan.json): give the folder of a run")
        require_plain(*(self.path / file for file in FILES))  # before any of them is read
        content = self.json("plan.json")
        expected = digest({name: value for name, value in content.items() if name != "digest"})
        self.faults.require("plan.json", "digest", expected=expected, found=content.get("digest", "nothing"))
        try:
            return SettledPlan.from_dict({**content, "digest": expected})
        except InputError as error:
            self.faults.report("plan.json", "", "a plan that could have been settled", str(error), why=str(error))
            raise Unusable("plan.json cannot be used") from None

    @property
    def stores_data(self) -> bool:
        """Whether data and models are in the folder; any estimator's are not, since they may be anything."""
        return not isinstance(self.plan.law[0], DescribedLaw)

    @part("certificate.json")
    def stated(self) -> dict[str, Any]:
        """The certificate as it stands in its file, not checked."""
        return self.json("certificate.json")

    @part("ledger.sqlite")
    def _rows(self) -> dict[int, Rows]:
        """All rows by stream, family after family, in the order of their index."""
        if self._ledger is not None:
            return self._read_rows(self._ledger)
        with Ledger(self.path / "ledger.sqlite", self.plan.digest, self.plan.scores, write=False) as ledger:
            return self._read_rows(ledger)

    def _read_rows(self, ledger: Ledger) -> dict[int, Rows]:
        streams, families = (SEARCH, VERIFICATION), [family.number for family in self.plan.families]
        for stream, family in sorted(set(ledger.counts()) - {(s, f) for s in streams for f in families}):
            found = f"some of stream {stream}, family {family}"
            self.faults.report("ledger.sqlite", "", "rows of search and verification", found)
        return {s: np.concatenate([ledger.rows(s, family) for family in families]) for s in streams}

    def rows(self, stream: int = SEARCH) -> Rows:
        """Rows of a stream, family after family, in the order of their index."""
        if self._ledger is not None:  # what is being written is read anew
            self.__dict__.pop("_rows", None)
        return self._rows[stream]

    @part("rows of the search")
    def search(self) -> Rows:
        """The rows that the certificate is about, family after family."""
        rows, plan = self.rows(SEARCH), self.plan
        stated = None
        if plan.at_will and self.has("certificate.json"):  # any number is as good, so it is the certificate's own
            networks = (self.faults.attempt("certificate.json", lambda: self.stated) or {}).get("networks")
            stated = networks if isinstance(networks, int) else None
        complete = [self._require_complete(number, part, stated) for number, part in enumerate(by_family(plan, rows))]
        found = search_rows(plan, rows[rows["index"] >= 0], stated)
        self._require_status("search", found)
        self.complete = all(complete)
        return found

    def _require_complete(self, number: int, rows: Rows, stated: int | None) -> bool:
        """Whether there is a row for each network of a family; too many rows are a fault as well."""
        plan = self.plan
        due = networks_due(plan, rows["scores"][:, 0])
        due = stated or due if plan.at_will else due
        # Patience may find out late that it had enough, and a search stopped at will may be resumed: both may leave
        # more rows than the certificate is about.
        too_many = len(rows) > due and plan.stop is None
        missing = np.setdiff1d(np.arange(due), rows["index"])
        if too_many or len(missing):
            of = f" of {plan.families[number].name}" if len(plan.families) > 1 else ""
            found = f"{len(rows)} rows" + (f", none of network {missing[0]}" if len(missing) else "")
            expected, why = f"one for each of {due} networks{of}", f"{found}, but {due} networks{of} are due"
            self.faults.report("ledger.sqlite", "rows of the search", expected, found, why)
        return not len(missing)

    def _require_status(self, name: str, rows: Rows) -> None:
        diverged = rows["status"] == Status.DIVERGED
        wrong = ~np.isin(rows["status"], [int(status) for status in Status])
        wrong |= diverged & np.isfinite(rows["scores"]).any(axis=1)
        for row in rows[wrong][:NAMED]:
            found = f"status {row['status']}, score {row['scores'][0]:.9g}"
            network = f"network {row['index']} of the {name}"
            self.faults.report("ledger.sqlite", network, "no score where it diverged", found)

    @part("fresh rows")
    def fresh(self) -> Rows:
        """The fresh rows of all verifications, family after family; there are as many of each family."""
        rows = self.rows(VERIFICATION)
        parts = by_family(self.plan, rows)
        if not self.has("verification.json"):
            if len(rows):
                note = f"{len(rows)} fresh networks are in the ledger, but no verification counts them"
                self.faults.notes.append(note)
            return rows[:0]
        stored = self.faults.attempt("verification.json", lambda: self.json("verification.json")) or {}
        count, most = stored.get("fresh"), min(len(part) for part in parts)
        if not isinstance(count, int) or not 0 <= count <= most:
            why = f"{count}, but the ledger has {most} fresh rows"
            self.faults.report("verification.json", "fresh", f"at most the {most} fresh rows of the ledger", count, why)
            count = most
        found = np.concatenate([part[:count] for part in parts])
        if (found["index"] != np.tile(np.arange(count), len(parts))).any():
            others = f"others, up to {found['index'].max()}"
            why = f"networks 0 to {count - 1} were counted, but there are {others}"
            self.faults.report("ledger.sqlite", "fresh rows", f"networks 0 to {count - 1}", others, why)
        why = "the fresh rows of the ledger are not those that it counts"
        seal, found_seal = rows_digest(found), stored.pop("rows", "nothing")
        self.faults.require("verification.json", "rows", expected=seal, found=found_seal, why=why)
        before = stored.pop("before", count)  # there until the verification that drew the last of them has ended
        if not isinstance(before, int) or isinstance(before, bool) or not 0 <= before <= count:
            self.faults.report("verification.json", "before", f"a number up to {count}", before)
            before = count
        self.verified = before
        self.faults.compare("verification.json", {"fresh": count}, stored | {"fresh": count})
        if len(rows) > len(found):
            more = len(rows) - len(found)
            self.faults.notes.append(f"{more} more fresh networks are in the ledger than verifications count")
        self._require_status("verification", found)
        return found

    def ranked(self, count: int) -> list[int]:
        """Positions of the best networks in the search, the best first; diverged ones are not among them."""
        return ranking(self.search["scores"][:, 0], self.plan.measures[0].direction, count)

    @property
    def kept(self) -> list[int]:
        """Positions of the networks that are kept as models, the pick first."""
        return kept_of(self.plan, self.search)
