"""Loading: a model from its file, whatever kind and structure it has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from echobound.files import read_npz
from echobound.network.committee import Committee
from echobound.network.structures import model_from_content

# How each kind of file is made into a model, from its header and its arrays.
KINDS: dict[str, Callable[..., Any]] = {
    "model": model_from_content,
    "committee": Committee.from_content,
}


def load_model(path: str | Path) -> Any:
    """Load a model: a network of any structure, or a committee.

    Nothing in the file is run, and a damaged or changed file is refused.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from echobound import identify, ph_experiment
    >>> with TemporaryDirectory() as folder:
    ...     records = ph_experiment(samples=(400, 300))
    ...     run = identify(*records, law="paper", order=5, networks=20, run=f"{folder}/run").run
    ...     model, network = load_model(run / "model.npz"), load_model(run / "network.npz")
    >>> len(model.members), network.order
    (10, 5)
    """
    path = Path(path)
    header, arrays = read_npz(path, KINDS)
    return KINDS[header["kind"]](header, arrays, path)
