"""Server: the addresses of the studio, and what serves them."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPMessageDelegate, HTTPServerRequest
from tornado.netutil import bind_sockets
from tornado.routing import Router
from tornado.web import Application, StaticFileHandler

from echobound.errors import EchoboundError, InputError
from echobound.studio.handlers import Guarded
from echobound.studio.jobs import Jobs
from echobound.studio.overview import Overview
from echobound.studio.security import Gate, settle_token
from echobound.studio.showing import Shown
from echobound.studio.views import PAGES_OF
from echobound.studio.workspace import Workspace, shown

if TYPE_CHECKING:
    from asyncio import Future

    from jinja2 import Environment

    from echobound.studio.comparing import Comparison
    from echobound.studio.drafts import Draft
    from echobound.studio.events import Feed
    from echobound.studio.tables import Tables

HERE = Path(__file__).parent
BODY = 1 << 20  # bytes of a request that is no upload
UPLOAD = 1 << 30  # bytes of a file
THREADS = 4
ANSWERS = "echobound.studio.answers"
QUEUE = 0.5  # seconds between looks at the queue


class Studio:
    """What the addresses share: the folder, who may come in, and what is kept in memory for speed alone."""

    def __init__(self, space: Workspace, gate: Gate, upload_limit: int = UPLOAD) -> None:
        self.space, self.gate, self.upload_limit = space, gate, upload_limit
        self.jobs = Jobs(space)
        self.overview = Overview(space, self.jobs)
        self.shown = Shown(space)
        self.feeds: dict[str, Feed] = {}
        self.threads = ThreadPoolExecutor(THREADS, "studio")
        self.watchers = ThreadPoolExecutor(2, "ledger")  # of their own: a long computation must not delay the dots
        self.waiting = 0
        self.trials = asyncio.Lock()
        self._warm: Future[Any] | None = None

    @cached_property
    def tables(self) -> Tables:
        """The data files."""
        from echobound.studio.tables import Tables

        return Tables(self.space)

    @cached_property
    def comparison(self) -> Comparison:
        """Models over records."""
        from echobound.studio.comparing import Comparison

        return Comparison(self.space, self.jobs)

    def warm(self) -> None:
        """Import what the next views need, once, while the first one is looked at."""
        if self._warm is None:
            self._warm = asyncio.get_running_loop().run_in_executor(self.watchers, import_module, ANSWERS)

    def render(self, template: str, **values: Any) -> str:
        """A page."""
        return _environment().get_template(template).render(folder=self.space.path.name, **values)

    def require_known(self, run: str) -> None:
        """Refuse a name that is neither a run folder nor that of a run in the queue."""
        if run not in self.space.runs() and all(order.run != run for order in self.jobs.orders()):
            raise InputError(f"there is no run {shown(run)} in the folder: it may have been moved or removed")

    def named(self, draft: Draft) -> Draft:
        """The draft with a name for its run, after its first file, that no run has and none in the queue."""
        first = draft.files["training"][:1]
        return replace(draft, run=self.space.free_run(Path(first[0]).stem if first else "run", self.jobs.open_runs()))

    async def work(self) -> None:
        """Start what waits, one after the other, as long as the server lives."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                if await loop.run_in_executor(self.watchers, self.jobs.start_next):
                    await loop.run_in_executor(self.watchers, self.jobs.tidy)
            except (EchoboundError, OSError) as error:
                print(f"echobound: {error}", file=sys.stderr)
            await asyncio.sleep(QUEUE)

    def application(self) -> Application:
        """The addresses."""
        routes: list[Any] = [
            (r"/static/([a-z]+\.(?:js|css|svg))", Static, {"path": str(HERE / "static")}),
            (r"/bokeh/(bokeh(?:-api)?\.min\.js)", Static, {"path": str(bokeh_scripts())}),
            *PAGES_OF,
        ]
        return self._serving([*routes, (r"/(?:api/.*|events)", Later(self))])

    def _serving(self, routes: list[Any]) -> Application:
        return Application(
            routes, default_handler_class=Missing, studio=self, log_function=lambda _: None, compress_response=False
        )

    @cached_property
    def answers(self) -> Application:
        """The addresses that need the rooms of identification."""
        return self._serving(import_module(ANSWERS).ANSWERS)


