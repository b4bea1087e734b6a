"""Candidates: what is drawn. Models that can be scored, made and described by their index.

Engines, ledger, stopping rules, verification and audit know nothing else of what is drawn. Networks are one
implementation, here, and committees of networks are another; any scikit-learn estimator is a third
(`echobound.estimators`).
"""

from __future__ import annotations

import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from echobound.arrays import Rows, Signal, Vector
from echobound.errors import InputError
from echobound.kernels.base import Kernel, Run, Status, row_dtype
from echobound.kernels.problem import Problem
from echobound.kernels.sensitivity import (
    TOLERANCE,
    TRIES,
    Agreement,
    RoundedKernel,
    compare_rows,
    moved_by_readout,
    relative,
    spread_of,
)
from echobound.kernels.training import network_and_run, networks_and_runs
from echobound.network.committee import Committee, median_of
from echobound.network.plant_model import PlantModel
from echobound.scenario.bounds import as_count
from echobound.scenario.ordering import goodness
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
    members: int = 1  # networks that each of them is a committee of
    data: str | None = None  # digest where a run does not store its data: candidates must bring those of its plan
    parallel: bool = True  # whether several threads of a process may score at once
    batch: int | None = None  # how many are best scored in one call; None leaves it to the clock

    @abstractmethod
    def score(self, indices: Sequence[int]) -> Rows:
        """Draw, train and score: a row for each index. Rows do not depend on how indices are cut into batches."""

    @abstractmethod
    def make(self, index: int) -> Made:
        """Draw and train one of them, and return the model."""

    def make_several(self, indices: Sequence[int]) -> list[Made]:
        """As `make`, for those that a device is best asked for all at a time."""
        return [self.make(index) for index in indices]

    @abstractmethod
    def describe(self) -> Mapping[str, Any]:
        """The law they are drawn from, as JSON."""

    @abstractmethod
    def on(self, stream: int) -> Candidates:
        """The draws of another stream."""

    def prepare(self, tell: Callable[[str], None]) -> None:  # noqa: B027 (most have nothing to prepare)
        """Do what is done once, before the first draw is scored; `tell` gets a few words if it takes long."""

    def draws(self, index: int) -> range:
        """Which draws the candidate is made of: no two candidates share one."""
        return range(index, index + 1)

    def agreement(self, row: Any, other: Any) -> Agreement:
        """Whether a row computed here and one from elsewhere are of the same draw, up to rounding."""
        same = row["status"] == other["status"] and np.isclose(row["scores"], other["scores"], rtol=REMADE).all()
        return "same" if same else "different"

    def moved(self, row: Any) -> float:
        """How far the scores of a row move, relative, when rounding is imitated; 0 where that cannot be done."""
        return 0.0

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

    def prepare(self, tell: Callable[[str], None]) -> None:
        """Have the kernel load, or make, its code."""
        if hasattr(self.kernel, "prepare"):
            self.kernel.prepare(self.problem, tell)

    def score(self, indices: Sequence[int]) -> Rows:
        """Draw, train and score networks."""
        return self.kernel.evaluate(self.problem, indices)

    def make(self, index: int) -> Made:
        """Draw and train one network; with blocks in turn, the model is trained on all of them."""
        return self._made(*network_and_run(self.kernel, self.problem, index))

    def make_several(self, indices: Sequence[int]) -> list[Made]:
        """Draw and train several networks, at a time where the kernel can."""
        return [self._made(model, run) for model, run in networks_and_runs(self.kernel, self.problem, indices)]

    def _made(self, model: PlantModel, run: Run) -> Made:
        return Made(model, run.scores(self.problem), [*run.outputs])

    def agreement(self, row: Any, other: Any) -> Agreement:
        """Whether two rows agree to 1e-9, or differ by no more than rounding explains."""
        return compare_rows(self.problem, self.kernel, row, other)

    def moved(self, row: Any) -> float:
        """How far the scores of a row move, relative, when its readouts change in their twelfth digit."""
        index = int(row["index"])
        return moved_by_readout(
            row["scores"],
            lambda number: RoundedKernel(self.kernel, number).run(self.problem, index).scores(self.problem),
        )

    def describe(self) -> Mapping[str, Any]:
        """The law as JSON."""
        return self.problem.law.to_dict()

    def on(self, stream: int) -> Networks:
        """The networks of another stream."""
        return Networks(self.kernel, self.problem.on(stream=stream))


@dataclass(frozen=True, eq=False)
class Formed:
    """A committee as it is scored."""

    kept: tuple[int, ...]  # its members, by their draws: the better half, the best first
    run: Run  # the median of theirs


