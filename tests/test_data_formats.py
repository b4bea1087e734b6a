"""Files of every kind: each gives the same record, and every refusal is one sentence with a remedy."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
import scipy.io

from echobound.data import read_csv, read_records, read_table
from echobound.data.table import reading_as
from echobound.errors import DataError

DATA = Path(__file__).parents[1].parent / "shared" / "data"
ROWS = 40
T = np.arange(ROWS) * 0.5
U = np.stack([np.sin(T), np.cos(3 * T) / 3], axis=1)
Y = np.exp(-T) + U[:, 0]
FRAME = pandas.DataFrame({"t": T, "valve": U[:, 0], "load": U[:, 1], "level": Y})


def mat73(path: Path, **variables: Any) -> None:
    """Write a MATLAB 7.3 file: HDF5 after a text header, with everything stored column by column."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in variables.items():
            stored = file.create_dataset(name, data=np.atleast_2d(np.asarray(value)).T)
            stored.attrs["MATLAB_class"] = np.bytes_("double")
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, made by a test".ljust(124) + b"\x00\x02IM")


def columns_of(values: np.ndarray) -> np.ndarray:
    return np.asarray(values)[:, None]


WRITERS = {
    "plain.csv": lambda p: FRAME.to_csv(p, index=False),
    "tabs.tsv": lambda p: FRAME.to_csv(p, index=False, sep="\t"),
    "german.csv": lambda p: FRAME.to_csv(p, index=False, sep=";", decimal=","),
    "blanks.dat": lambda p: FRAME.to_csv(p, index=False, sep=" "),
    "plain.parquet": lambda p: FRAME.to_parquet(p),
    "groups.parquet": lambda p: FRAME.to_parquet(p, row_group_size=7),
    "plain.xlsx": lambda p: FRAME.to_excel(p, index=False),
    "old.mat": lambda p: scipy.io.savemat(p, FRAME.to_dict("list")),
    "packed.mat": lambda p: scipy.io.savemat(p, FRAME.to_dict("list"), do_compression=True, oned_as="column"),
    "four.mat": lambda p: scipy.io.savemat(p, {k: columns_of(v) for k, v in FRAME.items()}, format="4"),
    "new.mat": lambda p: mat73(p, **{k: columns_of(v) for k, v in FRAME.items()}),
    "rows.mat": lambda p: mat73(p, **{k: np.asarray(v)[None] for k, v in FRAME.items()}),
    "plain.npz": lambda p: np.savez(p, **FRAME.to_dict("list")),
    "packed.npz": lambda p: np.savez_compressed(p, **FRAME.to_dict("list")),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for name, write in WRITERS.items():
        write(folder / name)
    return folder


@pytest.mark.parametrize("name", WRITERS)
def test_the_same_record_from_every_kind_of_file(folder: Path, name: str) -> None:
    record = read_csv(folder / name, ["valve", "load"], "level", time="t")
    assert record.sampling_time == 0.5
    assert record.input_names == ("valve", "load")
    if name.endswith("xlsx"):  # Excel itself keeps 15 digits
        assert np.allclose(record.u, U, rtol=1e-14, atol=1e-16)
        return
    assert record.u.tobytes() == np.ascontiguousarray(U).tobytes(), "to the last bit"
    assert record.y.tobytes() == Y.tobytes()
    assert record.digest == read_csv(folder / "plain.csv", ["valve", "load"], "level", time="t").digest


@pytest.mark.parametrize(
    "frame",
    [FRAME, polars.from_pandas(FRAME), pyarrow.Table.from_pandas(FRAME), FRAME.astype({"valve": "Float64"})],
    ids=["pandas", "polars", "arrow", "nullable"],
)
def test_frames(frame: Any) -> None:
    [record] = read_records(frame, ["valve", "load"], "level", time="t")
    assert (record.u.tobytes(), record.y.tobytes()) == (np.ascontiguousarray(U).tobytes(), Y.tobytes())
    assert record.sampling_time == 0.5


def test_arrays_and_lists_of_them() -> None:
    array = FRAME.to_numpy()
    first, second = read_records([array, array[:30]], inputs=[2, 3], outputs=4, time=1)
    assert (len(first), len(second), first.sampling_time) == (40, 30, 0.5)
    assert (first.u == U).all()
    [pair] = read_records((U, Y), sampling_time=2.0)
    assert (pair.u == U).all()
    assert pair.sampling_time == 2.0
    lists = read_records(([U, U[:30]], [Y, Y[:30]]))
    assert [(record.name, len(record)) for record in lists] == [("training 1", 40), ("training 2", 30)]
    assert "give as many of both" in refused((U, Y[:30]), None, None)
    with np.errstate(all="raise"):
        assert len(read_records(np.full((9, 2), [1e308, -1e308]) * U[:9], 1, 2)[0]) == 9


def test_data_of_nonlinear_benchmarks_unchanged() -> None:
    utilities = pytest.importorskip("nonlinear_benchmarks.utilities")
    from echobound import identify

    data = utilities.Input_output_data(u=U[:, 0], y=Y, sampling_time=4.0, name="tanks")
    [record] = read_records(data)
    assert (record.sampling_time, record.name, record.u.shape) == (4.0, "tanks", (40, 1))
    train, validation, *test = data[:16], data[16:24], data[24:32], data[32:]
    options = {"law": "paper", "order": 4, "networks": 3, "beta": 0.5, "washout": 3}
    result = identify(train, validation, test=test[0], **options)
    assert result.generalisation.episodes == 1
    several = identify([train, train], [validation], test=tuple(test), **options)
    assert several.generalisation.episodes == 2
    assert several.certificate.networks == 3
    discrete = utilities.Input_output_data(u=U, y=Y)  # no sampling time
    assert read_records(discrete)[0].sampling_time == 1.0


def test_several_files_are_several_experiments(folder: Path) -> None:
    records = read_records([folder / "plain.csv", folder / "plain.parquet", FRAME], ["valve"], ["level"], time="t")
    assert [record.name for record in records] == ["plain.csv", "plain.parquet", "DataFrame 3"]
    assert len({record.digest for record in records}) == 1


def test_matrices_and_structures_of_matlab(tmp_path: Path) -> None:
    scipy.io.savemat(
        tmp_path / "plant.mat",
        {"u": U, "y": Y, "Ts": 0.5, "note": "hello", "c": np.array([1, "a"], object)}
        | {"data": {"u": U, "deep": {"y": columns_of(Y)}}},
    )
    table = read_table(tmp_path / "plant.mat")
    assert table.columns == ("u[1]", "u[2]", "y", "data.u[1]", "data.u[2]", "data.deep.y")
    assert (table.signal("u") == U).all()
    assert (table.signal(["u[2]", "y"]) == np.stack([U[:, 1], Y], axis=1)).all()
    assert (table.signal(["data.u", "data.deep.y"]) == np.column_stack([U, Y])).all()
    assert table.records("u", "y")[0].input_names == ("u[1]", "u[2]")
    for name, what in (("Ts", "a single number"), ("note", "text"), ("c", "a cell array")):
        with pytest.raises(DataError, match=f"variable '{name}' of plant.mat is {what}"):
            table.signal(name)
    with pytest.raises(
        DataError, match=r"no variable 'x': plant\.mat has the variables u\[1\].*not usable as a signal: Ts"
    ):
        table.signal("x")


def test_matrices_of_mat_73_and_npz(tmp_path: Path) -> None:
    mat73(tmp_path / "plant.mat", u=U, y=columns_of(Y))
    np.savez(tmp_path / "plant.npz", u=U, f=np.asfortranarray(U), y=Y.astype(np.float32), n=np.arange(40))
    assert (read_table(tmp_path / "plant.mat").signal("u") == U).all()
    table = read_table(tmp_path / "plant.npz")
    assert (table.signal(["u", "f"]) == np.column_stack([U, U])).all()
    assert (table.signal(["f[2]", "n"]) == np.column_stack([U[:, 1], np.arange(40)])).all()
    assert (table.signal("y")[:, 0] == Y.astype(np.float32)).all()
    np.save(tmp_path / "plant.npy", np.column_stack([U, Y]))
    assert (read_csv(tmp_path / "plant.npy", [1, 2], 3).u == U).all()


def test_real_files_of_emps() -> None:
    if not (DATA / "emps").exists():
        pytest.skip("the shared data are not there")
    by_name = [read_csv(DATA / "emps" / f"DATA_EMPS.{end}", "vir", "qm", time="t") for end in ("mat", "csv")]
    assert np.allclose(by_name[0].y, by_name[1].y, rtol=1e-9)
    assert by_name[0].sampling_time == pytest.approx(1e-3)
    with pytest.raises(DataError, match="is a single number"):
        read_table(DATA / "emps" / "DATA_EMPS.mat").signal("kp")


TIMES = pandas.date_range("2024-03-01 12:00", periods=40, freq="250ms")


@pytest.mark.parametrize("name", ["stamped.csv", "stamped.parquet", "stamped.xlsx", "words.parquet", "none.csv"])
def test_time_stamps(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echobound.data.frames.BATCH", 16)  # stamps count from the first of the file
    frame = FRAME.assign(t=TIMES)
    column: str | int = "t"
    if name == "words.parquet":
        frame.assign(t=TIMES.astype(str)).to_parquet(tmp_path / name)
    elif name == "none.csv":
        frame.to_csv(tmp_path / name, index=False, header=False)
        column = 1
    else:
        end = name.split(".")[1]
        write = {"csv": frame.to_csv, "parquet": frame.to_parquet, "xlsx": frame.to_excel}[end]
        write(tmp_path / name, index=False)
    record = read_csv(tmp_path / name, 2, 4, time=column)
    assert record.sampling_time == 0.25
    assert np.allclose(record.y[:, 0], Y, rtol=1e-14, atol=1e-16)


def test_time_stamps_of_frames() -> None:
    stamped = FRAME.assign(t=TIMES)
    for frame in (
        stamped,
        stamped.assign(t=TIMES.tz_localize("Europe/Rome")),
        stamped.set_index("t"),
        polars.from_pandas(stamped),
        polars.from_pandas(stamped).with_columns(polars.col("t").dt.strftime("%Y-%m-%d %H:%M:%S%.3f")),
        pyarrow.Table.from_pandas(stamped),
    ):
        assert read_records(frame, "valve", "level", time="t")[0].sampling_time == 0.25
    with pytest.raises(DataError, match="column 't' of DataFrame holds time stamps: numbers are needed"):
        read_records(stamped, "t", "level")


def refused(source: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(DataError) as refusal:
        read_records(source, *(arguments or ("valve", "level")), **options)
    text = str(refusal.value)
    assert "\n" not in text
    assert ":" in text, "what came and what to do"
    return text


BINARY = ["plain.parquet", "plain.xlsx", "old.mat", "packed.mat", "new.mat", "plain.npz", "packed.npz"]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.6, 0.9, 0.99])
def test_truncated_files(folder: Path, tmp_path: Path, name: str, share: float) -> None:
    whole = (folder / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: int(share * len(whole))])
    text = refused(tmp_path / name, time="t")
    assert text.startswith((name, f"there is no variable 't': {name}", f"there is no variable 'valve': {name}",
                            f"there is no variable 'level': {name}"))  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("at", [0.0, 0.2, 0.5, 0.8])
