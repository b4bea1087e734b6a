"""Parameters of the searches, made from the fields of `Plan`: a new setting becomes a parameter of both."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from echobound.plan import Plan

__all__ = ["plan_defaults", "with_parameters"]

REQUIRED = inspect.Parameter.empty


def plan_defaults(*without: str) -> dict[str, Any]:
    """The fields of `Plan` with their defaults, except some.

    Examples
    --------
    >>> plan_defaults("law")["beta"]
    1e-07
    """
    return {one.name: one.default for one in fields(Plan) if one.name not in without}


def with_parameters(first: str, default: Any, parameters: Mapping[str, Any]) -> Any:
    """Give a class an ``__init__`` as scikit-learn wants it: it stores each parameter under its name, and does no more.

    scikit-learn reads the parameters from the signature, for `get_params`, `clone` and its checks.

    Parameters
    ----------
    first, default
        The parameter that may be given by position.
    parameters
        The others, with their defaults.
    """
    listed = [
        inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        inspect.Parameter(first, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default),
        *(inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=value) for n, value in parameters.items()),
    ]
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
