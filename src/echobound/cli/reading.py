"""How commands read data files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated

import typer

from echobound.cli.options import Options
from echobound.data import Reading as Sampling
from echobound.data import Record, read_table
from echobound.data.guessing import quoted, time_column
from echobound.data.options import ReadingOptions
from echobound.data.reading import checked
from echobound.data.rows import Ranges, parse_roles
from echobound.data.table import Table
from echobound.errors import InputError

PANEL = "Data"
ValidationFiles = Annotated[
    str | None, typer.Option(metavar="FILE,...", help="Files to pick the best network on.", rich_help_panel=PANEL)
]
TestFiles = Annotated[
    str | None,
    typer.Option(metavar="FILE,...", help="Files that are opened once, at the very end.", rich_help_panel=PANEL),
]


class Reading(ReadingOptions):
    """Reads the files of a command line."""

    def read(self, files: Sequence[str], shortest: int = 2) -> list[Record]:
        """The records of files; there may be more of them than files where rows or gaps separate them.

        Rows that were given for several roles are all read.
        """
        [records] = self._read(files, [self._all_ranges(files)], shortest)
        return records

    def read_roles(self, files: Sequence[str], shortest: int = 2) -> dict[str, list[Record]]:
        """The records of files by role, as `rows` says; all are for training if it says nothing."""
        roles = parse_roles(self.rows) if self.rows else {}
        if not roles or "" in roles:
            return {"training": self.read(files, shortest)}
        if "training" not in roles:
            raise InputError(f"--rows {self.rows} has no rows for training: add training=FIRST-LAST")
        self._all_ranges(files)
        return dict(zip(roles, self._read(files, list(roles.values()), shortest), strict=True))

    def _all_ranges(self, files: Sequence[str]) -> Ranges:
        if self.rows and len(files) > 1:
            raise InputError(f"--rows speaks of the rows of one file, but {len(files)} were given: give one of them")
        return tuple(one for ranges in (parse_roles(self.rows) if self.rows else {}).values() for one in ranges)

    def _read(self, files: Sequence[str], groups: Sequence[Ranges], shortest: int) -> list[list[Record]]:
        """The records of each group of rows; read together, so that one sampling time is found for all."""
        every = tuple(one for ranges in groups for one in ranges)
        sampling, found = self.sampling(shortest, every), list[list[Record]]()
        for file in files:
            table = self.open(file)
            if not self.inputs or not self.outputs:
                raise InputError(f"say which columns are inputs and which are outputs: {table.names.available()}")
            found += [list(each) for each in table.stretches(self.inputs, self.outputs, sampling)]
        checked([record for each in found for record in each], shortest)
        if not every:
            return [[record for each in found for record in each]]
        pieces = iter(found)
        return [[record for _ in ranges for record in next(pieces)] for ranges in groups]

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

    def open(self, file: str | Path) -> Table:
        """The table of a file."""
        rows = {"header_row": self.header_row, "skip_rows": self.skip_rows}
        return read_table(file, self.sheet, dates=self.dates, **rows)

    def sampling(self, shortest: int = 2, rows: Ranges = ()) -> Sampling:
        """How columns of numbers become records."""
        names = {one.name for one in fields(Sampling)} & {one.name for one in fields(self)}
        return Sampling(**{name: getattr(self, name) for name in names} | {"shortest": shortest, "rows": rows})

    def records_of(
        self, table: Table, inputs: Sequence[str], outputs: Sequence[str] | None, shortest: int
    ) -> tuple[Record, ...]:
        """The records of a table; for a simulation, outputs may be None."""
        return table.records(inputs, outputs, self.sampling(shortest, self._all_ranges([table.source])))

    def notes(self, records: Sequence[Record], files: Sequence[str]) -> list[str]:
        """What the user should know about how the files were read, a sentence each."""
        said = []
        if self.sampling_time is None and self.time is None:
            table = self.open(files[0])
            likely = time_column(table)
            if table.stated is not None:
                said.append(f"sampling time: {records[0].sampling_time:g} s, by {table.stated[0]} of {table.source}")
            elif likely is None:
                said.append("sampling time: one second between samples was assumed: give --sampling-time or --time")
            else:
                said.append(
                    "sampling time: one second between samples was assumed, though there is a column of times: give"
                    f" --time {quoted(likely)}"
                )
        if self.resample is not None or self.decimate is not None:
            how = f"--resample {self.resample:g}" if self.resample is not None else f"--decimate {self.decimate}"
            said.append(f"{how}: the sampling time is {records[0].sampling_time:g} s, behind an anti-aliasing filter")
        if len(records) > len(files) and "split" in self.missing and not self.rows:
            said.append(f"--missing split: {len(files)} file{'s' * (len(files) > 1)} gave {len(records)} experiments")
        return said


NAMED = {"inputs": "Input columns, if not named as in the run.", "outputs": "Output columns, likewise."}
ROLES = "Rows of the file by role, by their numbers in it: training=2-701,1102-1701,validation=702-1101,test=1702-."
Columns = Annotated[Reading, Options(PANEL, help={"rows": ROLES})]
ColumnsOfRun = Annotated[Reading, Options(PANEL, help=NAMED)]