def test_damaged_files_are_read_or_refused(folder: Path, tmp_path: Path, name: str, at: float) -> None:
    raw = bytearray((folder / name).read_bytes())
    start = int(at * len(raw))
    raw[start : start + 40] = bytes(255 - byte for byte in raw[start : start + 40])
    (tmp_path / name).write_bytes(raw)
    try:
        read_records(tmp_path / name, "valve", "level", time="t")
    except DataError as refusal:
        assert "\n" not in str(refusal)  # noqa: PT017 (either outcome is right)


@pytest.mark.parametrize("name", BINARY)
def test_files_of_the_wrong_kind(folder: Path, tmp_path: Path, name: str) -> None:
    other = "plain.npz" if name != "plain.npz" else "plain.parquet"
    (tmp_path / name).write_bytes((folder / other).read_bytes())
    if name != "packed.npz":
        assert "that its name promises" in refused(tmp_path / name)
    (tmp_path / name).write_text("valve,level\n1,2\n")
    assert name in refused(tmp_path / name)
    misnamed = tmp_path / "plant.csv"
    misnamed.write_bytes((folder / name).read_bytes())
    found = read_csv(misnamed, ["valve", "load"], "level").u
    assert np.allclose(found, U, rtol=1e-14, atol=1e-16), "told by the content, not by the name"


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Excel file.*save it as .xlsx"),
        (b"\x89HDF\r\n\x1a\n", "HDF5 file that MATLAB did not write.*save its data as CSV"),
        (b"\x1f\x8b\x08\x00", "is a binary file"),
        (b"PK\x03\x04broken", "damaged ZIP archive"),
    ],
)
def test_other_binary_files(tmp_path: Path, start: bytes, message: str) -> None:
    (tmp_path / "plant.csv").write_bytes(start + bytes(100))
    with pytest.raises(DataError, match=message):
        read_table(tmp_path / "plant.csv")


