"""Files that were damaged or made to deceive: they are refused in one sentence, or read as what they hold."""

import os
import struct
import time
import zipfile
import zlib

import h5py
import numpy as np
import openpyxl
import pandas
import pyarrow.parquet
import pytest
import scipy.io
from test_data_formats import FRAME, U, Y, mat73

from echobound.data import read_records, read_table
from echobound.data import room as room_module
from echobound.data.matlab import matlab_variables
from echobound.errors import DataError


def test_a_parquet_footer_that_declares_other_rows_is_refused(tmp_path):
    """Before, what was not there was whatever the memory held."""
    pandas.DataFrame({"valve": U[:, 0], "level": Y}).to_parquet(tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    [length] = struct.unpack("<I", whole[-8:-4])
    footer, varint = len(whole) - 8 - length, bytes([2 * len(Y)])  # a count is stored as twice itself
    changed = 0
    for at in range(footer, len(whole) - 8):
        if whole[at : at + 1] != varint:
            continue
        for rows in (len(Y) + 20, 3):
            path = tmp_path / "changed.parquet"
            path.write_bytes(whole[:at] + bytes([2 * rows]) + whole[at + 1 :])
            try:
                changed += pyarrow.parquet.ParquetFile(path).metadata.num_rows != len(Y)
            except OSError:
                continue
            try:
                [record] = read_records(path, "valve", "level")
            except DataError:
                continue
            assert (record.y[:, 0] == Y).all()
    assert changed, "nothing was tried"


def made_by_matlab(path, write):
    with h5py.File(path, "w", userblock_size=512) as file:
        write(file)
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


def test_hdf5_reads_no_other_file(tmp_path):
    secret = tmp_path / "secret.bin"
    np.arange(40.0).tofile(secret)
    mat73(tmp_path / "other.mat", v=Y)

    def write(file):
        file["y"] = Y[None]
        file.create_dataset("u", (1, 40), "f8", external=[(str(secret), 0, 320)])
        layout = h5py.VirtualLayout((1, 40), "f8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.mat"), "v", (1, 40))
        file.create_virtual_dataset("v", layout)
        file["w"] = h5py.ExternalLink(str(tmp_path / "other.mat"), "v")
        file["s"] = h5py.SoftLink("/y")

    made_by_matlab(tmp_path / "plant.mat", write)
    table = read_table(tmp_path / "plant.mat")
    assert (table.signal("y")[:, 0] == Y).all()
    for name in "uv":
        with pytest.raises(DataError, match="stored in another file, which is not read"):
            table.signal(name)
    for name in "ws":
        with pytest.raises(DataError, match="a link to another place, which is not followed"):
            table.signal(name)


def test_hdf5_groups_that_hold_each_other_end(tmp_path):
    def write(file):
        file["y"] = Y[None]
        groups = [file.create_group(f"g{i}") for i in range(20)]
        for one in groups:
            for i, other in enumerate(groups):
                one[f"to{i}"] = other

    made_by_matlab(tmp_path / "plant.mat", write)
    assert (read_table(tmp_path / "plant.mat").signal("y")[:, 0] == Y).all()


def test_hdf5_of_declared_terabytes_is_refused(tmp_path):
    def write(file):
        file["y"] = Y[None]
        file.create_dataset("u", (1, 10**12), "f8", chunks=(1, 10**5))

    made_by_matlab(tmp_path / "plant.mat", write)
    with pytest.raises(DataError, match="declared, but not stored"):
        read_table(tmp_path / "plant.mat").signal("u")


def test_every_byte_of_a_matlab_file_may_be_wrong(tmp_path):
    path = tmp_path / "plant.mat"
    for compressed in (False, True):
        scipy.io.savemat(path, {"u": U[:5], "s": {"a": Y[:4], "b": "text"}, "c": [["x"]]}, do_compression=compressed)
        whole = path.read_bytes()
        read = 0
        for at in range(124, len(whole)):
            for value in (1, 255):
                path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
                try:
                    for found in matlab_variables(path):
                        if found.fill is not None and 0 < max(found.shape) < 100 and len(found.shape) == 2:
                            columns = 1 if 1 in found.shape else found.shape[1]
                            found.fill([(i, np.empty(max(found.shape))) for i in range(columns)])
                        read += 1
                except (ValueError, zlib.error):
                    pass
        assert read > 100, "nothing was tried"


