"""Views: the pages of the studio, and the JSON behind them."""

from __future__ import annotations

import asyncio
import json
import mimetypes
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from tornado.web import stream_request_body

from echobound.errors import EchoboundError, InputError
from echobound.files import read_json
from echobound.plan.numbers import settle_networks, settle_stop
from echobound.studio.actions import ACTIONS, AFTERWARDS, order_of
from echobound.studio.comparing import commands_of
from echobound.studio.drafts import Draft, stem
from echobound.studio.form import form
from echobound.studio.handlers import Guarded
from echobound.studio.jobs import typed
from echobound.studio.security import FILES, REPORTS, Refused
from echobound.studio.showing import answer_of
from echobound.studio.tables import thinned
from echobound.studio.workspace import Upload

EXPORTS = "exports"  # in a run folder


class Page(Guarded):
    """One of the studio's pages."""

    def initialize(self, template: str) -> None:
        """Which one."""
        self.template = template

    def get(self) -> None:
        """The page; its script asks for what is in it."""
        if self._finished:
            return
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(self.studio.render(self.template, limit=self.studio.upload_limit))


class ReportPage(Guarded):
    """The page of a run, in a sandbox."""

    policy = REPORTS

    def get(self) -> None:
        """The file as it is."""
        path = self.studio.space.run(self.argument("run")) / "report.html"
        if not path.is_file():
            raise InputError("this run has no page yet: it is written with the certificate")
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(path.read_bytes())


class Download(Guarded):
    """What was exported."""

    policy = FILES

    async def get(self) -> None:
        """A file of the folder for exports of a run, looked up by its name."""
        folder = self.studio.space.run(self.argument("run")) / EXPORTS
        wanted = self.argument("file")
        files = [one for one in folder.iterdir() if one.is_file() and not one.is_symlink()] if folder.is_dir() else []
        path = next((one for one in files if one.name == wanted), None)
        if path is None:
            raise InputError("there is no such export of this run")
        self.set_header("Content-Type", mimetypes.guess_type(path.name)[0] or "application/octet-stream")
        self.set_header("Content-Disposition", f"attachment; filename*=UTF-8''{quote(path.name)}")
        with path.open("rb") as file:
            while chunk := file.read(1 << 16):
                self.write(chunk)
                await self.flush()


class Folder(Guarded):
    """Everything at a glance."""

    async def get(self) -> None:
        """Files, runs and jobs."""
        self.answer(await self.in_thread(self._content))

    def _content(self) -> dict[str, Any]:
        studio = self.studio
        jobs = [job.to_dict() for job in studio.jobs.all()]
        files = [asdict(file) for file in studio.space.files()]
        return {"folder": str(studio.space.path), "files": files, "runs": studio.overview.runs(), "jobs": jobs[-100:]}


@stream_request_body
class Files(Guarded):
    """Data files coming in."""

    upload: Upload | None = None

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
        """One piece."""
        if self.upload is None or self._finished:
            return
        if self.upload.size + len(chunk) > self.studio.upload_limit:
            self._abandon()
            self.set_header("Connection", "close")
            raise Refused(413, f"the file is larger than {self.studio.upload_limit >> 20} MiB")
        self.upload.write(chunk)

    def put(self) -> None:
        """The file is complete."""
        if self.upload is None:
            raise InputError("nothing came in")
        name = self.upload.target.name
        self.upload.finish()
        self.upload = None
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


class File(Guarded):
    """One data file: its columns."""

    async def get(self) -> None:
        """What `inspect` says, and what is needed to choose."""
        self.answer(await self.in_thread(self._content, self.argument("name"), self.get_query_argument("sheet", None)))

    def _content(self, name: str, sheet: str | None) -> dict[str, Any]:
        from echobound.studio.inspecting import inspected

        return inspected(self.studio.tables, name, sheet)


class Curves(Guarded):
    """Channels of a file for the screen."""

    async def get(self) -> None:
        """All of them, or a stretch of rows."""
        start, stop, width = (self.get_query_argument(name, None) for name in ("start", "stop", "width"))
        try:
            numbers = [None if text is None else int(float(text)) for text in (start, stop, width)]
        except (ValueError, OverflowError):
            raise InputError("start, stop and width are numbers") from None
        self.answer(await self.in_thread(self._content, self.argument("name"), *numbers))

    def _content(self, name: str, start: int | None, stop: int | None, width: int | None) -> dict[str, Any]:
        import numpy as np

        columns = self.studio.tables.columns(name, self.get_query_argument("sheet", None))
        low = max(0, start or 0)
        high = min(columns.length, stop or columns.length)
        rows = np.arange(low, max(low, high), dtype=np.float64)
        found = []
        first = [columns.rows[0], columns.rows[columns.length - 1]] if columns.length else []
        labels = zip(columns.names, columns.units, columns.values, strict=True)
        for number, (title, unit, values) in enumerate(labels, start=1):
            x, y = thinned(rows, values[low : max(low, high)], width or 800)
            found.append({"number": number, "name": title, "unit": unit, "x": x, "y": y})
        return {"length": columns.length, "columns": found, "rows": first}