def test_nested_and_complex_data_say_what_is_there(tmp_path: Path) -> None:
    z = Y + 1j
    scipy.io.savemat(tmp_path / "c.mat", {"z": z, "y": Y})
    assert "variable 'z' of c.mat is complex, 1x40: real numbers are needed" in refused(tmp_path / "c.mat", "z", "y")
    with h5py.File(tmp_path / "c73.mat", "w", userblock_size=512) as file:
        file["y"] = Y[None]
        file["z"] = np.zeros((1, 40), dtype=[("real", "f8"), ("imag", "f8")])
        file["ref"] = np.array([[file["y"].ref]], dtype=h5py.ref_dtype)
        file["ref"].attrs["MATLAB_class"] = np.bytes_("cell")
    with (tmp_path / "c73.mat").open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    assert "variable 'z' of c73.mat is complex numbers, 40x1" in refused(tmp_path / "c73.mat", "z", "y")
    assert "is a cell array" in refused(tmp_path / "c73.mat", "ref", "y")
    np.savez(tmp_path / "c.npz", z=z, y=Y, s=np.array(["a"] * 40), o=np.array([{}] * 40, dtype=object))
    for name, what in (("z", "complex numbers"), ("s", "text"), ("o", "pickled objects")):
        assert f"variable '{name}' of c.npz is {what}, 40" in refused(tmp_path / "c.npz", name, "y")
    nested = pyarrow.table({"y": Y, "l": [[1.0, 2.0]] * 40, "s": [{"a": 1}] * 40, "w": ["x"] * 40})
    pyarrow.parquet.write_table(nested, tmp_path / "n.parquet")
    for source in (tmp_path / "n.parquet", nested, polars.from_arrow(nested), nested.to_pandas()):
        for name in ("l", "s"):
            text = refused(source, name, "y")
            assert f"column '{name}' of" in text
            assert "holds" in text
        assert "holds text" in refused(source, "w", "y")
    assert "is complex" in refused(FRAME.assign(valve=z))
    assert "real numbers" in refused(np.column_stack([z, z]), 1, 2)
    assert "complex" in refused((z, Y), None, None)