@pytest.mark.parametrize("version", ["4", "5"])
@pytest.mark.parametrize("packed", [False, True])
def test_matlab_files_are_read_as_scipy_reads_them(tmp_path, version, packed):
    if version == "4" and packed:
        pytest.skip("version 4 does not pack")
    path, chance = tmp_path / "plant.mat", np.random.default_rng(1)
    content = {"a": chance.normal(size=(200_000, 2)), "row": chance.normal(size=(1, 90)), "c": np.full((50, 1), 0.1)}
    if version == "5":
        kinds = ["f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
        content |= {f"k_{kind}": chance.integers(0, 100, (30, 3)).astype(kind) for kind in kinds}
        content |= {"logical": chance.random((40, 1)) > 0.5, "big": np.full((20, 1), 2**53 - 1, dtype="i8")}
        content |= {"s": {"x": {"y": chance.normal(size=(12, 1))}, "z": chance.normal(size=(13, 2))}}
    scipy.io.savemat(path, content, format=version, do_compression=packed)
    table = read_table(path)
    content |= {"s.x.y": content["s"]["x"]["y"], "s.z": content["s"]["z"]} if version == "5" else {}
    content.pop("s", None)
    for name, values in content.items():
        assert (table.signal(name) == values.reshape(-1, 1 if 1 in values.shape else values.shape[1])).all(), name


def sheet_with(path, change):
    book = openpyxl.Workbook()
    for row in [("valve", "level"), *zip(U[:, 0].tolist(), Y.tolist(), strict=True)]:
        book.active.append(row)
    book.save(path.with_suffix(".whole.xlsx"))
    with zipfile.ZipFile(path.with_suffix(".whole.xlsx")) as whole, zipfile.ZipFile(path, "w") as made:
        for name in whole.namelist():
            content = whole.read(name)
            made.writestr(name, change(content) if name.startswith("xl/worksheets/sheet") else content)


def test_rows_beyond_what_excel_knows_are_not_filled_in(tmp_path):
    start = time.monotonic()
    sheet_with(
        tmp_path / "rows.xlsx", lambda xml: xml.replace(b'r="41"', b'r="999999999999"').replace(b"41", b"9" * 12)
    )
    with pytest.raises(DataError, match=r"rows\.xlsx"):
        read_records(tmp_path / "rows.xlsx", "valve", "level")
    assert time.monotonic() - start < 120  # it would be days


def test_an_excel_file_that_unpacks_to_too_much_is_refused(tmp_path):
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b" " * (8 << 20))
    with pytest.raises(DataError, match="claims that"):
        read_table(path)


def test_numpy_files_are_packed_as_numpy_packs_them(tmp_path):
    np.savez(tmp_path / "plain.npz", valve=U[:, 0], level=Y)
    for method in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        with zipfile.ZipFile(tmp_path / "plain.npz") as whole, zipfile.ZipFile(tmp_path / "x.npz", "w", method) as made:
            for name in whole.namelist():
                made.writestr(name, whole.read(name))
        raw = bytearray((tmp_path / "x.npz").read_bytes())
        raw[60:90] = bytes(30)
        for content in (raw, (tmp_path / "x.npz").read_bytes()):
            (tmp_path / "x.npz").write_bytes(content)
            with pytest.raises(DataError):
                read_records(tmp_path / "x.npz", "valve", "level")


def test_what_does_not_fit_into_memory_is_refused_before_it_is_allocated(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "plant.npz", valve=np.zeros(10**6), level=np.zeros(10**6))
    mat73(tmp_path / "plant.mat", valve=np.zeros((10**5, 1)), level=np.zeros((10**5, 1)))
    np.save(tmp_path / "plant.npy", np.zeros((10**5, 2)))
    FRAME.to_parquet(tmp_path / "plant.parquet")
    monkeypatch.setattr(room_module, "memory_at_hand", lambda: 1000.0)
    for end in ("npz", "mat", "npy", "parquet"):
        with pytest.raises(DataError, match="memory are at hand"):
            read_records(tmp_path / f"plant.{end}", *((1, 2) if end == "npy" else ("valve", "level")))


@pytest.mark.parametrize("step", [1e-320, 5e-324, 1e-200, 1e-17, 1e-9, 1e9, 1e17, 1e200, 1.7e308])
def test_extreme_sampling_times(tmp_path, step):
    FRAME.to_csv(tmp_path / "plant.csv", index=False)
    for options in ({"resample": step, "time": "t"}, {"resample": step, "sampling_time": 0.5}, {"sampling_time": step}):
        try:
            read_records(tmp_path / "plant.csv", "valve", "level", **options)
        except DataError as refusal:
            assert "\n" not in str(refusal)  # noqa: PT017 (either outcome is right)


def test_a_gap_of_ages_is_not_bridged(tmp_path):
    frame = FRAME.copy()
    frame.loc[20:, "t"] += 1e13
    with pytest.warns(UserWarning, match="gap"), pytest.raises(DataError, match="samples of"):
        read_records(frame, "valve", "level", time="t", resample=0.5)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "plant.csv")
    with pytest.raises(DataError, match="a pipe or a device"):
        read_table(tmp_path / "plant.csv")
