"""Drafts: what a form asks for, and the command line and the Python that do the same."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from echobound.campaign import Computing
from echobound.data import Record, read_records
from echobound.data.options import ReadingOptions
from echobound.errors import InputError
from echobound.plan import Plan, SettledPlan, settle_validation
from echobound.plan.validation import Validation
from echobound.studio.form import read_settings, typed_options
from echobound.studio.workspace import Workspace, as_file, shown

ROLES = ("training", "validation", "test")
Records = Mapping[str, tuple[Record, ...]]  # by role
MOST_FILES = 200


@dataclass(frozen=True)
class Draft:
    """A run as a form describes it; nothing of it is drawn yet.

    Parameters
    ----------
    files
        Names of data files by role.
    inputs, outputs
        Columns.
    reading
        How files are read, as in `read_records`; what differs from the defaults.
    plan, computing
        Settings that differ from their defaults.
    run
        Name of the run folder.
    cut
        Rows of the file by role, the first and the last; of one file only.
    """

    files: Mapping[str, tuple[str, ...]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reading: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    computing: Mapping[str, Any] = field(default_factory=dict)
    run: str = ""
    cut: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Draft:
        """Read what a browser sent; anything that does not fit is refused."""
        time = text_in(content, "time")
        reading = read_settings(ReadingOptions, _mapping(content, "reading"))
        return cls(
            files={role: names_in(_mapping(content, "files"), role) for role in ROLES},
            inputs=names_in(content, "inputs"),
            outputs=names_in(content, "outputs"),
            reading=({} if time is None else {"time": time}) | reading,
            plan=read_settings(Plan, _mapping(content, "plan")),
            computing=read_settings(Computing, _mapping(content, "computing")),
            run=text_in(content, "run") or "",
            cut=_cut(content),
        )

    def require_columns(self) -> None:
        """Refuse a draft without data or columns."""
        if not self.files["training"]:
            raise InputError("choose a data file to train on")
        for side, names in (("input", self.inputs), ("output", self.outputs)):
            if not names:
                raise InputError(f"choose at least one {side} column")

        for name in (*self.files["validation"], *self.files["test"]):
            if "," in name:  # on the command line it would be two files
                raise InputError(f"{shown(name)} has a comma in its name: rename it for validation or test")

    def asked(self) -> Plan:
        """The plan as it is asked for."""
        return Plan(**self.plan)

    def records(self, space: Workspace) -> Records:
        """The records by role."""
        self.require_columns()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the command says them again, where they are kept
            return {role: self._read(space, role) for role in ROLES}

    def _read(self, space: Workspace, role: str) -> tuple[Record, ...]:
        names, rows = self.files[role], dict[str, Any]()
        if self.cut:
            if role not in self.cut:
                return ()
            names, rows = self.files["training"], {"rows": self._rows(role)}
        paths = [space.file(name) for name in names]
        return read_records(paths, self.inputs, self.outputs, **self.reading, **rows) if paths else ()

    def _rows(self, role: str) -> str:
        first, last = self.cut[role]
        return f"{first}-{last}"

    def settle(self, records: Records) -> tuple[SettledPlan, Validation]:
        """The plan as it would be recorded before the first draw."""
        plan = self.asked()
        scheme = settle_validation(
            records["training"],
            records["validation"] or None,
            records["test"],
            blocks=plan.blocks,
            washout=plan.washout,
        )
        return plan.settle(scheme), scheme

    def arguments(self) -> list[str]:
        """What follows ``echobound`` on the command line."""
        found = ["identify", *(as_file(name) for name in self.files["training"])]
        for role in ("validation", "test"):
            if self.files[role]:
                found += [f"--{role}", ",".join(as_file(name) for name in self.files[role])]
        if self.cut:
            found += ["--rows", ",".join(f"{role}={self._rows(role)}" for role in self.cut)]
        found += typed_options(ReadingOptions, self.columns)
        for kind, values in ((Plan, self.plan), (Computing, self.computing)):
            found += typed_options(kind, values)
        return [*found, "--run", self.run]

    @property
    def columns(self) -> dict[str, Any]:
        """Columns and how they are read, as keywords of `read_records`."""
        return {"inputs": list(self.inputs), "outputs": list(self.outputs), **self.reading}

    def python(self) -> str:
        """The same in Python."""
        lines = ["from echobound import identify, read_records", ""]
        lines.append(f"columns = {call('dict', self.columns)}")
        roles = list(self.cut) if self.cut else [role for role in ROLES if self.files[role]]
        for role in roles:
            names = self.files["training" if self.cut else role]
            source = repr(names[0]) if len(names) == 1 else repr(list(names))
            rows = f"rows={self._rows(role)!r}, " if self.cut else ""
            lines.append(f"{role} = read_records({source}, {rows}**columns)")
        given = {name: list(v) if isinstance(v, tuple) else v for name, v in {**self.plan, **self.computing}.items()}
        data = ["training", *(["validation"] if "validation" in roles else [])]
        data += ["test=test"] if "test" in roles else []
        rest = [f"{name}={value!r}" for name, value in given.items()] + [f"run={self.run!r}"]
        lines += [f"result = identify({', '.join([*data, *rest])})", "print(result.certificate.statement)"]
        return "\n".join(lines)


def call(name: str, arguments: Mapping[str, Any]) -> str:
    """A call as Python writes it."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def timed(columns: Mapping[str, Any], record: Record) -> dict[str, Any]:
    """Keywords to read a further file as those of a run: what is not given is that of its records."""
    found = {"inputs": record.input_names, "outputs": record.output_names, **columns}
    clocks = ("sampling_time", "time", "resample", "decimate")
    return found if any(name in found for name in clocks) else {**found, "sampling_time": record.sampling_time}


