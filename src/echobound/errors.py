"""The exceptions of echobound.

::

    EchoboundError              every error raised on purpose; its text is one sentence for the user
    ├── InputError              an argument or the content of a file cannot be used (also a ValueError)
    │   └── DataError           ... because of a record: missing column, NaN, too short, constant
    ├── RunError                a run folder cannot be used: another plan, in use, not writable
    │   └── DamagedFile         ... because one of its files is damaged or was changed
    └── MissingExtra            an optional part is not installed (also an ImportError)

Every message says what was expected, what was found, and what to do. A network whose free run diverges is *not* an
error: it is a row of the ledger (see ``kernels``).
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["DamagedFile", "DataError", "EchoboundError", "InputError", "MissingExtra", "RunError"]


class EchoboundError(Exception):
    """Base of all errors that echobound raises on purpose."""


class InputError(EchoboundError, ValueError):
    """An argument cannot be used."""


class DataError(InputError):
    """A record, or the file it comes from, cannot be used as it is."""


class RunError(EchoboundError):
    """A run folder cannot be used as asked."""


class DamagedFile(RunError):
    """A stored file cannot be read, or is not what was written: `part` says where in it, and `why` what was found.

    Examples
    --------
    >>> print(DamagedFile("model.npz", "array W_x", "its checksum does not match"))
    model.npz is damaged or was changed (array W_x: its checksum does not match): restore
    it from a copy or repeat the run
    """

    def __init__(self, path: str | Path, part: str, why: str) -> None:
        super().__init__(f"{path} is damaged or was changed ({part}: {why}): restore it from a copy or repeat the run")
        self.path, self.part, self.why = Path(path), part, why

    def __reduce__(self) -> tuple[type[DamagedFile], tuple[Path, str, str]]:
        # Unpickling calls the class with the text alone, which would fail; a worker process could not raise this here.
        return DamagedFile, (self.path, self.part, self.why)


class MissingExtra(EchoboundError, ImportError):
    """An optional part of echobound was asked for and is not installed.

    Examples
    --------
    >>> print(MissingExtra("the GPU kernel", extra="gpu"))
    the GPU kernel needs packages that are not installed: pip install 'echobound[gpu]'
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs packages that are not installed: pip install 'echobound[{extra}]'")
        self.what, self.extra = what, extra

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        return MissingExtra, (self.what, self.extra)
