"""FMU: co-simulation after the FMI standard, versions 2.0 and 3.0, made of the exported C; binary and source inside."""

from __future__ import annotations

import ctypes
import io
import json
import platform
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from echobound.arrays import Signal
from echobound.errors import InputError
from echobound.export.base import Job, Target
from echobound.export.c import build, header, source
from echobound.export.templates import fill

LIBRARIES = {"linux": ".so", "darwin": ".dylib", "win32": ".dll"}
BUILD = """<?xml version="1.0" encoding="UTF-8"?>
<fmiBuildDescription fmiVersion="3.0">
  <BuildConfiguration modelIdentifier="{name}">
    <SourceFileSet language="C99">
      <SourceFile name="{name}.c"/>
      <SourceFile name="fmu.c"/>
    </SourceFileSet>
  </BuildConfiguration>
</fmiBuildDescription>
"""


class FmuTarget(Target):
    """A unit for co-simulation tools: Simulink, Modelica tools, FMPy and the like."""

    name = "fmu"
    title = "FMU for co-simulation, FMI 3.0 or 2.0, with binary and source"
    suffix = ".fmu"

    def make(self, job: Job, path: Path) -> dict[Path, bytes]:
        """One FMU, with the binary for this platform and the source for all others."""
        name = job.card.name
        sources = {f"{name}.h": header(job), f"{name}.c": source(job), "fmu.c": _interface(job)}
        contents: dict[str, bytes] = {"modelDescription.xml": _description(job).encode()}
        contents |= {f"sources/{file}": text.encode() for file, text in sources.items()}
        if job.fmi == 3:
            contents["sources/buildDescription.xml"] = BUILD.format(name=name).encode()
        contents["resources/card.json"] = json.dumps(job.card.to_dict(), indent=2, ensure_ascii=False).encode()
        with tempfile.TemporaryDirectory() as folder:
            for file, text in sources.items():
                (Path(folder) / file).write_text(text, encoding="utf-8")
            library = Path(folder) / "library"
            build([Path(folder) / f"{name}.c", Path(folder) / "fmu.c"], library, ("-O3", "-shared", "-fPIC"))
            contents[_binary(job)] = library.read_bytes()
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for file, content in contents.items():
                packed.writestr(zipfile.ZipInfo(file), content, zipfile.ZIP_DEFLATED)  # no time of day in the file
        return {path: archive.getvalue()}

    def run(self, job: Job, path: Path, u: Signal, initial: Signal | None) -> Signal:
        """Run the binary inside through the functions of the standard."""
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(path) as packed:
            library = packed.extract(_binary(job), folder)
            return _cosimulate(job, ctypes.CDLL(library), u, initial)


def _cosimulate(job: Job, library: Any, u: Signal, initial: Signal | None) -> Signal:
    """A free run as a co-simulation tool does it: set the inputs, get the outputs, step."""
    inputs, outputs, step = job.stepper.inputs, job.stepper.outputs, ctypes.c_double(job.card.sampling_time)
    real, token, three = ctypes.c_double, job.card.model.encode(), job.fmi == 3
    flag = ctypes.c_bool if three else ctypes.c_int
    create = library.fmi3InstantiateCoSimulation if three else library.fmi2Instantiate
    create.restype = ctypes.c_void_p
    zero = ctypes.c_size_t(0)
    made = (
        create(b"check", token, None, False, False, False, False, None, zero, None, None, None)
        if three
        else create(b"check", 1, token, None, None, 0, 0)
    )
    if not made:
        raise InputError("the FMU could not be instantiated: its description and its binary do not belong together")
    instance = ctypes.c_void_p(made)
    kind = "Float64" if three else "Real"

    def call(function: str, *arguments: Any) -> None:
        if library[f"fmi{job.fmi}{function}"](instance, *arguments) > 1:
            raise InputError(f"the FMU reports an error in {function}: export it again")

    def exchange(function: str, first: int, values: Any) -> None:
        references = (ctypes.c_uint32 * len(values))(*range(first, first + len(values)))
        size = ctypes.c_size_t(len(values))
        call(function, references, size, values, *([size] if three else []))

    measured = np.zeros((0, outputs)) if initial is None else initial
    results = np.empty((len(u), outputs))
    values = (real * outputs)()
    if three:
        call("EnterInitializationMode", False, real(0.0), real(0.0), False, real(0.0))
    else:
        call("SetupExperiment", 0, real(0.0), real(0.0), 0, real(0.0))
        call("EnterInitializationMode")
    call("ExitInitializationMode")
    answers = [ctypes.byref(ctypes.c_bool()) for _ in range(3)] + [ctypes.byref(real())]
    for k, now in enumerate(u):
        exchange(f"Set{kind}", 1, (real * inputs)(*now))
        if k <= len(measured):
            exchange("SetBoolean", 1 + inputs + 2 * outputs, (flag * 1)(k < len(measured)))
        if k < len(measured):
            exchange(f"Set{kind}", 1 + inputs + outputs, (real * outputs)(*measured[k]))
        exchange(f"Get{kind}", 1 + inputs, values)
        results[k] = values
        call("DoStep", real(k * step.value), step, False, *(answers if three else []))
    getattr(library, f"fmi{job.fmi}FreeInstance")(instance)
    return results[len(measured) :]


