"""Intake: data files coming in, their columns, and every channel for the screen."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from tornado.web import stream_request_body

from echobound.data.options import ReadingOptions
from echobound.errors import EchoboundError, InputError
from echobound.studio.form import read_settings
from echobound.studio.handlers import Guarded
from echobound.studio.inspecting import inspected, layout_of
from echobound.studio.security import Refused
from echobound.studio.tables import thinned
from echobound.studio.workspace import Upload


@stream_request_body
class Files(Guarded):
    """Data files coming in."""

    upload: Upload | None = None
    refusal: EchoboundError | None = None

    def prepare(self) -> Any:
        """Refuse before anything is read; the pieces are written as they come."""
        super().prepare()
        if self._finished:
            return
        limit = self.studio.upload_limit
        length = self.request.headers.get("Content-Length", "")
        if length.isdecimal() and int(length) > limit:
            self.set_header("Connection", "close")
            raise Refused(413, f"the file is larger than {limit >> 20} MiB: put it into the folder yourself")
        self.request.connection.set_max_body_size(limit + 1)  # type: ignore[union-attr]
        if self.request.method == "PUT":
            self.upload = self.studio.space.upload(self.argument("name"))

    def data_received(self, chunk: bytes) -> None:
        """One piece; what went wrong is said at the end, since nobody listens before."""
        if self.upload is None or self._finished:
            return
        limit = self.studio.upload_limit
        try:
            if self.upload.size + len(chunk) > limit:
                raise Refused(413, f"the file is larger than {limit >> 20} MiB: put it into the folder yourself")
            self.upload.write(chunk)
        except OSError as error:  # the disk is full
            self.refusal = InputError(f"the file cannot be written ({error.strerror}): nothing of it was kept")
        except Refused as refusal:
            self.refusal = refusal
        if self.refusal is not None:
            self._abandon()

    def put(self) -> None:
        """The file is complete."""
        if self.refusal is not None:
            raise self.refusal
        if self.upload is None:
            raise InputError("nothing came in")
        name = self.upload.target.name
        upload, self.upload = self.upload, None
        try:
            upload.finish()
        except OSError as error:  # what was kept in memory did not fit
            upload.abandon()
            raise InputError(f"the file cannot be written ({error.strerror}): nothing of it was kept") from None
        self.answer({"name": name})

    def _abandon(self) -> None:
        if self.upload is not None:
            self.upload.abandon()
            self.upload = None

    def on_connection_close(self) -> None:
        """Nothing half written stays."""
        self._abandon()

    def on_finish(self) -> None:
        """Also after an error."""
        self._abandon()


def reading_in(handler: Guarded) -> dict[str, Any]:
    """How a file is to be read, by the arguments of the address."""
    names = {one.name for one in fields(ReadingOptions)} - {"inputs", "outputs", "rows", "time"}
    given = {name: handler.get_query_argument(name) for name in names & set(handler.request.query_arguments)}
    time = handler.get_query_argument("time", None)
    return read_settings(ReadingOptions, given) | ({"time": time} if time else {})


class File(Guarded):
    """One data file: its columns."""

    async def get(self) -> None:
        """What `inspect` says, and what is needed to choose."""
        sides = (self.get_query_arguments("inputs"), self.get_query_arguments("outputs"))
        self.answer(
            await self.in_thread(inspected, self.studio.tables, self.argument("name"), reading_in(self), *sides)
        )


class Curves(Guarded):
    """Channels of a file for the screen."""

    async def get(self) -> None:
        """All of them, or a stretch of rows."""
        start, stop, width = (self.get_query_argument(name, None) for name in ("start", "stop", "width"))
        try:
            numbers = [None if text is None else int(float(text)) for text in (start, stop, width)]
        except (ValueError, OverflowError):
            raise InputError("start, stop and width are numbers") from None
        self.answer(await self.in_thread(self._content, self.argument("name"), reading_in(self), *numbers))

    def _content(
        self, name: str, reading: dict[str, Any], start: int | None, stop: int | None, width: int | None
    ) -> dict[str, Any]:
        columns = self.studio.tables.columns(name, layout_of(reading))
        low = max(0, start or 0)
        high = min(columns.length, stop or columns.length)
        rows = np.arange(low, max(low, high), dtype=np.float64)
        found = []
        labels = zip(columns.names, columns.units, columns.values, strict=True)
        for number, (title, unit, values) in enumerate(labels, start=1):
            x, y = thinned(rows, values[low : max(low, high)], width or 800)
            found.append({"number": number, "name": title, "unit": unit, "x": x, "y": y})
        return {"length": columns.length, "columns": found, "rows": columns.jumps}
