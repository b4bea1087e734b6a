"""Generated constructors: a new field of `Plan` becomes a parameter of both searches."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from echobound.plan import Plan

REQUIRED = inspect.Parameter.empty


def plan_defaults(*without: str) -> dict[str, Any]:
    """The fields of `Plan` with their defaults, except some.

    Examples
    --------
    >>> plan_defaults("law")["beta"]
    1e-07
    """
    return {one.name: one.default for one in fields(Plan) if one.name not in without}


def with_parameters(parameters: Mapping[str, Any]) -> Any:
    """Give a class the ``__init__`` that scikit-learn requires: it stores each parameter under its name, nothing else.

    The parameters are given with their defaults; only the first may be passed by position. scikit-learn reads them from
    the signature, for `get_params`, `clone` and its checks.
    """
    listed = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for name, default in parameters.items():
        kind = inspect.Parameter.KEYWORD_ONLY if listed[1:] else inspect.Parameter.POSITIONAL_OR_KEYWORD
        listed.append(inspect.Parameter(name, kind, default=default))
    signature = inspect.Signature(listed)

    def __init__(self: Any, *args: Any, **given: Any) -> None:  # noqa: N807
        bound = signature.bind(self, *args, **given)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)

    __init__.__signature__ = signature  # type: ignore[attr-defined]

    def decorate(cls: type) -> type:
        cls.__init__ = __init__  # type: ignore[misc]
        return cls

    return decorate
