"""The page: certificate, figures and model card in one file that opens offline and asks nothing of the network."""

from __future__ import annotations

import base64
import io
import json
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from echobound.files import write_whole
from echobound.report.contents import RunContents
from echobound.report.sections import SECTIONS, Drawing
from echobound.runs.folder import RunFolder
from echobound.scenario.words import upward

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup
    from matplotlib.figure import Figure

__all__ = ["write_page"]


def write_page(folder: RunFolder) -> Path:
    """Write ``report.html`` of a finished run into its folder, and return where it is."""
    path = folder.path / "report.html"
    write_whole(path, page(RunContents(folder)).encode(errors="backslashreplace"))
    return path


def page(run: RunContents) -> str:
    """The page of a run as HTML."""
    sections = [section for build in SECTIONS if (section := build(run)) is not None]
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=f"Certified identification: {run.name}",
            certificate=run.certificate.to_dict(),
            scores={response.role: response.scores["model"] for response in run.responses},
            verification=run.verification,
            sections=sections,
            bokeh=_bokeh(),
        )
    )


class Screen(NamedTuple):
    """A figure for the screen: the JSON that Bokeh's script draws, and how high it will be."""

    json: Markup
    height: int


def screen(drawing: Drawing) -> Screen:
    """Make the figure for the screen; nothing in its JSON can end the script element that holds it."""
    from bokeh.core.types import ID
    from bokeh.embed import json_item
    from markupsafe import Markup

    plot: Any = drawing.plot()
    height = sum(part.height for part in plot.children)
    text = json.dumps(json_item(plot, ID(f"plot-{drawing.name}")), separators=(",", ":"), allow_nan=False)
    return Screen(Markup(text.replace("<", "\\u003c")), height)


def svg(figure: Figure) -> str:
    """The figure as SVG."""
    import matplotlib

    buffer = io.StringIO()
    # Text as text: small, and set in the reader's font.
    with matplotlib.rc_context({"svg.hashsalt": "echobound", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a name in a script that the font lacks
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, dpi=150)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def printed(drawing: Drawing) -> str:
    """A figure for paper, as the address of an image that holds it: nothing in it can touch the page."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg(drawing.figure()).encode()).decode()


@cache
def _bokeh() -> Markup:
    """Bokeh's own script, from the installed package: the core alone, without widgets, tables or WebGL."""
    from bokeh.resources import Resources
    from markupsafe import Markup

    [script] = Resources(mode="inline", components=["bokeh"]).js_raw[:1]
    return Markup(script)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    # Whatever comes from data or files is escaped; only our own scripts and drawings are marked safe.
    environment = Environment(
        loader=PackageLoader("echobound.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
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
