"""Lock: one process writes in a run folder at a time."""

from __future__ import annotations

import errno
import json
import os
import platform
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

from echobound.errors import RunError

NAME = "ledger.lock"


class Holder(TypedDict):
    """The process that writes in a folder; None where its lock file does not say."""

    pid: int | None
    host: str | None
    since: str | None


def lock(folder: Path) -> Callable[[], None]:
    """Lock a folder against other writers, or refuse at once; the function returned releases it.

    The operating system releases it when the process ends, however it ends. The file names the process that holds it;
    one that a killed process left behind locks nothing.
    """
    try:
        import fcntl
    except ImportError:  # no such locks on this system: SQLite's own must do
        return lambda: None
    path = folder / NAME
    for attempt in range(5):  # `holder` takes the lock for an instant
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise RunError(
                f"cannot write in {folder} ({error.strerror}): nothing was changed; repair the permissions, free some"
                " space, or choose another folder"
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_current(handle, path):
                break
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                os.close(handle)
                raise RunError(
                    f"the file system of {folder} has no locks ({error.strerror}), so two processes could write at the"
                    " same time: put the run folder on another one"
                ) from None
        os.close(handle)
        time.sleep(0.01 * attempt)
    else:
        known = _read(path)
        named = f"process {known['pid']} on host {known['host']} since {known['since']}"
        user = "another process" if known["pid"] is None else named
        raise RunError(f"{folder} is in use by {user}: wait for it to end, or choose another folder")
    about = {"pid": os.getpid(), "host": platform.node(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
    with suppress(OSError):  # a full disk: the lock holds all the same
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(about).encode(), 0)
    release = ExitStack()  # undone in reverse order, once
    release.callback(os.close, handle)
    release.enter_context(suppress(OSError))  # the file may be gone already
    release.callback(path.unlink)
    return release.close


def holder(folder: Path) -> Holder | None:
    """The process that writes in a folder: ``pid``, ``host`` and ``since``; None if there is none."""
    try:
        import fcntl

        handle = os.open(folder / NAME, os.O_RDONLY)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except OSError:
        return _read(folder / NAME)
    finally:
        os.close(handle)


def _is_current(handle: int, path: Path) -> bool:
    """Whether the open file still has that name: the holder removes it when done, and another one may follow."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False


def _read(path: Path) -> Holder:
    try:
        found = json.loads(path.read_text())
        return {"pid": found["pid"], "host": found["host"], "since": found["since"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {"pid": None, "host": None, "since": None}
