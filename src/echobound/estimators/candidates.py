"""Any estimator as candidates: a draw is a clone with other random states, fitted and scored."""

from __future__ import annotations

import pickle
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from echobound.arrays import Rows
from echobound.candidates import REMADE, Candidates, Made
from echobound.draws import SEARCH, draw_key
from echobound.errors import InputError
from echobound.estimators.description import digest_of, law_of
from echobound.estimators.random_states import with_states
from echobound.kernels.base import Status, row_dtype
from echobound.kernels.blas import one_blas_thread
from echobound.kernels.problem import Fold, Segment
from echobound.network.laws import Shape
from echobound.runs.ledger import Ledger
from echobound.runs.provenance import here
from echobound.scores import Score


@dataclass(frozen=True)
class HeldOutRows:
    """How estimators are validated: fitted to the first rows, scored on the rest."""

    fitted: int
    held: int
    data: str
    tested: bool = False
    blocks: None = None
    washout: int = 0

    @property
    def shape(self) -> Shape:
        """How many rows are fitted to."""
        return Shape(self.fitted)

    @property
    def samples(self) -> str:
        """Digest of the rows, which have no names or times besides."""
        return self.data

    @property
    def folds(self) -> tuple[Fold, ...]:
        """The one fold."""
        end = self.fitted + self.held
        return (Fold((Segment(0, 0, self.fitted, 0),), (Segment(0, self.fitted, end, 0),)),)


@dataclass(eq=False, repr=False)  # the rows would be part of it
class EstimatorCandidates(Candidates):
    """Draws of one estimator, fitted to some rows and scored on others.

    Parameters
    ----------
    estimator, drawn
        The estimator, and the names of its parameters that are drawn.
    scorer, measures
        ``scorer(estimator, X, y)``, larger is better, and the score that it computes.
    training, held
        Rows to fit to and rows to score on: ``(X,)`` or ``(X, y)``.
    seed, stream
        Together with its index, they identify a draw.
    data
        Digest of all rows.
    """

    estimator: Any
    drawn: list[str]
    scorer: Any
    measures: tuple[Score, ...]
    training: tuple[Any, ...]
    held: tuple[Any, ...]
    seed: int
    data: str
    stream: int = SEARCH
    code = "scikit-learn"
    family = 0
    batch = 1  # a fit may take long, and an interruption should lose none that is finished

    def describe(self) -> Mapping[str, Any]:
        """Class, parameters and versions of the estimator."""
        return law_of(self.estimator, self.drawn).content

    def on(self, stream: int) -> EstimatorCandidates:
        """The draws of another stream."""
        return replace(self, stream=stream)

    def make(self, index: int) -> Made:
        """One draw, fitted."""
        candidate = with_states(self.estimator, self.drawn, draw_key(self.seed, self.stream, 0, index))
        with one_blas_thread():  # the number of threads changes the last bits, and workers may have other defaults
            candidate.fit(*self.training)
            return Made(candidate, np.array([float(self.scorer(candidate, *self.held))]))

    def score(self, indices: Sequence[int]) -> Rows:
        """Fit and score draws; one that cannot be fitted or scored counts with the worst score."""
        return np.concatenate([np.zeros(0, row_dtype(1)), *(self._row(index)[0] for index in indices)])

    def failure(self, index: int) -> str | None:
        """Why a draw failed; None if it does not."""
        return self._row(index)[1]

    def _row(self, index: int) -> tuple[Rows, str | None]:
        start, score, why = time.perf_counter(), np.nan, None
        try:
            score = self.make(index).scores[0]
        except MemoryError:  # it is about this machine at this moment, not about the draw
            raise
        except Exception as error:  # whatever went wrong, the draw counts: to leave it out would change the law
            why = str(error) or type(error).__name__
        ended = (Status.OK, score) if np.isfinite(score) else (Status.DIVERGED, -np.inf)
        row = (self.stream, 0, index, ended[0], 0, 0.0, ended[1], time.perf_counter() - start)
        return np.array([row], dtype=row_dtype(1)), why

    def require_reproducible(self, ledger: Ledger) -> None:
        """Make the first draw twice, or once if the ledger has it: scores must agree, and nothing else may change."""
        before, data = _global_state(), digest_of(self.training, self.held)
        first, _ = self._row(0)
        other, between = ledger.rows(indices=range(1)), _global_state()
        if not len(other):
            other, _ = self._row(0)
            # An estimator that seeds a global generator from its random state leaves it in the same state twice.
            if before != between != _global_state():
                raise InputError(
                    "this estimator draws from the global generator of NumPy or Python, not from its random_state"
                    " alone: set random_state in every part that takes one, such as a shuffling splitter"
                )
        if digest_of(self.training, self.held) != data:
            raise InputError(
                "this estimator changes the data in place, so that a draw would see what another draw left behind: let"
                " it copy them (copy=True, copy_X=True)"
            )
        self.require_same(0, float(other["scores"][0, 0]), float(first["scores"][0, 0]))
        ledger.append(first, engine="threads", kernel=self.code, place=here())

    def require_same(self, index: int, before: float, now: float) -> None:
        """Refuse an estimator whose draw scores differently when it is made again."""
        if not np.isclose(now, before, rtol=REMADE, atol=1e-12):
            raise InputError(
                f"draw {index} scored {before:.9g} and, made again from the same random states, {now:.9g}: an estimator"
                " must be determined by its random_state alone, for draws to be independent and repeatable; look for"
                " randomness from elsewhere, for state that is kept between fits or, in a run folder, for a changed"
                " ledger"
            )

    def packed(self) -> bytes:
        """As bytes for another process; functions and classes may be defined anywhere, in a notebook too."""
        import joblib

        return pickle.dumps(joblib.wrap_non_picklable_objects(self, keep_wrapper=False))


def _global_state() -> bytes:
    """State of the global random generators."""
    return pickle.dumps((np.random.get_state(legacy=False), random.getstate()))  # noqa: NPY002 (only compared)
