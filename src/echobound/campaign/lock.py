"""One writer for a run folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from echobound.errors import RunError

__all__ = ["lock"]


def lock(folder: Path) -> Callable[[], None]:
    """Lock a folder against other writers, or refuse at once; the function returned gives it free again.

    The operating system gives it free too when the process ends, however it ends.
    """
    try:
        import fcntl
    except ImportError:  # no such locks on this system: SQLite's own must do
        return lambda: None
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise RunError(f"cannot open {folder} ({error.strerror}): check the folder and its permissions") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise RunError(f"{folder} is in use by another process: wait for it to end, or choose another folder") from None
    done = False

    def release() -> None:
        nonlocal done
        if not done:
            os.close(handle)
            done = True

    return release
