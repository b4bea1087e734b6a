"""Audit: what was found, what is only rounding, and how probable it was to find more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from echobound.runs.faults import Finding
from echobound.scenario.words import noun

SHARES = (0.01, 0.05, 0.1)


@dataclass(frozen=True)
class Audit:
    """What an audit came to.

    Parameters
    ----------
    run
        The run folder.
    findings
        What is not as it should be; empty if nothing was found.
    sensitive
        Differences that rounding explains, a sentence each. They are no sign of tampering.
    unconfirmed
        Differences that can be told neither from rounding nor from forgery, a sentence each: the numbers are of runs
        that rounding changes visibly, but not to what is recorded.
    notes
        What else an auditor should know.
    claimed, others
        Networks that carry a claim, which are all trained again, and all others.
    sampled
        How many of the others were trained again.
    seed
        The auditor's randomness, which chose them.
    members
        As in the plan: where it is more than 1, what is counted here are committees of so many networks.
    """

    run: Path
    findings: tuple[Finding, ...]
    sensitive: tuple[str, ...]
    notes: tuple[str, ...]
    claimed: int
    others: int
    sampled: int
    seed: int
    members: int = 1
    unconfirmed: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing was found, and nothing is left that cannot be confirmed."""
        return self.outcome == "passed"

    @property
    def outcome(self) -> Literal["passed", "cannot be confirmed", "found"]:
        """Passed, found something, or neither: some numbers cannot be confirmed, and nothing else was found."""
        if self.findings:
            return "found"
        return "cannot be confirmed" if self.unconfirmed else "passed"

    @property
    def retrained(self) -> int:
        """Networks that were trained again."""
        return self.claimed + self.sampled

    @property
    def detection(self) -> list[dict[str, Any]]:
        """For some shares of forged rows among the others: the probability that this sample contains one.

        A forged row that is trained again is a finding, or cannot be confirmed; it passes only if it was moved no
        further than rounding itself may move it.
        """
        forged = {share: math.ceil(share * self.others) for share in SHARES} if self.others else {}
        found = {share: detection(self.others, self.sampled, count) for share, count in forged.items()}
        return [{"share": share, "forged": forged[share], "probability": found[share]} for share in forged]

    @property
    def statement(self) -> str:
        """The outcome in words."""
        if self.findings:
            count = len(self.findings)
            return f"{count} finding{'s' * (count > 1)}: the certificate does not follow from this run as it is."
        if self.unconfirmed:
            count = len(self.unconfirmed)
            return (
                f"{count} number{'s' * (count > 1)} cannot be confirmed: rounding changes these runs visibly, but not"
                " to what is recorded. This is neither a confirmation nor a sign of tampering."
            )
        return (
            f"Nothing was found. All files of the run and every bound fit together, and {self.retrained} of"
            f" {self.claimed + self.others} {noun(self.members).many} were drawn and trained again."
        )

    def to_dict(self) -> dict[str, Any]:
        """The audit as JSON."""
        return {
            "run": str(self.run),
            "passed": self.passed,
            "statement": self.statement,
            "findings": [dict(vars(finding)) for finding in self.findings],
            "outcome": self.outcome,
            "sensitive": list(self.sensitive),
            "unconfirmed": list(self.unconfirmed),
            "notes": list(self.notes),
            "claimed": self.claimed,
            "others": self.others,
            "retrained": self.retrained,
            "seed": self.seed,
            "detection": self.detection,
        }


def detection(rows: int, sample: int, forged: int) -> float:
    """Probability that a sample without replacement holds at least one of the forged rows.

    Examples
    --------
    >>> round(detection(rows=600, sample=20, forged=60), 4), detection(10, 10, 1)
    (0.8827, 1.0)
    """
    return 1.0 - math.comb(rows - forged, sample) / math.comb(rows, sample)