def test_what_a_parser_raises_becomes_one_sentence() -> None:
    message = (
        r"^plant\.mat cannot be read as a MATLAB file \(unknown type 77\): is the file complete\? Save or export it"
    )
    with pytest.raises(DataError, match=f"{message} again$"), reading_as(Path("plant.mat"), "a MATLAB file"):
        raise ValueError("unknown\ntype 77")


def test_wrong_orientation_suggests_transposing(tmp_path: Path) -> None:
    array = np.column_stack([U, Y])
    assert "transpose it" in refused(array.T, 1, 2)
    assert "more channels than samples, shape (2, 40)" in refused((U.T, Y), None, None)
    np.savetxt(tmp_path / "wide.dat", array.T)
    assert "3 rows and 40 columns without names" in refused(tmp_path / "wide.dat", 1, 2)
    (tmp_path / "named.csv").write_text("valve," + ",".join("1" * 9) + "\nlevel," + ",".join("2" * 9) + "\n")
    assert "transpose the table" in refused(tmp_path / "named.csv", 1, 2)
    scipy.io.savemat(tmp_path / "wide.mat", {"u": U.T, "y": Y})
    assert "more channels than samples, 2x40: transpose it" in refused(tmp_path / "wide.mat", "u", "y")
    np.savez(tmp_path / "wide.npz", u=U.T, y=Y)
    assert "more channels than samples, 2x40: transpose it" in refused(tmp_path / "wide.npz", "u", "y")


def test_duplicate_names(tmp_path: Path) -> None:
    twice = pandas.concat([FRAME, FRAME[["valve"]]], axis=1)
    assert "several columns named 'valve': say which by its number, 2 and 5" in refused(twice)
    assert (read_records(twice, 5, "level")[0].u[:, 0] == U[:, 0]).all()
    twice.to_excel(tmp_path / "twice.xlsx", index=False)
    assert "several columns named 'valve'" in refused(tmp_path / "twice.xlsx")
    table = pyarrow.table([Y, Y, Y], names=["valve", "valve", "level"])
    pyarrow.parquet.write_table(table, tmp_path / "twice.parquet")
    assert "several columns named 'valve'" in refused(tmp_path / "twice.parquet")
    assert "rename one of them" in refused(tmp_path / "twice.parquet", 1, "level")


