"""Where compiled code is kept between processes: in a folder of the user's own, under a name that says what it is.

Numba compiles a function anew when its own file changes, but not when something changes that it takes from elsewhere: a
function that it calls, or a number. So the code is in a folder named after all that was compiled, and any change leads
to another folder. What is loaded from there is run, so the folder must be one that nobody else can write to; where
there is none, code is kept in memory and compiled again by the next process.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import llvmlite.binding
import numba
from numba.core.caching import FunctionCache, NullCache
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys

PACKAGE = __name__.partition(".")[0]
COMPILERS = ("numba", "llvmlite", "numpy")  # what else the machine code depends on, besides Python and the processor
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
UNUSED = 90 * 86400  # seconds after which code that no process has asked for is removed


class KeptCode(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, except that whatever goes wrong with a file only means compiling again."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for a signature; None if it is not there or cannot be read."""
        try:
            # Numba would first load all that it can compile, which takes as long as everything else here. It does so
            # again when something is compiled; code that is only run needs the runtime alone.
            rtsys.initialize(target_context)
            return self._load_overload(sig, target_context)
        except Exception:  # a damaged file may raise anything
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for a signature, if there is room; a damaged list of what is there is begun anew."""
        try:
            super().save_overload(sig, data)
        except Exception:
            with suppress(Exception):
                self.flush()


def compiled_in(*modules: ModuleType) -> list[Any]:
    """All compiled functions that modules know by name."""
    named = [value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)]
    return [*{id(function): function for function in named}.values()]


def keep_compiled(functions: list[Any]) -> str:
    """Keep the code of compiled functions between processes; return why it is not kept, or nothing."""
    try:
        folder = own_folder() / f"compiled-{fingerprint(functions)}"
        folder.mkdir(mode=0o700, exist_ok=True)
        os.utime(folder)
        _remove_unused(folder.parent)
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        return str(error)
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)  # Numba has no argument for it
    try:
        for function in functions:
            function._cache = KeptCode(function.py_func)
    except (OSError, RuntimeError) as error:  # RuntimeError: Numba finds that it cannot write there
        for function in functions:
            function._cache = NullCache()
        return str(error)
    finally:
        numba.config.CACHE_DIR = before
    return ""


def own_folder() -> Path:
    """The user's own cache folder for this package, made if need be: theirs, and writable for nobody else.

    A folder that is not, or a link in its place, is refused: whoever can write there could have their code run as ours.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    parent = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = parent / PACKAGE
    folder.mkdir(mode=0o700, exist_ok=True)
    if os.name != "posix":  # elsewhere a folder in a user's home has no such bits, and is theirs
        return folder
    around, found = parent.stat().st_mode, folder.lstat()
    if around & OTHERS_WRITE and not around & stat.S_ISVTX:
        raise PermissionError(f"others may rename what is in {parent}")
    if not stat.S_ISDIR(found.st_mode):
        raise PermissionError(f"{folder} is not a folder")
    if found.st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else")
    if found.st_mode & OTHERS_WRITE:
        raise PermissionError(f"{folder} can be written to by others")
    folder.chmod(0o700)
    return folder


def _remove_unused(parent: Path) -> None:
    for other in parent.glob("compiled-*"):
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > UNUSED:
                shutil.rmtree(other, ignore_errors=True)


def fingerprint(functions: list[Any]) -> str:
    """Digits that differ as soon as anything differs that the code of these functions is made from."""
    files, constants = set[str](), set[str]()
    for function in functions:
        _collect(function, files, constants, set())
    machine = (llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten())
    parts = [platform.python_version(), *machine, *(f"{name} {version(name)}" for name in COMPILERS)]
    whole = hashlib.sha256("\n".join([*parts, *sorted(constants)]).encode())
    for file in sorted(files):
        whole.update(hashlib.sha256(Path(file).read_bytes()).digest())
    return whole.hexdigest()[:24]


def _collect(function: Any, files: set[str], constants: set[str], seen: set[int]) -> None:
    """Add what a compiled function is made from: the files of all code that goes into it, and the numbers by value."""
    if id(function) in seen:
        return
    seen.add(id(function))
    python = function.py_func
    files.add(python.__code__.co_filename)
    for name in _names(python.__code__):
        if name not in python.__globals__:
            continue
        value = python.__globals__[name]
        if isinstance(value, Dispatcher):
            _collect(value, files, constants, seen)
        elif not isinstance(value, ModuleType) and not hasattr(value, "__module__"):
            constants.add(f"{python.__module__}.{name} = {value!r}")
        else:  # a module, a class, or what Numba calls while it compiles; those of others have their version
            module = value if isinstance(value, ModuleType) else sys.modules.get(value.__module__)
            if module is not None and module.__name__.startswith(f"{PACKAGE}."):
                files.add(str(module.__file__))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)
