"""Figures for papers, by Matplotlib: outputs, sampling and testing of networks, distribution, learning curve.

Plain Figure objects, no pyplot: nothing global, nothing to close, usable from any thread. Whoever wants to change one
takes its ``axes``. One style for all; a unit on every axis.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from echobound.arrays import Array, Signal, Vector
from echobound.data.given import given_records
from echobound.data.record import Record
from echobound.errors import InputError
from echobound.report.drawing import shown_figure
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
from echobound.scores import fit_per_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
T = TypeVar("T")

MEASURED, MODEL, DOT, LIMIT, QUIET = "#3d4754", "#1f6fb2", "#4a86bd", "#b3452b", "#66707d"
MODELS = (MODEL, "#d17a22", "#2b8a5f", "#7a55a8", "#a8497a", "#7d7420")  # told apart by the colour-blind, and in grey
RASTERISED = 2000  # more dots than this become an image inside the vector figure: a paper must still open
PRINTED = 3000  # samples of a signal, at most: a least and a largest one for each third of a point
PRINTED_IN_ALL = 24_000  # of all signals of a figure: where it has many, each is drawn a little coarser
WIDTH = 7.0  # inches: a text width
MANY = 4  # outputs from which on each gets less height: a reader wants to see more than one at a time
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": MEASURED,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.xmargin": 0.015,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "grid.color": "#e3e7ec",
    "grid.linewidth": 0.6,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": MEASURED,
    "ytick.labelcolor": MEASURED,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.0,
    "pdf.fonttype": 42,  # text stays text
    "savefig.dpi": 200,
}


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Draw in the style of this module, whatever the user's own settings."""

    @wraps(draw)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        import matplotlib

        with matplotlib.rc_context(STYLE):
            return draw(*args, **kwargs)

    return wrapped


def _axes(height: float, rows: int = 1, title: str = "", **more: Any) -> tuple[Figure, list[Axes]]:
    """A figure with axes below each other; a title, as every text from data, may hold a $ that is no formula."""
    figure = shown_figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(rows, 1, sharex=True, squeeze=False, **more)[:, 0]
    axes[0].set_title(title, parse_math=False)
    return figure, list(axes)


@styled
def record_figure(record: Record, title: str = "") -> Figure:
    """Inputs and outputs of a record over time, each on axes of its own; what ``record.plot()`` draws.

    Examples
    --------
    >>> figure = record_figure(Record(u=[0.0, 1.0, 1.0], y=[0.0, 0.5, 0.8], output_names=("level",)))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['u1', 'level']
    """
    sides = ((record.u, record.input_names, record.input_units), (record.y, record.output_names, record.output_units))
    channels = [(side, *one) for side, (s, *named) in enumerate(sides) for one in zip(s.T, *named, strict=True)]
    figure, axes = _axes(0.8 + 1.2 * len(channels), rows=len(channels), title=title or record.name)
    for (side, values, name, unit), ax in zip(channels, axes, strict=True):
        kept = thinned(values[:, None], PRINTED)
        # Inputs are held between samples.
        style: dict[str, Any] = {"color": MODEL} if side else {"color": MEASURED, "drawstyle": "steps-post"}
        ax.plot(record.time[kept], values[kept], **style)
        ax.set_ylabel(labelled(name, unit), parse_math=False)
    axes[-1].set_xlabel("time (s)")
    return figure