class Form(Guarded):
    """The settings."""

    def get(self) -> None:
        """Groups of fields."""
        self.answer({"groups": form(), "meaning": AFTERWARDS})


class Numbers(Guarded):
    """A draft, worked out: numbers, what the data decide, commands."""

    async def post(self) -> None:
        """Numbers follow at once; what needs the data is in `settled` or, if it cannot be, in `error`."""
        draft = Draft.from_json(self.content())
        if not draft.run:
            first = draft.files["training"][:1]
            draft = _named(draft, self.studio.space.free_run(stem(first[0]) if first else "run"))
        answer: dict[str, Any] = {"run": draft.run, "error": None, "settled": None}
        try:
            answer |= _numbers(draft)
        except EchoboundError as error:
            answer["error"] = str(error)
        else:
            try:
                answer["settled"] = await self.in_thread(self._settled, draft)
            except EchoboundError as error:
                answer["error"] = str(error)
        answer |= {"command": typed(draft.arguments()), "python": draft.python()}
        self.answer(answer)

    def _settled(self, draft: Draft) -> dict[str, Any]:
        records = draft.records(self.studio.space)
        plan, scheme = draft.settle(records)
        samples = {role: sum(map(len, several)) for role, several in records.items()}
        data = scheme.data
        before = [one for one in self.studio.overview.runs() if one.get("data") == data]
        return {
            "chosen": list(scheme.chosen),
            "samples": samples,
            "sampling_time": records["training"][0].sampling_time,
            "networks": plan.networks,
            "families": [family.name for family in plan.families],
            "law": ", ".join(law.name for law in plan.law),
            "scores": list(plan.scores),
            "epsilon": plan.epsilon,
            "beta": plan.beta,
            "washout": plan.washout,
            "blocks": plan.blocks,
            "rule": plan.rule,
            "digest": plan.digest,
            "before": [{"name": one["name"], "made": one["made"], "state": one["state"]} for one in before],
        }


def _named(draft: Draft, run: str) -> Draft:
    from dataclasses import replace

    return replace(draft, run=run)


def _numbers(draft: Draft) -> dict[str, Any]:
    """Networks and epsilon, without looking at the data."""
    plan = draft.asked()
    together = len(plan.scores or ("fit", "rmse")) if plan.joint else 1
    given = (plan.epsilon, plan.beta, plan.networks, plan.bound)
    if plan.stop is None and plan.target is None:
        networks, epsilon = settle_networks(*given, plan.discarded, together)
    else:
        _, networks, epsilon = settle_stop(plan.stop or "anytime", *given, plan.discarded, together)
    return {"networks": networks, "epsilon": epsilon, "beta": plan.beta, "members": plan.members}


class Estimate(Guarded):
    """How long a draft will take."""

    async def post(self) -> None:
        """By a few draws in a process of its own; one at a time."""
        content = self.content()
        Draft.from_json(content).require_columns()
        if self.studio.trials.locked():
            self.answer({"busy": True})
            return
        async with self.studio.trials:
            given = json.dumps({"draft": content, "folder": str(self.studio.space.path)}).encode()
            self.answer(await answer_of([], self.studio.space.path, given, module="echobound.studio.trial"))


class Runs(Guarded):
    """New runs."""

    async def post(self) -> None:
        """Put a run into the queue, after everything that can be refused was."""
        draft = Draft.from_json(self.content())
        run, python = await self.in_thread(self._order, draft)
        self.answer({"run": run, "python": python})

    def _order(self, draft: Draft) -> tuple[str, str]:
        space = self.studio.space
        if not draft.run:
            draft = _named(
                draft, space.free_run(stem(draft.files["training"][0]) if draft.files["training"] else "run")
            )
        path = space.new_run(draft.run)
        if path.exists() or any(order.run == draft.run for order in self.studio.jobs.orders()):
            raise InputError(f"{draft.run} exists already: choose another name for the run")
        draft.settle(draft.records(space))
        arguments = [*draft.arguments(), "--json"]
        self.studio.jobs.add("identify", draft.run, arguments, draft.python())
        return draft.run, draft.python()


