"""RenewalStep: networks that were drawn before, for other data."""

from __future__ import annotations

from dataclasses import dataclass

from echobound.errors import InputError


@dataclass(frozen=True, kw_only=True)
class RenewalStep:
    """Where the networks of a renewal come from."""

    plan: str  # digest of the plan by which they were first drawn
    update: int  # which renewal this is, from 1 on
    updates: int  # how many are planned

    def __post_init__(self) -> None:
        if self.updates < 1:
            raise InputError(f"at least one renewal must be planned, got {self.updates}")
        if not 0 <= self.update <= self.updates:  # 0 before the first
            raise InputError(
                f"{self.updates} renewals were planned, and this would be number {self.update}: draw new networks with"
                " another seed and certify them"
            )
