"""Jobs: commands that the studio starts, in the order in which they were asked for, and finds again.

An order is a file, written before anything is started. What runs is a process of its own, in a session of its own: it
goes on when the server dies. Whether it runs is not remembered but seen, by a lock that the process inherits and that
the operating system releases when it ends, however it ends. Its answer is the JSON that it printed, its complaint the
last sentence on its standard error.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from echobound.errors import EchoboundError, InputError
from echobound.files import read_json, write_json
from echobound.runs.lock import holder
from echobound.studio.security import sealed
from echobound.studio.workspace import Workspace, shown
from echobound.typed import from_json

State = Literal["queued", "running", "done", "stopped", "failed", "interrupted"]
TAIL = 4096  # bytes of a complaint that are read
ANSWER = 32 << 20  # bytes of an answer that are read
FORGOTTEN = 200  # ended jobs that are kept
ELSEWHERE = (
    "this order came with the folder and was not given by you: look at its command, and go on if you want it done"
)


@dataclass(frozen=True)
class Order:
    """What is to be done, as it was asked for.

    Parameters
    ----------
    key
        Names the order; keys sort in the order in which they were given.
    kind
        The command: ``identify``, ``verify``, ...
    run
        The run folder by its name in the workspace.
    arguments
        What follows ``echobound`` on the command line.
    python
        The same in Python, to copy.
    """

    key: str
    kind: str
    run: str
    arguments: tuple[str, ...]
    python: str = ""
    made: float = 0.0
    about: dict[str, Any] = field(default_factory=dict)
    seal: str = ""  # by whom it was given

    @property
    def content(self) -> bytes:
        """What the seal is about."""
        return json.dumps({**asdict(self), "seal": ""}, sort_keys=True).encode()

    @property
    def ours(self) -> bool:
        """Whether this user gave it: nothing is done by itself that came with a folder from elsewhere."""
        return hmac.compare_digest(self.seal.encode(), sealed(self.content).encode())


@dataclass(frozen=True)
class Job:
    """An order, and how far it is."""

    order: Order
    state: State
    sentence: str = ""  # what went wrong, or how it was stopped
    answer: dict[str, Any] | None = None  # what the command printed

    def to_dict(self) -> dict[str, Any]:
        """The job as JSON, without its answer."""
        return {
            **asdict(replace(self.order, seal="")),
            "state": self.state,
            "sentence": self.sentence,
            "command": self.command,
        }

    @property
    def command(self) -> str:
        """The command line, as it would be typed."""
        return typed(self.order.arguments)


def typed(arguments: tuple[str, ...] | list[str]) -> str:
    """A command line as a person would type it.

    Examples
    --------
    >>> typed(["verify", "runs/my plant", "--fresh", "500"])
    "echobound verify 'runs/my plant' --fresh 500"
    """
    import shlex

    return shlex.join(["echobound", *(one for one in arguments if one not in ("--json", "--quiet"))])


class Jobs:
    """The orders of a workspace; one is carried out at a time, since each uses all cores."""

    def __init__(self, space: Workspace) -> None:
        self.space = space
        self._children: dict[str, subprocess.Popen[bytes]] = {}  # to be waited for, lest they stay as zombies

    def _path(self, key: str, kind: str) -> Path:
        return self.space.desk / "jobs" / f"{key}.{kind}"

    def add(self, kind: str, run: str, arguments: list[str], python: str = "", **about: Any) -> Order:
        """Put an order at the end of the queue."""
        key = f"{time.time_ns():020d}-{secrets.token_hex(3)}"
        return self._write(Order(key, kind, run, tuple(arguments), python, time.time(), about))

    def _write(self, order: Order) -> Order:
        signed = replace(order, seal=sealed(order.content))
        write_json(self._path(order.key, "json"), asdict(signed))
        return signed

    def orders(self) -> list[Order]:
        """All orders, the oldest first; a file that is no order is passed over."""
        found = []
        for path in sorted((self.space.desk / "jobs").glob("*.json")):
            with suppress(EchoboundError, TypeError):
                order = from_json(Order, read_json(path))
                if order.key == path.stem and not any(part in ("", "..") for part in order.run.split("/")):
                    found.append(order)
        return found

    def find(self, key: str) -> Job:
        """A job by the key of its order."""
        for order in self.orders():
            if order.key == key:
                return self.job(order, answer=True)
        raise InputError(f"there is no job {shown(key)}: it may have been removed")

    def all(self) -> list[Job]:
        """All jobs, the oldest first, without their answers."""
        return [self.job(order) for order in self.orders()]

    def job(self, order: Order, *, answer: bool = False) -> Job:
        """How far an order is, by what is on disk."""
        if self._running(order.key):
            return Job(order, "running")
        if not self._started(order.key):
            return Job(order, "queued") if order.ours else Job(order, "interrupted", ELSEWHERE)
        found = self._answer(order.key)
        if found is not None:
            return Job(order, "done", answer=found if answer else None)
        said = self._last_words(order.key)
        if "stopped" in said.split(" ")[:1]:
            return Job(order, "stopped", said)
        return Job(order, "failed", said) if said else Job(order, "interrupted", "it was killed: go on to resume it")

    def _running(self, key: str) -> bool:
        child = self._children.get(key)
        if child is not None and child.poll() is not None:
            del self._children[key]
        try:
            handle = os.open(self._path(key, "run"), os.O_RDONLY)
        except OSError:
            return False
        try:
            _flock(handle)
            return False
        except OSError:
            return True
        finally:
            os.close(handle)

    def _started(self, key: str) -> bool:
        """Whether a process was started; a server that was killed on the way there has not written its number down."""
        with suppress(OSError):
            return bool(self._path(key, "run").read_text().strip())
        return False

    def _answer(self, key: str) -> dict[str, Any] | None:
        with suppress(OSError, ValueError, RecursionError):
            path = self._path(key, "out")
            if 0 < path.stat().st_size < ANSWER:
                found = json.loads(path.read_bytes())
                return found if isinstance(found, dict) else None
        return None

    def _last_words(self, key: str) -> str:
        """The last sentence on standard error."""
        with suppress(OSError), self._path(key, "log").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
            said = next(
                (line for line in reversed(lines) if line.startswith("echobound: ")), lines[-1] if lines else ""
            )
            return said.removeprefix("echobound: ")
        return ""

    def start_next(self) -> Order | None:
        """Start the first order that waits, unless one is being carried out."""
        waiting = None
        for order in self.orders():
            state = self.job(order).state
            if state == "running":
                return None
            if state == "queued" and waiting is None:
                waiting = order
        if waiting is None or not self._start(waiting):
            return None
        return waiting

    def _start(self, order: Order) -> bool:
        handle = os.open(self._path(order.key, "run"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                _flock(handle)
            except OSError:  # another server of the same folder was faster
                return False
            with self._path(order.key, "out").open("wb") as out, self._path(order.key, "log").open("wb") as log:
                # The child keeps the lock's handle open; nothing else is shared with the server.
                child = subprocess.Popen(
                    [sys.executable, "-m", "echobound", *order.arguments],
                    cwd=self.space.path,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=log,
                    pass_fds=(handle,),
                    start_new_session=True,
                )
            os.pwrite(handle, str(child.pid).encode(), 0)
            self._children[order.key] = child
            return True
        finally:
            os.close(handle)

    def stop(self, key: str) -> None:
        """Ask a job to stop, as Ctrl-C does: what is finished is kept. One that waits is taken off the queue."""
        job = self.find(key)
        if job.state == "queued":
            self._path(key, "json").unlink(missing_ok=True)
        if job.state != "running":
            return
        pid = self._path(key, "run").read_text().strip()
        if not pid:  # the server died between starting it and writing its number down
            held = holder(self.space.place(job.order.run))
            pid = "" if held is None else str(held["pid"] or "")
        if not pid.isdecimal():
            raise InputError("it has just been started: try again in a second")
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGINT)

    def go_on(self, key: str) -> None:
        """Put a job that ended early back into the queue: the same command resumes it."""
        job = self.find(key)
        if job.state not in ("stopped", "failed", "interrupted"):
            raise InputError(f"this job is {job.state}: there is nothing to resume")
        for kind in ("out", "log", "run"):
            self._path(key, kind).unlink(missing_ok=True)
        self._write(job.order)

    def open_runs(self) -> set[str]:
        """Names of runs that are waited for, running or may be resumed."""
        return {job.order.run for job in self.all() if job.state not in ("done", "failed")}

    def columns_of(self, run: str) -> dict[str, Any]:
        """How the files of a run were read, as keywords of `read_records`; empty for one that was started elsewhere."""
        ours = [order for order in self.orders() if order.run == run and order.kind == "identify" and order.ours]
        return dict(ours[-1].about.get("columns") or {}) if ours else {}

    def of_run(self, run: str) -> list[Job]:
        """The jobs of a run, the oldest first."""
        return [self.job(order) for order in self.orders() if order.run == run]

    def tidy(self) -> None:
        """Forget the oldest of the jobs that are done."""
        done = [order.key for order in self.orders() if self.job(order).state == "done"]
        for key in done[:-FORGOTTEN]:
            for kind in ("json", "out", "log", "run"):
                self._path(key, kind).unlink(missing_ok=True)


def _flock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:
        raise InputError("the studio starts runs on Linux and macOS only: use the command line here") from None
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
