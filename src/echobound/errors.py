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

import re
from pathlib import Path

__all__ = ["DamagedFile", "DataError", "EchoboundError", "InputError", "MissingExtra", "RunError"]


# Control characters but tab and line break, line separators, what changes the direction of text, halves of characters.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return a text with its control characters written out, so that what a file says cannot steer a terminal.

    Examples
    --------
    >>> print(printable("level\x1b]0;mine\x07"))
    level\u001b]0;mine\u0007
    """
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


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
    the GPU kernel needs packages that are not installed: pip install 'echobound[gpu]' (in a clone: pip install
    '.[gpu]')
    """

    def __init__(self, what: str, extra: str) -> None:
        remedy = f"pip install 'echobound[{extra}]' (in a clone: pip install '.[{extra}]')"
        super().__init__(f"{what} needs packages that are not installed: {remedy}")
        self.what, self.extra = what, extra

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        return MissingExtra, (self.what, self.extra)