class Committees(Candidates):
    """Committees of networks as candidates: each is made of so many draws of its own, by a fixed rule.

    Committee i has the draws i M to i M + M - 1 of a family. Each is trained and run as a network by itself would be,
    the better half of them by the selecting score is kept (the first of equal ones; diverged ones are the worst), and
    the output is the median of theirs. So a committee is a function of its own draws and the data alone: committees
    are as independent of each other as networks are.

    Examples
    --------
    >>> from echobound.data import Record
    >>> from echobound.kernels import get_kernel, hold_out
    >>> from echobound.network import paper
    >>> from echobound.scores import get_score
    >>> k = np.arange(300.0)
    >>> record = Record(u=np.sin(0.1 * k) ** 3, y=np.sin(0.1 * (k - 2)) ** 2)
    >>> problem = hold_out(record, record, law=paper(5), scores=[get_score("fit")])
    >>> committees = Committees(Networks(get_kernel("reference"), problem), members=3)
    >>> made = committees.make(7)
    >>> committees.draws(7), len(made.model.members), bool(committees.score([7])["scores"][0, 0] == made.scores[0])
    (range(21, 24), 2, True)
    """

    def __init__(self, networks: Networks, members: int) -> None:
        self.networks, self.members = networks, as_count("members", members)
        self.kernel, self.problem = networks.kernel, networks.problem
        self.seed, self.stream, self.family = networks.seed, networks.stream, networks.family
        self.measures, self.code, self.parallel = networks.measures, networks.code, networks.parallel
        self.batch = None if networks.batch is None else max(1, networks.batch // members)

    def prepare(self, tell: Callable[[str], None]) -> None:
        """As for its members."""
        self.networks.prepare(tell)

    def draws(self, index: int) -> range:
        """The draws that a committee chooses its members from."""
        return range(index * self.members, (index + 1) * self.members)

    def score(self, indices: Sequence[int]) -> Rows:
        """Draw, train and score committees."""
        # As many at a time as suit the kernel: what is held are the outputs of these, not of all.
        several = self.batch or 1
        parts = [indices[start : start + several] for start in range(0, len(indices), several)]
        rows = [row for part in parts for row in self._rows(part)]
        return np.array(rows, dtype=row_dtype(len(self.measures)))

    def _rows(self, indices: Sequence[int]) -> list[tuple[Any, ...]]:
        start, found = time.perf_counter(), self.formed(indices)
        ended = [(one.run.status(self.problem), one.run.scores(self.problem)) for one in found]
        seconds = (time.perf_counter() - start) / len(indices)
        return [
            (self.stream, self.family, index, status, one.run.order, one.run.setting, scores, seconds)
            for index, one, (status, scores) in zip(indices, found, ended, strict=True)
        ]

    def formed(self, indices: Sequence[int], kernel: Kernel | None = None) -> list[Formed]:
        """Committees as they are scored, by their own kernel or by another."""
        draws = [self.draws(index) for index in indices]
        runs = iter((kernel or self.kernel).runs(self.problem, [draw for own in draws for draw in own]))
        return [self._form(own, [next(runs) for _ in own]) for own in draws]

    def _form(self, draws: Sequence[int], runs: Sequence[Run]) -> Formed:
        """Keep the better half of the draws, and take the median of their outputs."""
        scores = [float(run.scores(self.problem)[0]) for run in runs]
        diverged = [run.status(self.problem) == Status.DIVERGED for run in runs]
        values = np.where(diverged, -np.inf, goodness(scores, self.measures[0].direction))
        best = np.argsort(-values, kind="stable")[: -(-self.members // 2)]  # of equal ones, the first
        kept = [runs[i] for i in best]
        wholes = [run.whole for run in kept if run.whole is not None]
        run = Run(
            order=sum(run.order for run in kept),
            setting=0.0,  # each member has one of its own
            outputs=_medians([run.outputs for run in kept]),
            whole=median_of(wholes) if wholes else None,
            clipped=any(run.clipped for run in kept),
        )
        return Formed(tuple(draws[i] for i in best), run)

    def make(self, index: int) -> Made:
        """The members of one committee, each trained as a network that is picked is, as one model."""
        [formed] = self.formed([index])
        trained = networks_and_runs(self.kernel, self.problem, formed.kept)
        outputs = _medians([run.outputs for _, run in trained])
        committee = Committee(tuple(member for member, _ in trained))
        return Made(committee, self.problem.scores_of(outputs, formed.run.whole), outputs)

    def agreement(self, row: Any, other: Any) -> Agreement:
        """Whether two rows agree to 1e-9, or differ by no more than rounding explains.

        Rounding may change the median, and decide which of two members that are practically equal is kept.
        """
        if any(row[name] != other[name] for name in ("stream", "family", "index", "ridge")):
            return "different"
        difference, index = relative(row["scores"], other["scores"]), int(row["index"])
        others = row["order"] != other["order"]  # whether other members were kept
        if row["status"] == other["status"] and not others and difference <= TOLERANCE:
            return "same"
        if row["status"] != other["status"] and not difference:
            return "different"  # rounding cannot change the status and leave the scores as they are
        orders = set[int]()

        def again(number: int) -> Vector:
            [formed] = self.formed([index], RoundedKernel(self.kernel, number))
            orders.add(formed.run.order)
            return formed.run.scores(self.problem)

        found = spread_of(row["scores"], again, stored=other["scores"])
        agreement = found.agreement(other["scores"], difference, TOLERANCE if others else 0.0)
        if agreement != "sensitive" or not others:
            return agreement
        return "sensitive" if int(other["order"]) in orders else "different"

    def moved(self, row: Any) -> float:
        """How far the scores of a row move, relative, when the readouts of its members change."""

        def again(number: int) -> Vector:
            [formed] = self.formed([int(row["index"])], RoundedKernel(self.kernel, number))
            return formed.run.scores(self.problem)

        return moved_by_readout(row["scores"], again)

    def keeps(self, index: int) -> list[tuple[int, ...]]:
        """The members of a committee, and what else they may be if rounding decides."""
        kernels = [None, *(RoundedKernel(self.kernel, number) for number in range(TRIES))]
        return list(dict.fromkeys(self.formed([index], kernel)[0].kept for kernel in kernels))

    def describe(self) -> Mapping[str, Any]:
        """The law of the members as JSON."""
        return self.networks.describe()

    def on(self, stream: int) -> Committees:
        """The committees of another stream."""
        return Committees(self.networks.on(stream), self.members)


def _medians(outputs: Sequence[Sequence[Signal]]) -> list[Signal]:
    """The median over members of their outputs on each fold."""
    return [median_of(list(fold)) for fold in zip(*outputs, strict=True)]
