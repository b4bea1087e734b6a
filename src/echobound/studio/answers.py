"""Answers: the JSON behind the pages, and what is done for them; imported when the first of it is asked for."""

from __future__ import annotations

import asyncio
from typing import Any

from echobound.errors import InputError
from echobound.files import read_json
from echobound.studio.actions import ACTIONS, AFTERWARDS, order_of
from echobound.studio.events import EventsHandler
from echobound.studio.handlers import Guarded
from echobound.studio.intake import Curves, File, Files
from echobound.studio.jobs import typed
from echobound.studio.planning import Estimate, Form, Numbers, Runs
from echobound.studio.views import exported


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
        return {
            "facts": facts,
            "jobs": jobs,
            "plan": plan,
            "page": path is not None and (path / "report.html").is_file(),
            "exports": [] if path is None else list(exported(path)),
            **_commands(studio.space.typed(name), jobs, finished=bool(facts.get("certified"))),
            "looks": studio.overview.same_data(name),
            "afterwards": AFTERWARDS,
            "actions": {
                kind: {"title": one.title, "meaning": one.meaning, "choices": one.choices}
                for kind, one in ACTIONS.items()
            },
        }


def _commands(place: str, jobs: list[dict[str, Any]], *, finished: bool) -> dict[str, str]:
    """What made a run, or looks at one that was started elsewhere."""
    made = next((job for job in jobs if job["kind"] == "identify"), None)
    if made is not None:
        return {"command": made["command"], "python": made["python"]}
    python = f"from echobound import RunFolder\n\nfolder = RunFolder({place!r})\n"
    if finished:
        return {"command": typed(["show", place]), "python": f"{python}print(folder.certificate.statement)"}
    return {"command": typed(["watch", place]), "python": f"{python}print(folder.plan)"}


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
        arguments, python = await self.in_thread(order_of, kind, run, given, self.studio.jobs)
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
        self.answer(found)


ANSWERS: list[Any] = [
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
    (r"/events", EventsHandler),
]
