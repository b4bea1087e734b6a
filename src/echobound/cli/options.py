"""Options made from the fields of a dataclass: `Plan`, `Computing`, `Reading`.

A command takes such an object as a parameter that is marked with `Options`. `with_options` replaces it by an option for
each field, with the field's help and default, and calls the command with the object. So a new setting is a field, and
no command has to be changed for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from functools import wraps
from typing import Annotated, Any, get_args, get_type_hints

import typer

from echobound.cli.terminal import numbers, words

PLAIN = (bool, int, float, str)  # what a command line can say; other types of a field are for Python alone
TEXTS: dict[str | None, Callable[[str, str], list[Any]]] = {"words": lambda text, _: words(text), "numbers": numbers}


@dataclass(frozen=True)
class Options:
    """Marks a parameter whose fields become options: ``plan: Annotated[Plan, Options("The plan")]``.

    Parameters
    ----------
    panel
        Title of the options in the help.
    base
        An object whose values are the defaults; one with the defaults of its class if not given.
    only
        Fields that become options; all that have a help text if not given.
    required
        Fields that have to be given.
    help
        Other help texts, by field.
    panels
        Other titles, by field.

    Examples
    --------
    >>> from echobound.cli.computing import ComputingOptions
    >>> def verify(computing: ComputingOptions, fresh: int = 500) -> None:
    ...     print(computing.workers, computing.kernel, fresh)
    >>> command = with_options(verify)
    >>> list(inspect.signature(command).parameters)
    ['workers', 'kernel', 'engine', 'scheduler', 'fresh']
    >>> command(workers=2, kernel="auto", engine="threads", scheduler=None, fresh=7)
    2 auto 7
    """

    panel: str
    base: Any = None
    only: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    help: Mapping[str, str] = field(default_factory=dict)
    panels: Mapping[str, str] = field(default_factory=dict)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with options in place of each parameter that is marked with `Options`."""
    parameters, groups = list[inspect.Parameter](), dict[str, _Group]()
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind, *marks = get_args(parameter.annotation) or (parameter.annotation,)
        mark = next((mark for mark in marks if isinstance(mark, Options)), None)
        if mark is None or not is_dataclass(kind):
            # By name alone, so that one without a default may follow one that has one.
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        else:
            groups[parameter.name] = group = _Group(mark, kind)
            parameters += group.parameters

    @wraps(command)
    def called(**given: Any) -> None:
        made = {name: group.collect(given) for name, group in groups.items()}
        command(**given, **made)

    # The parser looks at both.
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


class _Group:
    """The options of one dataclass."""

    def __init__(self, mark: Options, kind: Any) -> None:
        self.mark, self.base = mark, kind() if mark.base is None else mark.base
        self.fields = [one for one in fields(kind) if one.name in mark.only or (not mark.only and one.metadata)]
        self.hints = get_type_hints(kind)

    @property
    def parameters(self) -> list[inspect.Parameter]:
        return [self._parameter(one) for one in self.fields]

    def _parameter(self, one: Field[Any]) -> inspect.Parameter:
        default, required = self._default(one), one.name in self.mark.required
        choices = get_args(self.hints[one.name]) or (self.hints[one.name],)
        kind = str if one.metadata["text"] else next((plain for plain in PLAIN if plain in choices), str)
        option = typer.Option(
            "--" + (one.metadata["option"] or one.name).replace("_", "-"),
            help=self.mark.help.get(one.name, one.metadata["help"]),
            rich_help_panel=self.mark.panels.get(one.name, self.mark.panel),
        )
        annotation: Any = Annotated[kind if required or default is not None else kind | None, option]
        parameter = inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
        return parameter if required else parameter.replace(default=default)

    def _default(self, one: Field[Any]) -> Any:
        """The default as it would be typed; None where nothing would be."""
        value = getattr(self.base, one.name)
        if not one.metadata["text"] or isinstance(value, str) or value is None:
            return value
        return ",".join(map(str, value if isinstance(value, list | tuple) else [value])) or None

    def collect(self, given: dict[str, Any]) -> Any:
        """Take the values of the options out of what was parsed, and return the object that they make."""
        changes = {}
        for one in self.fields:
            value = given.pop(one.name)
            if value != self._default(one):
                read = TEXTS.get(one.metadata["text"])
                changes[one.name] = value if read is None else tuple(read(value, f"--{one.name}"))
        return replace(self.base, **changes)
