"""Extensions for the Python reference, where reading the source is not enough.

- `low, high` on one line of a docstring are two parameters, each with its own type. The parser of NumPy docstrings
  would give all names on such a line the type and the default of the first.
- The parameters of the searches are made from the fields of `Plan` when the module is imported. The source has no
  signature to read, so it is taken from the class itself.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

import griffe

from echobound.campaign import ComputingSettings
from echobound.plan import PlanSettings

HEADING = "\nParameters\n----------\n"
SEVERAL = re.compile(r"^(?P<names>\w+(?:, \w+)+)\n(?P<text>(?:    .*\n|\n(?=    ))+)", re.MULTILINE)
DECORATOR = "with_parameters"
TYPES = {
    **{name: hint.__forward_arg__ for name, hint in PlanSettings.__annotations__.items()},
    **{name: hint.__forward_arg__ for name, hint in ComputingSettings.__annotations__.items()},
    # Parameters of the searches that are not fields of a plan.
    "estimator": "BaseEstimator",
    "scoring": "str | Callable | None",
    "validation": "float | Sequence",
    "random_state": "int | RandomState",
    "n_jobs": "int | None",
    "run": "str | Path | None",
}


class Parameters(griffe.Extension):
    """Writes parameters that share a line on separate lines, and finds signatures that are made on import."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of an object; called for each one."""
        if obj.docstring is not None and HEADING in obj.docstring.value:
            obj.docstring.value = apart(obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Give a class the ``__init__`` that its decorator makes; called for each class, with its members."""
        if any(DECORATOR in str(decorator.value) for decorator in cls.decorators):
            cls.set_member("__init__", _made(cls))


def _made(cls: griffe.Class) -> griffe.Function:
    found = getattr(importlib.import_module(cls.module.path), cls.name)
    listed = [
        griffe.Parameter(
            name,
            annotation=TYPES.get(name),
            kind=griffe.ParameterKind(one.kind.description),
            default=None if one.default is inspect.Parameter.empty else repr(one.default),
        )
        for name, one in inspect.signature(found.__init__).parameters.items()
    ]
    return griffe.Function("__init__", parameters=griffe.Parameters(*listed), lineno=cls.lineno, endlineno=cls.lineno)


def apart(docstring: str) -> str:
    """The docstring with one line for each parameter."""
    head, mark, tail = docstring.partition(HEADING)
    listed, *rest = re.split(r"(?=\n\w+\n-{3,}\n)", tail, maxsplit=1)
    return head + mark + SEVERAL.sub(_one_each, listed if rest else listed + "\n") + "".join(rest)


def _one_each(found: re.Match[str]) -> str:
    return "".join(f"{name}\n{found['text']}" for name in found["names"].split(", "))
