"""Journal: how often the same data were searched, kept beside the run folders.

Whoever searches the same data again, with more networks or another seed, until content with the outcome, looks at them
more than once, and the most pleasing certificate is wrong more often than its beta says. So every search that is kept
in a folder is entered, before its first draw, in a journal in the parent of that folder. Each entry has the digest of
the one before, so that none can be taken out or changed unnoticed. The same plan again is the same search.

Search number k certifies at a share of 6 / (pi^2 k^2) of its beta an epsilon that holds in all searches on these data
together, however many there are: these shares add up to 1.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from echobound.data.experiments import Experiments
from echobound.errors import DamagedFile
from echobound.files import digest, require_plain
from echobound.plan import SettledPlan
from echobound.scenario import Certificate, epsilon_exact
from echobound.scenario.words import confidence, upward

FILE = "searches.jsonl"
BEGINNING = b'{"data": '  # of an entry
LARGEST = 16 * 2**20  # bytes: what is larger is no journal of ours


@dataclass(frozen=True)
class Look:
    """One search among those on the same data.

    Examples
    --------
    >>> Look(number=3, beta=1e-7, epsilon=0.05).words
    'This is search number 3 on these data. At its share of beta it certifies epsilon = 0.05, which holds in all
    searches on them together with confidence 1 - 1e-07, however many there are; the certificate holds by itself.'
    """

    number: int  # from 1
    beta: float
    epsilon: float  # what it certifies at its share of beta

    @property
    def words(self) -> str:
        """What to say of a search that is not the first."""
        return (
            f"This is search number {self.number} on these data. At its share of beta it certifies epsilon ="
            f" {upward(self.epsilon)}, which holds in all searches on them together with confidence"
            f" 1 - {confidence(self.beta)}, however many there are; the certificate holds by itself."
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON, for the provenance of a certificate."""
        return {"number": self.number, "beta": self.beta, "epsilon": self.epsilon, "words": self.words}


def share_of(number: int) -> float:
    """The share of beta that search number k may spend.

    Examples
    --------
    >>> round(share_of(1), 6), bool(sum(map(share_of, range(1, 100_000))) < 1)
    (0.607927, True)
    """
    return 6 / (math.pi * number) ** 2


def data_key(experiments: Experiments) -> str:
    """What data are called in a journal: their records, in whatever order and role, without those for tests."""
    return digest(sorted(record.digest for role, record in experiments.roles if role != "test"))


class Journal:
    """The searches of all run folders in one parent."""

    def __init__(self, parent: Path) -> None:
        self.path = parent / FILE

    def entries(self) -> list[dict[str, Any]]:
        """All entries up to the first that does not follow from the one before."""
        return list(_chained(self._lines() or []))

    @property
    def intact(self) -> bool:
        """Whether every line follows from the one before."""
        lines = self._lines()
        return lines is not None and len(self.entries()) == len(lines)

    def _lines(self) -> list[str] | None:
        """The lines of the journal, none where there is no journal yet; None if this is no file that could be one."""
        try:
            require_plain(self.path)  # beside a folder from somebody else there may be a link, or a pipe to wait at
            if self.path.stat().st_size > LARGEST:
                return None
            return self.path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError, DamagedFile):
            return None

    def number(self, data: str, plan: str) -> int | None:
        """The number of a plan among the different ones that searched these data; None if it is not entered."""
        plans = list(dict.fromkeys(entry["plan"] for entry in self.entries() if entry.get("data") == data))
        return plans.index(plan) + 1 if plan in plans else None

    def enter(self, data: str, plan: SettledPlan, run: str) -> int | None:
        """Enter a search before its first draw, unless it is there; its number, or None where nothing can be kept."""
        try:
            with _alone(self.path) as file:
                known = self.number(data, plan.digest)
                if known is not None:
                    return known
                _mend_end(file)
                if not self.intact:
                    _warn(f"{self.path} was changed, or holds something else")
                    return None
                entries = self.entries()
                entry = {"data": data, "plan": plan.digest, "run": run, "seed": plan.seed, "beta": plan.beta}
                entry |= {"networks": plan.networks, "previous": entries[-1]["digest"] if entries else ""}
                file.write(json.dumps({**entry, "digest": digest(entry)}) + "\n")
                file.flush()
                os.fsync(file.fileno())
            return self.number(data, plan.digest)
        except DamagedFile as error:
            _warn(str(error))
        except OSError:  # a parent where we may not write
            pass
        return None


def look_of(certificate: Certificate, plan: SettledPlan, number: int) -> Look:
    """What a certificate is worth as search number k on its data."""
    spent = plan.beta * share_of(number)
    if plan.stop is not None and plan.at_will:
        epsilon = replace(plan.stop, beta=spent).epsilon(certificate.networks)
    else:
        epsilon = epsilon_exact(certificate.each, max(spent, math.ulp(0.0)))
    return Look(number, plan.beta, epsilon)


def _chained(lines: list[str]) -> Iterator[dict[str, Any]]:
    previous = ""
    for line in lines:
        try:
            entry = json.loads(line)
            stored = entry.pop("digest")
            names = {"data": str, "plan": str, "previous": str}
            if not all(isinstance(entry[name], kind) for name, kind in names.items()):
                return
            if entry["previous"] != previous or digest(entry) != stored:
                return
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return
        previous = stored
        yield {**entry, "digest": stored}


@contextmanager
def _alone(path: Path) -> Iterator[Any]:
    """The journal, open to append, while nobody else appends."""
    # No link is followed: it might lead to any file of ours.
    require_plain(path)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags, 0o666), "r+", encoding="utf-8") as file:
        try:
            import fcntl
        except ImportError:  # elsewhere two searches that start in the same instant may cut the chain, which shows
            yield file
            return
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _mend_end(file: Any) -> None:
    """Remove the beginning of an entry whose writer was killed, or found the disk full: nothing could follow it."""
    raw = file.buffer
    if raw.seek(0, os.SEEK_END) > LARGEST:
        return
    raw.seek(0)
    whole, newline, last = raw.read().rpartition(b"\n")
    try:
        json.loads(last)
        raw.write(b"\n")  # by an editor that ends no line
    except ValueError:
        if last.startswith(BEGINNING[: len(last)]):  # ours, and nothing that only has this name
            raw.truncate(len(whole + newline))


def _warn(why: str) -> None:
    warnings.warn(
        f"this search is not counted among those on the same data ({why}): put the journal in order, or remove it to"
        " begin another",
        stacklevel=4,
    )
