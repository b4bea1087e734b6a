"""Texts of the exports that are the same for all models, with places to fill in."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from textwrap import wrap
from typing import Any
from xml.sax.saxutils import quoteattr

from echobound.export.base import Job


def fill(template: str, job: Job, **places: Any) -> str:
    """A template of this folder with its places filled in; every template knows the name, the card and the sizes."""
    from jinja2 import Environment, StrictUndefined  # on first use: only those who export need it

    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False
    )
    environment.filters |= {"comment": comment, "quoted": quoteattr, "wrapped": wrapped}
    text = files(__package__).joinpath(f"{template}.jinja").read_text(encoding="utf-8")
    stepper = job.stepper
    common = {"name": job.card.name, "card": job.card, "upper": job.card.name.upper()}
    common |= {"states": stepper.states, "inputs": stepper.inputs, "outputs": stepper.outputs}
    return environment.from_string(text).render(**(common | places))


def wrapped(lines: Iterable[str]) -> list[str]:
    """Lines of a comment, none of them too long to read."""
    return [piece for line in lines for piece in wrap(comment(line), 108, subsequent_indent="    ")]


def comment(text: str) -> str:
    """A text that may stand in a comment of any of the languages."""
    for mark in ("/*", "*/", "//", "(*", "*)", "\\", "%{", "%}", "??"):
        text = text.replace(mark, " ".join(mark))
    return text.replace("\\", "/")
