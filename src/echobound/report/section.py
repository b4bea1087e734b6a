"""Section: a part of the page, and the drawings in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bokeh.models import LayoutDOM
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure of the page: to be looked at closely on a screen (`plot`), and to be printed (`figure`).

    Its name is that of the file, too, which ``echobound figures`` writes. The caption says what it is, the summary what
    it shows, also for those who cannot see it; the keys are the legend: a colour of the page and what has it.
    """

    name: str
    caption: str
    summary: str
    keys: tuple[tuple[str, str], ...]
    plot: Callable[[], LayoutDOM]
    figure: Callable[[], Figure]


@dataclass(frozen=True, eq=False)
class Section:
    """A part of the page: its template and title, what the template shows, and figures."""

    name: str
    title: str
    content: Mapping[str, Any] = field(default_factory=dict)
    drawings: tuple[Drawing, ...] = ()