@styled
def compare_figure(
    record: Any, *models: Any, horizon: int | None = None, washout: int | None = None, title: str = ""
) -> Figure:
    """Measured output against that of any number of models, FIT in the legend, as MATLAB's ``compare``.

    Parameters
    ----------
    record
        The data: a record, a pair ``(u, y)``, or a frame with columns of the models' names.
    models
        Anything that simulates and predicts like an `EchoStateNetwork`, called ``model 1``, ``model 2``, ...; or
        mappings of names to models.
    horizon
        None compares free runs, k predictions k samples ahead.
    washout
        Samples at the start that are fed back and not scored; if not given, the longest washout among the models, so
        that all are compared on the same samples.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(400, 300))
    >>> small, large = (identify(training, validation, law="paper", order=n, networks=20).network for n in (5, 30))
    >>> figure = compare_figure(validation, {"5 states": small, "30 states": large})
    >>> upper, lower = figure.axes  # Matplotlib's own: change what you like
    >>> [text.get_text().split(" (FIT")[0] for text in upper.get_legend().get_texts()]
    ['measured', '5 states', '30 states']
    """
    named: dict[str, Any] = {}
    for model in models:
        named |= model if isinstance(model, Mapping) else {f"model {len(named) + 1}": model}
    if not named:
        raise InputError("give at least one model to compare with the record")
    record = given_records(record, next(iter(named.values())))[0]
    first = max(model.washout for model in named.values()) if washout is None else washout
    simulated = {
        name: (m.simulate(record, washout=first) if horizon is None else m.predict(record, horizon, washout=first)).y
        for name, m in named.items()
    }
    time, y = record.time[first:], record.y[first:]
    return outputs_figure(time, y, simulated, record.output_names, record.output_units, title=title)


