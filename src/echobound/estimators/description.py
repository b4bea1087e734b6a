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

__all__ = ["digest_of", "law_of", "shown"]

NO_INFLUENCE = ("n_jobs", "verbose")  # by scikit-learn's conventions: a run may be resumed with other values
DEEPEST = 8  # objects inside objects; deeper ones, or those that refer to themselves, are known by their class


def law_of(estimator: Any, drawn: list[str]) -> DescribedLaw:
    """The law that draws of an estimator come from: its class, its parameters, which are drawn, and versions.

    Versions are part of it, since another version may make another model of the same random state.

    Examples
    --------
    >>> from sklearn.neural_network import MLPRegressor
    >>> law_of(MLPRegressor(), ["random_state"]).content["estimator"]
    'sklearn.neural_network._multilayer_perceptron.MLPRegressor'
    """
    return DescribedLaw(
        {
            "kind": "estimator",
            "name": type(estimator).__name__,
            "estimator": described(estimator),
            "parameters": parameters_of(estimator),
            "drawn": list(drawn),
            "packages": packages_of(estimator),
        }
    )


def described(value: Any, depth: int = 0) -> Any:
    """A parameter's value as JSON, the same in every process; parameters of estimators are listed by themselves.

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
    if hasattr(value, "get_params") or depth > DEEPEST:
        return name
    if vars_of := getattr(value, "__dict__", None):
        return {"class": name, **{str(key): described(item, depth + 1) for key, item in vars_of.items()}}
    return shown(value)


def shown(value: Any) -> str:
    """As Python shows it, without the address in memory, which differs from process to process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def parameters_of(estimator: Any) -> dict[str, Any]:
    """All parameters of an estimator that have an influence."""
    parameters = estimator.get_params(deep=True)
    kept = {name: value for name, value in parameters.items() if name.rpartition("__")[2] not in NO_INFLUENCE}
    return {name: described(kept[name]) for name in sorted(kept)}


def packages_of(estimator: Any) -> dict[str, str]:
    """Versions of NumPy, scikit-learn and the packages whose classes an estimator is made of.

    Examples
    --------
    >>> from sklearn.neural_network import MLPRegressor
    >>> list(packages_of(MLPRegressor()))
    ['numpy', 'scipy', 'sklearn']
    """
    parts = [estimator, *estimator.get_params(deep=True).values()]
    found = {type(part).__module__.partition(".")[0] for part in parts if hasattr(part, "get_params")}
    versions = {
        name: getattr(sys.modules.get(name), "__version__", None) for name in found | {"numpy", "scipy", "sklearn"}
    }
    return {name: str(version) for name, version in sorted(versions.items()) if version is not None}


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