class Run(Guarded):
    """One run."""

    async def get(self) -> None:
        """What can be said at once: plan, state, jobs, looks at the same data."""
        name = self.argument("name")
        self.studio.require_known(name)
        self.answer(await self.in_thread(self._content, name))

    def _content(self, name: str) -> dict[str, Any]:
        studio = self.studio
        path = studio.space.runs().get(name)
        facts = next((one for one in studio.overview.runs() if one["name"] == name), {"name": name, "state": "queued"})
        jobs = [job.to_dict() for job in studio.jobs.of_run(name)]
        plan = {}
        if path is not None:
            plan = read_json(path / "plan.json")
            plan.pop("folds", None)
        exports = (
            sorted(one.name for one in (path / EXPORTS).iterdir() if one.is_file())
            if path and (path / EXPORTS).is_dir()
            else []
        )
        return {
            "facts": facts,
            "jobs": jobs,
            "plan": plan,
            "page": path is not None and (path / "report.html").is_file(),
            "exports": exports,
            "looks": studio.overview.same_data(name),
            "afterwards": AFTERWARDS,
            "actions": {kind: {"title": one.title, "meaning": one.meaning} for kind, one in ACTIONS.items()},
        }


class Result(Guarded):
    """What a finished run says, checked."""

    async def get(self) -> None:
        """As `echobound show --json`."""
        self.answer(await self.studio.shown.of(self.argument("name")))


class Act(Guarded):
    """An action on a finished run."""

    async def post(self) -> None:
        """Show the command, or put it into the queue."""
        content = self.content()
        kind, run, given = str(content.get("kind")), str(content.get("run")), content.get("given") or {}
        if not isinstance(given, dict):
            raise InputError("given must be an object")
        arguments, python = await self.in_thread(order_of, kind, run, given, self.studio.space)
        order = None
        if content.get("go") is True:
            order = self.studio.jobs.add(kind, run, arguments, python)
        self.answer({"command": typed(arguments), "python": python, "job": None if order is None else order.key})


class JobView(Guarded):
    """One job."""

    async def get(self) -> None:
        """How far it is, with its answer."""
        job = await self.in_thread(self.studio.jobs.find, self.argument("key"))
        self.answer({**job.to_dict(), "answer": job.answer})

    async def post(self) -> None:
        """Stop it, or go on."""
        content = self.content()
        jobs, key, what = self.studio.jobs, str(content.get("key")), content.get("what")
        if what not in ("stop", "go on"):
            raise InputError("a job can be told to stop or to go on")
        await self.in_thread(jobs.stop if what == "stop" else jobs.go_on, key)
        await asyncio.sleep(0.05)
        self.answer({})


class Compare(Guarded):
    """Models over a record."""

    async def get(self) -> None:
        """What there is to choose from."""
        self.answer(await self.in_thread(self.studio.comparison.choices, self.get_query_arguments("run")))

    async def post(self) -> None:
        """Curves and scores."""
        content = self.content()
        try:
            models = [(str(run), str(which)) for run, which in content.get("models") or []]
            start, stop = (None if content.get(n) is None else float(content[n]) for n in ("start", "stop"))
            width = int(content.get("width") or 800)
        except (TypeError, ValueError):
            raise InputError("models are pairs of a run and network or committee") from None
        key = str(content.get("record"))
        found = await self.in_thread(self.studio.comparison.picture, models, key, start, stop, width)
        self.answer({**found, "python": commands_of(models, key)})


PAGES_OF: list[Any] = [
    (r"/", Page, {"template": "home.html"}),
    (r"/new", Page, {"template": "new.html"}),
    (r"/run", Page, {"template": "run.html"}),
    (r"/compare", Page, {"template": "compare.html"}),
    (r"/report", ReportPage),
    (r"/download", Download),
]
API: list[Any] = [
    (r"/api/folder", Folder),
    (r"/api/files", Files),
    (r"/api/file", File),
    (r"/api/curves", Curves),
    (r"/api/form", Form),
    (r"/api/numbers", Numbers),
    (r"/api/estimate", Estimate),
    (r"/api/runs", Runs),
    (r"/api/run", Run),
    (r"/api/result", Result),
    (r"/api/act", Act),
    (r"/api/job", JobView),
    (r"/api/compare", Compare),
]
