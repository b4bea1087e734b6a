"""The options by which commands read data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from echobound.cli.terminal import words

if TYPE_CHECKING:
    from echobound.data import Record

__all__ = [
    "Columns",
    "Decimate",
    "Missing",
    "Resample",
    "SamplingTime",
    "Sheet",
    "Time",
    "read_files",
    "read_like",
    "said_of_reading",
]

Columns = Annotated[str | None, typer.Option(help="Columns in these files, if not called as in the run.")]

SamplingTime = Annotated[float | None, typer.Option(help="Seconds between samples.")]
Time = Annotated[str | None, typer.Option(help="Column of sample times, in seconds or as time stamps.")]
Resample = Annotated[float | None, typer.Option(help="New sampling time in seconds, anti-aliased.")]
Decimate = Annotated[int | None, typer.Option(help="Keep every k-th sample, anti-aliased.")]
Missing = Annotated[str, typer.Option(help="Missing values: error, or split into separate experiments there.")]
Sheet = Annotated[str | None, typer.Option(help="Sheet of an Excel file.")]


def read_files(
    files: list[str],
    inputs: str,
    outputs: str,
    *,
    sampling_time: float | None,
    time: str | None,
    resample: float | None,
    decimate: int | None,
    missing: str,
    sheet: str | None,
    shortest: int = 2,
) -> list[Record]:
    """Read files as experiments."""
    from echobound.data import read_records

    return list(
        read_records(
            files,
            words(inputs),
            words(outputs),
            sampling_time=sampling_time,
            time=time,
            resample=resample,
            decimate=decimate,
            missing=missing,
            sheet=sheet,
            shortest=shortest,
        )
    )


def read_like(first: Record, files: list[str], inputs: str | None, outputs: str | None, **options: Any) -> list[Record]:
    """Read files with the names and the sampling time of a record where nothing else is said."""
    from echobound.data import read_records

    if options["sampling_time"] is None and options["time"] is None:
        options["sampling_time"] = first.sampling_time
    columns = (words(inputs) or list(first.input_names), words(outputs) or list(first.output_names))
    return list(read_records(files, *columns, **options))


def said_of_reading(
    records: list[Record],
    files: list[str],
    *,
    sampling_time: float | None,
    time: str | None,
    resample: float | None,
    decimate: int | None,
) -> list[str]:
    """What a reader should know about the records, a sentence each."""
    said = []
    if sampling_time is None and time is None:
        said.append("sampling time: one second between samples was assumed: give --sampling-time or --time")
    if resample is not None or decimate is not None:
        how = f"--resample {resample:g}" if resample is not None else f"--decimate {decimate}"
        said.append(f"{how}: the sampling time is {records[0].sampling_time:g} s, behind an anti-aliasing filter")
    if len(records) > len(files):
        said.append(f"--missing split: {len(files)} file{'s' * (len(files) > 1)} gave {len(records)} experiments")
    return said