class Later(Router):
    """Addresses that are imported when one of them is asked for: the first view waits for none of them."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    def find_handler(self, request: HTTPServerRequest, **_: Any) -> HTTPMessageDelegate:
        """Who answers."""
        return self.studio.answers.find_handler(request)


class Static(Guarded, StaticFileHandler):
    """Scripts and styles: our own, and Bokeh's from the installed package."""

    def set_extra_headers(self, path: str) -> None:
        """They may be kept, but are asked for again: a new version must not meet an old script."""
        self.set_header("Cache-Control", "no-cache")


class Missing(Guarded):
    """Any other address."""

    def prepare(self) -> Any:
        """Whoever may come in hears that there is nothing."""
        super().prepare()
        if not self._finished:
            self.send_error(404)


@cache
def bokeh_scripts() -> Path:
    """Bokeh's scripts in the installed package; it is not imported for that."""
    found = find_spec("bokeh")
    if found is None or not found.submodule_search_locations:
        raise InputError("Bokeh is not installed: install echobound again")
    return Path(found.submodule_search_locations[0]) / "server" / "static" / "js"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("echobound.studio"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Data for scripts stand in an attribute or in a script of a type that is not run; `<` cannot end it.
    environment.filters["data"] = lambda value: json.dumps(value)
    return environment


def open_studio(
    folder: Path, host: str, port: int, token: str | None, upload_limit: int = UPLOAD
) -> tuple[Studio, HTTPServer]:
    """Bind the server, before anything is printed; it serves once the loop runs."""
    space = Workspace(folder)
    loopback = Gate("", host, port).on_loopback
    settled = settle_token(token, loopback, space.desk / "token")
    try:
        sockets = bind_sockets(port, host)
    except OSError as error:
        raise InputError(f"cannot serve at {host}, port {port} ({error.strerror}): choose another --port") from None
    gate = Gate(settled, host, sockets[0].getsockname()[1])
    studio = Studio(space, gate, upload_limit)
    server = HTTPServer(
        studio.application(), max_body_size=BODY, max_header_size=1 << 16, chunk_size=1 << 16,
        idle_connection_timeout=120, body_timeout=3600,
    )  # fmt: skip
    server.add_sockets(sockets)
    return studio, server


def serve(
    folder: Path, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None, upload_limit: int = UPLOAD,
    opened: Any = None,
) -> None:  # fmt: skip
    """Serve a folder until interrupted; `opened` is called with the address once the server listens.

    Parameters
    ----------
    folder
        The workspace: data files and run folders.
    host, port
        Where to listen; 0 takes a free port.
    token
        The secret of the address; a new one if not given. Needed for a host that others can reach.
    upload_limit
        Bytes of a file that is taken in.
    """
    logging.getLogger("tornado").setLevel(logging.CRITICAL)  # whoever sends nonsense gets an answer, not a log
    # Not ignored, as it may be in the background: processes that are started here inherit that, and could not be
    # stopped in good order.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    async def run() -> bool:
        studio, server = open_studio(folder, host, port, token, upload_limit)
        if opened is not None:
            opened(studio.gate)
        loop, told = asyncio.get_running_loop(), asyncio.Event()
        with suppress(NotImplementedError):  # where there are no such signals
            loop.add_signal_handler(signal.SIGTERM, told.set)
        working = loop.create_task(studio.work())
        try:
            return await told.wait()
        finally:
            working.cancel()
            server.stop()
            studio.threads.shutdown(wait=False, cancel_futures=True)
            studio.watchers.shutdown(wait=False, cancel_futures=True)

    # An exception from a signal handler would end up in whichever callback runs: the loop is told, and then whoever
    # called is, in the way of SIGTERM.
    terminated, told_before = False, signal.getsignal(signal.SIGTERM)
    with suppress(KeyboardInterrupt):
        terminated = asyncio.run(run())
    if terminated:
        signal.signal(signal.SIGTERM, told_before)
        signal.raise_signal(signal.SIGTERM)