@styled
def outputs_figure(
    time: Array,
    measured: Signal,
    simulated: Mapping[str, Signal],
    names: Sequence[str],
    units: Sequence[str],
    *,
    title: str = "",
    fits: Mapping[str, Sequence[float]] | None = None,
    band: Sequence[float | None] = (),
    inputs: Mapping[str, Array] | None = None,
) -> Figure:
    """Measured outputs against simulated ones, two axes for each output: signals with FIT, and below them the errors.

    A row of NaN is a gap between two records, and is not scored. FIT is that of the samples given, unless `fits` says
    it for each output. A band has half a width for each output, and is drawn around the first that simulates. Inputs,
    by label, are drawn below all outputs.

    Examples
    --------
    >>> k = np.arange(50.0)
    >>> y = np.sin(k / 5)[:, None]
    >>> len(outputs_figure(k, y, {"model": 0.9 * y}, ["pH"], [""]).axes)
    2
    """
    outputs = measured.shape[1]
    inputs = inputs or {}
    tall, low = (3.2, 0.8) if outputs < MANY else (1.6, 0.6)
    ratios = [0.75 * tall, 0.25 * tall] * outputs + [low] * len(inputs)
    figure, axes = _axes(tall * outputs + low * len(inputs), len(ratios), title, height_ratios=ratios)
    if fits is None:
        there = ~np.isnan(measured).any(axis=1)
        fits = {name: fit_per_output(measured[there], y[there]).tolist() for name, y in simulated.items()}
    most = min(PRINTED, PRINTED_IN_ALL // (outputs * (1 + 2 * len(simulated)) + len(inputs)))

    def drawn(signal: Vector) -> tuple[Array, Array]:
        kept = thinned(signal[:, None], most)
        return time[kept], signal[kept]

    for ax, (label, u) in zip(axes[2 * outputs :], inputs.items(), strict=True):
        ax.step(*drawn(u), color=MODELS[2], lw=0.8, where="post")
        ax.set_ylabel(label, parse_math=False)
    for i, (name, unit) in enumerate(zip(names, units, strict=True)):
        panel = OutputPanel.of(measured, simulated, i, band)
        upper, lower = axes[2 * i], axes[2 * i + 1]
        upper.plot(*drawn(panel.measured), color=MEASURED, label="measured")
        for (whose, shown), color in zip(panel.shown.items(), MODELS * len(simulated), strict=False):
            label = f"{whose} (FIT {fits[whose][i]:.2f} %)"
            # Over the first one's, which shows between the dashes.
            [line] = upper.plot(*drawn(shown), color=color, ls="-" if whose == next(iter(panel.shown)) else "--")
            if panel.half is not None and whose == next(iter(panel.shown)):
                at, middle = drawn(shown)
                upper.fill_between(at, middle - panel.half, middle + panel.half, color=color, alpha=0.2, lw=0)
            line.set_label(label if not label.startswith("_") else f"\u200b{label}")  # "_x" would be left out
            error = np.clip(panel.measured - shown, -panel.margin, panel.margin)
            lower.plot(*drawn(error), color=color if len(simulated) > 1 else QUIET, lw=0.7)
        lower.axhline(0, color=QUIET, lw=0.6, zorder=0)
        lower.set_ylim(-1.1 * panel.largest_error, 1.1 * panel.largest_error)
        bottom, top = panel.limits
        # The legend stands above the signals, or above the band.
        upper.set_ylim(bottom - 0.05 * panel.margin, (panel.high if panel.half is None else top) + panel.margin)
        upper.set_ylabel(labelled(name, unit), parse_math=False)
        for text in upper.legend(loc="upper right", ncols=min(3, len(simulated) + 1)).get_texts():
            text.set_parse_math(False)
        lower.set_ylabel(labelled("error", unit), parse_math=False)
    axes[-1].set_xlabel("time (s)")
    return figure


@styled
def networks_figure(panels: Sequence[ScorePanel], *, title: str = "", drawn: Noun = NETWORKS) -> Figure:
    """Scores of all networks, a panel below the other: a dot each, the threshold as a line, violations circled.

    Networks far off the rest (or diverged) are drawn as triangles on the edge, and counted there.

    Examples
    --------
    >>> scores = np.array([80.0, 90.0, -np.inf])
    >>> panel = ScorePanel(scores=scores, threshold=90.0, direction="max", case="best", label="FIT (%)")
    >>> len(networks_figure([panel]).axes)
    1
    """
    figure, axes = _axes(2.4 * len(panels), len(panels), title)
    for ax, panel in zip(axes, panels, strict=True):
        index, scores, off = np.arange(len(panel.scores)), panel.scores, panel.off
        many = len(scores) > RASTERISED
        ax.plot(index[~off], scores[~off], ".", color=DOT, ms=3.5, mew=0, rasterized=many)
        if off.any():
            marker, height = ("v", 0.04) if panel.direction == "max" else ("^", 0.9)
            ax.plot(index[off], np.full(off.sum(), panel.edge), marker, color=QUIET, ms=3.5, rasterized=many)
            ax.annotate(panel.note, (0.01, height), xycoords="axes fraction", fontsize=8, color=QUIET)
        if panel.line is not None:
            ax.axhline(panel.line, color=LIMIT, lw=1.1, label=panel.line_label)
            if panel.circle_violations:
                at = panel.violating
                ax.plot(index[at], panel.shown[at], "o", mfc="none", mec=LIMIT, ms=9, label=panel.counted)
            ax.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=2)
        ax.set_ylim(*panel.limits)
        ax.set_ylabel(panel.label, parse_math=False)
    axes[-1].set_xlabel(f"{drawn.one} (index)")
    return figure


@styled
def episodes_figure(panel: EpisodePanel) -> Figure:
    """The error of each model in each episode, with its limit."""
    figure, [ax] = _axes(2.4)
    for (whose, errors), color in zip(panel.errors.items(), MODELS, strict=False):
        number, off, shown = np.arange(1, len(errors) + 1), panel.off(whose), panel.shown(whose)
        ax.plot(number[~off], shown[~off], ".", color=color, ms=5, mew=0, label=whose)
        ax.plot(number[off], shown[off], "^", color=color, ms=4)
        if (limit := panel.limits[whose]) is not None:
            ax.axhline(limit, color=color, lw=1.0, ls="--", label=f"its limit: {limit:.4g}")
    ax.set(xlabel="episode (number)", ylim=(0, 1.04 * panel.top))
    ax.set_ylabel(panel.label, parse_math=False)
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=4)
    return figure


