"""Journal: how often the same data were searched, kept beside the run folders.

Whoever searches the same data again, with more networks or another seed, until content with the outcome, looks at them
more than once, and the most pleasing certificate is wrong more often than its beta says. So every search that is kept
in a folder is entered, before its first draw, in a journal in the parent of that folder. Each entry has the digest of
the one before, so that none can be taken out or changed unnoticed; run folders that it does not list, because it was
deleted or cut short, are entered again from what stands in them. The same plan again is the same search.

Search number k certifies at a share of 6 / (pi^2 k^2) of its beta an epsilon that holds in all searches on these data
together, however many there are: these shares add up to 1. That needs a seed of its own: networks of an earlier seed
were seen, and somebody who settles their number after that knows where their best stands among them (he misses 0.38
instead of 0.05 by the certificate alone, 0.13 by all of them at their shares).
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from echobound.data.experiments import Experiments
from echobound.errors import DamagedFile, EchoboundError
from echobound.files import digest, read_json, require_plain
from echobound.plan import SettledPlan
from echobound.scenario import Certificate, epsilon_exact
from echobound.scenario.words import confidence, upward
from echobound.typed import from_json

if TYPE_CHECKING:
    from echobound.runs.folder import RunFolder

FILE = "searches.jsonl"
BEGINNING = b'{"data": '  # of an entry
LARGEST = 16 * 2**20  # bytes: what is larger is no journal of ours
MOST_FOLDERS = 1000  # run folders that are looked at for searches that are not entered


@dataclass(frozen=True)
class Standing:
    """Where a search stands among those on the same data."""

    number: int  # from 1
    of: int  # how many there are so far
    seed_of: int | None = None  # number of an earlier search with the same seed
    intact: bool = True  # whether nothing in the journal was changed


@dataclass(frozen=True)
class Look:
    """What one search among those on the same data is worth.

    Examples
    --------
    >>> Look(Standing(3, of=3), beta=1e-7, epsilon=0.05).words
    'This is search number 3 of 3 on these data. At its share of beta it certifies epsilon = 0.05, which holds in all
    searches on them together with confidence 1 - 1e-07, however many there are; the certificate holds by itself.'
    """

    standing: Standing
    beta: float
    epsilon: float  # what it certifies at its share of beta

    @property
    def words(self) -> str:
        """What to say of it; nothing of the only one."""
        where = self.standing
        changed = "" if where.intact else "The journal of searches was changed, so there may have been more. "
        if where.of == 1:
            return changed.rstrip()
        search = f"{changed}This is search number {where.number} of {where.of} on these data"
        if where.seed_of is not None:
            return (
                f"{search}, with the seed of number {where.seed_of}: its networks are made from the same random words."
                " The certificate holds only if this plan was settled before a score of that search was seen; search"
                " with another seed if it was not."
            )
        return (
            f"{search}. At its share of beta it certifies epsilon ="
            f" {upward(self.epsilon)}, which holds in all searches on them together with confidence"
            f" 1 - {confidence(self.beta)}, however many there are; the certificate holds by itself."
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON; `epsilon` is null where the seed was used before."""
        epsilon = self.epsilon if self.standing.seed_of is None else None
        return {**asdict(self.standing), "beta": self.beta, "epsilon": epsilon, "words": self.words}


def share_of(number: int) -> float:
    """The share of beta that search number k may spend.

    Examples
    --------
    >>> round(share_of(1), 6), bool(sum(map(share_of, range(1, 100_000))) < 1)
    (0.607927, True)
    """
    return 6 / (math.pi * number) ** 2


def data_key(experiments: Experiments) -> str:
    """What data are called in a journal: their samples, without those for tests, however they are cut and named.

    Else whoever cuts them elsewhere, or names a channel otherwise, would search other data.
    """
    return experiments.samples


