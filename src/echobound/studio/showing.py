"""Showing: what `echobound show RUN --json` says, asked for once as long as the run stays as it is."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from echobound.errors import RunError
from echobound.studio.overview import FILES, stamp
from echobound.studio.workspace import Workspace

AT_ONCE = 2
SECONDS = 300


class Shown:
    """The checked content of finished runs.

    The command itself is asked: every number is derived again in a process of its own, so that a large run neither
    delays others nor fills the server's memory, and what the browser shows are the sentences of the terminal.
    """

    def __init__(self, space: Workspace) -> None:
        self.space = space
        self._known: dict[str, tuple[Any, dict[str, Any]]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def of(self, name: str) -> dict[str, Any]:
        """What the command says about a run."""
        path = self.space.run(name)
        stamps = self._stamps(path)
        known = self._known.get(name)
        if known is not None and known[0] == stamps:
            return known[1]
        async with self._turns:
            content: dict[str, Any] = await answer_of(["show", str(path), "--json"], self.space.path)
        self._known[name] = (stamps, content)
        return content

    def _stamps(self, path: Path) -> Any:
        return tuple(stamp(path / file) for file in FILES)


async def answer_of(arguments: list[str], folder: Path, given: bytes | None = None, module: str = "echobound") -> Any:
    """The JSON that a command prints; its sentence is raised if it refuses."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments,
        cwd=folder,
        stdin=asyncio.subprocess.PIPE if given is not None else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        out, said = await asyncio.wait_for(child.communicate(given), SECONDS)
    except BaseException:
        if child.returncode is None:
            child.kill()
            await child.wait()
        raise
    try:
        return json.loads(out)
    except ValueError:
        lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
        sentence = next((line for line in reversed(lines) if line.startswith("echobound: ")), "")
        raise RunError(sentence.removeprefix("echobound: ") or "the command did not answer") from None
