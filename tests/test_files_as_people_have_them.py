"""Files as people have them: each is read rightly as it is, or its refusal gives advice that works to the letter."""

from __future__ import annotations

import datetime
import re
import shlex
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas
import pytest
import scipy.io

from echobound.cli.reading import Reading
from echobound.data import inspect_file
from echobound.errors import EchoboundError

ROWS = 120
RNG = np.random.default_rng(5)
T = np.round(0.5 * np.arange(ROWS), 6)
U = np.round(np.repeat(RNG.uniform(0, 5, ROWS // 10), 10), 3)
V = np.round(np.repeat(RNG.uniform(-1, 1, ROWS // 6), 6), 3)
Y = np.zeros(ROWS)
for k in range(1, ROWS):
    Y[k] = 0.8 * Y[k - 1] + 0.2 * U[k - 1] + 0.1 * V[k - 1]
Y = np.round(Y, 5)
START = datetime.datetime(2024, 5, 30, 23, 59, 50)
STAMPS = [START + datetime.timedelta(seconds=0.5 * k) for k in range(ROWS)]
Cells = Sequence[Sequence[Any]]


def rows(
    *heads: Sequence[Any], time: Sequence[Any] = T, columns: Sequence[Sequence[Any]] = (U, V, Y)
) -> list[list[Any]]:
    return [*map(list, heads), *([t, *values] for t, *values in zip(time, *columns, strict=True))]


def text(cells: Cells, separator: str = ",", comma: bool = False, end: str = "\n") -> str:
    def typed(cell: Any) -> str:
        word = f"{cell:.10g}" if isinstance(cell, float) else str(cell)
        word = word.replace(".", ",") if comma and isinstance(cell, float) else word
        return f'"{word}"' if separator in word else word

    return end.join(separator.join(map(typed, row)) for row in cells) + end


def sheet(path: Path, cells: Cells, **others: Cells) -> None:
    book = openpyxl.Workbook()
    for name, each in {"Sheet1": cells, **others}.items():
        page = book.active if name == "Sheet1" else book.create_sheet(name)
        page.title = name
        for row in each:
            page.append([float(c) if isinstance(c, np.floating) else c for c in row])
    book.save(path)


@dataclass(frozen=True)
class File:
    """How a file is written, what is typed with it, and what its records must be."""

    name: str
    write: Callable[[Path], Any]
    typed: str = "--inputs u,v --outputs y --time t"
    advice: str = ""  # what the refusal must propose; none: it is read as it is
    step: float = 0.5
    units: tuple[str, ...] = ("", "", "")
    lengths: tuple[int, ...] = (ROWS,)
    inspected: bool = True  # whether `inspect` alone, and the command it proposes, give the same


def csv(name: str, content: str, *, encoding: str = "utf-8", **facts: Any) -> File:
    return File(name, lambda path: path.write_bytes(content.encode(encoding)), **facts)


HEAD, UNITS = ["t", "u", "v", "y"], ["s", "V", "-", "m"]
WITH_UNITS = ("V", "", "m")
HOLE = [v if k not in (40, 41) else "" for k, v in enumerate(Y)]
WIDE = [v if not 40 <= k < 60 else "NaN" for k, v in enumerate(Y)]
GAP = [row for k, row in enumerate(rows(HEAD)) if k not in (51, 52)]

FILES = [
    csv("plain.csv", text(rows(HEAD))),
    csv("semicolons.csv", text(rows(HEAD), ";", comma=True, end="\r\n")),
    csv("tabs.tsv", text(rows(HEAD), "\t")),
    csv("blanks.dat", "\n".join("  ".join(f"{c}" for c in row) for row in rows(HEAD)) + "\n"),
    csv("units_row.csv", text(rows(HEAD, UNITS)), units=WITH_UNITS),
    csv("units_in_brackets.csv", text(rows(["t [s]", "u [V]", "v [-]", "y (m)"])), units=WITH_UNITS),
    csv("bracketed_units_row.csv", text(rows(HEAD, ["[s]", "[V]", "[-]", "[m]"]), ";"), units=WITH_UNITS),
    csv(
        "latin_units.csv",
        text(rows(HEAD, ["s", "°C", "µm", "m³/h"]), ";"),
        encoding="latin-1",
        units=("°C", "µm", "m³/h"),
    ),
    csv(
        "titles.csv",
        text([["Experiment 12"], ["Operator", "Smith"], ["Date", "2024-05-30"], [], *rows(HEAD, UNITS)]),
        units=WITH_UNITS,
    ),
    csv("title_of_words.txt", "Measured by Smith on a Monday\n\n" + text(rows(HEAD), " ")),
    csv(
        "title_without_names.csv",
        "Tank experiment\n" + text(rows()),
        typed="--inputs 2-3 --outputs 4 --time 1",
        inspected=True,
    ),
    csv("metadata.csv", text([["Channels", 3, "Rate", 2], *rows(HEAD)])),
    csv("comment_names.dat", "# tank, second run\n# " + " ".join(HEAD) + "\n" + text(rows(), " ")),
    csv("matlab_comments.txt", "% exported by MATLAB\n%\n" + text(rows(HEAD), "\t")),
    csv("excel_sep.csv", "sep=;\n" + text(rows(HEAD), ";", comma=True)),
    csv("byte_order_mark.csv", text(rows(HEAD)), encoding="utf-8-sig"),
    csv("utf16.txt", text(rows(HEAD), "\t"), encoding="utf-16"),
    csv("trailing_commas.csv", text(rows(HEAD)).replace("\n", ",,\n")),
    csv("numbered.csv", text(rows()), typed="--inputs 2-3 --outputs 4 --time 1"),
    csv("milliseconds.csv", text(rows(["t [ms]", "u", "v", "y"], time=1000 * T))),
    csv("minutes.csv", text(rows(HEAD, ["min", "V", "-", "m"], time=T / 60)), units=WITH_UNITS),
    csv("iso.csv", text(rows(HEAD, time=[s.isoformat() for s in STAMPS]))),
    csv("zoned.csv", text(rows(HEAD, time=[s.isoformat() + "+02:00" for s in STAMPS]))),
    csv("utc.csv", text(rows(HEAD, time=[f"{s:%Y-%m-%d %H:%M:%S.%f} UTC" for s in STAMPS]))),
    csv("german_dates.csv", text(rows(HEAD, time=[f"{s:%d.%m.%Y %H:%M:%S,%f}" for s in STAMPS]), ";", comma=True)),
    csv("european_dates.csv", text(rows(HEAD, time=[f"{s:%d/%m/%Y %H:%M:%S.%f}" for s in STAMPS]))),
    csv("american_dates.csv", text(rows(HEAD, time=[f"{s:%m/%d/%Y %I:%M:%S.%f %p}" for s in STAMPS]))),
    csv("matlab_dates.csv", text(rows(HEAD, time=[f"{s:%d-%b-%Y %H:%M:%S.%f}" for s in STAMPS]))),
    csv(
        "both_dates.csv",
        text(rows(HEAD, time=[f"{s.replace(month=6, day=6 + (s.day == 31)):%d/%m/%Y %H:%M:%S.%f}" for s in STAMPS])),
        advice="--dates european",
    ),
    csv("time_of_day.csv", text(rows(HEAD, time=[f"{s:%H:%M:%S.%f}" for s in STAMPS]))),
    csv(
        "unix_milliseconds.csv",
        text(rows(HEAD, time=[str(1717113590000 + 500 * k) for k in range(ROWS)])),
        advice="--time-unit ms",
    ),
    csv(
        "comma_in_name.csv",
        text(rows(["t", "flow, acid", "flow, base", "pH"])),
        typed="--inputs 'flow, acid,flow, base' --outputs pH --time t",
    ),
    csv(
        "slash_in_name.csv",
        text(rows(["t", "flow/acid", "a b", "pH"])),
        typed="--inputs 'flow/acid,a b' --outputs pH --time t",
    ),
    csv(
        "same_names.csv",
        text(rows(["t", "u", "u", "y"])),
        typed="--inputs u --outputs y --time t",
        advice="2 and 3",
        inspected=False,
    ),
    csv("hole.csv", text(rows(HEAD, columns=(U, V, HOLE))), advice="--missing interpolate:2"),
    csv("wide_hole.csv", text(rows(HEAD, columns=(U, V, WIDE))), advice="--missing split", lengths=(40, 60)),
    csv("missing_rows.csv", text(GAP), advice="--missing split", lengths=(50, 68)),
    csv(
        "summary_below.csv",
        text([*rows(HEAD), ["Mean", 1.0, 2.0, 3.0]]),
        typed="--inputs u,v --outputs y --time t",
        advice="--rows 2-121",
        inspected=False,
    ),
    csv(
        "text_in_a_cell.csv",
        text([*rows(HEAD)[:51], [25.0, 1.0, 2.0, "BAD"], [25.5, 1.0, "OVER", 3.0], *rows(HEAD)[53:]]),
        advice="--rows 2-51,54-121",
        lengths=(50, 68),
    ),
    csv(
        "sampling_time_once.csv",
        text([["Ts", "u", "v", "y"], *rows(time=[0.5, *[""] * (ROWS - 1)])]),
        typed="--inputs u,v --outputs y",
    ),
    csv(
        "names_of_numbers.csv",
        text(rows(["t", 1, 2, 3])),
        typed="--inputs 1,2 --outputs 3 --time t",
        advice="--header-row 1",
        inspected=False,
    ),
    File("plain.xlsx", lambda path: sheet(path, rows(HEAD))),
    File(
        "titles.xlsx",
        lambda path: sheet(path, [["Tank", None], ["Date", START], [], *rows(HEAD, UNITS)]),
        units=WITH_UNITS,
    ),
    File("dates.xlsx", lambda path: sheet(path, rows(HEAD, time=STAMPS))),
    File("empty_sheets.xlsx", lambda path: sheet(path, rows(HEAD), Sheet2=[], Sheet3=[])),
    File(
        "two_sheets.xlsx", lambda path: sheet(path, rows(HEAD), notes=[["made", "by", "hand"]]), advice="--sheet Sheet1"
    ),
    File(
        "scalar_ts.mat",
        lambda path: scipy.io.savemat(path, {"u": np.stack([U, V], 1), "y": Y, "Ts": 0.5}),
        typed="--inputs u --outputs y",
    ),
    File(
        "struct_fs.mat",
        lambda path: scipy.io.savemat(path, {"data": {"u": np.stack([U, V], 1), "y": Y[:, None], "fs": 2.0}}),
        typed="--inputs data.u --outputs data.y",
    ),
    File("rows.npz", lambda path: np.savez(path, t=T, u=U, v=V, y=Y)),
    File(
        "zoned.parquet",
        lambda path: pandas.DataFrame(
            {"t": pandas.DatetimeIndex(STAMPS).tz_localize("Europe/Rome"), "u": U, "v": V, "y": Y}
        ).to_parquet(path),
    ),
]


def reading_of(typed: str) -> Reading:
    """The reading options of a command line, as the command itself parses them."""
    words, made = shlex.split(typed), {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        name = option.removeprefix("--").replace("-", "_")
        made[name] = tuple(w.strip() for w in value.split(",")) if name in ("inputs", "outputs") else value
    kinds = {"header_row": int, "skip_rows": int, "resample": float, "sampling_time": float}
    return Reading(**{name: kinds.get(name, lambda v: v)(value) for name, value in made.items()})


def matches(file: File, path: Path, reading: Reading) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        records = reading.read([str(path)])
    assert tuple(map(len, records)) == file.lengths
    assert records[0].sampling_time == pytest.approx(file.step, rel=1e-6)
    assert (*records[0].input_units, *records[0].output_units) == file.units
    kept = [k for k in range(ROWS) if len(file.lengths) == 1 or not _left_out(file, k)]
    for measured, truth in ((np.concatenate([r.u for r in records]), np.stack([U, V], 1)[kept]),):
        np.testing.assert_allclose(measured, truth, rtol=1e-9, atol=1e-12)
    y = np.concatenate([r.y[:, 0] for r in records])
    where = np.array([k not in (40, 41) for k in kept]) if file.name == "hole.csv" else slice(None)
    np.testing.assert_allclose(y[where], Y[kept][where], rtol=1e-9, atol=1e-12)


def _left_out(file: File, k: int) -> bool:
    return 40 <= k < 60 if file.name == "wide_hole.csv" else k in (50, 51)


def test_there_are_forty() -> None:
    assert len({file.name for file in FILES}) == len(FILES) >= 40


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_read_rightly_or_by_the_advice(tmp_path: Path, file: File) -> None:
    path = tmp_path / file.name
    file.write(path)
    reading = reading_of(file.typed)
    if not file.advice:
        matches(file, path, reading)
        return
    with pytest.raises(EchoboundError) as refusal:
        reading.read([str(path)])
    said = str(refusal.value)
    assert "\n" not in said
    assert file.advice in said
    followed = f"{file.typed} {file.advice}"
    if file.name == "same_names.csv":
        followed = file.typed.replace("--inputs u", f"--inputs {','.join(re.findall(r'[0-9]+', file.advice))}")
    matches(file, path, reading_of(followed))


@pytest.mark.parametrize("file", [file for file in FILES if file.inspected], ids=lambda file: file.name)
def test_the_command_that_inspect_proposes_reads_the_same(tmp_path: Path, file: File) -> None:
    path = tmp_path / file.name
    file.write(path)
    asked = file.advice if file.advice.startswith(("--dates", "--time-unit", "--sheet")) else ""
    known = {k: v for k, v in vars(reading_of(asked)).items() if k in ("dates", "time_unit", "sheet") and v}
    if asked:
        with pytest.raises(EchoboundError, match=re.escape(asked.split()[0])):
            inspect_file(path)
    found = inspect_file(path, **known)
    command = shlex.split(found.command)
    assert command[:3] == ["echobound", "identify", str(path)]
    matches(file, path, reading_of(shlex.join(command[3:])))
    assert found.to_dict()["command"] == found.command
    assert found.sampling_time == pytest.approx(file.step, rel=1e-6)
    assert len(found.inputs) in (1, 2)
