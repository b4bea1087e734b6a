"""Trials: the draws of a search over any estimator, made one by one or many at a time, and written to the ledger."""

from __future__ import annotations

import pickle
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from echobound.arrays import Rows
from echobound.draws import SEARCH, draw_key
from echobound.errors import InputError
from echobound.estimators.folder import draws_of
from echobound.estimators.plan import SearchPlan, content_of
from echobound.estimators.random_states import with_states
from echobound.files import digest
from echobound.kernels.base import Status, row_dtype
from echobound.kernels.blas import one_blas_thread
from echobound.runs.ledger import Ledger
from echobound.runs.provenance import here

__all__ = ["Trials", "require_same", "run_trials"]

TOLERANCE = 1e-6  # far beyond all rounding, as for networks that are trained again
MOMENT = 0.2  # seconds between writes to the ledger: a process that is killed loses so much, and the draws in hand
ORIGIN = {"engine": "joblib", "kernel": "scikit-learn"}


@dataclass(frozen=True, eq=False)
class Trials:
    """What a draw is, and what it is fitted to and scored on; plain data, so that it can go to another process."""

    estimator: Any
    drawn: list[str]
    seed: int
    scorer: Any
    training: tuple[Any, ...]
    held: tuple[Any, ...]

    @property
    def data(self) -> str:
        """Digest of the data."""
        return digest([[content_of(part) for part in side] for side in (self.training, self.held)])

    def fitted(self, index: int) -> tuple[Any, float]:
        """One draw, fitted, and its score."""
        candidate = with_states(self.estimator, self.drawn, draw_key(self.seed, SEARCH, 0, index))
        with one_blas_thread():  # in another process there may be more
            candidate.fit(*self.training)
            return candidate, float(self.scorer(candidate, *self.held))

    def row(self, index: int) -> tuple[Rows, str | None]:
        """The row of one draw, and why it failed if it did."""
        start, score, why = time.perf_counter(), np.nan, None
        try:
            _, score = self.fitted(index)
        except MemoryError:  # of this machine, at this moment: it says nothing about the draw
            raise
        except Exception as error:  # whatever it is, the draw counts: leaving it out would change the law
            why = str(error) or type(error).__name__
        ended = (Status.OK, score) if np.isfinite(score) else (Status.DIVERGED, -np.inf)
        row = (SEARCH, 0, index, ended[0], 0, 0.0, ended[1], time.perf_counter() - start)
        return np.array([row], dtype=row_dtype(1)), why


def run_trials(trials: Trials, plan: SearchPlan, ledger: Ledger, n_jobs: int | None) -> tuple[Rows, dict[int, str]]:
    """Make all draws that the ledger does not have yet; return the rows of all, and why some failed."""
    failures: dict[int, str] = {}
    count = plan.networks
    while True:
        ledger.begin(range(count), "max")
        if count == plan.networks:
            failures |= _probe(trials, ledger)
        calls = (delayed(trials.row)(index) for index in ledger.missing(range(count)))
        with _batched(ledger) as append:
            for row, why in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(calls):
                append(row)
                failures |= {} if why is None else {int(row["index"][0]): why}
        rows = ledger.rows(indices=range(count))
        due = draws_of(plan, rows)
        if due <= count:
            return rows[:due], failures
        count = due


def _probe(trials: Trials, ledger: Ledger) -> dict[int, str]:
    """Make the first draw twice, or once if the ledger has it: the same must come out, and nothing else may change."""
    data, before = trials.data, _global_state()
    first, why = trials.row(0)
    other, between = ledger.rows(indices=range(1)), _global_state()
    if not len(other):
        other, _ = trials.row(0)
        # Whoever seeds a global generator from the random state leaves it twice in the same state, and that is fine.
        if before != between != _global_state():
            raise InputError(
                "this estimator draws from the global generator of NumPy or Python, not from its random_state alone:"
                " give a random_state to every part that takes one, such as a shuffling splitter"
            )
    if trials.data != data:
        raise InputError(
            "this estimator changes the data in place, so that a draw would see what another left: let it copy them"
            " (copy=True, copy_X=True)"
        )
    require_same(0, float(other["scores"][0, 0]), float(first["scores"][0, 0]))
    ledger.append(first, place=here(), **ORIGIN)
    return {} if why is None else {0: why}


def _global_state() -> bytes:
    """What the generators remember that belong to nobody."""
    return pickle.dumps((np.random.get_state(legacy=False), random.getstate()))  # noqa: NPY002 (only looked at)


def require_same(index: int, before: float, now: float) -> None:
    """Refuse an estimator whose draw scores otherwise when it is made again."""
    if not np.isclose(now, before, rtol=TOLERANCE, atol=1e-12):
        raise InputError(
            f"draw {index} scored {before:.9g} and, made again from the same random states, {now:.9g}: an estimator"
            " must be determined by its random_state alone, for draws to be independent and for others to make them"
            " again; look for randomness from elsewhere, for what it keeps between fits or, in a run folder, for a"
            " changed ledger"
        )


@contextmanager
def _batched(ledger: Ledger) -> Iterator[Callable[[Rows], None]]:
    """Append rows as they come, but not more often than the disk likes; whatever ends it, all are appended."""
    pending: list[Rows] = []
    last = time.monotonic()

    def write() -> None:
        nonlocal last
        if pending:
            ledger.append(np.concatenate(pending), place=here(), **ORIGIN)
        pending.clear()
        last = time.monotonic()

    def append(row: Rows) -> None:
        pending.append(row)
        if time.monotonic() - last >= MOMENT:
            write()

    try:
        yield append
    finally:
        write()