@styled
def distribution_figure(
    panel: ScorePanel,
    band: tuple[Array, Array] | None = None,
    *,
    beta: float = 0.0,
    title: str = "",
    drawn: Noun = NETWORKS,
) -> Figure:
    """How the scores are distributed: a histogram, and below it the share of networks that do better than a score.

    The band is that of `staircase`: lower and upper limits for all ranks at once, with confidence 1 - beta.

    Examples
    --------
    >>> scores = np.random.default_rng(0).normal(size=50)
    >>> panel = ScorePanel(scores=scores, threshold=None, direction="max", case="best", label="FIT (%)")
    >>> len(distribution_figure(panel).axes)
    2
    """
    figure, [upper, lower] = _axes(4.2, 2, title, height_ratios=[2, 3])
    upper.stairs(*histogram(panel.scores, panel.limits, 40), fill=True, color=DOT)
    upper.set_ylabel(f"{drawn.many} (count)")
    stairs = staircase(panel, band)
    if stairs.low is not None and stairs.high is not None:
        label = f"all {drawn.many}, confidence 1 - {beta:g}"
        lower.fill_between(stairs.score, stairs.low, stairs.high, color=DOT, alpha=0.25, lw=0, label=label)
    lower.plot(stairs.score, stairs.share, color=MODEL, label=f"{drawn.many} of the search")
    lower.set(ylabel="share that does better (1)", ylim=(0, 1.02), xlim=panel.limits)
    lower.set_xlabel(panel.label, parse_math=False)
    lower.legend(loc="best")
    return figure


@styled
def families_figure(families: Sequence[FamilyRange], label: str) -> Figure:
    """For each family the best network, the median, and a bar between the quartiles."""
    figure, [ax] = _axes(2.8)
    there = [(i, family) for i, family in enumerate(families) if family.best is not None]
    for name, marker, color in (("best", "o", MODEL), ("median", "_", MEASURED)):
        points = [(i, getattr(family, name)) for i, family in there]
        ax.plot(*zip(*points, strict=True), marker, color=color, label=name, zorder=3)
    for i, family in there:
        quartiles = np.array([family.low, family.high], dtype=float)
        ax.plot([i, i], quartiles, color=DOT, lw=6, alpha=0.6, solid_capstyle="butt")
    ax.set_xticks(range(len(families)), [family.name for family in families], rotation=30 if len(families) > 6 else 0)
    for text in ax.get_xticklabels():
        text.set_parse_math(False)
    ax.set_ylabel(label, parse_math=False)
    ax.legend(loc="best")
    return figure


@styled
def learning_figure(sizes: Array, curve: Array, label: str, *, title: str = "", drawn: Noun = NETWORKS) -> Figure:
    """Mean best score against the number of networks.

    Examples
    --------
    >>> figure = learning_figure(np.array([1, 10, 100]), np.array([80.0, 88.0, 90.0]), "FIT (%)")
    >>> figure.axes[0].get_xlabel()
    'networks (count)'
    """
    figure, [ax] = _axes(2.8, title=title)
    ax.semilogx(sizes, curve, ".-", color=MODEL, ms=4)
    ax.set_xlabel(f"{drawn.many} (count)")
    ax.set_ylabel(f"mean best {label}", parse_math=False)
    return figure


def saved(figure: Figure, kind: str, *, fonts: str = "path", **more: Any) -> bytes:
    """The figure as a file, the same bytes each time; as paths its letters need no font of the reader."""
    import matplotlib

    dates = {"pdf": {"CreationDate": None}, "svg": {"Date": None, "Creator": None}, "png": {}}
    buffer = io.BytesIO()
    settings = {**STYLE, "svg.hashsalt": "echobound", "svg.fonttype": fonts}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a name in a script that the font lacks
        figure.savefig(buffer, format=kind, metadata=dates[kind], **more)
    return buffer.getvalue()
