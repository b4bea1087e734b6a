"""Options: how a file is read, as fields that command line and studio make their options of."""

from __future__ import annotations

from dataclasses import dataclass

from echobound.typed import setting


@dataclass(frozen=True)
class ReadingOptions:
    """Which columns and rows of a file are used, and how they become records.

    Parameters
    ----------
    inputs, outputs
        Columns by name, by number from 1, or by a range of numbers.
    sampling_time, time, time_unit, dates, resample, decimate, missing, header_row, skip_rows, sheet
        As in `read_records`.
    rows
        Ranges of rows, as in `read_records`; where a command asks for several kinds of data, each after its role.
    """

    inputs: tuple[str, ...] = setting(
        (), "Input columns by name, or by number from 1 (2-4 are three), separated by commas.", text="words"
    )
    outputs: tuple[str, ...] = setting((), "Output columns, likewise.", text="words")
    sampling_time: float | None = setting(None, "Seconds between samples.")
    time: str | None = setting(None, "Column of sample times, as numbers or as time stamps.")
    time_unit: str | None = setting(None, "Unit of the sample times, such as ms; from the file, or s, if not given.")
    dates: str | None = setting(None, "How dates are written: european (31/12/2024) or american (12/31/2024).")
    rows: str | None = setting(None, "Rows of the file to use, by their numbers in it: 2-701,1102-1701.")
    resample: float | None = setting(None, "New sampling time in seconds, behind an anti-aliasing filter.")
    decimate: int | None = setting(None, "Keep every k-th sample, behind an anti-aliasing filter.")
    missing: str = setting(
        "error",
        "Missing values: error refuses them, interpolate:3 fills gaps of up to 3 samples, split makes separate"
        " experiments.",
    )
    header_row: int | None = setting(None, "Row that has the names of the columns, if it is not found; 0 if none has.")
    skip_rows: int | None = setting(None, "Rows at the top of the file to pass over.")
    sheet: str | None = setting(None, "Sheet of an Excel file.")
