"""Faults: what a reader of a run folder does about them. It raises the first one, or collects them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from echobound.errors import DamagedFile, EchoboundError, RunError
from echobound.typed import shortened

Value = TypeVar("Value")
NOTHING = "nothing"


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be: where, what was expected, what is there."""

    part: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.part}: expected {self.expected}, found {self.found}"


class Unusable(RunError):
    """A part of the folder cannot be used; the reason is among the findings."""


class Faults:
    """Where a reader of a run folder reports what is wrong: the first fault is raised, or `collect` keeps all of them.

    Examples
    --------
    >>> faults = Faults(Path("run"), collect=True)
    >>> faults.require("plan.json", "seed", expected=0, found=1)
    >>> print(faults.findings[0])
    plan.json, seed: expected 0, found 1
    >>> Faults(Path("run")).require("plan.json", "seed", expected=0, found=1)
    Traceback (most recent call last):
        ...
    echobound.errors.DamagedFile: run/plan.json is damaged or was changed (seed: 0 follows, 1 is stated): restore it
    from a copy or repeat the run
    """

    def __init__(self, folder: Path, *, collect: bool = False) -> None:
        self.folder, self.collect = folder, collect
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.sensitive: list[str] = []
        self.unconfirmed: list[str] = []

    def report(self, file: str, part: str, expected: Any, found: Any, why: str | None = None) -> None:
        """Report a fault; `why` is the sentence that is raised, if the values do not speak for themselves."""
        if not self.collect:
            why = why or f"{shortened(expected, 80)} follows, {shortened(found, 80)} is stated"
            raise DamagedFile(self.folder / file, part or "content", why)
        place = f"{file}, {part}" if part else file
        self.findings.append(Finding(place, shortened(expected, 300), shortened(found, 300)))

    def require(self, file: str, part: str, *, expected: Any, found: Any, why: str | None = None) -> None:
        """Report a fault unless two values are equal; true is not 1."""
        if expected != found or isinstance(expected, bool) != isinstance(found, bool):
            self.report(file, part, expected, found, why)

    def compare(self, file: str, expected: Mapping[str, Any], found: Mapping[str, Any], inside: str = "") -> None:
        """Report each key that differs, going into nested objects."""
        for key in [*expected, *sorted(set(found) - set(expected))]:
            ours, theirs = expected.get(key, NOTHING), found.get(key, NOTHING)
            part = f"{inside}, {key}" if inside else key
            if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
                self.compare(file, ours, theirs, part)
            else:
                self.require(file, part, expected=ours, found=theirs)

    def attempt(self, file: str, read: Callable[[], Value]) -> Value | None:
        """What `read` returns; when collecting, None if it fails, which is a finding."""
        try:
            return read()
        except EchoboundError as error:
            if not self.collect:
                raise
            self.collect_error(file, error)
        return None

    def collect_error(self, file: str, error: EchoboundError) -> None:
        """Turn an error into a finding."""
        if isinstance(error, Unusable):
            return  # reported where it was found
        if isinstance(error, DamagedFile):
            self.report(file, error.part, "what was written", error.why)
        else:
            self.report(file, "", "a file that can be used", str(error))
