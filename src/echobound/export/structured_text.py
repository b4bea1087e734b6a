"""Structured Text after IEC 61131-3, experimental: one function block in LREAL; a call is a sample.

No compiler for it could be had where this was written: what is checked is a translation of the text to Python, and that
a parser with a grammar of its own reads it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Signal
from echobound.export.base import Job, Target
from echobound.export.card import identifier
from echobound.export.st_translation import FunctionBlock
from echobound.export.templates import fill
from echobound.network.equations import Equations

MATRICES = {"A": "activation", "C": "readout", "N": "next_state", "R": "at_rest", "S": "settled"}
RESERVED = {"follow", "reset", "i", "j", "k", "acc", "cold", "count", "w", "v", "own", "fed"}


class StructuredTextTarget(Target):
    """A function block for a programmable logic controller."""

    name = "st"
    title = "Structured Text, IEC 61131-3 (experimental: no PLC compiler has seen it)"
    suffix = ".st"
    leaves_out_diverged = False

    def make(self, job: Job, path: Path) -> dict[Path, bytes]:
        """One file."""
        members = [_member(number, one, job) for number, one in enumerate(job.stepper.equations)]
        widest = max(one.width for one in job.stepper.equations)
        names = _names(job)
        text = fill(
            "model.st", job, members=members, lines=job.card.lines, widest=widest, names=names, count=len(members)
        )
        return {path: text.encode()}

    def run(self, job: Job, path: Path, u: Signal, initial: Signal | None) -> Signal:
        """Run a translation of the text to Python."""
        block, names = FunctionBlock(path.read_text()), _names(job)
        warm = 0 if initial is None else len(initial)
        rows = np.empty((len(u), job.stepper.outputs))
        for k, now in enumerate(u):
            values: dict[str, Any] = dict(zip(names["inputs"], now.tolist(), strict=True))
            values |= {"reset": k == 0, "follow": k < warm}
            if initial is not None and k < warm:
                values |= dict(zip(names["measured"], initial[k].tolist(), strict=True))
            block(**values)
            rows[k] = [block[name] for name in names["outputs"]]
        return rows[warm:]


def _names(job: Job) -> dict[str, list[str]]:
    """Names of the channels, all different whatever their case: the language does not tell cases apart."""
    taken, result = set(RESERVED), {}

    def free(name: str) -> str:
        while name.lower() in taken:
            name += "x"
        taken.add(name.lower())
        return name

    for side, names in (("inputs", job.card.inputs), ("outputs", job.card.outputs)):
        result[side] = [free(f"{side[:-1]}_{identifier(name)}") for name in names]
    result["measured"] = [free(f"measured_{identifier(name)}") for name in job.card.outputs]
    return result


def _member(number: int, one: Equations, job: Job) -> dict[str, Any]:
    arrays: list[tuple[str, str, str, int]] = []  # name, type, numbers, last index

    def real(name: str, values: Any) -> None:
        numbers = [_number(value) for value in np.atleast_1d(values)]
        arrays.append((f"M{number}_{name}", "LREAL", _list(numbers), len(numbers) - 1))

    def whole(name: str, values: NDArray[Any]) -> None:
        arrays.append((f"M{number}_{name}", "DINT", _list([str(value) for value in values.tolist()]), len(values) - 1))

    used = []
    for letter, name in MATRICES.items():
        matrix = getattr(one, name)
        if matrix.nnz:
            used.append(letter)
            real(f"{letter}V", matrix.data)
            whole(f"{letter}C", matrix.indices)
            whole(f"{letter}E", matrix.indptr)
    for name, values in {"B": one.bias, "K": one.constant, "MEAN": one.mean}.items():
        real(name, values)
    for name, values in one.scaling.to_arrays().items():
        real("".join(part[0] for part in name.split("_")).upper(), values)
    if one.limits is not None:
        real("LOW", one.limits.low)
        real("HIGH", one.limits.high)
    first = job.stepper.parts[number].start
    return {
        "number": number,
        "one": one,
        "arrays": arrays,
        "used": used,
        "first": first,
        "at": [p.start for p in one.parts],
    }


def _number(value: float) -> str:
    """A number as the standard writes it: with a decimal point, also before an exponent."""
    text = repr(float(value))
    mantissa, _, exponent = text.partition("e")
    return (mantissa if "." in mantissa else f"{mantissa}.0") + (f"E{int(exponent)}" if exponent else "")


def _list(items: list[str]) -> str:
    lines = [", ".join(items[start : start + 6]) for start in range(0, len(items), 6)]
    return ",\n        ".join(lines)
