"""C99: one source file and one header, without allocation or global state, and a self-test beside them."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from echobound.arrays import Signal
from echobound.errors import InputError
from echobound.export import c_code
from echobound.export.base import Job, Target, excitation, finite_rows, measured_like
from echobound.export.c_code import Writer
from echobound.export.templates import fill
from echobound.network.equations import Equations

GOLDEN = 40  # samples of the self-test after its warm-up


class CTarget(Target):
    """C99 for a controller, a test bench, or any language that can call C."""

    name = "c"
    title = "C99, one .c and one .h, with a self-test"
    suffix = ".c"
    folder = True
    precisions = ("double", "float")

    def make(self, job: Job, path: Path) -> dict[Path, bytes]:
        """``NAME.c``, ``NAME.h`` and ``NAME_test.c`` in a folder."""
        name = job.card.name
        texts = {f"{name}.h": header(job), f"{name}.c": source(job), f"{name}_test.c": self_test(job)}
        return {path / file: text.encode() for file, text in texts.items()}

    def require_runner(self) -> None:
        """A compiler."""
        c_compiler()

    def run(self, job: Job, path: Path, u: Signal, initial: Signal | None) -> Signal:
        """Compile the source with this machine's compiler, and run it."""
        with compiled([path / f"{job.card.name}.c"]) as library:
            return run_library(job, library, u, initial)


def run_library(job: Job, library: Any, u: Signal, initial: Signal | None) -> Signal:
    """A free run by a compiled model."""
    name = job.card.name
    real = ctypes.c_float if job.precision == "float" else ctypes.c_double
    kind = np.float32 if job.precision == "float" else np.float64

    def pointer(array: Any) -> Any:
        return array.ctypes.data_as(ctypes.POINTER(real))

    inputs, first = np.ascontiguousarray(u, dtype=kind), 0 if initial is None else len(initial)
    instance = (real * job.stepper.states)()
    if initial is None:
        library[f"{name}_reset"](instance, pointer(inputs))
    else:
        given = np.ascontiguousarray(initial, dtype=kind)
        library[f"{name}_reset_measured"](instance, pointer(inputs), pointer(given))
        for now, y in zip(inputs[:first], given, strict=True):
            library[f"{name}_warm_up"](instance, pointer(now.copy()), pointer(y.copy()))
    left = np.ascontiguousarray(inputs[first:])
    outputs = np.empty((len(left), job.stepper.outputs), dtype=kind)
    library[f"{name}_predict"](instance, pointer(left), ctypes.c_size_t(len(left)), pointer(outputs))
    return outputs.astype(np.float64)


@contextmanager
def compiled(sources: list[Path], flags: tuple[str, ...] = ("-O2",)) -> Iterator[Any]:
    """A shared library of C sources, loaded; it is deleted afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "model.so"
        build(sources, library, ("-shared", "-fPIC", *flags))
        yield ctypes.CDLL(str(library))


def build(sources: list[Path], binary: Path, flags: tuple[str, ...]) -> None:
    """Compile C sources with this machine's compiler; without one, or if it fails, one sentence says so."""
    compiler = c_compiler()
    command = [compiler, "-std=c99", *flags, *map(str, sources), "-lm", "-o", str(binary)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
        raise InputError(f"{Path(compiler).name} could not compile {sources[0].name} ({first}): use a C99 compiler")


def c_compiler() -> str:
    """The C compiler of this machine; without one, a sentence says so."""
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    if compiler is None:
        raise InputError("no C compiler was found (cc, gcc or clang): install one, for example Debian's gcc")
    return compiler


def header(job: Job) -> str:
    """The header: the card, what a step costs, how to compile and use it."""
    single, stepper = job.precision == "float", job.stepper
    size = 4 if single else 8
    width = max(one.width + one.units * 3 for one in stepper.equations)
    numbers = sum(_numbers(one) for one in stepper.equations)
    return fill(
        "model.h",
        job,
        lines=job.card.lines,
        real="float" if single else "double",
        stack=size * (width + stepper.states + 2 * stepper.outputs * (len(stepper.equations) + 2)),
        instance=size * stepper.states,
        tables=size * numbers,
        products=sum(one.activation.nnz + one.readout.nnz + one.next_state.nnz for one in stepper.equations),
        tanhs=sum(one.units for one in stepper.equations),
    )


def source(job: Job) -> str:
    """The source: tables and a step for each member, then the functions of the header."""
    single = job.precision == "float"
    members = []
    for number, one in enumerate(job.stepper.equations):
        writer = Writer(f"{job.card.name}_m{number}", f"{job.card.name}_real", single)
        units = c_code.unit_statements(writer, one)
        statements = {
            "units": units,
            "outputs": c_code.output_statements(writer, one),
            "next": c_code.next_statements(writer, one),
            "start": c_code.start_statements(writer, one),
            "settled": c_code.settled_statements(writer, one),
        }
        scaling = one.scaling
        members.append(
            {
                "number": number,
                "one": one,
                "first": job.stepper.parts[number].start,
                "wrap": any("x[" in line for line in units),
                "inner": any("[j]" in line for line in units),
                "padding": one.padding,
                "longer": one.padding_without_outputs,
                "input_offset": [writer.number(v) for v in scaling.input_offset],
                "input_span": [writer.number(v) for v in scaling.input_span],
                "output_offset": [writer.number(v) for v in scaling.output_offset],
                "output_span": [writer.number(v) for v in scaling.output_span],
                "mean": [writer.number(v) for v in one.mean],
                "at": [part.start for part in one.parts],
                "tables": writer.tables,
                **{key: [line for text in lines for line in text.splitlines()] for key, lines in statements.items()},
            }
        )
    clips = any(one.limits is not None for one in job.stepper.equations)
    many = len(members) > 1
    return fill("model.c", job, members=members, single=single, clips=clips, several=many, far=c_code.far(single))


def self_test(job: Job) -> str:
    """A program with golden values of the model: it says how far it is from them, and exits with 1 if that is far."""
    u = excitation(job, min(job.card.washout, 20) + GOLDEN)
    free = job.model.simulate(u).y
    free = free[: finite_rows(free)]
    initial = measured_like(free, min(job.card.washout, 20, len(free) // 2))
    outputs = job.model.simulate(u[: len(free)], initial=initial).y if len(free) > len(initial) > 0 else free[:0]
    outputs = outputs[: finite_rows(outputs)]
    if not len(outputs):
        raise InputError("the free run of the model is infinite from its first samples on: there is nothing to export")
    u, warm = u[: len(free)], len(initial)
    span = np.ptp(outputs, axis=0)
    span = np.where(span > 0, span, 1.0)
    single = job.precision == "float"
    writer = Writer("golden_m0", f"{job.card.name}_real", single)
    for table, values in (("u", u), ("measured", initial), ("cold", free), ("outputs", outputs)):
        writer.table(table, values)
    tolerance = 1e-3 if single else 1e-9
    spans = [writer.number(value) for value in span]
    sizes = {"cold": len(free), "warm": warm, "golden": len(outputs)}
    return fill("model_test.c", job, tables=writer.tables, spans=spans, tolerance=tolerance, **sizes)


def _numbers(one: Equations) -> int:
    """Numbers in the tables, about."""
    return int(one.activation.nnz + one.readout.nnz + one.next_state.nnz + one.settled.nnz + one.units)