def read_like(run: str, columns: Mapping[str, Any]) -> list[str]:
    """The same in Python: lines after which `columns` are the keywords."""
    like = {"inputs": "record.input_names", "outputs": "record.output_names", "sampling_time": "record.sampling_time"}
    if any(name in columns for name in ("sampling_time", "time", "resample", "decimate")):
        del like["sampling_time"]
    given = {name: repr(value) for name, value in columns.items()}
    written = ", ".join(f"{name}={value}" for name, value in (like | given).items())
    return [f"record = RunFolder({run!r}).experiments.training[0]", f"columns = dict({written})"]


def _mapping(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = content.get(name) or {}
    if not isinstance(found, dict):
        raise InputError(f"{name} must be an object with a value for each setting")
    return found


def names_in(content: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list of names in what a browser sent."""
    found = content.get(name) or []
    if not isinstance(found, list) or len(found) > MOST_FILES or not all(isinstance(one, str) for one in found):
        raise InputError(f"{name} must be a list of names")
    return tuple(found)


def text_in(content: Mapping[str, Any], name: str) -> str | None:
    """A text in what a browser sent; None if it is empty."""
    found = content.get(name)
    if found is not None and not isinstance(found, str):
        raise InputError(f"{name} must be text, got {found!r:.40}")
    return found.strip() or None if found else None


def _cut(content: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Rows by role; training must be among them."""
    found = {role: rows for role, rows in _mapping(content, "cut").items() if role in ROLES and rows}
    for role, rows in found.items():
        if not (isinstance(rows, list) and len(rows) == 2 and all(isinstance(row, int) for row in rows)):
            raise InputError(f"the rows of {role} must be the first and the last one")
    if found and "training" not in found:
        raise InputError("the cut leaves nothing to train on: move the end of the training data")
    if found and any(len(names) > 1 for names in _mapping(content, "files").values()):
        raise InputError("rows are cut of one file: leave out the other files, or the cut")
    return {role: (found[role][0], found[role][1]) for role in ROLES if role in found}
