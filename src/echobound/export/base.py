"""What every target of an export shares: what is exported, what comes out, and the check against the model.

A target is a file in this folder with a `Target`: `make` makes its files, `run` runs what was written over inputs. It
registers itself in `registry.py`; the command line, `export_model` and the contract test know no target by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from echobound.arrays import Signal
from echobound.errors import InputError
from echobound.export.card import Card
from echobound.network import Stepper
from echobound.network.equations import Equations

PRECISIONS = ("double", "float")


@dataclass(frozen=True, eq=False)
class Job:
    """What is exported: the model, its step, its card; and how."""

    model: Any
    stepper: Stepper
    card: Card
    precision: str = "double"
    fmi: int = 3


class Target(ABC):
    """One kind of export.

    Attributes
    ----------
    name
        As it is asked for.
    title
        What it is, for people.
    suffix
        What its file ends in, the main one if there are several.
    folder
        Whether its files are written into a folder of their own.
    precisions
        In which precisions it can compute.
    leaves_out_diverged
        Whether its median leaves out members that have diverged, as a committee does.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    suffix: ClassVar[str]
    folder: ClassVar[bool] = False
    precisions: ClassVar[tuple[str, ...]] = ("double",)
    leaves_out_diverged: ClassVar[bool] = True

    @abstractmethod
    def make(self, job: Job, path: Path) -> dict[Path, bytes]:
        """The files of an export to a path, the first one first; nothing is written here."""

    @abstractmethod
    def run(self, job: Job, path: Path, u: Signal, initial: Signal | None) -> Signal:
        """Run what was written in free run over inputs, after measured outputs or from the training mean.

        It returns the outputs from sample ``len(initial)`` on. What it needs and does not find (a compiler, a package)
        is said in one sentence.
        """

    def require_runner(self) -> None:  # noqa: B027, most need nothing
        """Say in one sentence what `run` needs beside what `make` needs, if it is not there."""

    def require(self, job: Job, path: Path) -> None:
        """Refuse in one sentence what the target cannot express, and a path that it cannot be written to."""
        if self.folder and (path.suffix.lower() == self.suffix or path.is_file()):
            raise InputError(f"the target {self.name} writes several files: give a folder for them, not {path}")
        if not self.folder and path.suffix.lower() != self.suffix:
            raise InputError(f"the target {self.name} writes a file that ends in {self.suffix}: got {path}")
        if job.precision not in self.precisions:
            raise InputError(
                f"the target {self.name} computes in {' or '.join(self.precisions)} precision, not in {job.precision}:"
                " leave out the precision"
            )
        members = job.stepper.equations
        if len(members) > 1 and not self.leaves_out_diverged and any(may_diverge(one) for one in members):
            raise InputError(
                f"the target {self.name} cannot leave out a member that diverges, and this committee has members that"
                " may: they feed back outputs without limits; export the picked network instead, or identify with a law"
                " that clips"
            )


@dataclass(frozen=True, eq=False)
class Check:
    """How far what was exported is from the model."""

    largest_difference: float  # of an output, relative to the range of that output in the model's own run
    samples: int
    runs: tuple[str, ...]  # how each of the runs was started

    @property
    def statement(self) -> str:
        """The result in words."""
        return (
            f"The largest difference from the model is {self.largest_difference:.2g} of the range of an output, over"
            f" {self.samples} samples in free run ({' and '.join(self.runs)})."
        )


@dataclass(frozen=True, eq=False)
class Export:
    """What was written, and a way to check it."""

    target: Target
    job: Job
    path: Path
    files: tuple[Path, ...]

    @property
    def card(self) -> Card:
        """What the files say about the model."""
        return self.job.card

    def check(self, u: Signal | None = None, samples: int = 500) -> Check:
        """Run what was exported against the model, from the training mean and after measured outputs.

        Parameters
        ----------
        u
            Inputs ``(time, input)``; steps through the range of the training inputs if not given.
        samples
            How many samples of those.
        """
        inputs = excitation(self.job, samples) if u is None else np.asarray(u, dtype=np.float64)
        inputs = inputs.reshape(-1, self.job.stepper.inputs)
        free = self.job.model.simulate(inputs).y
        initial = measured_like(free, min(self.job.card.washout, len(inputs) // 2))
        runs: dict[str, Signal | None] = {"from the training mean": None}
        if len(initial):
            runs[f"after {len(initial)} measured outputs"] = initial
        largest, count = 0.0, 0
        for given in runs.values():
            want = self.job.model.simulate(inputs, initial=given).y
            got = self.target.run(self.job, self.path, inputs, given)
            largest = max(largest, difference(got, want))
            count += len(want)
        return Check(largest, count, tuple(runs))


def measured_like(free: Signal, warm: int) -> Signal:
    """Outputs of a plant that is near a model: its own free run, disturbed, so that warming up makes a difference.

    As many as are asked for, at least one, and only as long as the free run is finite.

    Examples
    --------
    >>> measured_like(np.array([[1.0], [2.0], [np.nan]]), 3).shape
    (2, 1)
    """
    sane = free[: finite_rows(free)]
    given = sane[: max(warm, 1)]
    return given + 0.05 * np.sin(np.arange(len(given)))[:, None] * (np.ptp(sane, axis=0) if len(sane) else 0.0)


def finite_rows(signal: Signal) -> int:
    """How many rows there are before the first that is not finite."""
    good = np.isfinite(signal).all(axis=1)
    return len(signal) if good.all() else int(np.argmin(good))


def may_diverge(one: Equations) -> bool:
    """Whether outputs may run to infinity: they come back into outputs linearly, and nothing clips them.

    What passes a tanh is bounded, and the filters of cascades are stable.
    """
    if one.limits is not None:
        return False
    states, _, outputs, _ = one.parts
    reached, linear = one.next_state[:, outputs].toarray().any(axis=1), one.next_state[:, states]
    while ((grown := reached | (linear @ reached.astype(float) != 0)) != reached).any():
        reached = grown
    return bool((one.readout[:, states] @ np.diag(reached.astype(float))).any())


def difference(got: Signal, want: Signal) -> float:
    """The largest difference of two runs, relative to the range of each output; inf where only one is finite.

    Examples
    --------
    >>> difference(np.array([[0.0], [2.1]]), np.array([[0.0], [2.0]]))
    0.05...
    """
    if got.shape != want.shape or (np.isfinite(got) != np.isfinite(want)).any():
        return float("inf")
    finite = np.isfinite(want)
    span = np.ptp(np.where(finite, want, 0.0), axis=0)
    size = np.where(span > 0, span, np.maximum(np.abs(np.where(finite, want, 0.0)).max(axis=0, initial=0.0), 1e-300))
    gap = np.abs(np.where(finite, got, 0.0) - np.where(finite, want, 0.0))
    return float((gap / size).max(initial=0.0))


def excitation(job: Job, samples: int) -> Signal:
    """Steps through the range of the training inputs: held for seven samples each, the same for everybody."""
    scaling = job.stepper.equations[0].scaling
    k, channel = np.arange(samples)[:, None] // 7, np.arange(job.stepper.inputs)[None, :]
    level = np.modf((k + 1) * 0.6180339887498949 + channel * 0.41421356237309515)[0]
    if scaling.kind == "standard":
        level = 2.0 * level - 1.0
    return np.asarray(scaling.input_offset + scaling.input_span * level)
