"""Lock: one process writes in a run folder at a time."""

from __future__ import annotations

import errno
import json
import os
import platform
import stat
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

from echobound.errors import DamagedFile, RunError, printable
from echobound.files import require_plain

NAME = "ledger.lock"
LARGEST = 4096  # bytes of a lock file


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
            # A link is not followed: in a folder from somebody else it may lead to any file of ours.
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
        except OSError as error:
            require_plain(path)
            raise RunError(
                f"cannot write in {folder} ({error.strerror}): nothing was changed; repair the permissions, free some"
                " space, or choose another folder"
            ) from None
        try:
            _require_own(handle, path)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_current(handle, path):
                break
        except DamagedFile:
            os.close(handle)
            raise
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
    release.callback(_unlink_own, handle, path)
    return release.close


def _unlink_own(handle: int, path: Path) -> None:
    """Remove the lock file, unless that name has another file by now: then it is the lock of a successor."""
    if _is_current(handle, path):
        path.unlink()


def _require_own(handle: int, path: Path) -> None:
    """Refuse to write into what is no lock file: another name of some file, a pipe, or more than a lock file holds."""
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or found.st_size > LARGEST:
        raise DamagedFile(path, "kind of file", "a small file of its own was expected: remove it if nobody uses it")


def holder(folder: Path) -> Holder | None:
    """The process that writes in a folder: ``pid``, ``host`` and ``since``; None if there is none."""
    try:
        import fcntl

        handle = os.open(folder / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
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
        return os.path.samestat(os.fstat(handle), path.lstat())
    except OSError:
        return False


def _read(path: Path) -> Holder:
    try:
        require_plain(path)
        with path.open("rb") as file:
            found = json.loads(file.read(LARGEST))
        known = found["pid"], found["host"], found["since"]
        if not isinstance(known[0], int) or not all(isinstance(one, str) for one in known[1:]):
            raise TypeError
        return {"pid": known[0], "host": printable(known[1]), "since": printable(known[2])}
    except (OSError, ValueError, KeyError, TypeError, RecursionError, DamagedFile):
        return {"pid": None, "host": None, "since": None}
