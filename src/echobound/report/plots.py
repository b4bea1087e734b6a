"""The page's figures, by Bokeh: the same as those of `figures`, to be hovered over, zoomed and moved.

Colours are named, not given: a model's tag says which of the page's colours each of its properties has, and the
page's script fills them in, light or dark. Every text is `PlainText`, since Bokeh would fetch a formula renderer from
the network for a column that is called ``$$x$$``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Array
from echobound.report import figures
from echobound.report.contents import Response
from echobound.report.panels import (
    EpisodePanel,
    FamilyRange,
    OutputPanel,
    ScorePanel,
    histogram,
    labelled,
    staircase,
    thinned,
)
from echobound.scenario.words import NETWORKS, Noun

if TYPE_CHECKING:
    from bokeh.models import LayoutDOM
    from bokeh.plotting import figure as Figure  # noqa: N812  # a class, in lower case there

MOST_SAMPLES = 6000  # rows of an output that are drawn: two for each signal and pixel of a wide screen
ROWS = 20_000  # of all outputs, in all such figures of a page: it must stay a file that can be sent by mail
MOST_NETWORKS = 20_000  # dots of a panel that are drawn
LOW = 150  # pixels below which an axis has few ticks
FONT = "system-ui, sans-serif"
MODEL_COLOURS = ("accent", "second", "third")


def outputs_plot(response: Response, beside: int = 1) -> LayoutDOM:
    """Measured and simulated outputs, and their errors, all moving together; `beside` such figures share the page."""
    from bokeh.models import ColumnDataSource

    outputs = len(response.names)
    # An input has a third of the numbers that an output has.
    most = int(max(800, min(MOST_SAMPLES, ROWS / beside / (outputs + len(response.inputs) / 3))))
    height, low_height = (260, 140) if outputs < figures.MANY else (190, 100)
    time = compact(response.time)
    x_range, plots = _range(response.time[0], response.time[-1], "x"), []
    for i, (name, unit) in enumerate(zip(response.names, response.units, strict=True)):
        panel = OutputPanel.of(response.measured, response.simulated, i, response.band)
        signals = {"y": panel.measured}
        for j, y in enumerate(panel.shown.values()):
            signals |= {f"y{j}": y, f"e{j}": panel.measured - y}
        rows = thinned(np.stack(list(signals.values()), axis=1), most)
        data: dict[str, Any] = {"t": time[rows]}
        data |= {key: signal[rows].astype(np.float32) for key, signal in signals.items()}
        if panel.half is not None:
            data |= {"low": data["y0"] - np.float32(panel.half), "high": data["y0"] + np.float32(panel.half)}
        source, margin, (bottom, top) = ColumnDataSource(data), panel.margin, panel.limits
        y_range = _range(bottom - 0.1 * margin, top + 0.1 * margin)
        upper = _plot(height, x_range, y_range, y=labelled(name, unit), only_x=True)
        if panel.half is not None:
            _painted(upper.varea("t", "low", "high", source=source, fill_alpha=0.22), fill_color="accent")
        first = _line(upper, "t", "y", source, "measured")
        error = panel.largest_error
        x = "time (s)" if i == outputs - 1 and not response.inputs else ""
        lower = _plot(
            low_height, x_range, _range(-1.1 * error, 1.1 * error), y=labelled("error", unit), x=x, only_x=True
        )
        tips = [("time (s)", "@t{0,0.[000]}"), ("measured", "@y{%.5g}")]
        for j, whose in enumerate(panel.shown):
            colour = MODEL_COLOURS[j % len(MODEL_COLOURS)]
            drawn = _line(upper, "t", f"y{j}", source, colour)
            if j:  # over the delivered model's, which shows between the dashes
                drawn.glyph.line_dash = "dashed"
            _line(lower, "t", f"e{j}", source, colour if len(panel.shown) > 1 else "quiet")
            tips += [(whose, f"@y{j}{{%.5g}}"), ("error", f"@e{j}{{%.3g}}")]
        _hover(upper, [first], tips, mode="vline", line_policy="nearest")
        plots += [upper, lower]
    for number, (label, u) in enumerate(response.inputs.items(), start=1):
        rows = thinned(u[:, None], most)
        source = ColumnDataSource({"t": time[rows], "u": u[rows].astype(np.float32)})
        low, high = float(np.nanmin(u)), float(np.nanmax(u))
        room, x = 0.08 * (high - low) or 1.0, "time (s)" if number == len(response.inputs) else ""
        below = _plot(90, x_range, _range(low - room, high + room), y=label, x=x, only_x=True)
        line = below.step("t", "u", source=source, mode="after", line_width=1.3)
        _hover(below, [_painted(line, line_color="third")], [("time (s)", "@t{0,0.[000]}"), (label, "@u{%.5g}")])
        plots.append(below)
    return _stack(plots)


def networks_plot(
    panels: Sequence[ScorePanel], scores: Array, names: Sequence[str], orders: Array, *, drawn: Noun = NETWORKS
) -> LayoutDOM:
    """Every network a dot, with index, order and all scores to hover for; threshold; violators circled."""
    from bokeh.models import ColumnDataSource

    index = np.arange(len(scores))
    x_range, plots = _range(-0.01 * len(scores) - 0.5, 1.01 * len(scores) - 0.5, "x"), []
    for i, panel in enumerate(panels):
        last = i == len(panels) - 1
        low, high = panel.limits
        inset = 0.025 * (high - low)  # what stands on the edge must not be cut in half
        heights = np.where(panel.off, np.clip(panel.shown, low + inset, high - inset), panel.shown)
        plot = _plot(230, x_range, _range(*panel.limits), y=panel.label, x=f"{drawn.one} (index)" if last else "")
        kept = np.zeros(len(scores), dtype=bool)
        kept[thinned(heights[:, None], MOST_NETWORKS)] = True
        tips = [
            (drawn.one, "@index"),
            *([("states", "@order")] if orders.any() else []),  # only networks have an order
            *((n.upper(), f"@s{j}{{%.6g}}") for j, n in enumerate(names)),
        ]
        dotted = []
        for which, marker, size, fill in (
            (kept & ~panel.off, "circle", 5, "dot"),
            (kept & panel.off, "inverted_triangle" if panel.direction == "max" else "triangle", 6, "quiet"),
        ):
            data: dict[str, Any] = {"index": index[which].astype(np.int32), "order": orders[which].astype(np.int32)}
            data |= {"y": heights[which]} | {f"s{j}": scores[which, j] for j in range(len(names))}
            dots = plot.scatter("index", "y", source=ColumnDataSource(data), marker=marker, size=size, line_color=None)
            dotted.append(_painted(dots, fill_color=fill))
        _hover(plot, dotted, tips)
        if panel.line is not None:
            _threshold(plot, panel.line, "alert")
        if panel.circle_violations:
            at = panel.violating
            circled = plot.scatter(index[at], heights[at], size=14, fill_color=None, line_width=2)
            _painted(circled, line_color="alert").name = f"violations-{panel.case}"
        plots.append(plot)
    return _stack(plots)


def episodes_plot(panel: EpisodePanel) -> LayoutDOM:
    """The error of each model in each episode, a dot each, with its limit."""
    from bokeh.models import ColumnDataSource

    count = len(next(iter(panel.errors.values())))
    x_range, y_range = _range(0.5 - 0.01 * count, count + 0.5 + 0.01 * count, "x"), _range(0, 1.04 * panel.top)
    plot = _plot(230, x_range, y_range, y=panel.label, x="episode (number)", only_x=True)
    for (whose, errors), colour in zip(panel.errors.items(), MODEL_COLOURS, strict=False):
        off, drawn = panel.off(whose), []
        for which, marker in ((~off, "circle"), (off, "triangle")):
            number = np.arange(1, count + 1, dtype=np.int32)[which]
            data: dict[str, Any] = {"number": number, "y": panel.shown(whose)[which], "error": errors[which]}
            dots = plot.scatter("number", "y", source=ColumnDataSource(data), marker=marker, size=7, line_color=None)
            drawn.append(_painted(dots, fill_color=colour))
        _hover(plot, drawn, [("episode", "@number"), ("of", whose), ("error", "@error{%.5g}")])
        if (limit := panel.limits[whose]) is not None:
            _threshold(plot, limit, colour, line_dash="dashed")
    return _stack([plot])


def distribution_plot(panel: ScorePanel, band: tuple[Array, Array] | None, *, drawn: Noun = NETWORKS) -> LayoutDOM:
    """Histogram of the scores, and the share of networks that do better than a score, with its band."""
    from bokeh.models import ColumnDataSource

    x_range = _range(*panel.limits, "x")
    counts, edges = histogram(panel.scores, panel.limits, 60)
    upper = _plot(170, x_range, _range(0, 1.08 * max(counts.max(), 1)), y=f"{drawn.many} (count)", only_x=True)
    data = {"left": edges[:-1], "right": edges[1:], "count": counts.astype(np.int32)}
    bars = upper.quad(left="left", right="right", top="count", bottom=0, source=ColumnDataSource(data), line_color=None)
    tips = [("from", "@left{%.5g}"), ("to", "@right{%.5g}"), (drawn.many, "@count")]
    _hover(upper, [_painted(bars, fill_color="dot")], tips)
    lower = _plot(260, x_range, _range(0, 1.02), y="share that does better (1)", x=panel.label, only_x=True)
    stairs = staircase(panel, band)
    limits = {} if stairs.low is None or stairs.high is None else {"low": stairs.low, "high": stairs.high}
    source = ColumnDataSource({"x": stairs.score, "share": stairs.share, **limits})
    if limits:
        _painted(lower.varea("x", "low", "high", source=source, fill_alpha=0.22), fill_color="accent")
    line = _line(lower, "x", "share", source, "accent", width=2)
    tips = [("score", "@x{%.6g}"), ("share that does better", "@share{%.4f}")]
    if band is not None:
        tips.append((f"of all {drawn.many}", "@low{%.4f} to @high{%.4f}"))
    _hover(lower, [line], tips, mode="vline")
    return _stack([upper, lower])


def learning_plot(sizes: Array, curve: Array, label: str, *, drawn: Noun = NETWORKS) -> LayoutDOM:
    """Mean best score against the number of networks."""
    from bokeh.models import ColumnDataSource

    low, high = float(curve.min()), float(curve.max())
    margin = 0.06 * (high - low) or 1.0
    x_range, y_range = _range(sizes[0] * 0.95, sizes[-1] * 1.08, "x", "log"), _range(low - margin, high + margin)
    labels = {"y": f"mean best {label}", "x": f"{drawn.many} (count)"}
    plot = _plot(260, x_range, y_range, **labels, only_x=True, x_axis_type="log")
    source = ColumnDataSource({"n": sizes, "best": curve})
    _line(plot, "n", "best", source, "accent", width=2)
    dots = plot.scatter("n", "best", source=source, size=5, line_color=None)
    tips = [(drawn.many, "@n{0}"), ("mean best", "@best{%.6g}")]
    _hover(plot, [_painted(dots, fill_color="accent")], tips, mode="vline")
    return _stack([plot])


def families_plot(families: Sequence[FamilyRange], label: str) -> LayoutDOM:
    """For each family the best network, the median, and between the quartiles a bar."""
    from bokeh.models import ColumnDataSource

    there = [(i, family) for i, family in enumerate(families) if family.best is not None]
    columns = {name: [getattr(f, name) for _, f in there] for name in ("name", "best", "median", "low", "high")}
    values = [value for name in ("best", "median", "low", "high") for value in columns[name]]
    margin = 0.08 * (max(values) - min(values)) or 1.0
    x_range, y_range = _range(-0.5, len(families) - 0.5, "x"), _range(min(values) - margin, max(values) + margin)
    plot = _plot(260, x_range, y_range, y=label, x="family", only_x=True)
    axis: Any = plot.xaxis[0]
    axis.ticker = list(range(len(families)))
    axis.major_label_overrides = {i: family.name for i, family in enumerate(families)}
    if len(families) > 6:
        axis.major_label_orientation = 0.6
    source = ColumnDataSource({"i": [i for i, _ in there], **columns})
    _painted(plot.segment("i", "low", "i", "high", source=source, line_width=7, line_alpha=0.5), line_color="dot")
    middle = plot.scatter("i", "median", source=source, size=9, marker="dash", line_width=2)
    best = plot.scatter("i", "best", source=source, size=9, line_color=None)
    tips = [("family", "@name"), ("best", "@best{%.6g}"), ("median", "@median{%.6g}"),
            ("quartiles", "@low{%.5g} to @high{%.5g}")]  # fmt: skip
    _hover(plot, [_painted(best, fill_color="accent"), _painted(middle, line_color="measured")], tips, mode="vline")
    return _stack([plot])


def compact(time: Array) -> NDArray[np.floating[Any]]:
    """Times in single precision, where that moves none by more than a hundredth of a step.

    Examples
    --------
    >>> compact(0.1 * np.arange(3.0)).dtype, compact(1e9 + np.arange(3.0)).dtype
    (dtype('float32'), dtype('float64'))
    """
    rounded, steps = time.astype(np.float32), np.diff(time)
    least = steps[steps > 0].min(initial=np.inf)
    return rounded if np.abs(rounded - time).max() <= 0.01 * least else time


def _range(start: float, end: float, *tags: str) -> Any:
    from bokeh.models import Range1d

    if not start < end:  # one value only, perhaps one that swallows a margin of 1
        start, end = start - abs(start) / 10 - 1, end + abs(end) / 10 + 1
    return Range1d(start=float(start), end=float(end), bounds=(float(start), float(end)), tags=list(tags))


def _paint(model: Any, **colours: str) -> None:
    """Name the page's colours that properties of a model have."""
    model.tags = [dict(colours)]


