"""A controller in C, compiled by this machine's compiler and called from Python: to check it, and in simulations."""

from __future__ import annotations

import ctypes
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Matrix, Vector
from echobound.control.bounds import rows_of
from echobound.control.mpc import MPC
from echobound.control.observer import Reading
from echobound.errors import InputError
from echobound.export.c import build

NUMBERS = {"double": ctypes.c_double, "uint32_t": ctypes.c_uint32, "size_t": ctypes.c_uint64, "int": ctypes.c_int}


@dataclass(frozen=True, eq=False)
class CStep:
    """What a C controller decided at one sample."""

    u: Vector
    cost: float
    residual: float
    iterations: int
    failures: int
    converged: bool
    seconds: float
    reading: Reading
    notes: tuple[str, ...]


class CController:
    """A C controller, compiled and loaded: used as `MPC` is. Measurements that come late cannot be told to it.

    Parameters
    ----------
    controller
        The controller that it was made from.
    name, folder
        The prefix of its functions, and where its C files are.
    """

    def __init__(self, controller: MPC, name: str, folder: Path) -> None:
        self.model, self.manipulated, self.bounds = controller.model, controller.manipulated, controller.bounds
        self.horizon, self.disturbances = controller.horizon, controller.disturbances
        self._origin, self._started = controller, False
        with tempfile.TemporaryDirectory() as aside:
            binary = Path(aside) / "controller.so"
            build([folder / f"{name}.c"], binary, ("-shared", "-fPIC", "-O3"))
            library = ctypes.CDLL(str(binary))
        self._start, self._step, size = library[f"{name}_start"], library[f"{name}_step"], library[f"{name}_size"]
        size.restype = ctypes.c_size_t
        self.bytes = int(size())
        self._memory = (ctypes.c_double * (self.bytes // 8))()
        self._result = structures((folder / f"{name}.h").read_text(encoding="utf-8"))[f"{name}_result"]()

    def start(self, u: ArrayLike, y: ArrayLike, disturbance: ArrayLike | None = None) -> None:
        """Start at rest."""
        applied, known = self._origin.first(u, disturbance)
        self._start(self._memory, *map(_pointer, (applied, known, self._measured(y))))
        self._started = True

    def step(self, reference: ArrayLike, y: ArrayLike, *, disturbance: ArrayLike | None = None, age: int = 0) -> CStep:
        """What to apply until the next sample."""
        if not self._started:
            raise InputError("the controller has not been started: call start with the present input and output")
        if age:
            raise InputError("a controller in C takes measurements of the present sample: give no age, and no delay")
        wanted = np.ascontiguousarray(rows_of("reference", reference, self.model.output_names))
        known, measured = self._known(disturbance), self._measured(y)
        began = time.perf_counter()
        self._step(
            self._memory,
            _pointer(wanted),
            ctypes.c_size_t(len(wanted)),
            _pointer(known),
            ctypes.c_size_t(len(known)),
            _pointer(measured),
            ctypes.byref(self._result),
        )
        seconds, found = time.perf_counter() - began, self._result
        lost, refused = np.array(found.lost[:], dtype=bool), np.array(found.refused[:], dtype=bool)
        notes = {
            "the reference is not a number: the last one is held": found.reference_held,
            "the known disturbance is not a number: the last one is held": found.disturbance_held,
            "no plan leads to numbers: the input is held": not np.isfinite(found.cost),
        }
        return CStep(
            u=np.array(found.u[:]),
            cost=found.cost,
            residual=found.residual,
            iterations=int(found.iterations),
            failures=int(found.failures),
            converged=bool(found.converged),
            seconds=seconds,
            reading=Reading(~lost & ~refused, lost, refused, np.full(len(lost), np.nan)),
            notes=tuple(note for note, holds in notes.items() if holds),
        )

    def _known(self, disturbance: ArrayLike | None) -> Matrix:
        if not self.disturbances:
            return np.zeros((1, 0))
        if disturbance is None:
            raise InputError(f"the controller needs values of {', '.join(self.disturbances)}, which it does not move")
        return np.ascontiguousarray(rows_of("known disturbance", disturbance, self.disturbances))

    def _measured(self, y: ArrayLike) -> Vector:
        measured, outputs = np.atleast_1d(np.asarray(y, dtype=np.float64)), len(self.model.output_names)
        if measured.shape != (outputs,):
            raise InputError(f"a measurement of {outputs} outputs was expected, got shape {measured.shape}")
        return measured


def structures(header: str) -> dict[str, Any]:
    r"""The structures of an exported header by their names, as ctypes has them; with 64 bits for ``size_t``.

    Examples
    --------
    >>> text = "#define A_SIZE 3U\ntypedef struct { double x[A_SIZE + 1U][2]; int n; } a_thing;"
    >>> ctypes.sizeof(structures(text)["a_thing"])
    72
    """
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    known = {name: int(value) for name, value in re.findall(r"#define (\w+) (\d+)U?$", text, flags=re.MULTILINE)}
    made: dict[str, Any] = {}
    for body, name in re.findall(r"typedef struct \{(.*?)\} (\w+);", text, flags=re.DOTALL):
        fields = []
        for kind, field, sizes in re.findall(r"(\w+) (\w+)((?:\[[^\]]+\])*);", body):
            whole: Any = NUMBERS.get(kind) or made[kind]
            for size in re.findall(r"\[([^\]]+)\]", sizes)[::-1]:
                terms = (term.strip().removesuffix("U") for term in size.split("+"))
                whole = whole * sum(known[term] if term in known else int(term) for term in terms)
            fields.append((field, whole))
        made[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return made


def _pointer(values: Vector) -> Any:
    return values.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
