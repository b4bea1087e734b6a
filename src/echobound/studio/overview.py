"""Overview: the runs of a workspace at a glance, and the looks that were taken at the same data.

What a list shows is read as it stands in the files; opening a run derives every number of it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from echobound.errors import DamagedFile, EchoboundError
from echobound.files import read_json, require_plain
from echobound.runs.lock import holder
from echobound.studio.jobs import Job, Jobs
from echobound.studio.workspace import Workspace

FILES = ("plan.json", "certificate.json", "assessment.json", "verification.json", "generalisation.json")


def state_of(path: Path, jobs: list[Job]) -> str:
    """What a run is doing, by its files, its lock and the jobs about it."""
    if any(job.state == "running" for job in jobs) or holder(path) is not None:
        return "running"
    if any(job.state == "queued" for job in jobs):
        return "queued"
    if (path / "certificate.json").exists():
        return "finished"
    last = next((job.state for job in reversed(jobs) if job.order.kind == "identify"), None)
    return "failed" if last == "failed" else "unfinished"


class Overview:
    """Short facts of all runs; a folder is read again only when one of its files changed."""

    def __init__(self, space: Workspace, jobs: Jobs) -> None:
        self.space, self.jobs = space, jobs
        self._known: dict[str, tuple[Any, dict[str, Any]]] = {}

    def runs(self) -> list[dict[str, Any]]:
        """All runs, the newest first, with those that wait for their first draw."""
        orders = self.jobs.all()
        by_run: dict[str, list[Job]] = {}
        for job in orders:
            by_run.setdefault(job.order.run, []).append(job)
        folders = self.space.runs()
        found = [self._facts(name, path, by_run.get(name, [])) for name, path in folders.items()]
        for name, several in by_run.items():
            if name not in folders and several[-1].order.kind == "identify" and several[-1].state != "done":
                job = several[-1]
                state = job.state if job.state in ("queued", "running", "failed") else "unfinished"
                found.append({"name": name, "state": state, "made": job.order.made, "sentence": job.sentence})
                found[-1]["files"] = _files(several)
        return sorted(found, key=lambda one: -float(one["made"]))

    def _facts(self, name: str, path: Path, jobs: list[Job]) -> dict[str, Any]:
        stamps = tuple(stamp(path / file) for file in FILES)
        known = self._known.get(name)
        if known is None or known[0] != stamps:
            known = self._known[name] = (stamps, stated_facts(path))
        return {"name": name, "state": state_of(path, jobs), "files": _files(jobs), **known[1]}

    def same_data(self, name: str) -> list[dict[str, Any]]:
        """The runs on the same data as a run, itself included, the oldest first: each was a look at them."""
        mine = next((one for one in self.runs() if one["name"] == name), None)
        if mine is None:
            return []
        listed = self.looks(mine.get("data", ""), mine.get("files", ()))
        there = {one["name"] for one in listed}
        for one in self._searches(name, mine.get("digest", "")):
            if one["name"] not in there:
                listed.append(one)
        return sorted(listed, key=lambda one: float(one["made"]))

    def _searches(self, name: str, plan: str) -> list[dict[str, Any]]:
        """What the journal beside a run knows of searches on its data, also of those whose folders are gone."""
        from echobound.runs.journal import Journal

        path = self.space.place(name).resolve()
        entries, prefix = Journal(path.parent).entries(), name.rpartition("/")[0]
        data = next((entry["data"] for entry in entries if entry["plan"] == plan), None)
        known, found = {one["name"]: one for one in self.runs()}, []
        for entry in entries:
            if entry["data"] == data:
                run = f"{prefix}/{entry.get('run')}".removeprefix("/")
                gone = {"name": run, "state": "gone", "made": 0.0, "networks": entry.get("networks"), "gone": True}
                found.append(known.get(run, gone))
        return found

    def looks(self, data: str, files: Iterable[str]) -> list[dict[str, Any]]:
        """The runs on data of this digest, or on one of these files however it was cut, the oldest first."""
        wanted = set(files)
        found = (one for one in self.runs() if (data and one.get("data") == data) or wanted & set(one.get("files", ())))
        return sorted(found, key=lambda one: float(one["made"]))


def _files(jobs: list[Job]) -> list[str]:
    """The data files that a run was ordered with here; not known of one that was started elsewhere."""
    return [str(name) for job in jobs if job.order.ours for name in job.order.about.get("files", ())]


def stamp(path: Path) -> tuple[int, int] | None:
    """When a file was changed, and its size; None if there is none."""
    with suppress(OSError):
        found = path.stat()
        return found.st_mtime_ns, found.st_size
    return None


def stated_facts(path: Path) -> dict[str, Any]:
    """Facts of a run folder, as they stand in its files."""
    from echobound.scenario.words import score_title

    facts: dict[str, Any] = {"made": 0.0, "data": "", "law": "", "networks": None, "best": None, "score": ""}
    try:
        facts["made"] = (path / "plan.json").stat().st_mtime
        require_plain(*(path / file for file in FILES))  # a pipe would have the studio wait for ever
    except (OSError, DamagedFile):
        return facts | {"tested": False}
    with suppress(EchoboundError, OSError, AttributeError, TypeError, KeyError):
        plan = read_json(path / "plan.json")
        laws = plan.get("laws") or [plan.get("law") or {}]
        facts |= {
            "data": str(plan.get("data", "")),
            "digest": str(plan.get("digest", "")),
            "law": ", ".join(str(law.get("name") or law.get("kind") or "") for law in laws),
            "networks": plan.get("networks"),
            "families": len(laws),
            "epsilon": plan.get("epsilon"),
            "beta": plan.get("beta"),
            "score": str((plan.get("scores") or [""])[0]),
            "title": score_title(str((plan.get("scores") or [""])[0])),
            "rule": str(plan.get("rule", "")),
            "validation": str(plan.get("validation", "")),
            "seed": plan.get("seed"),
            "horizon": plan.get("horizon"),
        }
    with suppress(EchoboundError, OSError, AttributeError, TypeError):
        certificate = read_json(path / "certificate.json") if (path / "certificate.json").exists() else {}
        facts |= {"best": certificate.get("threshold"), "direction": certificate.get("direction")}
        facts["certified"] = certificate.get("status")
    with suppress(EchoboundError, OSError):
        if (path / "verification.json").exists():
            facts["fresh"] = read_json(path / "verification.json").get("fresh")
    with suppress(EchoboundError, OSError, AttributeError, TypeError):
        judged = read_json(path / "assessment.json") if (path / "assessment.json").exists() else {}
        facts |= {"grade": (judged.get("verdict") or {}).get("grade"), "scores": judged.get("scores")}
    facts["tested"] = (path / "generalisation.json").exists()
    return facts
