"""What a controller decides at one sample, and what it says about it."""

from __future__ import annotations

from dataclasses import dataclass

from echobound.arrays import Mask, Signal, Vector
from echobound.control.observer import Reading


@dataclass(frozen=True, eq=False)
class Active:
    """What holds the planned inputs back, and where an output bound cannot be kept."""

    low: Mask  # (block, input): at the lower bound
    high: Mask  # (block, input)
    rate: Mask  # (block, input): changing as fast as allowed
    output: Mask  # (step, output): where a model is at or beyond a bound
    slack: Signal  # (step, output): how far the furthest is beyond it, in the output's units

    @property
    def words(self) -> str:
        """In one phrase, for tables."""
        parts = [
            ("lower bound", self.low.any()),
            ("upper bound", self.high.any()),
            ("rate", self.rate.any()),
            ("output bound", self.output.any()),
            ("output beyond its bound", bool((self.slack > 0).any())),
        ]
        return ", ".join(name for name, holds in parts if holds) or "nothing"


@dataclass(frozen=True, eq=False)
class ControlStep:
    """What was decided at one sample, and how."""

    u: Vector  # (manipulated,): what to apply until the next sample
    inputs: Signal  # (step, manipulated): what is planned from this sample on
    outputs: Signal  # (step, output): what is expected for it, at the next samples; of a committee the mean
    cost: float
    residual: float  # of the Karush-Kuhn-Tucker conditions; infinite if not even one program was solved
    converged: bool  # whether that is within the tolerance; otherwise the best feasible inputs found are applied
    iterations: int
    failures: int  # quadratic programs that the solver gave up
    seconds: float  # wall-clock time
    active: Active
    reading: Reading
    notes: tuple[str, ...]  # what was put in place of something unusable
