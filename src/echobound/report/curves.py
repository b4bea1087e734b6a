"""Curves over an axis, by Bokeh for the screen and by Matplotlib for paper: what the diagnostics draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from echobound.arrays import Array
from echobound.report import figures, plots

if TYPE_CHECKING:
    from bokeh.models import LayoutDOM
    from matplotlib.figure import Figure

COLOURS = plots.MODEL_COLOURS


@dataclass(frozen=True, eq=False, kw_only=True)
class CurvePanel:
    """Curves with their labels.

    Parameters
    ----------
    y, x
        Labels of the axes.
    curves
        x and y of each, by name.
    bound
        Lines at plus and minus this.
    stems
        Whether each value is drawn from 0, as correlations are.
    names
        What to call places on the x axis instead of numbers.
    low
        Lower end of the y axis; what fits the curves if not given.
    """

    y: str
    x: str
    curves: Mapping[str, tuple[Array, Array]]
    bound: float | None = None
    stems: bool = False
    names: Mapping[int, str] = field(default_factory=dict)
    low: float | None = None

    @property
    def limits(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top, with a margin."""
        x = np.concatenate([x for x, _ in self.curves.values()])
        y = np.concatenate([y for _, y in self.curves.values()])
        marks = [float(y.min()), float(y.max()), *([0.0] if self.low is None else [])]
        marks += [-1.2 * self.bound, 1.2 * self.bound] if self.bound is not None else []
        bottom, top = min(marks), max(marks)
        room = 0.08 * (top - bottom) or 1.0
        aside = 0.02 * float(np.ptp(x)) or 0.5
        return (
            float(x.min()) - aside,
            float(x.max()) + aside,
            bottom - room if self.low is None else self.low,
            top + room,
        )


def curves_plot(panels: Sequence[CurvePanel]) -> LayoutDOM:
    """The panels for the screen."""
    from bokeh.models import ColumnDataSource

    drawn = []
    for panel in panels:
        left, right, bottom, top = panel.limits
        x_range, y_range = plots._range(left, right, "x"), plots._range(bottom, top)
        plot = plots._plot(210, x_range, y_range, y=panel.y, x=panel.x, only_x=True)
        if panel.names:
            axis: Any = plot.xaxis[0]
            axis.ticker = list(panel.names)
            axis.major_label_overrides = dict(panel.names)
        for i, (name, (x, y)) in enumerate(panel.curves.items()):
            source = ColumnDataSource({"x": x, "y": y, "zero": np.zeros(len(x))})
            colour = COLOURS[i % len(COLOURS)]
            if panel.stems:
                stems = plot.segment("x", "zero", "x", "y", source=source, line_width=2)
                shown = plots._painted(stems, line_color=colour)
            else:
                shown = plots._line(plot, "x", "y", source, colour, width=2)
                if i:  # told apart without colour
                    shown.glyph.line_dash = "dashed" if i == 1 else "dotted"
            dots = plot.scatter("x", "y", source=source, size=5 if panel.stems or panel.names else 1, line_color=None)
            tips = [(panel.x, "@x{0.[000]}"), (name, "@y{%.4g}")]
            plots._hover(plot, [plots._painted(dots, fill_color=colour), shown], tips, mode="vline")
        for height in (panel.bound, None if panel.bound is None else -panel.bound):
            if height is not None:
                plots._threshold(plot, height, "alert", line_dash="dashed")
        drawn.append(plot)
    return plots._stack(drawn)


@figures.styled
def curves_figure(panels: Sequence[CurvePanel]) -> Figure:
    """The panels for paper.

    Examples
    --------
    >>> panel = CurvePanel(y="r", x="lag", curves={"error": (np.arange(3.0), np.ones(3))}, bound=0.5, stems=True)
    >>> len(curves_figure([panel]).axes)
    1
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(figures.WIDTH, 2.3 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for ax, panel in zip(axes, panels, strict=True):
        for i, (name, (x, y)) in enumerate(panel.curves.items()):
            colour = figures.MODELS[i % len(figures.MODELS)]
            if panel.stems:
                ax.vlines(x, 0.0, y, color=colour, lw=1.4)
                ax.plot(x, y, ".", color=colour, ms=4)
            else:
                [line] = ax.plot(x, y, color=colour, ls=("-", "--", ":")[i % 3], marker="." if panel.names else None)
                line.set_label(f"\u200b{name}")
        if len(panel.curves) > 1:
            for text in ax.legend().get_texts():
                text.set_parse_math(False)
        for height in (panel.bound, None if panel.bound is None else -panel.bound):
            if height is not None:
                ax.axhline(height, color=figures.LIMIT, lw=0.9, ls="--")
        left, right, bottom, top = panel.limits
        ax.set_xlim(left, right)
        ax.set_ylim(bottom, top)
        if panel.names:
            ax.set_xticks(list(panel.names), list(panel.names.values()))
        ax.set_xlabel(panel.x, parse_math=False)
        ax.set_ylabel(panel.y, parse_math=False)
    return figure