def _painted(renderer: Any, **colours: str) -> Any:
    """Name the colours of a renderer's glyph; those that Bokeh keeps for a selection go, since nothing is selected."""
    _paint(renderer.glyph, **colours)
    renderer.nonselection_glyph = renderer.selection_glyph = renderer.muted_glyph = None
    return renderer


def _line(plot: Figure, x: str, y: str, source: Any, colour: str, width: float = 1.3) -> Any:
    return _painted(plot.line(x, y, source=source, line_width=width), line_color=colour)


def _threshold(plot: Figure, height: float, colour: str, **more: Any) -> None:
    from bokeh.models import Span

    line = Span(location=height, dimension="width", line_width=1.5, **more)
    _paint(line, line_color=colour)
    plot.add_layout(line)


def _hover(plot: Figure, renderers: list[Any], tips: Sequence[tuple[str, str]], **more: Any) -> None:
    from bokeh.models import HoverTool

    formats = {column: "printf" for _, text in tips for column in re.findall(r"(@\w+)\{%", text)}
    plot.add_tools(HoverTool(renderers=renderers, tooltips=list(tips), formatters=formats, **more))


def _plot(height: int, x_range: Any, y_range: Any, *, y: str, x: str = "", only_x: bool = False, **more: Any) -> Figure:
    from bokeh.models import PanTool, PlainText, WheelZoomTool
    from bokeh.plotting import figure

    dimensions: Any = "width" if only_x else "both"
    wheel = WheelZoomTool(dimensions=dimensions, zoom_on_axis=False)
    plot = figure(
        height=height + (28 if x else 0), x_range=x_range, y_range=y_range, toolbar_location=None,
        tools=[PanTool(dimensions=dimensions), wheel], sizing_mode="stretch_width", output_backend="canvas",
        background_fill_color=None, border_fill_color=None, outline_line_color=None, min_border_left=64,
        min_border_right=10, min_border_top=8, min_border_bottom=22, **more,
    )  # fmt: skip
    plot.toolbar.active_scroll = None  # a page must scroll on: the wheel zooms a figure that was clicked
    axes: Sequence[tuple[Any, str]] = [(plot.xaxis[0], x), (plot.yaxis[0], y)]
    for axis, label in axes:
        axis.axis_label = PlainText(text=label) if label else None
        axis.axis_label_text_font = axis.major_label_text_font = FONT
        axis.axis_label_text_font_size, axis.major_label_text_font_size = "13px", "12px"
        axis.axis_label_text_font_style = "normal"
        axis.minor_tick_line_color = axis.major_tick_line_color = None
        if axis is plot.yaxis[0] and height < LOW:
            axis.ticker.desired_num_ticks = 3
        _paint(axis, axis_label_text_color="soft", major_label_text_color="soft", axis_line_color="line")
    for grid in (plot.xgrid[0], plot.ygrid[0]):
        _paint(grid, grid_line_color="grid")
    if not x:
        plot.xaxis[0].major_label_text_font_size = "0px"
        plot.min_border_bottom = 6
    return plot


def _stack(plots: Sequence[Any]) -> LayoutDOM:
    from bokeh.layouts import column

    return column(list(plots), sizing_mode="stretch_width")
