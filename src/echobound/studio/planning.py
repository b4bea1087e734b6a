"""Planning: the form, a draft worked out as it is typed, how long it will take, and the order to draw it."""

from __future__ import annotations

import json
from typing import Any

from echobound.errors import EchoboundError, InputError
from echobound.plan.numbers import settle_networks, settle_stop
from echobound.runs.journal import Journal, data_key
from echobound.studio.actions import AFTERWARDS
from echobound.studio.drafts import Draft
from echobound.studio.form import form, reading_form
from echobound.studio.handlers import Guarded
from echobound.studio.jobs import typed
from echobound.studio.showing import answer_of


class Form(Guarded):
    """The settings."""

    def get(self) -> None:
        """Groups of fields."""
        self.answer({"groups": form(), "reading": reading_form(), "meaning": AFTERWARDS})


class Numbers(Guarded):
    """A draft, worked out: numbers, what the data decide, commands."""

    async def post(self) -> None:
        """Numbers follow at once; what needs the data is in `settled` or, if it cannot be, in `error`."""
        draft = Draft.from_json(self.content())
        if not draft.run:
            draft = self.studio.named(draft)
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
        records = self.studio.tables.records(draft)
        plan, scheme = draft.settle(records)
        samples = {role: sum(map(len, several)) for role, several in records.items()}
        data = scheme.data
        files = [name for several in draft.files.values() for name in several]
        before = self.studio.overview.looks(data, files)
        journal = Journal((self.studio.space.path / draft.run).parent)
        searched = {entry["plan"] for entry in journal.entries() if entry["data"] == data_key(scheme.experiments)}
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
            "search": journal.number(data_key(scheme.experiments), plan.digest) or len(searched) + 1,
            "before": [{"name": one["name"], "made": one["made"], "state": one["state"]} for one in before],
        }


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
            draft = self.studio.named(draft)
        path = space.new_run(draft.run)
        if path.exists() or draft.run in self.studio.jobs.open_runs():
            raise InputError(f"{draft.run} exists already: choose another name for the run")
        draft.settle(self.studio.tables.records(draft))
        arguments = [*draft.arguments(), "--json"]
        files = sorted({name for several in draft.files.values() for name in several})
        self.studio.jobs.add("identify", draft.run, arguments, draft.python(), files=files, columns=draft.columns)
        return draft.run, draft.python()
