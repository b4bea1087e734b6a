"""Room: whether what a file declares fits into the memory at hand, asked before anything is allocated."""

from __future__ import annotations

import math
from pathlib import Path

from echobound.errors import DataError

COPIES = 2  # of the numbers, at least, until they are a record: as read and as used


def memory_at_hand() -> float:
    """Bytes that can be had without swapping, also within a container; infinite where the system does not say.

    Examples
    --------
    >>> memory_at_hand() > 0
    True
    """
    found = math.inf
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found = 1024.0 * int(line.split()[1])
        group = Path("/sys/fs/cgroup")
        found = min(found, int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    except (OSError, ValueError, IndexError):  # another system, or no limit
        pass
    return found


def require_room(numbers: int, source: str) -> None:
    """Refuse to load so many numbers if they do not fit into the memory at hand.

    Examples
    --------
    >>> require_room(10**15, "plant.mat")
    Traceback (most recent call last):
        ...
    echobound.errors.DataError: plant.mat has 1000000000000000 numbers, which take 14901161 GiB: ...
    """
    needed, there = 8 * COPIES * numbers, memory_at_hand()
    if needed > there:
        raise DataError(
            f"{source} has {numbers} numbers, which take {needed / 2**30:.0f} GiB: only {there / 2**30:.1f} GiB of"
            " memory are at hand, so give less data or use a larger machine"
        )
