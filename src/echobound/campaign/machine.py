"""What this machine has: cores and memory."""

from __future__ import annotations

import os

from echobound.errors import InputError


def usable_cores() -> int:
    """Number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_gib() -> float:
    """Memory of this machine; infinite where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (AttributeError, ValueError, OSError):
        return float("inf")


def worker_count(workers: int | None) -> int:
    """Number of workers: as asked for, or one for each core."""
    if workers is not None and workers < 1:
        raise InputError(f"the number of workers must be at least 1, got {workers}")
    return usable_cores() if workers is None else workers
