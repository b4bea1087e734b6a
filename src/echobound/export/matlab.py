"""MATLAB and GNU Octave: a plain function file, and its numbers in a .mat file."""

from __future__ import annotations

import io
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from echobound.arrays import Signal
from echobound.errors import InputError
from echobound.export.arrays import MATRICES, member_arrays
from echobound.export.base import Job, Target
from echobound.export.templates import fill


class MatlabTarget(Target):
    """A function without toolboxes; for Simulink, see the comment in it."""

    name = "matlab"
    title = "a MATLAB or Octave function and its .mat file"
    suffix = ".m"
    folder = True

    def make(self, job: Job, path: Path) -> dict[Path, bytes]:
        """``NAME.m`` and ``NAME_data.mat`` in a folder."""
        from scipy.io import savemat

        members = np.empty((1, len(job.stepper.equations)), dtype=object)
        for number, member in enumerate(member_arrays(job.stepper)):
            found = {
                name: value.tocsc() if name in MATRICES else np.asarray(value, dtype=np.float64).reshape(-1, 1)
                for name, value in member.items()
            }
            members[0, number] = found
        packed: Any = io.BytesIO()  # its type stubs know paths alone
        name = job.card.name
        card = {key: value for key, value in job.card.to_dict().items() if isinstance(value, str)}
        savemat(packed, {"members": members, "card": card}, long_field_names=True, oned_as="column")
        text = fill("matlab.m", job, lines=job.card.lines)
        return {path / f"{name}.m": text.encode(), path / f"{name}_data.mat": packed.getvalue()}

    def require_runner(self) -> None:
        """GNU Octave."""
        _octave()

    def run(self, job: Job, path: Path, u: Signal, initial: Signal | None) -> Signal:
        """Run the function by GNU Octave."""
        octave = _octave()
        with tempfile.TemporaryDirectory() as folder:
            given = np.zeros((0, job.stepper.outputs)) if initial is None else initial
            for name, signal in (("u", u), ("initial", given)):
                np.savetxt(Path(folder) / f"{name}.csv", signal, fmt="%.17g", delimiter=",")
            shown = f"zeros(0, {job.stepper.outputs})" if initial is None else "dlmread('initial.csv')"
            call = f"{job.card.name}('simulate', dlmread('u.csv'), {shown})"
            code = f"addpath('{path.resolve()}'); y = {call};"
            code += " f = fopen('y.csv', 'w'); fprintf(f, [repmat('%.17g,', 1, columns(y)) '\\n'], y'); fclose(f);"
            done = subprocess.run(
                [octave, "--no-init-file", "--no-window-system", "--eval", code],
                capture_output=True,
                text=True,
                check=False,
                cwd=folder,
            )
            if done.returncode:
                raise InputError(f"Octave could not run {job.card.name}.m ({done.stderr.strip()[:200]}): report this")
            lines = (Path(folder) / "y.csv").read_text().splitlines()
            return np.array([[float(cell) for cell in line.strip(",").split(",")] for line in lines])


def _octave() -> str:
    """GNU Octave on this machine; without it, a sentence says so."""
    octave = shutil.which("octave-cli") or shutil.which("octave")
    if octave is None:
        raise InputError("the check needs GNU Octave, which was not found: install it, for example Debian's octave")
    return octave
