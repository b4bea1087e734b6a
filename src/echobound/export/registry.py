"""The targets by name, and the export itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from echobound.errors import InputError
from echobound.export.base import PRECISIONS, Export, Job, Target
from echobound.export.c import CTarget
from echobound.export.card import card_of, identifier
from echobound.export.casadi import CasadiTarget
from echobound.export.control import ControlTarget
from echobound.export.fmu import FmuTarget
from echobound.export.matlab import MatlabTarget
from echobound.export.onnx import OnnxTarget
from echobound.export.structured_text import StructuredTextTarget
from echobound.files import write_all
from echobound.network import Stepper
from echobound.scenario import Certificate

_ALL: tuple[Target, ...] = (
    CTarget(),
    FmuTarget(),
    OnnxTarget(),
    CasadiTarget(),
    ControlTarget(),
    MatlabTarget(),
    StructuredTextTarget(),
)
TARGETS: dict[str, Target] = {target.name: target for target in _ALL}
"""Targets by name, the most asked for first."""


def get_target(name: str) -> Target:
    """A target by its name.

    Examples
    --------
    >>> get_target("c").title
    'C99, one .c and one .h, with a self-test'
    """
    if name not in TARGETS:
        raise InputError(f"unknown target {name!r}: known are {', '.join(TARGETS)}")
    return TARGETS[name]


def export_model(
    model: Any,
    path: str | Path,
    to: str,
    *,
    certificate: Certificate | Mapping[str, Any] | None = None,
    name: str | None = None,
    precision: str = "double",
    fmi: int = 3,
) -> Export:
    """Export a model, so that it runs without echobound.

    Parameters
    ----------
    model
        Any delivered model: a network, a cascade, a committee.
    path
        The file to write, or the folder for targets that write several.
    to
        The target: one of `TARGETS`.
    certificate
        The certificate of the search, whose digest and statement the export carries; the model's own if not given,
        which a model of a run has. ``{}`` leaves it out.
    name
        The model's name in the target's language; made from the path if not given.
    precision
        ``double`` or, for C, ``float``.
    fmi
        Version of the FMI standard for an FMU: 2 or 3.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from echobound import identify, ph_experiment
    >>> result = identify(*ph_experiment(samples=(400, 300)), law="paper", order=10, networks=20)
    >>> with TemporaryDirectory() as folder:
    ...     exported = export_model(result.model, f"{folder}/plant", "c")
    ...     [file.name for file in exported.files], exported.check().largest_difference < 1e-12
    (['plant.h', 'plant.c', 'plant_test.c'], True)
    """
    target, path = get_target(to), Path(path)
    if precision not in PRECISIONS:
        raise InputError(f"the precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")
    if fmi not in (2, 3):
        raise InputError(f"FMUs are of version 2 or 3 of the FMI standard, got {fmi}")
    certificate = getattr(model, "certificate", None) if certificate is None else certificate
    card = card_of(model, identifier(path.name.split(".")[0] if name is None else name), certificate)
    job = Job(model, Stepper(model), card, precision, fmi)
    target.require(job, path)
    contents = target.make(job, path)
    write_all(contents)
    return Export(target, job, path, tuple(contents))
