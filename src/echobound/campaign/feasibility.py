"""Feasibility: whether candidates can be computed on this machine, asked before the first draw."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from echobound.campaign.machine import memory_gib, worker_count
from echobound.candidates import Candidates, Committees, Networks
from echobound.errors import InputError


def require_feasible(candidates: Sequence[Candidates], workers: int | None) -> None:
    """Refuse draws that cannot be made, and warn about least-squares problems with more columns than rows."""
    problems = [one.problem for one in candidates if isinstance(one, Networks | Committees)]
    if not problems:
        return
    problems[0].key(0)  # refuses a seed that cannot name a draw
    columns = max(one.law.most_columns(one.inputs, one.outputs) for one in problems)
    count = worker_count(workers)
    needed = count * 3 * 8 * columns**2 / 2**30  # three square matrices of doubles for each worker
    if needed > memory_gib():
        raise InputError(
            f"a least-squares problem of {columns} columns needs about {needed:.0f} GiB with {count} workers, but this"
            f" machine has {memory_gib():.0f}: use a smaller order or fewer workers"
        )
    rows = min(sum(segment.counted for segment in fold.training) for fold in problems[0].folds)
    if rows < columns:
        warnings.warn(
            f"{rows} training samples are fewer than the {columns} columns of the least-squares problem: the networks"
            " are trained all the same, but give more data or a smaller order",
            stacklevel=3,
        )
