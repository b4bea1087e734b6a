"""Workspace: the folder that the studio is about: its data files and its run folders, by name.

A name from the browser never becomes a path: it is looked up among what is there. Only a new name (of an upload, of a
run) is made into one, after everything that could lead elsewhere has been refused.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from echobound.errors import InputError

KINDS = (".csv", ".txt", ".tsv", ".dat", ".parquet", ".mat", ".npz", ".npy", ".xlsx", ".xlsm")
DEPTH = 3  # folders below the chosen one that are looked through for runs
MOST = 5000  # entries that are looked at; a folder of more is not a workspace
EXPORTS = "exports"  # what was exported of a run, in its folder
LONGEST = 120  # bytes of a new name


@dataclass(frozen=True)
class DataFile:
    """A file that may be read."""

    name: str  # relative to the folder
    size: int
    changed: float


class Workspace:
    """A folder with data files and run folders.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     space = Workspace(Path(folder))
    ...     _ = (space.path / "plant.csv").write_text("u,y")
    ...     [file.name for file in space.files()], space.file("plant.csv").name
    (['plant.csv'], 'plant.csv')
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        if not self.path.is_dir():
            raise InputError(f"there is no folder {path}: give the one with your data, or make it first")

    @property
    def desk(self) -> Path:
        """Where the studio keeps its orders; made on first use."""
        desk = self.path / ".studio"
        try:
            for folder in (desk, desk / "jobs"):
                if folder.is_symlink():
                    raise InputError(
                        f"{folder} is a link: remove it, so that the studio writes into its own folder only"
                    )
                folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write in {self.path} ({error.strerror}): choose another folder") from None
        return desk

    def _walk(self) -> Iterator[tuple[os.DirEntry[str], str]]:
        """Entries below the folder with their names, breadth first; what leads out of the folder is left out."""
        level, looked = [(self.path, "")], 0
        for _ in range(DEPTH):
            below = []
            for folder, prefix in level:
                with suppress(OSError), os.scandir(folder) as entries:
                    for entry in sorted(entries, key=lambda one: one.name):
                        looked += 1
                        if entry.name.startswith(".") or entry.is_symlink() or looked > MOST:
                            continue
                        yield entry, prefix + entry.name
                        if entry.is_dir() and not is_run(Path(entry.path)):
                            below.append((Path(entry.path), f"{prefix}{entry.name}/"))
            level = below

    def files(self) -> list[DataFile]:
        """Data files in the folder and below it, outside of run folders."""
        found = []
        for entry, name in self._walk():
            if entry.name.lower().endswith(KINDS) and entry.is_file():
                about = entry.stat()
                found.append(DataFile(name, about.st_size, about.st_mtime))
        return found

    def runs(self) -> dict[str, Path]:
        """Run folders by name; the folder itself may be one."""
        found = {self.path.name: self.path} if is_run(self.path) else {}
        return found | {
            name: Path(entry.path) for entry, name in self._walk() if entry.is_dir() and is_run(Path(entry.path))
        }

    def file(self, name: str) -> Path:
        """A data file by its name, as `files` lists it."""
        if any(name == one.name for one in self.files()):
            return self.path / name
        raise InputError(f"there is no data file {shown(name)} in the folder: drop it on the page first")

    def run(self, name: str) -> Path:
        """A run folder by its name, as `runs` lists it."""
        found = self.runs().get(name)
        if found is None:
            raise InputError(f"there is no run {shown(name)} in the folder: it may have been moved or removed")
        return found

    def typed(self, name: str) -> str:
        """A run as an argument of a command that is typed in the folder; the folder itself may be the run."""
        if name == self.path.name and is_run(self.path):
            return "."
        return as_file(name)

    def name_of(self, typed: str) -> str:
        """The name of a run that is typed so."""
        return self.path.name if typed == "." else typed.removeprefix("./")

    def place(self, name: str) -> Path:
        """Where a run is, or will be; its name was looked up, or is that of an order."""
        return self.path / self.typed(name)

    def new_run(self, name: str) -> Path:
        """Where a new run goes; each part of its name is checked."""
        parts = name.split("/")
        if not 1 <= len(parts) < DEPTH:
            raise InputError(f"a run is called like runs/plant-1, got {shown(name)}")
        path = self.path.joinpath(*(safe_name(part) for part in parts))
        for above in (path, *path.parents):
            if above == self.path:
                return path
            if above.is_symlink() or (above != path and (above / "plan.json").exists()):
                break
        raise InputError(f"{shown(name)} is not a place for a run: choose another name")

    def free_run(self, wanted: str, taken: Collection[str] = ()) -> str:
        """The first of NAME, NAME-2, NAME-3, ... under runs/ that is neither there yet nor taken."""
        stem = "".join(c if c.isalnum() or c in "._-" else "-" for c in wanted).strip(".-")[:60] or "run"
        name, number = f"runs/{stem}", 1
        while name in taken or (self.path / name).exists():
            number += 1
            name = f"runs/{stem}-{number}"
        return name

    def upload(self, name: str) -> Upload:
        """Start to take a file in."""
        target = self.path / safe_name(name)
        if not name.lower().endswith(KINDS):
            raise InputError(f"{shown(name)} is not a data file: {', '.join(KINDS)} can be read")
        if target.exists():
            raise InputError(f"{shown(name)} is in the folder already: rename one of the two, nothing was changed")
        return Upload(target, self.desk / f"upload-{secrets.token_hex(8)}")


class Upload:
    """A file on its way in: whole at its end, or not there at all."""

    def __init__(self, target: Path, partial: Path) -> None:
        self.target, self.size = target, 0
        self._partial = partial
        self._file: IO[bytes] = partial.open("xb")

    def write(self, chunk: bytes) -> None:
        """Take another piece."""
        self._file.write(chunk)
        self.size += len(chunk)

    def finish(self) -> None:
        """The file is complete; one of its name that appeared meanwhile is left as it is."""
        self._file.close()
        try:
            os.link(self._partial, self.target)  # refuses what exists, unlike a rename
        except FileExistsError:
            raise InputError(f"{self.target.name} is in the folder already: nothing was changed") from None
        except OSError:  # no links on this file system
            self._partial.rename(self.target)
        finally:
            self._partial.unlink(missing_ok=True)

    def abandon(self) -> None:
        """Leave nothing behind."""
        self._file.close()
        self._partial.unlink(missing_ok=True)


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run: its plan is a file of its own, neither a link nor a pipe."""
    with suppress(OSError):
        return stat.S_ISREG((folder / "plan.json").lstat().st_mode)
    return False


def as_file(name: str) -> str:
    """A file as an argument: one that looks like an option gets its folder in front."""
    return f"./{name}" if name.startswith("-") else name


def safe_name(name: str) -> str:
    """A name for a new file or folder; anything that could be a path, be hidden or break a line is refused.

    Examples
    --------
    >>> safe_name("day 1.csv")
    'day 1.csv'
    >>> safe_name("../day.csv")
    Traceback (most recent call last):
        ...
    echobound.errors.InputError: '../day.csv' cannot be a name here: letters, digits, ...
    """
    fine = all(letter.isalnum() or letter in " _-.()+" for letter in name)
    if not fine or not name or name[0] in ".- " or name[-1] in ". " or len(name.encode()) > LONGEST:
        raise InputError(
            f"{shown(name)} cannot be a name here: letters, digits, spaces and _ - . ( ) + are, up to {LONGEST} bytes"
        )
    return name


def shown(name: str) -> str:
    """A name for a message: quoted, on one line, not too long."""
    return ascii(name[:80]) if not name.isprintable() else repr(name[:80])