def test_missing_and_infinite_values_name_their_rows(tmp_path: Path) -> None:
    holes = FRAME.copy()
    holes.loc[[4, 9, 11], "level"] = np.nan
    holes.to_csv(tmp_path / "h.csv", index=False)
    holes.to_parquet(tmp_path / "h.parquet")
    holes.to_excel(tmp_path / "h.xlsx", index=False)
    np.savez(tmp_path / "h.npz", **{k: v.to_numpy() for k, v in holes.items()})
    scipy.io.savemat(tmp_path / "h.mat", {k: v.to_numpy() for k, v in holes.items()})
    for source, first in (("h.csv", 6), ("h.xlsx", 6), ("h.parquet", 5), ("h.npz", 5), ("h.mat", 5)):
        text = refused(tmp_path / source)
        assert f"row {first} (3 such cells in all: rows {first}, {first + 5}, {first + 7})" in text
        assert "--missing split" in text
    assert "row 5 (3 such cells in all: rows 5, 10, 12)" in refused(holes)
    assert "row 5 (3 such cells in all: rows 5, 10, 12)" in refused(polars.from_pandas(holes))
    holes.loc[20, "level"] = np.inf
    text = refused(holes, missing="split")
    assert "holds 'inf' in row 21" in text
    assert "missing split" not in text, "an infinity is not a missing value"


def test_variables_of_different_lengths(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", u=U[:, 0], y=Y[:-1])
    assert "'u' and 'y' of p.npz have 40 and 39 samples" in refused(tmp_path / "p.npz", "u", "y")
    np.savez(tmp_path / "n.npz", a=1.0, b=np.zeros((2, 3, 4)))
    assert "holds no signals" in refused(tmp_path / "n.npz", "a", "b")


def test_a_header_that_promises_too_much_is_refused_before_anything_is_allocated(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(4))
    swollen = buffer.getvalue().replace(b"(4,), }" + b" " * 12, b"(4000000000000,), }")
    with zipfile.ZipFile(tmp_path / "trap.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("u.npy", swollen)
        archive.writestr("y.npy", swollen)
    assert "its header promises 32000000000000 bytes, but 32 are there" in refused(tmp_path / "trap.npz", "u", "y")


def test_sheets(tmp_path: Path) -> None:
    with pandas.ExcelWriter(tmp_path / "book.xlsx") as book:
        FRAME.to_excel(book, sheet_name="one", index=False)
        FRAME[:20].to_excel(book, sheet_name="two", index=False)
    assert "has the sheets one, two: say which" in refused(tmp_path / "book.xlsx")
    assert len(read_records(tmp_path / "book.xlsx", "valve", "level", sheet="two")[0]) == 20
    assert "has no sheet 'three': it has one, two" in refused(tmp_path / "book.xlsx", sheet="three")
    FRAME.to_csv(tmp_path / "p.csv", index=False)
    assert "has no sheets" in refused(tmp_path / "p.csv", sheet="one")


def test_mixed_sampling_times(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    FRAME.assign(t=T * 2).to_csv(tmp_path / "b.csv", index=False)
    text = refused([tmp_path / "a.csv", tmp_path / "b.csv"], time="t")
    assert "the same sampling time: a.csv has 0.5 s, b.csv has 1.0 s: resample one of them" in text
    records = read_records([tmp_path / "a.csv", tmp_path / "b.csv"], "valve", "level", time="t", resample=1.0)
    assert [record.sampling_time for record in records] == [1.0, 1.0]


def test_a_constant_input_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="input 'valve' is 3 in all samples of DataFrame: nothing can be learned"):
        read_records(FRAME.assign(valve=3.0), "valve", "level")
    with pytest.warns(UserWarning, match="all 2 experiments"):
        read_records([FRAME.assign(valve=3.0)] * 2, "valve", "level")


def test_what_is_no_source(tmp_path: Path) -> None:
    assert "must be a Record, a pair" in refused({"u": U}, None, None)
    assert "say which columns" in refused(FRAME, None, None)
    assert "a pair (u, y) has none" in refused((U, Y), "valve", "level")
    assert "collect() it first" in refused(polars.from_pandas(FRAME).lazy())
    assert "no rows" in refused(FRAME[:0])
    assert "missing must be one of error, split, interpolate:3, got 'drop'" in refused(FRAME, missing="drop")


@pytest.mark.parametrize(("name", "package"), [("p.parquet", "pyarrow"), ("p.xlsx", "openpyxl"), ("p.mat", "h5py")])
def test_without_its_extra_a_reader_names_it(tmp_path: Path, name: str, package: str) -> None:
    path = tmp_path / name
    WRITERS[{"p.parquet": "plain.parquet", "p.xlsx": "plain.xlsx", "p.mat": "new.mat"}[name]](path)
    code = (
        f"import sys; sys.modules[{package!r}] = None\nfrom echobound.data import read_table\nread_table({str(path)!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'echobound[files]'" in done.stderr.splitlines()[-1]
