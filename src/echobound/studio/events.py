"""Events: a run as it goes, told to all browsers that look on, by server-sent events."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING

from tornado.iostream import StreamClosedError

from echobound.errors import EchoboundError
from echobound.files import jsonable
from echobound.studio.handlers import Guarded, log
from echobound.studio.live import LiveRun
from echobound.studio.overview import stated_facts
from echobound.studio.security import Refused
from echobound.studio.workspace import Workspace

if TYPE_CHECKING:
    from concurrent.futures import Executor

EVERY = 0.25  # seconds between looks at a ledger
QUIET = 15.0  # seconds without news after which a sign of life is sent
LISTENERS = 64


class Feed:
    """One run that somebody looks at; as long as there are listeners, its ledger is read."""

    def __init__(self, space: Workspace, name: str, threads: Executor) -> None:
        self.space, self.name, self.threads = space, name, threads
        self.live: LiveRun | None = None
        self.listeners = 0
        self.news = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    def _look(self) -> bool:
        path = self.space.place(self.name)
        if not (path / "plan.json").exists():
            return False
        if self.live is None:
            self.live = LiveRun(path, stated_facts(path))
        return self.live.step()

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        while self.listeners:
            try:
                if await loop.run_in_executor(self.threads, self._look):
                    async with self.news:
                        self.news.notify_all()
            except (EchoboundError, OSError):
                pass  # a ledger that is just being made, or closed
            except Exception:
                log.exception("%s cannot be followed", self.name)
                self.live = None  # begun anew: whoever looks on must not wait for dots that never come
                await asyncio.sleep(QUIET)
            await asyncio.sleep(EVERY)
        self._task = None

    def enter(self) -> None:
        """Somebody looks on."""
        self.listeners += 1
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._follow())


class EventsHandler(Guarded):
    """The events of one run."""

    async def get(self) -> None:
        """Tell what is new until the browser goes."""
        name, feeds = self.argument("run"), self.studio.feeds
        self.studio.require_known(name)
        if sum(feed.listeners for feed in feeds.values()) >= LISTENERS:
            raise Refused(503, f"{LISTENERS} pages look on already: close some of them")
        feed = feeds.setdefault(name, Feed(self.studio.space, name, self.studio.watchers))
        self.set_header("Content-Type", "text/event-stream; charset=utf-8")
        feed.enter()
        version, count = -1, 0
        try:
            self.write("retry: 500\n\n")
            while True:
                if feed.live is not None:
                    event = feed.live.since(version, count)
                    version, count = feed.live.version, len(feed.live.dots)
                    self.write(f"data: {json.dumps(jsonable(event), allow_nan=False)}\n\n")
                else:
                    self.write(": waiting\n\n")
                await self.flush()
                with suppress(TimeoutError):
                    async with feed.news:
                        await asyncio.wait_for(feed.news.wait(), QUIET)
        except StreamClosedError:
            pass
        finally:
            feed.listeners -= 1
            if not feed.listeners:
                feeds.pop(name, None)

    def on_connection_close(self) -> None:
        """The next write notices."""
