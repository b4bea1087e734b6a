"""Files: complete or absent, exact round trips, and nothing accepted that fails a check."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from echobound.errors import DamagedFile, RunError
from echobound.files import (
    digest,
    jsonable,
    read_json,
    read_npz,
    require_plain,
    write_all,
    write_json,
    write_npz,
    write_whole,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NUMBERS = st.sampled_from([np.float64, np.float32, np.int64, np.uint64, np.uint8, np.bool_]).flatmap(
    lambda dtype: arrays(dtype, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.npz"
    write_npz(path, {"kind": "model", "order": 3}, {"W": np.arange(6.0).reshape(2, 3), "empty": np.zeros((0, 2))})
    return path


def test_a_file_appears_whole_and_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    path = tmp_path / "a.json"
    write_whole(path, b"old")

    def fail(_descriptor: int) -> None:
        raise failure

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(RunError if isinstance(failure, OSError) else KeyboardInterrupt) as refusal:
        write_whole(path, b"new")
    if isinstance(failure, OSError):
        assert "No space left on device" in str(refusal.value)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_several_files_appear_together_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = tmp_path / "folder" / "a", tmp_path / "folder" / "b"
    write_all({old: b"1", new: b"2"})
    assert (old.read_bytes(), new.read_bytes()) == (b"1", b"2")
    calls = []

    def full_at_the_second(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) % 2 == 0:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_at_the_second)
    for first in (old, tmp_path / "other" / "deeper" / "a"):
        with pytest.raises(RunError, match=r"cannot write .*b \(No space left"):
            write_all({first: b"3", first.with_name("b"): b"4"})
    assert len(calls) == 4
    assert (old.read_bytes(), new.read_bytes()) == (b"1", b"2")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "folder"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot write .*gone/a\.json \(No such file or directory\)"):
        write_json(tmp_path / "gone" / "a.json", {})


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_json_comes_back(tmp_path_factory: pytest.TempPathFactory, value: dict[str, object]) -> None:
    path = tmp_path_factory.mktemp("json") / "a.json"
    write_json(path, value)
    assert read_json(path) == value


def test_what_json_cannot_hold_is_made_to_fit() -> None:
    value = {1: np.float32(0.5), "a": np.array([1.0, np.nan]), "b": (np.bool_(True), np.uint8(3), -np.inf)}
    assert jsonable(value) == {"1": 0.5, "a": [1.0, None], "b": [True, 3, None]}
    assert json.dumps(jsonable(True)) == "true"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a": %s}' % (b"1" * 5000),
    ],
    ids=lambda content: content[:12].decode("latin-1"),
)
def test_json_that_is_no_object_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=r"plan\.json is damaged or was changed \(content: "):
        read_json(path)


def test_missing_files_ask_for_the_run(tmp_path: Path) -> None:
    for read in (lambda path: read_json(path), lambda path: read_npz(path, "model")):
        with pytest.raises(RunError, match=r"is missing: check that .* is a run folder") as refusal:
            read(tmp_path / "plan.json")
        assert not isinstance(refusal.value, DamagedFile)


@given(st.dictionaries(st.text("abcW_", min_size=1, max_size=6), NUMBERS, max_size=4), JSON)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_arrays_come_back_bit_by_bit(
    tmp_path_factory: pytest.TempPathFactory, stored: dict[str, np.ndarray], extra: object
) -> None:
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    write_npz(path, {"kind": "data", "extra": extra}, stored)
    header, found = read_npz(path, "data")
    assert header == {"kind": "data", "extra": extra}
    assert {name: (a.dtype, a.shape, a.tobytes()) for name, a in found.items()} == {
        name: (a.dtype, a.shape, a.tobytes()) for name, a in stored.items()
    }


def test_fortran_order_and_big_endian_come_back(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3)).astype(">f8")
    write_npz(path, {"kind": "data"}, {"a": array})
    assert (read_npz(path, "data")[1]["a"] == array).all()


def test_another_kind_is_refused(model: Path) -> None:
    with pytest.raises(DamagedFile, match="header: kind 'data' was expected, found 'model'"):
        read_npz(model, "data")


def test_no_flipped_bit_goes_unnoticed(model: Path) -> None:
    """Each byte in turn: the file is refused as damaged, or its content is unchanged (unused fields of the archive)."""
    raw = model.read_bytes()
    header, stored = read_npz(model, "model")
    for position in range(len(raw)):
        for bit in (0x01, 0x20, 0x80):
            model.write_bytes(raw[:position] + bytes([raw[position] ^ bit]) + raw[position + 1 :])
            try:
                again, arrays_again = read_npz(model, "model")
            except DamagedFile:
                continue
            assert again == header
            assert digest(arrays_again) == digest(stored)


def test_a_cut_file_is_refused_wherever_it_is_cut(model: Path) -> None:
    raw = model.read_bytes()
    for length in range(0, len(raw), 7):
        model.write_bytes(raw[:length])
        with pytest.raises(DamagedFile):
            read_npz(model, "model")


def npy(description: str, body: bytes = b"") -> bytes:
    text = description.encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def member(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array)
    return buffer.getvalue()


def archive(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)


@pytest.mark.parametrize(
    ("descr", "shape"),
    [
        ("'<f8'", "(4611686018427387904,)"),  # asks for 32 EiB
        ("'<f8'", "(0, 4611686018427387904)"),
        ("'<f8'", "(9223372036854775808, 0)"),
        ("'<f8'", "(-2,)"),
        ("'<f8'", "(3"),
        ("'<f8'", "(" * 300),
        ("'<f8'", "'many'"),
        ("'|O'", "(2,)"),
        ("'<U4'", "(1,)"),
        ("[('a', '<f8')]", "(2,)"),
        ("'<f8'", "__import__('os').getpid()"),
        ("7", "(2,)"),
    ],
)
def test_array_headers_that_lie_are_refused_with_the_array(tmp_path: Path, descr: str, shape: str) -> None:
    """With a correct checksum, as in a deliberate forgery."""
    path = tmp_path / "model.npz"
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"
    body = b"" if shape.startswith(("(4", "(0", "(9")) else bytes(16)
    archive(path, {"W_x.npy": npy(text, body)})
    with pytest.raises(DamagedFile, match="array W_x: "):
        read_npz(path, "model")


def test_compressed_and_foreign_members_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    archive(path, {"W.npy": member(np.zeros(1000))}, zipfile.ZIP_DEFLATED)
    with pytest.raises(DamagedFile, match="array W: it is compressed"):
        read_npz(path, "model")
    archive(path, {"readme.txt": b"hello"})
    with pytest.raises(DamagedFile, match=r"array readme\.txt: its header cannot be read"):
        read_npz(path, "model")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "[]",
        '"kind"',
        '{"kind": "model"}',
        "[" * 50_000,
        '{"kind": "model", "digest": 1, "a": ' + "[" * 900 + "]" * 900 + "}",
        '{"kind": "model", "digest": 1, "a": NaN}',
        '{"kind": "model", "digest": "0000"}',
        '{"kind": ["model"], "digest": 1}',
    ],
    ids=lambda text: text[:40],
)
def test_headers_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "model.npz"
    archive(path, {"header.npy": member(np.frombuffer(text.encode(), dtype=np.uint8))})
    with pytest.raises(DamagedFile, match=r"\((header|digest): ") as refusal:
        read_npz(path, "model")
    assert len(str(refusal.value)) < 400 + len(str(path))
    archive(path, {"W.npy": member(np.zeros(3))})
    with pytest.raises(DamagedFile, match="header: not a JSON header of kind 'model'"):
        read_npz(path, "model")


def test_an_array_added_changed_or_renamed_breaks_the_digest(model: Path) -> None:
    with zipfile.ZipFile(model) as file:
        members = {name: file.read(name) for name in file.namelist()}
    for change in (
        {"extra.npy": member(np.zeros(2))},
        {"W.npy": member(np.arange(6.0).reshape(3, 2))},
        {"W.npy": member(np.arange(6.0).reshape(2, 3) + 1e-15)},
    ):
        archive(model, {**members, **change})
        with pytest.raises(DamagedFile, match="digest: the content does not have the digest"):
            read_npz(model, "model")
    members["V.npy"] = members.pop("W.npy")
    archive(model, members)
    with pytest.raises(DamagedFile, match="digest"):
        read_npz(model, "model")


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(b"not a zip file")
    with pytest.raises(DamagedFile, match="archive: "):
        read_npz(path, "model")
    with pytest.raises(DamagedFile, match="archive: "):
        read_npz(tmp_path, "model")


def test_objects_are_never_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        write_npz(tmp_path / "a.npz", {"kind": "data"}, {"a": np.array([{}], dtype=object)})
    assert not list(tmp_path.iterdir())


def test_digest_sees_content_and_not_layout() -> None:
    array = np.arange(6.0).reshape(2, 3)
    same = [array, np.asfortranarray(array), array.astype(">f8"), np.repeat(array, 2, axis=1)[:, ::2]]
    assert len({digest(a) for a in same}) == 1
    assert digest({"a": [1, "x"], "b": None}) == digest({"b": None, "a": (1, "x")})
    other = [array, array.T, array.ravel(), array.astype(np.float32), array + 1, array.tolist(), array[:1], array[0]]
    assert len({digest(a) for a in other}) == len(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["ab", "c"], ["a", "bc"]),
        ([[1], 2], [[1, 2]]),
        ([1, [2]], [[1], 2]),
        ({"a": 1}, ["a", 1]),
        ("1", 1),
        (1, 1.0),
        (True, 1),
        (np.array(3.0), np.array([3.0])),
        (np.zeros((0, 2)), np.zeros((0, 3))),
        ({"a": None}, {}),
    ],
    ids=str,
)
def test_digest_tells_apart(one: object, other: object) -> None:
    assert digest(one) != digest(other)


def test_digest_never_changes() -> None:
    """Pinned: run folders and certificates of earlier versions must remain valid."""
    value = {"u": np.arange(4.0).reshape(2, 2), "names": ["q3", "pH"], "sampling_time": 10.0, "none": None}
    assert digest(value) == "08469a5a0b0ad1200fee012d92b9010ef69cacd4ba082dc2078f3285bed6fbf3"


@given(JSON)
def test_digest_survives_a_file(value: object) -> None:
    assert digest(json.loads(json.dumps(jsonable(value)))) == digest(value)


def test_arrays_are_written_as_numpy_before_2_2_would(tmp_path, monkeypatch):
    """There, a keyword that `savez` does not know is an array of that name."""
    given = {}
    monkeypatch.setattr(np, "savez", lambda _, **arrays: given.update(arrays))
    write_npz(tmp_path / "a.npz", {"kind": "data"}, {"a": np.zeros(2)})
    assert set(given) == {"header", "a"}


def test_the_umask_is_respected(tmp_path):
    before = os.umask(0o077)
    try:
        write_json(tmp_path / "a.json", {})
    finally:
        os.umask(before)
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path):
    for name, read in (("a.json", read_json), ("a.npz", lambda path: read_npz(path, "data"))):
        (tmp_path / name).write_text("{}")
        (tmp_path / name).chmod(0)
        with pytest.raises(RunError, match=r"cannot read .*Permission denied") as found:
            read(tmp_path / name)
        assert not isinstance(found.value, DamagedFile)


def test_unreadable_is_said_by_the_error_of_the_system(tmp_path, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.json").write_text("{}")
    monkeypatch.setattr(Path, "read_text", denied)
    with pytest.raises(RunError, match=r"cannot read .*Permission denied.*permissions"):
        read_json(tmp_path / "a.json")


def test_links_and_pipes_are_refused(tmp_path):
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    os.mkfifo(tmp_path / "pipe")
    for name, why in (("link", "not followed"), ("pipe", "not a file")):
        with pytest.raises(DamagedFile, match=why):
            require_plain(tmp_path / name)
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "mine").read_text() == "precious"
    require_plain(tmp_path / "link")
