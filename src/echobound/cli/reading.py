"""How commands read data files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import typer

from echobound.cli.options import Options
from echobound.data import Reading as Sampling
from echobound.data import Record, read_records
from echobound.data.table import Table
from echobound.plan.plan import setting

PANEL = "Reading files"
ValidationFiles = Annotated[
    str | None, typer.Option(metavar="FILE,...", help="Files to pick the best network on.", rich_help_panel=PANEL)
]
TestFiles = Annotated[
    str | None,
    typer.Option(metavar="FILE,...", help="Files that are opened once, at the very end.", rich_help_panel=PANEL),
]


@dataclass(frozen=True)
class Reading:
    """Which columns of a file are used, and how they become records.

    Parameters
    ----------
    inputs, outputs
        Columns by name, or by number from 1.
    sampling_time, time, resample, decimate, missing, sheet
        As in `read_records`.
    """

    inputs: tuple[str, ...] = setting(
        (), "Input columns by name, or by number from 1, separated by commas.", text="words"
    )
    outputs: tuple[str, ...] = setting((), "Output columns, likewise.", text="words")
    sampling_time: float | None = setting(None, "Seconds between samples.")
    time: str | None = setting(None, "Column of sample times, in seconds or as time stamps.")
    resample: float | None = setting(None, "New sampling time in seconds, behind an anti-aliasing filter.")
    decimate: int | None = setting(None, "Keep every k-th sample, behind an anti-aliasing filter.")
    missing: str = setting("error", "Missing values: error refuses them, split makes separate experiments.")
    sheet: str | None = setting(None, "Sheet of an Excel file.")

    def read(self, files: Sequence[str], shortest: int = 2) -> list[Record]:
        """The records of files; with ``missing="split"`` there may be more of them than files."""
        options = self._options(leave_out=("inputs", "outputs"))
        return list(read_records(list(files), self.inputs, self.outputs, shortest=shortest, **options))

    def read_like(self, record: Record, files: Sequence[str]) -> list[Record]:
        """The same, with the names and the sampling time of a record where none are given."""
        timed = self.sampling_time is not None or self.time is not None
        complete = replace(
            self,
            inputs=self.inputs or record.input_names,
            outputs=self.outputs or record.output_names,
            sampling_time=self.sampling_time if timed else record.sampling_time,
        )
        return complete.read(files)

    def records_of(
        self, table: Table, inputs: Sequence[str], outputs: Sequence[str] | None, shortest: int
    ) -> tuple[Record, ...]:
        """The records of a table; for a simulation, outputs may be None."""
        sampling = Sampling(shortest=shortest, **self._options(leave_out=("inputs", "outputs", "sheet")))
        return table.records(inputs, outputs, sampling)

    def _options(self, leave_out: tuple[str, ...]) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name not in leave_out}

    def notes(self, records: Sequence[Record], files: Sequence[str]) -> list[str]:
        """What the user should know about how the files were read, a sentence each."""
        said = []
        if self.sampling_time is None and self.time is None:
            said.append("sampling time: one second between samples was assumed: give --sampling-time or --time")
        if self.resample is not None or self.decimate is not None:
            how = f"--resample {self.resample:g}" if self.resample is not None else f"--decimate {self.decimate}"
            said.append(f"{how}: the sampling time is {records[0].sampling_time:g} s, behind an anti-aliasing filter")
        if len(records) > len(files):
            said.append(f"--missing split: {len(files)} file{'s' * (len(files) > 1)} gave {len(records)} experiments")
        return said


NAMED = {"inputs": "Input columns, if not named as in the run.", "outputs": "Output columns, likewise."}
ColumnsRequired = Annotated[Reading, Options(PANEL, required=("inputs", "outputs"))]
ColumnsOfRun = Annotated[Reading, Options(PANEL, help=NAMED)]
