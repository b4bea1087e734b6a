"""Description: what a plan says about an estimator and its data, the same in every process."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from echobound.files import digest
from echobound.plan import DescribedLaw

NO_INFLUENCE = ("n_jobs", "verbose")  # by scikit-learn's conventions: a run may be resumed with other values
DEEPEST = 8  # objects inside objects; deeper ones, or those that refer to themselves, are known by their class


def law_of(estimator: Any, drawn: list[str]) -> DescribedLaw:
    """The law that draws of an estimator come from: its class, its parameters, which are drawn, and versions.

    Examples
    --------
    >>> from sklearn.neural_network import MLPRegressor
    >>> law = law_of(MLPRegressor(), ["random_state"]).content
    >>> law["estimator"], list(law["packages"])
    ('sklearn.neural_network._multilayer_perceptron.MLPRegressor', ['numpy', 'scipy', 'sklearn'])
    """
    parameters = estimator.get_params(deep=True)
    # Versions are part of the law, since another version may make another model of the same random state.
    parts = [part for part in (estimator, *parameters.values()) if hasattr(part, "get_params")]
    packages = {"numpy", "scipy", "sklearn", *(type(part).__module__.partition(".")[0] for part in parts)}
    versions = {name: getattr(sys.modules.get(name), "__version__", None) for name in sorted(packages)}
    kept = sorted(name for name in parameters if name.rpartition("__")[2] not in NO_INFLUENCE)
    return DescribedLaw(
        {
            "kind": "estimator",
            "name": type(estimator).__name__,
            "estimator": described(estimator),
            "parameters": {name: described(parameters[name]) for name in kept},
            "drawn": list(drawn),
            "packages": {name: str(version) for name, version in versions.items() if version is not None},
        }
    )


def described(value: Any, depth: int = 0) -> Any:
    """A parameter's value as JSON, the same in every process.

    Examples
    --------
    >>> described({"a": (1, None), "f": math.sqrt})
    {'a': [1, None], 'f': 'math.sqrt'}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    if isinstance(value, np.generic):
        return described(value.item(), depth)
    if isinstance(value, Mapping):
        return {str(key): described(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [described(item, depth + 1) for item in value]
    if isinstance(value, np.ndarray):
        return {"array": digest(content_of(value))}
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if hasattr(value, "get_params") or depth > DEEPEST:  # the parameters of an estimator are listed separately
        return name
    if vars_of := getattr(value, "__dict__", None):
        return {"class": name, **{str(key): described(item, depth + 1) for key, item in vars_of.items()}}
    return shown(value)


def shown(value: Any) -> str:
    """As Python shows it, without the address in memory, which differs from process to process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def digest_of(*sides: tuple[Any, ...]) -> str:
    """SHA-256 over data of any kind, each side ``(X,)`` or ``(X, y)``."""
    return digest([[content_of(part) for part in side] for side in sides])


def content_of(data: Any) -> Any:
    """Data as numbers or text, for their digest."""
    if data is None:
        return None
    if hasattr(data, "tocoo"):
        sparse = data.tocoo()
        return [list(sparse.shape), *(np.asarray(part) for part in (sparse.row, sparse.col, sparse.data))]
    array = np.asarray(data)
    content = array if array.dtype.kind in "fiubc" else [list(array.shape), [str(v) for v in array.ravel().tolist()]]
    return [[str(name) for name in data.columns], content] if hasattr(data, "columns") else content
