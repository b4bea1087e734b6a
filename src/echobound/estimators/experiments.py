"""scikit-learn's rows, labels and random states as records and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from echobound.data import Record, default_washout
from echobound.errors import InputError


class FreeRunRegressor(RegressorMixin, MultiOutputMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """A regressor whose prediction is a free run through the rows."""

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> float:
        """R² of the free run, minus infinity if it diverges; for one output, FIT is 100 (1 - sqrt(1 - R²))."""
        simulated = self.predict(X, groups)
        return float(r2_score(y, simulated, sample_weight=sample_weight)) if np.isfinite(simulated).all() else -np.inf

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # scikit-learn's checks use independent rows, which cannot be predicted
        return tags


def records_of(estimator: Any, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None) -> tuple[list[Record], bool]:
    """One record for each experiment, named by its label, and whether y is one-dimensional."""
    u, y = validate_data(estimator, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2)
    outputs = np.asarray(y, dtype=np.float64).reshape(len(u), -1)
    inputs = tuple(getattr(estimator, "feature_names_in_", ()))
    labels = np.full(len(u), "record") if groups is None else np.asarray(groups)
    runs = runs_of(groups, len(u))
    return [Record(u[a:b], outputs[a:b], input_names=inputs, name=str(labels[a])) for a, b in runs], np.ndim(y) == 1


def runs_of(groups: ArrayLike | None, length: int) -> list[tuple[int, int]]:
    """First and last (exclusive) row of each experiment."""
    if groups is None:
        return [(0, length)]
    labels = np.asarray(groups)
    if labels.shape != (length,):
        raise InputError(f"groups must have one label for each of the {length} rows, got shape {labels.shape}")
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    if len(starts) > len(np.unique(labels)):
        raise InputError(
            "rows of one experiment must follow each other, but a label in groups comes back later: sort the rows by it"
        )
    return list(zip(starts.tolist(), [*starts[1:].tolist(), length], strict=True))


def washout_of(washout: int | None, records: Sequence[Record]) -> int:
    """Samples that are not trained on: as given, or a fifth of the shortest experiment, at most 100."""
    return default_washout(map(len, records)) if washout is None else washout


def seed_of(random_state: Any) -> int:
    """The seed that a scikit-learn random state stands for; from a generator, all 64 bits that a seed may have."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**64, dtype=np.uint64))
