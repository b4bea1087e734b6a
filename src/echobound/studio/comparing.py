"""Comparing: any models of any runs over any record, for the same picture."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from echobound.arrays import Signal
from echobound.compare import compare
from echobound.data import Record, read_records
from echobound.data.options import ReadingOptions
from echobound.errors import EchoboundError, InputError
from echobound.runs import RunFolder
from echobound.studio.drafts import ROLES, read_like, timed
from echobound.studio.form import typed_options
from echobound.studio.jobs import Jobs, typed
from echobound.studio.tables import thinned
from echobound.studio.workspace import Workspace, as_file

MOST_MODELS = 8
KEPT = 6


@dataclass(frozen=True, eq=False)
class Compared:
    """Curves and scores of models on one record."""

    record: Record
    first: int
    curves: Mapping[str, Signal]
    scores: Mapping[str, Any]
    notes: tuple[str, ...] = ()


class Comparison:
    """Models by ``RUN network`` and ``RUN committee``, records by ``run:RUN:role:number`` and ``file:NAME``."""

    def __init__(self, space: Workspace, jobs: Jobs) -> None:
        self.space, self.jobs = space, jobs
        self._kept: OrderedDict[Any, Compared] = OrderedDict()

    def choices(self, runs: Sequence[str]) -> dict[str, Any]:
        """The models and records that there are of some runs, and the data files."""
        models, records, problems = list[dict[str, Any]](), list[dict[str, Any]](), list[str]()
        for name in runs:
            folder = RunFolder(self.space.run(name))
            try:
                _ = folder.model, folder.experiments
            except EchoboundError as error:  # one that cannot be opened does not keep the others from being compared
                problems.append(str(error))
                continue
            for which in ("committee", "network"):
                found = getattr(folder, which)
                if found is not None:
                    models.append({"run": name, "model": which, "delivered": found is folder.model})
            for role in ROLES:
                for number, record in enumerate(getattr(folder.experiments, role)):
                    title = f"{name}: {role} data, {record.name} ({len(record)} samples)"
                    records.append({"key": f"run:{name}:{role}:{number}", "title": title, "role": role})
        files = [{"key": f"file:{one.name}", "title": f"file {one.name}", "role": "file"} for one in self.space.files()]
        order = {"validation": 0, "test": 1, "training": 2, "file": 3}
        return {
            "models": models,
            "records": sorted([*records, *files], key=lambda one: order[one["role"]]),
            "problems": problems,
        }

    def _record(self, key: str, folders: Mapping[str, RunFolder]) -> Record:
        if key.startswith("file:"):
            run, folder = next(iter(folders.items()))
            path = self.space.file(key.removeprefix("file:"))
            columns = timed(self.jobs.columns_of(run), folder.experiments.training[0])
            found = read_records(path, **columns)
            if len(found) > 1:
                raise InputError(f"{path.name} makes {len(found)} records: compare them on the command line")
            return found[0]
        kind, _, rest = key.partition(":")
        run, _, number = rest.rpartition(":")
        run, _, role = run.rpartition(":")
        if kind != "run" or role not in ROLES or not number.isdecimal():
            raise InputError(f"no record is called {key!r:.80}")
        records = getattr(RunFolder(self.space.run(run)).experiments, role)
        if int(number) >= len(records):
            raise InputError(f"{run} has {len(records)} {role} records")
        return records[int(number)]  # type: ignore[no-any-return]

    def compared(self, models: Sequence[tuple[str, str]], key: str) -> Compared:
        """Simulate models over a record, once."""
        if not 1 <= len(models) <= MOST_MODELS:
            raise InputError(f"choose 1 to {MOST_MODELS} models, got {len(models)}")
        folders = {name: RunFolder(self.space.run(name)) for name, _ in models}
        stamps = tuple((folder.path / "certificate.json").stat().st_mtime_ns for folder in folders.values())
        known = (tuple(models), key, stamps)
        if known not in self._kept:
            record = self._record(key, folders)
            named = {f"{name} {which}": _model(folders[name], which) for name, which in models}
            skipped = max(model.washout for model in named.values())
            curves = {name: model.simulate(record, washout=skipped).y for name, model in named.items()}
            self._kept[known] = Compared(
                record, skipped, curves, compare(record, named, washout=skipped), _used(record, folders)
            )
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return self._kept[known]

    def picture(
        self, models: Sequence[tuple[str, str]], key: str, start: float | None, stop: float | None, width: int
    ) -> dict[str, Any]:
        """Curves for the screen, all of them or those of a stretch of time in seconds."""
        found = self.compared(models, key)
        record, first = found.record, found.first
        low = 0 if start is None else max(0, int(start / record.sampling_time) - 1)
        high = len(record) if stop is None else min(len(record), int(stop / record.sampling_time) + 2)
        time, part = record.time[low:high], slice(low, high)
        outputs = []
        for channel, name in enumerate(record.output_names):
            curves = []
            for title, y in found.curves.items():
                whole = np.full(len(record), np.nan)
                whole[first:] = y[:, channel]
                x, values = thinned(time, whole[part], width)
                error = record.y[part, channel] - whole[part]
                curves.append({"name": title, "x": x, "y": values, "e": thinned(time, error, width)})
            x, values = thinned(time, record.y[part, channel], width)
            unit = record.output_units[channel]
            outputs.append({"name": name, "unit": unit, "measured": {"x": x, "y": values}, "curves": curves})
        inputs = []
        for channel, name in enumerate(record.input_names):
            x, values = thinned(time, record.u[part, channel], width)
            inputs.append({"name": name, "unit": record.input_units[channel], "x": x, "y": values})
        scores = {name: dict(one) for name, one in found.scores.items()}
        span = [0.0, float(record.time[-1])]
        return {
            "outputs": outputs,
            "inputs": inputs,
            "scores": scores,
            "record": record.name,
            "span": span,
            "notes": found.notes,
            "command": self._command(models, key),
            "python": self._python(models, key),
        }

    def _command(self, models: Sequence[tuple[str, str]], key: str) -> str | None:
        """The same comparison on the command line, which reads files; for a record of a run there is none."""
        if not key.startswith("file:"):
            return None
        named = list[str]()
        for run, which in models:
            folder = RunFolder(self.space.run(run))
            delivered = folder.model is _model(folder, which)
            place = self.space.typed(run)
            named.append(place if delivered else f"{place}/{which}.npz")
        columns = typed_options(ReadingOptions, self.jobs.columns_of(models[0][0]))
        return typed(["compare", *named, as_file(key.removeprefix("file:")), *columns])

    def _python(self, models: Sequence[tuple[str, str]], key: str) -> str:
        """The same comparison in Python."""
        lines = ["from echobound import RunFolder, compare", ""]
        names = ", ".join(
            f"{f'{run} {which}'!r}: RunFolder({self.space.typed(run)!r}).{which}" for run, which in models
        )
        if key.startswith("file:"):
            lines = ["from echobound import RunFolder, compare, read_records", ""]
            run = models[0][0]
            lines += read_like(self.space.typed(run), self.jobs.columns_of(run))
            lines.append(f"[record] = read_records({key.removeprefix('file:')!r}, **columns)")
        else:
            run, role, number = key.removeprefix("run:").rsplit(":", 2)
            lines.append(f"record = RunFolder({self.space.typed(run)!r}).experiments.{role}[{number}]")
        return "\n".join([*lines, f"print(compare(record, {{{names}}}))"])


def _used(record: Record, folders: Mapping[str, RunFolder]) -> tuple[str, ...]:
    """What a record was to each run: a score on data that a model was trained on or chosen by is no test."""
    said, digest = [], record.digest
    for name, folder in folders.items():
        for role, what in (("training", "was trained on"), ("validation", "was chosen by")):
            if any(one.digest == digest for one in getattr(folder.experiments, role)):
                said.append(f"the model of {name} {what} this record: its score here says little about new data")
    return tuple(said)


def _model(folder: RunFolder, which: str) -> Any:
    found = {"network": folder.network, "committee": folder.committee}.get(which)
    if found is None:
        raise InputError(f"{folder.path.name} has no {which}")
    return found
