"""The exception tree: what users catch, and what the messages contain."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from echobound import errors
from echobound.errors import DamagedFile, DataError, EchoboundError, InputError, MissingExtra, RunError


def test_every_exception_descends_from_one_and_is_exported() -> None:
    own = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert own == set(errors.__all__)
    assert all(issubclass(getattr(errors, name), EchoboundError) for name in own)


def test_builtin_families() -> None:
    assert issubclass(DataError, InputError)
    assert issubclass(InputError, ValueError)
    assert issubclass(DamagedFile, RunError)
    assert issubclass(MissingExtra, ImportError)
    assert not issubclass(RunError, ValueError)


def test_a_damaged_file_says_which_part_and_what_to_do() -> None:
    error = DamagedFile("runs/a/model.npz", "array W_x", "cut short")
    assert (error.path, error.part) == (Path("runs/a/model.npz"), "array W_x")
    assert str(error).startswith("runs/a/model.npz is damaged or was changed (array W_x: cut short): restore")


def test_a_missing_extra_names_the_command() -> None:
    error = MissingExtra("the Dask engine", extra="dask")
    assert error.extra == "dask"
    assert "pip install 'echobound[dask]'" in str(error)


@pytest.mark.parametrize(
    "error", [DataError("no"), DamagedFile("a.npz", "header", "gone"), MissingExtra("the GPU kernel", extra="gpu")]
)
def test_errors_cross_process_boundaries(error: EchoboundError) -> None:
    """A worker process returns its exception pickled; one that cannot be unpickled would break the pool."""
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
