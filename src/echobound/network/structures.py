"""Structures: single models of any kind from the content of their files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from echobound.errors import DamagedFile
from echobound.network.cascade_model import CascadeModel
from echobound.network.model import EchoStateNetwork
from echobound.network.plant_model import PlantModel

STRUCTURES: dict[str | None, type[PlantModel]] = {one.structure: one for one in (EchoStateNetwork, CascadeModel)}
"""Single models by what their files say that they are."""


def model_from_content(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], path: Path) -> PlantModel:
    """Inverse of `PlantModel.content` for every structure that is known."""
    structure = header.get("structure")
    if structure not in STRUCTURES:
        raise DamagedFile(path, "header", f"a model of the structure {structure!r:.60}, which this version cannot read")
    return STRUCTURES[structure].from_content(header, arrays, path)
