"""Models of any structure from their files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from echobound.errors import DamagedFile
from echobound.files import read_npz
from echobound.network.cascade_model import CascadeModel
from echobound.network.model import EchoStateNetwork
from echobound.network.plant_model import PlantModel

STRUCTURES: dict[str | None, type[PlantModel]] = {one.structure: one for one in (EchoStateNetwork, CascadeModel)}
"""Kinds of models by what their files say that they are."""


def load_model(path: str | Path) -> PlantModel:
    """Load a model, whatever its structure; nothing in the file is run, and a damaged or changed file is refused.

    Examples
    --------
    >>> import tempfile
    >>> from echobound import identify, ph_experiment
    >>> model = identify(*ph_experiment(samples=(400, 300)), law="paper", order=10, networks=20).model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.npz")
    ...     load_model(f"{folder}/model.npz").digest == model.digest
    True
    """
    return model_from_content(*read_npz(Path(path), kind="model"), Path(path))


def model_from_content(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], path: Path) -> PlantModel:
    """Inverse of `PlantModel.content` for every structure that is known."""
    structure = header.get("structure")
    if structure not in STRUCTURES:
        raise DamagedFile(path, "header", f"a model of the structure {structure!r:.60}, which this version cannot read")
    return STRUCTURES[structure].from_content(header, arrays, path)
