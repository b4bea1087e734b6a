"""SearchPlan: everything that is settled before the first draw of a search over any estimator."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from echobound.errors import DamagedFile, InputError
from echobound.files import digest, jsonable
from echobound.plan.numbers import Bound, settle_networks, settle_stop
from echobound.plan.plan import require_covered
from echobound.scenario import Statement, StoppingRule

__all__ = ["SearchPlan", "content_of", "described", "packages_of", "parameters_of", "settle", "shown"]

SCHEMA = 1
KIND = "estimator"
NO_INFLUENCE = ("n_jobs", "verbose")  # by scikit-learn's conventions: a run may go on with others
DEEPEST = 8


@dataclass(frozen=True, kw_only=True)
class SearchPlan:
    """What a search will do, recorded before the first draw and never changed afterwards.

    Parameters
    ----------
    estimator, parameters, drawn, packages
        What is drawn: the estimator's class, all its parameters, which of them are random states, and the versions of
        the packages it comes from: a run does not go on with others.
    seed, score, rows, data
        How: seed of the draws, name of the score, numbers of rows for training and scoring, digest of the data.
    networks, epsilon, beta, bound, stop, discarded
        As in `Plan`.
    """

    horizon: ClassVar[None] = None
    blocks: ClassVar[None] = None
    target: ClassVar[None] = None

    estimator: str
    parameters: Mapping[str, Any]
    drawn: tuple[str, ...]
    packages: Mapping[str, str]
    seed: int
    score: str
    rows: tuple[int, int]
    networks: int
    epsilon: float
    beta: float
    bound: Bound
    data: str
    stop: StoppingRule | None = None
    discarded: int = 0

    def __post_init__(self) -> None:
        require_covered(self.stop, further=bool(self.discarded))

    @property
    def law(self) -> dict[str, Any]:
        """From what is drawn, as a certificate names it."""
        plain: dict[str, Any] = jsonable({name: getattr(self, name) for name in LAW})
        return plain

    @property
    def rule(self) -> str:
        """How the number of draws is found."""
        return "fixed" if self.stop is None else self.stop.kind

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON, with its digest."""
        settled = {name: getattr(self, name) for name in SETTLED}
        content = {"schema_version": SCHEMA, "kind": KIND, "rule": self.rule, **self.law, **settled}
        content["stop"] = None if self.stop is None else self.stop.to_dict()
        plain: dict[str, Any] = jsonable(content)
        return {**plain, "digest": digest(plain)}

    @property
    def digest(self) -> str:
        """SHA-256 over the plan."""
        return str(self.to_dict()["digest"])

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> SearchPlan:
        """Inverse of `to_dict`; a plan that does not have the digest stored with it is refused."""
        if content.get("kind") != KIND:
            raise InputError("this is not the plan of a search over an estimator")
        try:
            stop = None if content["stop"] is None else Statement.from_dict(content["stop"], "plan.json")
            if not isinstance(stop, StoppingRule | None):
                raise ValueError("stop is not a stopping rule")
            values = {name: content[name] for name in (*LAW, *SETTLED)}
            values |= {name: tuple(content[name]) for name in ("drawn", "rows")}
            plan = cls(stop=stop, **values)
            expected = plan.to_dict()
        except DamagedFile:
            raise InputError("stop is not what was planned") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a complete plan: {error}") from None
        for name in sorted(set(expected) | set(content)):
            if expected.get(name) != content.get(name):
                raise InputError(f"{name} is not what was planned")
        return plan


LAW = ("estimator", "parameters", "drawn", "packages")
SETTLED = ("seed", "score", "rows", "networks", "epsilon", "beta", "bound", "data", "discarded")


def settle(
    epsilon: float | None,
    beta: float,
    networks: int | None,
    bound: Bound,
    stop: str | StoppingRule | None,
    discarded: int,
) -> dict[str, Any]:
    """Number of draws, epsilon and rule as fields of a plan.

    Examples
    --------
    >>> settle(0.05, 1e-7, None, "exact", None, 0)["networks"]
    315
    """
    if not 0 <= discarded < (networks or math.inf):
        raise InputError(f"draws to set aside must be fewer than those made and not negative, got {discarded}")
    rule = None
    if stop is None:
        count, epsilon = settle_networks(epsilon, beta, networks, bound, discarded)
    else:
        rule, count, epsilon = settle_stop(stop, epsilon, beta, networks, bound, discarded)
    return {
        "networks": int(count),
        "epsilon": float(epsilon),
        "beta": float(beta),
        "bound": bound,
        "stop": rule,
        "discarded": int(discarded),
    }


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
    """As Python shows it, but for the address in memory, which is another one in every process."""
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
