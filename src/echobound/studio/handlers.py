"""Handlers: what all addresses of the studio have in common: who may come in, answers, errors as one sentence."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import partial
from http.client import responses
from typing import TYPE_CHECKING, Any, TypeVar

from tornado.ioloop import IOLoop
from tornado.web import HTTPError, RequestHandler

from echobound.errors import EchoboundError, InputError
from echobound.files import jsonable
from echobound.studio.security import PAGES, Refused

if TYPE_CHECKING:
    from echobound.studio.server import Studio

T = TypeVar("T")
WAITING = 64  # calls that may wait for a thread; more are told to come again
log = logging.getLogger("echobound.studio")


class Guarded(RequestHandler):
    """A request that was let in; whatever goes wrong is one sentence."""

    policy = PAGES

    @property
    def studio(self) -> Studio:
        """What the addresses share."""
        return self.application.settings["studio"]  # type: ignore[no-any-return]

    def set_default_headers(self) -> None:
        """The same for every answer, errors too."""
        self.set_header("Content-Security-Policy", self.policy)
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("Cross-Origin-Resource-Policy", "same-origin")
        self.set_header("Cross-Origin-Opener-Policy", "same-origin")
        self.set_header("Cache-Control", "no-store")
        self.clear_header("Server")

    def prepare(self) -> Any:
        """Refuse whoever may not come in."""
        gate = self.studio.gate
        gate.require_ours(self.request.method or "", self.request.headers)
        given = self.get_query_argument("token", None)
        if given is not None and self.request.method == "GET" and self.request.path == "/":
            gate.require_token(given)
            self.set_cookie(gate.cookie, gate.pass_value, httponly=True, samesite="Strict", path="/")
            self.redirect("/", status=303)
            return
        gate.require_pass(self.get_cookie(gate.cookie))

    async def in_thread(self, function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
        """Call what takes long in a thread, so that others are served meanwhile; bounded, so that none pile up."""
        studio = self.studio
        if studio.waiting >= WAITING:
            raise Refused(503, "the studio is busy with other requests: try again in a moment")
        studio.waiting += 1
        try:
            called = partial(function, *arguments, **keywords)
            return await IOLoop.current().run_in_executor(studio.threads, called)
        finally:
            studio.waiting -= 1

    def content(self) -> dict[str, Any]:
        """The JSON object that was sent."""
        try:
            found = json.loads(self.request.body or b"{}")
        except (ValueError, RecursionError):
            raise InputError("a JSON object was expected") from None
        if not isinstance(found, dict):
            raise InputError("a JSON object was expected")
        return found

    def argument(self, name: str) -> str:
        """An argument of the address that has to be there."""
        found = self.get_query_argument(name, None)
        if found is None:
            raise InputError(f"{name} is missing in the address")
        return found

    def answer(self, value: Any) -> None:
        """Answer with JSON."""
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.finish(json.dumps(jsonable(value), ensure_ascii=True, allow_nan=False))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """One sentence, as JSON or as a page; never a traceback."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(error, Refused):
            self.set_status(error.status)
            sentence = str(error)
        elif isinstance(error, EchoboundError):
            self.set_status(400)
            sentence = str(error)
        elif isinstance(error, HTTPError):
            sentence = responses.get(status_code, "this request cannot be answered").lower()
        else:
            sentence = "something went wrong in the studio; the terminal in which it was started says what"
        if self.request.path.startswith("/api/"):
            self.answer({"error": sentence})
        else:
            self.set_header("Content-Type", "text/html; charset=utf-8")
            self.finish(self.studio.render("error.html", sentence=sentence, status=self.get_status()))

    def log_exception(self, *found: Any) -> None:
        """What was refused needs no traceback; what was not foreseen does."""
        if not isinstance(found[1], EchoboundError | HTTPError):
            log.error("%s %s", self.request.method, self.request.path, exc_info=found)
