"""The page: certificate, figures and model card in one file that opens offline and asks nothing of the network."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from echobound.diagnostics.verdict import SYMBOLS
from echobound.files import write_whole
from echobound.report.contents import RunContents
from echobound.report.figures import saved
from echobound.report.section import Drawing
from echobound.report.sections import SECTIONS
from echobound.runs.folder import RunFolder
from echobound.runs.holding import ended
from echobound.runs.journal import look_at
from echobound.scenario.words import upward

FIRST = ("outputs", "diagnostics")  # what is shown before the certificate

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup
    from matplotlib.figure import Figure


def write_page(folder: RunFolder) -> Path:
    """Write ``report.html`` of a finished run into its folder, and return where it is."""
    run = RunContents(folder)
    sections = [section for build in SECTIONS if (section := build(run)) is not None]
    found = run.folder.assessment
    page = _environment().get_template("page.html").render(
        title=f"Certified identification: {run.name}",
        certificate=run.certificate.to_dict(),
        drawn=run.drawn,
        search="" if (look := look_at(run.folder)) is None else look.words,
        picked=run.names["model"] if run.responses else "",
        scores={response.role: response.scores[run.names["model"]] for response in run.responses},
        held=ended(run.search)["held"],
        worth=found,
        sign="" if found is None else SYMBOLS[found.verdict.grade],
        first=[section for section in sections if section.name in FIRST],
        sections=[section for section in sections if section.name not in FIRST],
        bokeh=_bokeh(),
    )  # fmt: skip
    path = folder.path / "report.html"
    write_whole(path, page.encode(errors="backslashreplace"))
    return path


def screen(drawing: Drawing) -> dict[str, Any]:
    """A figure for the screen: its height, and the JSON that Bokeh's script draws; nothing in it can end a script."""
    from bokeh.core.types import ID
    from bokeh.embed import json_item
    from markupsafe import Markup

    plot: Any = drawing.plot()
    text = json.dumps(json_item(plot, ID(f"plot-{drawing.name}")), separators=(",", ":"), allow_nan=False)
    return {"json": Markup(text.replace("<", "\\u003c")), "height": sum(part.height for part in plot.children)}


def svg(figure: Figure) -> str:
    """The figure as SVG; its text stays text: small, and set in the reader's font."""
    text = saved(figure, "svg", fonts="none", dpi=150).decode()
    text = re.sub(r' d="(M [-0-9. \nMLz]{400,})"', lambda path: f' d="{_shorter(path[1])}"', text)
    return text[text.index("<svg") :]


def _shorter(path: str) -> str:
    r"""A long line by its steps in tenths of a point, finer than any printer: a quarter of what is written otherwise.

    Examples
    --------
    >>> _shorter("M 10.04 20 \nL 10.51 19.5 \nL 11 19.96 \nM 30 1 \nL 31 1.2 \n")
    'M10 20l.5-.5.5.5M30 1l1 .2'
    """
    parts = []
    for piece in path.split("M")[1:]:
        numbers = [round(10 * float(number)) for number in re.sub("[Lz]", " ", piece).split()]
        x, y = numbers[::2], numbers[1::2]
        ends = zip(zip(x, y, strict=True), zip(x[1:], y[1:], strict=True), strict=False)
        steps = [end - start for before, after in ends for start, end in zip(before, after, strict=True)]
        parts.append(f"M{_tenths(numbers[:2])}" + (f"l{_tenths(steps)}" if steps else "") + "z" * ("z" in piece))
    return "".join(parts)


def _tenths(numbers: Sequence[int]) -> str:
    """Tenths as SVG reads them, with nothing between two that need nothing: a sign or a second point begins another."""
    text = last = ""
    for number in numbers:
        whole, rest = divmod(abs(number), 10)
        digits = f"{whole or ''}.{rest}" if rest else f"{whole}"
        joined = number < 0 or not text or (digits[0] == "." and "." in last)
        last = f"{'-' * (number < 0)}{digits}"
        text += last if joined else f" {last}"
    return text


def printed(drawing: Drawing) -> str:
    """A figure for paper, as the address of an image that holds it: nothing in it can touch the page."""
    return address(svg(drawing.figure()))


def address(image: str) -> str:
    """An SVG as the address of an image; a third shorter than in base 64, and nothing in it can end an attribute."""
    return "data:image/svg+xml," + quote(re.sub(r"\s*\n\s*", " ", image), safe=" /:;=,()!*+-._~@?[]{}|^$")


@cache
def _bokeh() -> str:
    """Bokeh's own script, from the installed package, packed: the core alone, without widgets, tables or WebGL."""
    from bokeh.resources import Resources

    [script] = Resources(mode="inline", components=["bokeh"]).js_raw[:1]
    return base64.b64encode(gzip.compress(script.encode(), mtime=0)).decode()


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    # Whatever comes from data or files is escaped; only our own scripts and drawings are marked safe.
    loader = PackageLoader("echobound.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "upward": lambda value: upward(value, digits=4),
        "power": _power,
        "duration": _duration,
        "screen": screen,
        "printed": printed,
    }
    return environment


def _power(value: float) -> Markup:
    """A small number as 1 x 10^-7 where that is how one would write it."""
    from markupsafe import Markup, escape

    plain = f"{value:g}"
    if "e" not in plain:
        return escape(plain)
    head, exponent = plain.split("e")
    ten = f"10<sup>{int(exponent)}</sup>".replace("-", "−")
    return Markup(ten if head == "1" else f"{head} × {ten}")


def _duration(seconds: float) -> str:
    """Seconds as a person would say them.

    Examples
    --------
    >>> _duration(0.0123), _duration(75), _duration(7300)
    ('12.3 ms', '75 s', '2 h 2 min')
    """
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