def _binary(job: Job) -> str:
    """Where the binary of this platform is in the archive."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    system = {"linux": "linux", "darwin": "darwin", "win32": "windows"}.get(sys.platform, sys.platform)
    short = {"linux": "linux64", "darwin": "darwin64", "windows": "win64"}
    folder = short[system] if job.fmi == 2 and machine == "x86_64" else f"{machine}-{system}"
    return f"binaries/{folder}/{job.card.name}{LIBRARIES.get(sys.platform, '.so')}"


def _interface(job: Job) -> str:
    scaling = job.stepper.equations[0].scaling
    return fill(
        "fmu.c",
        job,
        fmi=job.fmi,
        token=job.card.model,
        sampling_time=repr(job.card.sampling_time),
        start_inputs=[repr(float(value)) for value in _middle(job)],
        start_outputs=[repr(float(value)) for value in scaling.outputs_back(job.stepper.equations[0].mean)],
    )


def _middle(job: Job) -> Any:
    """Inputs to start from if none are set: the middle of the training data."""
    scaling = job.stepper.equations[0].scaling
    return scaling.input_offset + (0.5 if scaling.kind == "minmax" else 0.0) * scaling.input_span


def _description(job: Job) -> str:
    card, inputs, outputs = job.card, job.stepper.inputs, job.stepper.outputs
    mean = job.stepper.equations[0].scaling.outputs_back(job.stepper.equations[0].mean)
    taken = {"time"}
    variables: list[dict[str, Any]] = []

    def add(name: str, unit: str, causality: str, start: float | None, description: str) -> None:
        while name in taken:  # a channel may have the name of another, or of time
            name += "_"
        taken.add(name)
        begins = None if start is None else repr(float(start))
        variables.append({"name": name, "unit": unit, "causality": causality, "start": begins})
        variables[-1] |= {"description": description, "reference": len(variables)}

    for name, unit, start in zip(card.inputs, card.input_units, _middle(job), strict=True):
        add(name, unit, "input", start, f"Input {name}")
    for name, unit in zip(card.outputs, card.output_units, strict=True):
        add(name, unit, "output", None, f"Output {name} of the sample that begins here")
    for name, unit, start in zip(card.outputs, card.output_units, mean, strict=True):
        add(f"{name}_measured", unit, "input", start, f"Measured {name}, fed back while following the plant")
    follow = "follow"
    while follow in taken:
        follow += "_"
    direct = any(
        one.units_first or (one.readout.indices >= one.states).any() for one in job.stepper.equations
    )  # whether an output of this sample depends on its input
    references = range(1 + inputs, 1 + inputs + outputs)
    return fill(
        f"fmi{job.fmi}.xml",
        job,
        token=card.model,
        description=" | ".join(card.lines),
        sampling_time=repr(card.sampling_time),
        units=sorted({*card.input_units, *card.output_units} - {""}),
        variables=variables,
        follow=follow,
        follow_reference=1 + inputs + 2 * outputs,
        output_references=list(references),
        dependencies=" ".join(map(str, range(1, 1 + inputs))) if direct else "",
    )
