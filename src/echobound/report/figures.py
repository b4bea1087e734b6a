"""The paper's figures: measured against simulated output, the sampling of networks, their testing.

Plain Figure objects, no pyplot: nothing global, nothing to close, usable from any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from echobound.data.record import Signal
from echobound.scenario.verification import violates
from echobound.scores import Direction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["compare_figure", "networks_figure", "score_axes"]

Array = NDArray[np.float64]
MEASURED, MODEL, DOT, LIMIT, QUIET = "#c0392b", "#1f5fa8", "#4a6fa5", "#c0392b", "#6b7280"


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def compare_figure(
    time: Array,
    measured: Signal,
    simulated: Signal,
    names: Sequence[str],
    units: Sequence[str],
    *,
    title: str = "",
    fits: Sequence[float] = (),
    whose: str = "model",
) -> Figure:
    """Measured output against the model's, one row for each output, with the error below it.

    Examples
    --------
    >>> k = np.arange(50.0)
    >>> y = np.sin(k / 5)[:, None]
    >>> len(compare_figure(k, y, 0.9 * y, ["pH"], [""]).axes)
    2
    """
    outputs = measured.shape[1]
    figure = _figure(9.0, 3.6 * outputs)
    axes = figure.subplots(2 * outputs, 1, sharex=True, squeeze=False, height_ratios=[3, 1] * outputs)[:, 0]
    # Beyond the measured range a diverging model would flatten everything else.
    for i, (name, unit) in enumerate(zip(names, units, strict=True)):
        upper, lower = axes[2 * i], axes[2 * i + 1]
        low, high = measured[:, i].min(), measured[:, i].max()
        margin = 0.35 * (high - low) or 1.0
        shown = np.clip(simulated[:, i], low - 10 * margin, high + 10 * margin)
        label = f"{whose} (FIT {fits[i]:.2f} %)" if len(fits) else whose
        upper.plot(time, measured[:, i], color=MEASURED, lw=1.0, label="measured")
        upper.plot(time, shown, color=MODEL, lw=1.0, label=label)
        upper.set_ylim(min(low, max(shown.min(), low - margin)) - 0.05 * margin, high + margin)
        upper.set_ylabel(_labelled(name, unit), parse_math=False)  # a column may be called $x
        upper.legend(loc="upper right", ncols=2, frameon=False)
        lower.plot(time, np.clip(measured[:, i] - simulated[:, i], -margin, margin), color=QUIET, lw=0.7)
        lower.axhline(0, color="black", lw=0.5)
        lower.set_ylabel("error")
    axes[0].set_title(title, loc="left", fontsize=10, parse_math=False)
    axes[-1].set_xlabel("time (s)")
    return figure


def networks_figure(
    panels: Sequence[dict[str, Any]],
    *,
    title: str = "",
) -> Figure:
    """One panel below the other, each the scores of all networks with a threshold; see `score_axes`.

    Examples
    --------
    >>> panel = {"scores": np.array([80.0, 90.0, -np.inf]), "threshold": 90.0, "direction": "max", "case": "best"}
    >>> panel["label"] = "FIT (%)"
    >>> len(networks_figure([panel]).axes)
    1
    """
    figure = _figure(9.0, 2.8 * len(panels))
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for ax, panel in zip(axes, panels, strict=True):
        score_axes(ax, **panel)
    axes[0].set_title(title, loc="left", fontsize=10, parse_math=False)
    axes[-1].set_xlabel("network")
    return figure


def score_axes(
    ax: Axes,
    *,
    scores: Array,
    threshold: float | None,
    direction: Direction,
    case: Literal["best", "worst"],
    label: str,
    circle_violations: bool = False,
) -> None:
    """Draw every network as a dot, the threshold as a line, and circle those that violate it.

    Networks far off the rest (or diverged) are drawn as triangles on the edge, and counted there.
    """
    index = np.arange(len(scores))
    finite = np.isfinite(scores)
    low, high = _limits(scores[finite], threshold, direction, case)
    inside = finite & (scores >= low) & (scores <= high)
    bad_edge = low if direction == "max" else high
    ax.plot(index[inside], scores[inside], ".", color=DOT, ms=3.5)
    off = ~inside
    if off.any():
        ax.plot(index[off], np.full(off.sum(), bad_edge), "v" if direction == "max" else "^", color=QUIET, ms=3.5)
        ax.annotate(
            f"{off.sum()} off the scale" + (f", {(~finite).sum()} of them diverged" if (~finite).any() else ""),
            (0.01, 0.03 if direction == "max" else 0.9),
            xycoords="axes fraction",
            fontsize=8,
            color=QUIET,
        )
    if threshold is not None and np.isfinite(threshold):
        ax.axhline(threshold, color=LIMIT, lw=1.2, label=f"{case} of the search: {threshold:.6g}")
        if circle_violations:
            beyond = violates(scores, threshold, direction, case)
            shown = np.where(np.isnan(scores), bad_edge, np.clip(scores, low, high))
            ax.plot(
                index[beyond],
                shown[beyond],
                "o",
                mfc="none",
                mec=LIMIT,
                ms=9,
                label=f"{beyond.sum()} violation{'s' * int(beyond.sum() != 1)}",
            )
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=2, frameon=False, fontsize=8)
    ax.set_ylim(low, high)
    ax.set_ylabel(label, parse_math=False)


def _limits(scores: Array, threshold: float | None, direction: Direction, case: str) -> tuple[float, float]:
    """Axis limits that show all networks, or the bulk where a few are far worse and the worst is not the subject."""
    if not len(scores):
        return 0.0, 1.0
    sign = 1.0 if direction == "max" else -1.0
    values = sign * scores
    good, bad, bulk = values.max(), values.min(), np.quantile(values, 0.03)
    if case == "best" and good - bad > 4 * (good - bulk):
        bad = bulk
    good, bad = sign * good, sign * bad
    marks = [good, bad] + ([threshold] if threshold is not None and np.isfinite(threshold) else [])
    low, high = min(marks), max(marks)
    margin = 0.08 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def _labelled(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit and unit != name else name
