"""Sampling: gaps and missing values, resampling and decimation without aliasing, and the memory that reading needs."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pandas
import pyarrow
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from echobound.data import Record, read_records
from echobound.data.sampling import decimated, resampled
from echobound.data.table import RowNumbers
from echobound.errors import DataError


def sine(frequency: float, rows: int = 1000, period: float = 0.01) -> Record:
    k = np.arange(rows) * period
    return Record(u=np.sin(2 * np.pi * frequency * k) + 3.0, y=np.cos(2 * np.pi * frequency * k), sampling_time=period)


def test_decimation_keeps_what_is_slow_and_removes_what_would_alias() -> None:
    slow = decimated(sine(1.0), 10)
    assert slow.sampling_time == pytest.approx(0.1)
    exact = np.sin(2 * np.pi * np.arange(100) * 0.1) + 3.0
    assert np.abs(slow.u[:, 0] - exact)[5:-5].max() < 0.01
    assert np.abs(slow.u[:, 0] - exact).max() < 0.5, "no transient from an offset of 3 at the ends"
    fast = decimated(sine(11.0), 10)  # every 10th sample of it looks like 1 Hz
    assert np.abs(fast.y[10:-10]).max() < 0.01
    assert np.abs(sine(11.0).y[::10][10:-10]).max() > 0.9, "without the filter it would be there"


@pytest.mark.parametrize("target", [0.005, 0.01, 0.02, 0.025, 0.0137, 0.1 / 3])
def test_resampling_follows_the_signal(target: float) -> None:
    record = resampled(sine(1.0), target)
    assert record.sampling_time == pytest.approx(target)
    assert len(record) == pytest.approx(10.0 / target, abs=2)
    exact = np.cos(2 * np.pi * record.time)
    assert np.abs(record.y[:, 0] - exact)[20:-20].max() < 0.01


def test_resampling_to_the_same_time_changes_nothing() -> None:
    record = sine(1.0)
    assert resampled(record, 0.01) is record
    assert decimated(record, 1) is record


def test_decimation_by_a_lot() -> None:
    record = Record(u=np.ones(6000), y=np.arange(6000.0))
    slow = decimated(record, 1500)
    assert (len(slow), slow.sampling_time) == (4, 1500.0)
    assert np.allclose(slow.u, 1.0)


@given(st.integers(2, 30), st.floats(-100, 100), st.floats(-1, 1))
@settings(max_examples=30, deadline=None)
def test_straight_lines_stay_straight(factor: int, offset: float, slope: float) -> None:
    line = offset + slope * np.arange(900.0)
    slow = decimated(Record(u=line, y=line), factor)
    assert np.allclose(slow.y[:, 0], line[::factor], atol=1e-6 * (1 + np.abs(line).max()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"decimate": 0}, "whole number of samples, 1 or more, got 0"),
        ({"decimate": 2.5}, "whole number of samples, 1 or more, got 2.5"),
        ({"decimate": 99999}, "too few to keep every 99999th"),
        ({"resample": -1.0, "sampling_time": 1.0}, "positive number of seconds"),
        ({"resample": 2.0}, "its own sampling time is unknown"),
        ({"resample": 2.0, "decimate": 2, "sampling_time": 1.0}, "both change the sampling time"),
    ],
)
def test_what_cannot_be_resampled(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_records(np.column_stack([sine(1).u, sine(1).y]), 1, 2, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", [{"resample": 0.02, "decimate": 2}, {"resample": -1.0}, {"decimate": 0}])
def test_pairs_are_resampled_under_the_same_conditions(arguments: dict[str, float]) -> None:
    with pytest.raises(DataError, match=r"both change the sampling time|positive number of seconds|1 or more"):
        read_records((sine(1).u, sine(1).y), sampling_time=0.01, **arguments)  # type: ignore[arg-type]


def table(times: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.column_stack([times, np.sin(times), np.cos(times)])


def test_irregular_samples_are_refused_with_their_row_or_resampled() -> None:
    rng = np.random.default_rng(0)
    times = np.sort(np.arange(500) * 0.1 + rng.uniform(-0.03, 0.03, 500))
    with pytest.raises(DataError, match=r"irregular at row 2: .*--resample 0\.\d+\)"):
        read_records(table(times), 2, 3, time=1)
    for target in (0.1, 0.3):
        [record] = read_records(table(times), 2, 3, time=1, resample=target)
        assert record.sampling_time == target
        exact = np.sin(times[0] + record.time)
        assert np.abs(record.u[:, 0] - exact)[5:-5].max() < 0.01
    back = times.copy()
    back[40] = back[39]
    with pytest.raises(DataError, match="must increase from row to row, but does not at row 41"):
        read_records(table(back), 2, 3, time=1, resample=0.1)


def test_a_gap_is_refused_split_or_bridged_with_a_warning() -> None:
    times = np.delete(np.arange(200) * 0.5, range(80, 100))
    with pytest.raises(
        DataError, match=r"irregular at row 81: a step of 0.5 was expected, found 10.5.*--missing split"
    ):
        read_records(table(times), 2, 3, time=1)
    pieces = read_records(table(times), 2, 3, time=1, missing="split")
    assert [(len(p), p.name, p.sampling_time) for p in pieces] == [
        (80, "ndarray (rows 1 to 80)", 0.5),
        (100, "ndarray (rows 81 to 180)", 0.5),
    ]
    with pytest.warns(UserWarning, match=r"gap of 10.5 s before row 81, bridged by a straight line"):
        [bridged] = read_records(table(times), 2, 3, time=1, resample=0.5)
    assert len(bridged) == 200


@given(st.lists(st.booleans(), min_size=3, max_size=60))
@settings(deadline=None)
def test_split_keeps_every_complete_row_in_its_place(holes: list[bool]) -> None:
    """Compared with cutting by hand: runs of at least two complete rows, nothing else."""
    rows = len(holes)
    data = np.column_stack([np.arange(rows) * 2.0, np.arange(float(rows)), np.where(holes, np.nan, np.arange(rows))])
    runs: list[list[int]] = [[]]
    for row, hole in enumerate(holes):
        if hole:
            runs.append([])
        else:
            runs[-1].append(row)
    expected = [run for run in runs if len(run) > 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            pieces = read_records(data, 2, 3, time=1, missing="split")
        except DataError:
            assert not expected
            return
    assert [piece.u[:, 0].tolist() for piece in pieces] == expected
    assert all((piece.y == piece.u).all() and piece.sampling_time == 2.0 for piece in pieces)


def test_short_pieces_are_left_out_and_counted(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("u,y\n1,1\n2,2\n3,3\n,4\n5,5\n6,NA\n7,7\n8,8\n\n9,9\n")
    with pytest.warns(UserWarning, match=r"p\.csv: 1 of 3 pieces .* shorter than 3 samples and were left out"):
        pieces = read_records(tmp_path / "p.csv", "u", "y", missing="split", shortest=3)
    assert [piece.name for piece in pieces] == ["p.csv (rows 2 to 4)", "p.csv (rows 8 to 11)"]
    with pytest.raises(
        DataError, match="has at most 3 samples in a row without missing values, fewer than the 9 needed"
    ):
        read_records(tmp_path / "p.csv", "u", "y", missing="split", shortest=9)
    with pytest.raises(DataError, match=r"ndarray has 3 samples, fewer than the 9 needed: shorten the washout"):
        read_records(np.arange(6.0).reshape(3, 2), 1, 2, shortest=9)
    (tmp_path / "p.csv").write_text("u,y\n1,1\n2,x\n3,3\n")
    with pytest.raises(DataError, match=r"column 'y' of p\.csv holds 'x' in row 3"):
        read_records(tmp_path / "p.csv", "u", "y", missing="split")


def test_pieces_are_measured_after_decimation() -> None:
    data = np.column_stack([np.sin(0.1 * np.arange(300.0)), np.cos(0.1 * np.arange(300.0))])
    data[100, 1] = np.nan
    with pytest.warns(UserWarning, match="1 of 2 pieces .* shorter than 30 samples"):
        [piece] = read_records(data, 1, 2, missing="split", decimate=4, shortest=30)
    assert len(piece) == 50


def test_pieces_of_another_sampling_time_are_refused() -> None:
    times = np.concatenate([np.arange(50.0), 100 + 1.2 * np.arange(20.0)])
    with pytest.raises(DataError, match=r"irregular at row 52: a step of 1 was expected, found 1\.2"):
        read_records(table(times), 2, 3, time=1, missing="split")


def test_rows_of_separators_at_the_end_are_no_samples(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("u,y\n1,1\n2,2\n,\n3,3\n4,4\n,\n,\n")
    pieces = read_records(tmp_path / "p.csv", "u", "y", missing="split")
    assert [piece.u.ravel().tolist() for piece in pieces] == [[1.0, 2.0], [3.0, 4.0]]


def test_chunks_leave_no_seams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echobound.data.cells.CHUNK", 7)
    monkeypatch.setattr("echobound.data.text.CHUNK", 31)
    rng = np.random.default_rng(1)
    values = rng.normal(size=(200, 3))
    lines = [",".join(map(repr, row)) for row in values.tolist()]
    lines[50] = lines[50].replace(",", " ,  ", 1)
    lines.insert(100, "")
    (tmp_path / "p.csv").write_text("u,v,ü_y\r\n" + "\r\n".join(lines) + "\r\n", encoding="utf-8")
    [record] = read_records(tmp_path / "p.csv", ["u", "v"], 3)
    assert (np.column_stack([record.u, record.y]) == values).all()
    lines[150] = "1,2,oops"
    (tmp_path / "p.csv").write_text("u,v,y\n" + "\n".join(lines) + "\n")
    with pytest.raises(DataError, match="holds 'oops' in row 152"):
        read_records(tmp_path / "p.csv", ["u", "v"], "y")


def test_row_numbers_are_stored_by_their_jumps() -> None:
    rows, expected = RowNumbers(), []
    for sample in range(1000):
        row = 2 + sample + (sample > 300) + 5 * (sample > 700)
        rows.add(sample, row)
        expected.append(row)
    assert [rows[sample] for sample in range(1000)] == expected
    assert len(rows._samples) == 3


ROWS = 120_000


@pytest.mark.parametrize("kind", ["csv", "npz", "mat", "73.mat", "parquet", "array", "frame"])
def test_reading_needs_at_most_twice_the_memory_of_the_record(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python traces arrays, strings and bytes, Arrow's pool its own memory; one chunk is allowed on top."""
    from test_data_formats import mat73

    monkeypatch.setattr("echobound.data.cells.CHUNK", 256)
    monkeypatch.setattr("echobound.data.text.CHUNK", 1 << 14)
    for module in ("variables", "sampling"):
        monkeypatch.setattr(f"echobound.data.{module}.CHUNK", 1 << 12)
    monkeypatch.setattr("echobound.data.frames.BATCH", 1 << 12)
    rng = np.random.default_rng(0)
    columns = {"t": np.arange(ROWS) * 0.5} | {name: rng.normal(size=ROWS) for name in ("a", "b", "c", "d")}
    frame = pandas.DataFrame(columns)
    path = tmp_path / f"p.{kind}"
    source = {"array": frame.to_numpy(), "frame": frame}.get(kind, path)
    if kind == "csv":
        path.write_text("t,a,b,c,d\n" + "\n".join(",".join(map(repr, r)) for r in frame.to_numpy().tolist()) + "\n")
    elif kind == "parquet":
        frame.to_parquet(path, row_group_size=1 << 13)
    elif kind == "npz":
        np.savez_compressed(path, **columns)  # type: ignore[arg-type]
    elif kind == "mat":
        scipy.io.savemat(path, columns)
    elif kind == "73.mat":
        mat73(path, **columns)
    names = (1, (2, 3), (4, 5)) if kind == "array" else ("t", ("a", "b"), ("c", "d"))
    time, inputs, outputs = names
    read_records(source, inputs, outputs, time=time)  # imports are not what is measured
    usual = pyarrow.default_memory_pool()
    pool = pyarrow.proxy_memory_pool(usual)  # counts from here on
    pyarrow.set_memory_pool(pool)
    tracemalloc.start()
    try:
        [record] = read_records(source, inputs, outputs, time=time)
        peak = tracemalloc.get_traced_memory()[1] + pool.max_memory()
    finally:
        tracemalloc.stop()
        pyarrow.set_memory_pool(usual)
    assert (pool.max_memory() > 0) == (kind == "parquet")
    result = record.u.nbytes + record.y.nbytes
    assert result == ROWS * 4 * 8
    assert peak < 2 * result + 500_000
