"""Candidates: what is drawn. Models that can be scored, made and described by their index.

Engines, ledger, stopping rules, verification and audit know nothing else of what is drawn. Networks are one
implementation, here; any scikit-learn estimator is another (`echobound.estimators`).
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from echobound.arrays import Rows, Signal, Vector
from echobound.errors import InputError
from echobound.kernels.base import Kernel
from echobound.kernels.problem import Problem
from echobound.kernels.sensitivity import Agreement, compare_rows
from echobound.kernels.training import network_and_run
from echobound.scores import Score

REMADE = 1e-6  # relative: far above rounding, far below what a forger could gain


@dataclass(frozen=True, eq=False)
class Made:
    """A candidate made from its index: the trained model."""

    model: Any
    scores: Vector  # what it scores now; its row must say the same
    outputs: list[Signal] = field(default_factory=list)  # of a network, on the scored samples of each fold


class Candidates(ABC):
    """The draws of one family and stream. A draw follows from (seed, stream, family, index) alone."""

    seed: int
    stream: int  # of the search, or of fresh draws
    family: int
    measures: tuple[Score, ...]  # the first one selects
    code: str  # what computes them, for the records
    data: str | None = None  # digest where a run does not store its data: candidates must bring those of its plan
    parallel: bool = True  # whether several threads of a process may score at once
    batch: int | None = None  # how many are best scored in one call; None leaves it to the clock

    @abstractmethod
    def score(self, indices: Sequence[int]) -> Rows:
        """Draw, train and score: a row for each index. Rows do not depend on how indices are cut into batches."""

    @abstractmethod
    def make(self, index: int) -> Made:
        """Draw and train one of them, and return the model."""

    @abstractmethod
    def describe(self) -> Mapping[str, Any]:
        """The law they are drawn from, as JSON."""

    @abstractmethod
    def on(self, stream: int) -> Candidates:
        """The draws of another stream."""

    def agreement(self, row: Any, other: Any) -> Agreement:
        """Whether a row computed here and one from elsewhere are of the same draw, up to rounding."""
        same = row["status"] == other["status"] and np.isclose(row["scores"], other["scores"], rtol=REMADE).all()
        return "same" if same else "different"

    def packed(self) -> bytes:
        """These candidates as bytes for another process; what cannot be sent is named."""
        try:
            return pickle.dumps(self, protocol=pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError):
            for score in self.measures:
                try:
                    pickle.dumps(score)
                except (pickle.PicklingError, AttributeError, TypeError):
                    raise InputError(
                        f"score {score.name!r} cannot be sent to other processes: define its function by name in a"
                        " module that they can import, or use the engine 'threads'"
                    ) from None
            raise


class Networks(Candidates):
    """Networks of one law as candidates: a kernel, and the problem it solves.

    Examples
    --------
    >>> from echobound.data import Record
    >>> from echobound.kernels import get_kernel, hold_out
    >>> from echobound.network import paper
    >>> from echobound.scores import get_score
    >>> k = np.arange(300.0)
    >>> record = Record(u=np.sin(0.1 * k) ** 3, y=np.sin(0.1 * (k - 2)) ** 2)
    >>> problem = hold_out(record, record, law=paper(5), scores=[get_score("fit")])
    >>> networks = Networks(get_kernel("reference"), problem)
    >>> bool(networks.score([7])["scores"][0, 0] == networks.make(7).scores[0])
    True
    """

    def __init__(self, kernel: Kernel, problem: Problem) -> None:
        self.kernel, self.problem = kernel, problem
        self.seed, self.stream, self.family = problem.seed, problem.stream, problem.family
        self.measures, self.code = problem.scores, kernel.name
        # A kernel that fills its device alone has one caller at a time, and prefers batches of its own size.
        self.parallel, self.batch = bool(getattr(kernel, "parallel", True)), getattr(kernel, "batch", None)

    def score(self, indices: Sequence[int]) -> Rows:
        """Draw, train and score networks."""
        return self.kernel.evaluate(self.problem, indices)

    def make(self, index: int) -> Made:
        """Draw and train one network; with blocks in turn, the model is trained on all of them."""
        model, run = network_and_run(self.kernel, self.problem, index)
        return Made(model, run.scores(self.problem), [*run.outputs])

    def agreement(self, row: Any, other: Any) -> Agreement:
        """Whether two rows agree to 1e-9, or differ by no more than rounding explains."""
        return compare_rows(self.problem, self.kernel, row, other)

    def describe(self) -> Mapping[str, Any]:
        """The law as JSON."""
        return self.problem.law.to_dict()

    def on(self, stream: int) -> Networks:
        """The networks of another stream."""
        return Networks(self.kernel, self.problem.on(stream=stream))
