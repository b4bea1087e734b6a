"""Views: the pages of the studio, and what the first of them shows.

Nothing here needs the rooms of identification: the first view waits for none of them.
"""

from __future__ import annotations

import mimetypes
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

from echobound.errors import InputError
from echobound.files import require_plain
from echobound.studio.handlers import Guarded
from echobound.studio.security import FILES, REPORTS
from echobound.studio.workspace import EXPORTS


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
        require_plain(path)
        if not path.is_file():
            raise InputError("this run has no page yet: it is written with the certificate")
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(path.read_bytes())


class Download(Guarded):
    """What was exported."""

    policy = FILES

    async def get(self) -> None:
        """A file of the folder for exports of a run, looked up by its name."""
        path = exported(self.studio.space.run(self.argument("run"))).get(self.argument("file"))
        if path is None:
            raise InputError("there is no such export of this run")
        self.set_header("Content-Type", mimetypes.guess_type(path.name)[0] or "application/octet-stream")
        self.set_header("Content-Disposition", f"attachment; filename*=UTF-8''{quote(path.name)}")
        with path.open("rb") as file:
            while chunk := file.read(1 << 16):
                self.write(chunk)
                await self.flush()


def exported(run: Path) -> dict[str, Path]:
    """Files that were exported from a run, by their names below the folder for exports."""
    folder = run / EXPORTS
    if not folder.is_dir() or folder.is_symlink():
        return {}
    found = (one for one in sorted(folder.rglob("*")) if one.is_file() and not one.is_symlink())
    return {one.relative_to(folder).as_posix(): one for one in found}


class Folder(Guarded):
    """Everything at a glance."""

    async def get(self) -> None:
        """Files, runs and jobs."""
        self.answer(await self.in_thread(self._content))
        self.studio.warm()

    def _content(self) -> dict[str, Any]:
        studio = self.studio
        jobs = [job.to_dict() for job in studio.jobs.all()]
        files = [asdict(file) for file in studio.space.files()]
        return {"folder": str(studio.space.path), "files": files, "runs": studio.overview.runs(), "jobs": jobs[-100:]}


PAGES_OF: list[Any] = [
    (r"/", Page, {"template": "home.html"}),
    (r"/new", Page, {"template": "new.html"}),
    (r"/run", Page, {"template": "run.html"}),
    (r"/compare", Page, {"template": "compare.html"}),
    (r"/report", ReportPage),
    (r"/download", Download),
    (r"/api/folder", Folder),
]
