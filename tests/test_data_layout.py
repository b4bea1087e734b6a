"""Where names, units and samples are in a table, which columns are meant, and what becomes of gaps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from echobound.data import Record, inspect_file, read_records, read_table
from echobound.data.columns import Names
from echobound.data.experiments import Experiments
from echobound.data.layout import find_layout
from echobound.data.rows import parse_roles
from echobound.data.units import are_units, is_unit, labels
from echobound.errors import DataError


def layout(*rows: str, **options: object):  # type: ignore[no-untyped-def]
    return find_layout("t.csv", [(row.split(","), i) for i, row in enumerate(rows, start=1)], False, **options)


def test_a_broken_first_sample_is_a_sample() -> None:
    found = layout("u,y", "1,err", "2,3", "3,4", "4,5")
    assert (found.columns, found.first) == (("u", "y"), 2)


def test_missing_cells_in_the_first_samples_are_kept() -> None:
    assert layout("u,v,w,y", "1,,,", "1,2,3,4", "1,2,3,4").first == 2


def test_a_row_of_words_is_no_row_of_units() -> None:
    found = layout("group a,group b", "valve,level", "1,2", "2,3")
    assert (found.columns, found.units, found.first) == (("valve", "level"), ("", ""), 3)
    assert not are_units(["valve", "level"])


def test_given_rows_of_names(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\nvalve,level\n1,2\n3,4\n")
    assert read_table(path, header_row=1).columns == ("a", "b")
    assert read_table(path, skip_rows=1).columns == ("valve", "level")
    assert read_table(path, header_row=0).columns == ("column 1", "column 2")
    assert read_table(path, header_row=0).signal(1).tolist() == [[1.0], [3.0]]
    with pytest.raises(DataError, match="no cells in row 9"):
        read_table(path, header_row=9)
    np.savez(tmp_path / "t.npz", u=np.arange(3.0))
    with pytest.raises(DataError, match=r"leave out skip_rows \(--skip-rows\)"):
        read_table(tmp_path / "t.npz", skip_rows=1)


def test_units_and_names() -> None:
    assert not any(map(is_unit, ["u1", "valve", "level", "12", "q3", "x y"]))
    assert labels(["u", "u", "T [K]"]) == [("u (column 1)", ""), ("u (column 2)", ""), ("T", "K")]
    names = Names("t.csv", ("1", "a", "b, c", "d"))
    assert names.positions(["b", "c", "d"]) == [2, 3]
    assert names.positions("2-4") == [1, 2, 3]
    assert names.positions(["1"]) == [0]
    with pytest.raises(DataError, match="there is no column 'x'"):
        names.positions(["a", "x"])
    with pytest.raises(DataError, match="stands for 3 columns"):
        names.position("2-4")


@pytest.mark.parametrize("text", ["", "5-2", "0-3", "training=1-5,7", "x=1-2", "1-5,training=6-7"])
def test_rows_that_are_none(text: str) -> None:
    with pytest.raises(DataError):
        parse_roles(text)


TIMES = np.arange(60.0)
LINE = np.stack([TIMES, np.sin(TIMES), 3 * TIMES], axis=1)


def test_short_gaps_are_filled_in_values_and_in_rows() -> None:
    holes = LINE.copy()
    holes[[10, 11, 30], 2] = np.nan
    kept = np.delete(holes, [20, 21], axis=0)
    [record] = read_records(kept, 2, 3, time=1, missing="interpolate:2")
    assert len(record) == 60
    assert np.allclose(record.y[:, 0], 3 * TIMES)
    assert record.note == "5 samples interpolated in rows 1 to 58 of ndarray"
    with pytest.raises(DataError, match=r"has a gap of 2 samples.*--missing interpolate:2"):
        read_records(holes, 2, 3, time=1, missing="interpolate:1")
    first, second = read_records(holes, 2, 3, time=1, missing="interpolate:1,split")
    assert (len(first), len(second)) == (10, 48)
    ends = LINE.copy()
    ends[:3, 2] = np.nan
    with pytest.raises(DataError, match=r"missing at the start, in rows 1 to 3: leave the end out \(rows='4-60'"):
        read_records(ends, 2, 3, time=1, missing="interpolate:2")
    assert len(read_records(ends, 2, 3, time=1, rows="4-60")[0]) == 57


def test_a_note_is_kept_with_the_data(tmp_path: Path) -> None:
    record = Record(u=[0.0, 1.0], y=[0.0, 1.0], note="1 sample interpolated")
    Experiments((record,), ()).save(tmp_path / "data.npz")
    assert Experiments.load(tmp_path / "data.npz").training[0].note == record.note
    assert record.digest == Record(u=[0.0, 1.0], y=[0.0, 1.0]).digest


def test_inspection_of_what_is_hard(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    rows = [f"{k},{k % 7},5,{'ok' if k % 2 else 'bad'}," for k in range(60)]
    path.write_text("\n".join(["index,valve,constant,quality,empty", *rows]))
    found = inspect_file(path)
    assert [one.kind for one in found.columns] == ["counter", "number", "constant", "text", "empty"]
    assert (found.sampling_time, found.inputs, found.outputs) == (None, (), ("valve",))
    assert found.command == f"echobound identify {path} --inputs COLUMNS --outputs valve", "to be filled in"
    assert any("constant is 5 throughout" in note for note in found.notes)
    assert any("give --sampling-time" in note for note in found.notes)
