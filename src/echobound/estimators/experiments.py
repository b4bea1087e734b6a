"""scikit-learn's rows, labels and random states as records and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from echobound.data import Record, default_washout
from echobound.errors import InputError

__all__ = ["in_time_order", "records_of", "runs_of", "seed_of", "washout_of"]


def records_of(estimator: Any, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None) -> tuple[list[Record], bool]:
    """One record for each experiment, named by its label; and whether y has one dimension."""
    u, measured = validate_data(
        estimator, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2
    )
    flat = measured.ndim == 1
    outputs = np.asarray(measured, dtype=np.float64).reshape(len(u), -1)
    names = tuple(getattr(estimator, "feature_names_in_", ()))
    labels = None if groups is None else np.asarray(groups)
    return [
        Record(u[a:b], outputs[a:b], input_names=names, name="record" if labels is None else str(labels[a]))
        for a, b in runs_of(groups, len(u))
    ], flat


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


def in_time_order(tags: Any) -> Any:
    """Tell scikit-learn that rows are a time series: its checks draw independent rows, which cannot be predicted."""
    tags.regressor_tags.poor_score = True
    return tags