class Journal:
    """The searches of all run folders in one parent."""

    def __init__(self, parent: Path) -> None:
        self.path = parent / FILE

    def entries(self) -> list[dict[str, Any]]:
        """All entries that can be read, also those that do not follow from the one before: see `intact`."""
        return [entry for line in self._lines() or [] if (entry := _entry(line)) is not None]

    @property
    def intact(self) -> bool:
        """Whether every line is an entry that follows from the one before."""
        lines, previous = self._lines(), ""
        for line in lines or []:
            entry = _entry(line)
            if entry is None or entry["previous"] != previous:
                return False
            previous = entry["digest"]
            if digest({name: value for name, value in entry.items() if name != "digest"}) != previous:
                return False
        return lines is not None

    def _lines(self) -> list[str] | None:
        """The lines of the journal, none where there is no journal yet; None if this is no file that could be one."""
        try:
            require_plain(self.path)  # beside a folder from somebody else there may be a link, or a pipe to wait at
            if self.path.stat().st_size > LARGEST:
                return None
            return self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        except (OSError, DamagedFile):
            return None

    def number(self, data: str, plan: str) -> int | None:
        """The number of a plan among the different ones that searched these data; None if it is not entered."""
        found = self.standing(data, plan)
        return None if found is None else found.number

    def standing(self, data: str, plan: str) -> Standing | None:
        """Where a plan stands among the different ones that searched these data; None if it is not entered."""
        seeds: dict[str, Any] = {}
        for entry in self.entries():
            if entry["data"] == data:
                seeds.setdefault(entry["plan"], entry.get("seed"))
        if plan not in seeds:
            return None
        number = list(seeds).index(plan) + 1
        before = list(seeds.values())[: number - 1]
        same = before.index(seeds[plan]) + 1 if seeds[plan] in before else None
        return Standing(number, len(seeds), same, self.intact)

    def of_networks(self, first: str) -> Iterator[dict[str, Any]]:
        """Entries about a plan, by its digest, and about the renewals of its networks."""
        for entry in self.entries():
            step = entry.get("renewal")
            if entry["plan"] == first or (isinstance(step, dict) and step.get("plan") == first):
                yield entry

    def enter(self, data: str, plan: SettledPlan, run: str) -> Standing | None:
        """Enter a search before its first draw, unless it is there; where it stands, None where nothing can be kept."""
        try:
            with _alone(self.path) as file:
                if self.standing(data, plan.digest) is None:
                    _mend_end(file)
                    entries, lines = self.entries(), self._lines()
                    if lines is None or (lines and not entries):
                        _warn(f"{self.path} holds something else")
                        return None
                    for found in (*_unlisted(self.path.parent, data, plan, entries), _about(data, plan.to_dict(), run)):
                        found["previous"] = entries[-1]["digest"] if entries else ""
                        entries.append({**found, "digest": digest(found)})
                        file.write(json.dumps(entries[-1]) + "\n")
                    file.flush()
                    os.fsync(file.fileno())
            return self.standing(data, plan.digest)
        except DamagedFile as error:
            _warn(str(error))
        except OSError:  # a parent where we may not write
            pass
        return None


def _about(data: str, plan: dict[str, Any], run: str) -> dict[str, Any]:
    """What an entry says of a plan, as it is stored."""
    told = {"data": data, "plan": plan["digest"], "run": run}
    told |= {name: plan.get(name) for name in ("seed", "beta", "networks")}
    return told | ({"renewal": plan["renewal"]} if plan.get("renewal") else {})


def _unlisted(parent: Path, data: str, plan: SettledPlan, entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Searches on these data whose folders stand here, but which are not entered; the oldest first."""
    listed, found = {entry["plan"] for entry in entries} | {plan.digest}, []
    for path in islice(parent.glob("*/plan.json"), MOST_FOLDERS):
        try:
            if path.is_symlink() or path.parent.is_symlink():
                continue
            other = read_json(path)
            if other["digest"] in listed:
                continue
            told = path.with_name("certificate.json")
            search = read_json(told)["provenance"].get("search", {}) if told.is_file() else {}
            # The data of an unfinished run are known by their digest with roles alone.
            if data == search.get("data") or other["data"] == plan.data:
                found.append((path.stat().st_mtime_ns, _about(data, other, path.parent.name)))
        except (EchoboundError, OSError, KeyError, TypeError, AttributeError):
            continue
    return (about for _, about in sorted(found, key=lambda one: one[0]))


def look_at(folder: RunFolder) -> Look | None:
    """What the journal beside a finished run says of it now; what was known when it was made if it is not listed."""
    plan, certificate = folder.plan, folder.certificate
    data = data_key(folder.experiments) if folder.stores_data else plan.data
    found = Journal(folder.path.absolute().parent).standing(data, plan.digest)
    known = certificate.provenance.get("search", {})
    try:
        before = from_json(Standing, {name: known[name] for name in Standing.__dataclass_fields__})
    except (EchoboundError, KeyError, TypeError):
        before = None
    standing = _worse(found, before)
    return None if standing is None else look_of(certificate, plan, standing)


def _worse(found: Standing | None, before: Standing | None) -> Standing | None:
    """What a journal says now and what was known when the run was made: that which promises less.

    A journal that was made again from the folders may have them in another order.
    """
    if found is None or before is None:
        return found or before
    later = max(found.number, before.number), max(found.of, before.of)
    return Standing(*later, found.seed_of or before.seed_of, found.intact and before.intact)


def look_of(certificate: Certificate, plan: SettledPlan, standing: Standing) -> Look:
    """What a certificate is worth as search number k on its data."""
    spent = plan.beta * share_of(standing.number)
    if plan.stop is not None and plan.at_will:
        epsilon = replace(plan.stop, beta=spent).epsilon(certificate.networks)
    else:
        epsilon = epsilon_exact(certificate.each, max(spent, math.ulp(0.0)))
    return Look(standing, plan.beta, epsilon)


def with_search(certificate: Certificate, plan: SettledPlan, standing: Standing | None, data: str) -> Certificate:
    """The certificate, whose provenance says which search on its data it is."""
    if standing is None:
        return certificate
    search = look_of(certificate, plan, standing).to_dict() | {"data": data}
    return replace(certificate, provenance={**certificate.provenance, "search": search})


def _entry(line: str) -> dict[str, Any] | None:
    """An entry of the journal; None for anything else."""
    try:
        entry = json.loads(line)
        right = all(isinstance(entry[name], str) for name in ("data", "plan", "previous", "digest"))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return entry if right and isinstance(entry, dict) else None


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
