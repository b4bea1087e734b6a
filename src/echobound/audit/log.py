"""Log: what comes up in the course of an audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from echobound.audit.findings import Finding
from echobound.errors import DamagedFile, EchoboundError
from echobound.typed import shortened

__all__ = ["Log"]

Value = TypeVar("Value")


@dataclass
class Log:
    """What came up so far."""

    findings: list[Finding] = field(default_factory=list)
    sensitive: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def find(self, part: str, expected: Any, found: Any) -> None:
        """Add a finding."""
        self.findings.append(Finding(part, shortened(expected, 300), shortened(found, 300)))

    def attempt(self, name: str, read: Callable[[], Value]) -> Value | None:
        """What `read` returns; None if it fails, which is a finding."""
        try:
            return read()
        except DamagedFile as error:
            self.find(f"{name}, {error.part}", "what was written", error.why)
        except EchoboundError as error:
            self.find(name, "a file that can be used", str(error))
        return None

    def compare(self, name: str, expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """A finding for each key that differs, one level down where both sides have objects."""
        for key in sorted(set(expected) | set(found)):
            ours, theirs = expected.get(key, "nothing"), found.get(key, "nothing")
            if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
                self.compare(f"{name}, {key}", ours, theirs)
            elif ours != theirs or isinstance(ours, bool) != isinstance(theirs, bool):
                self.find(f"{name}, {key}", ours, theirs)
