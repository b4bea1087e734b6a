"""Closed loops: their figure, and a page of their own; made from plain signals, since controllers know this room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from echobound.arrays import Signal, Vector
from echobound.files import write_whole
from echobound.report.figures import LIMIT, MEASURED, MODELS, QUIET, WIDTH, styled
from echobound.report.page import _environment, address, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class LoopPanel:
    """One loop as it is drawn."""

    y: Signal  # (time, output)
    u: Signal  # (time, input)


@styled
def closed_loop_figure(
    time: Vector,
    reference: Signal,
    loops: Mapping[str, LoopPanel],
    outputs: Sequence[str],
    inputs: Sequence[str],
    *,
    output_bounds: Sequence[tuple[float, float]] = (),
    input_bounds: Sequence[tuple[float, float]] = (),
    title: str = "",
) -> Figure:
    """Outputs with their reference and bounds, and below them what was applied.

    Examples
    --------
    >>> time, wanted = np.arange(4.0), np.ones((4, 1))
    >>> figure = closed_loop_figure(time, wanted, {"MPC": LoopPanel(wanted, 2 * wanted)}, ["pH"], ["q3 (mL/s)"])
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['pH', 'q3 (mL/s)']
    """
    from matplotlib.figure import Figure

    rows = len(outputs) + len(inputs)
    figure = Figure(figsize=(WIDTH, 1.9 * len(outputs) + 1.5 * len(inputs) + 0.5), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, 1, sharex=True))
    for o, label in enumerate(outputs):
        ax = axes[o]
        ax.step(time, reference[:, o], where="post", color=MEASURED, linestyle="--", linewidth=0.9, label="reference")
        for colour, (name, loop) in zip(MODELS, loops.items(), strict=False):
            ax.plot(time, loop.y[:, o], color=colour, linewidth=1.1, label=name)
        _bounds(ax, output_bounds[o] if output_bounds else ())
        ax.set_ylabel(label)
    for i, label in enumerate(inputs):
        ax = axes[len(outputs) + i]
        for colour, loop in zip(MODELS, loops.values(), strict=False):
            ax.step(time, loop.u[:, i], where="post", color=colour, linewidth=0.9)
        _bounds(ax, input_bounds[i] if input_bounds else ())
        ax.set_ylabel(label)
    axes[-1].set_xlabel("time (s)")
    axes[0].legend(loc="upper right", ncols=len(loops) + 1, frameon=False, bbox_to_anchor=(1.0, 1.16), borderpad=0.0)
    if title:
        axes[0].set_title(title, pad=14)
    return figure


def _bounds(ax: Any, ends: Sequence[float]) -> None:
    """Lines at the bounds, where there are any; the one beyond which nothing happens is left out."""
    for end in ends:
        if np.isfinite(end):
            ax.axhline(end, color=LIMIT, linestyle=":", linewidth=1.0)
            ax.annotate("bound", (1.0, end), xycoords=("axes fraction", "data"), ha="right", va="bottom", color=QUIET)


def write_closed_loop_page(
    path: Path, title: str, figure: Figure, table: Mapping[str, Mapping[str, str]], paragraphs: Sequence[str]
) -> None:
    """Write the page of a closed loop: the figure, the scores of each loop, and what is promised and what is not."""
    image = address(svg(figure))
    columns = list(table)
    rows = [(name, [table[column][name] for column in columns]) for name in table[columns[0]]]
    page = _environment().get_template("closed_loop.html").render(
        title=title, image=image, columns=columns, rows=rows, paragraphs=list(paragraphs)
    )  # fmt: skip
    write_whole(path, page.encode(errors="backslashreplace"))
