"""What a model is worth, on the page: what the diagnostics found, with their pictures."""

from __future__ import annotations

from functools import partial

import numpy as np

from echobound.report import curves
from echobound.report.contents import RunContents
from echobound.report.curves import CurvePanel
from echobound.report.panels import labelled
from echobound.report.section import Drawing, Section

LOWEST = -100.0  # per cent of FIT: what is worse would flatten the curve


def diagnostics(run: RunContents) -> Section | None:
    """What was looked at and found, a sentence each; correlations, predictions and step responses."""
    if not run.folder.models or not run.folder.stores_data:
        return None
    found = run.folder.diagnostics
    linear = run.folder.linear
    content = {
        "findings": sorted(found.findings, key=lambda one: not one.alarm),
        "linear": linear,
    }
    drawings = (_correlations(run), _prediction(run), _steps(run))
    return Section("diagnostics", "Diagnostics", content, tuple(one for one in drawings if one is not None))


def _correlations(run: RunContents) -> Drawing | None:
    """The least probable autocorrelation and the least probable correlation with an input."""
    residuals = run.folder.diagnostics.residuals
    if not residuals.own:
        return None
    output = min(residuals.own, key=lambda one: residuals.own[one].p_value)
    own = residuals.own[output]
    panels = [
        CurvePanel(
            y=f"{output}, its own past (1)",
            x="lag (samples)",
            curves={"error": (own.lags.astype(float), own.values)},
            bound=own.bound(),
            stems=True,
        )
    ]
    if residuals.inputs:
        pair = min(residuals.inputs, key=lambda one: residuals.inputs[one].p_value)
        one = residuals.inputs[pair]
        panels.append(
            CurvePanel(
                y=f"{pair[1]}, {pair[0]} (1)",
                x="lag (samples)",
                curves={"error": (one.lags.astype(float), one.values)},
                bound=one.bound(),
                stems=True,
            )
        )
    beyond = [int((np.abs(p.curves["error"][1]) > (p.bound or 0.0)).sum()) for p in panels]
    return _drawing(
        "correlations",
        "Correlation of the error on held-out data; below, both whitened, with the input that it follows most",
        f"Beyond the 99 % bounds: {' and '.join(map(str, beyond))} lags. Where nothing is left over, one in a hundred"
        " is. At negative lags the input follows the error.",
        panels,
        (("accent", "correlation"), ("alert-line", "99 % bounds")),
    )


def _prediction(run: RunContents) -> Drawing | None:
    curve = run.folder.diagnostics.prediction
    known = [(i, fit) for i, fit in enumerate(curve.fits) if fit is not None]
    if len(known) < 2:
        return None
    at, fits = (np.array(side, dtype=float) for side in zip(*known, strict=True))
    fits = np.maximum(fits, LOWEST)
    names = {i: "free run" if k is None else str(k) for i, k in enumerate(curve.horizons)}
    panel = CurvePanel(
        y="FIT (%)", x="ahead (samples)", curves={"model": (at, fits)}, names=names, low=float(fits.min()) - 5.0
    )
    return _drawing(
        "prediction", f"FIT by how far ahead the model predicts, on {curve.data}", curve.finding.words, [panel],
        (("accent", "delivered model"),),
    )  # fmt: skip


def _steps(run: RunContents) -> Drawing | None:
    """Of the input and output whose gain changes most between operating points."""
    best, chosen = -1.0, None
    for one in run.folder.diagnostics.steps:
        if not np.isfinite(one.outputs).all():
            continue
        spread = np.ptp(one.gains, axis=0) / np.maximum(np.abs(one.gains).max(axis=0), 1e-300)
        j = int(np.argmax(spread))
        if spread[j] > best:
            best, chosen = float(spread[j]), (one, j)
    if chosen is None:
        return None
    one, j = chosen
    data = run.folder.experiments.training[0]
    time = data.sampling_time * np.arange(one.outputs.shape[1], dtype=np.float64)
    unit = dict(zip(data.input_names, data.input_units, strict=True))[one.input]
    gain = f"{data.output_units[j] or '1'}/{unit or '1'}" if data.output_units[j] or unit else ""
    lines = {
        f"from {one.input} = {level:.4g}{f' {unit}' if unit else ''}": (time, one.outputs[i, :, j])
        for i, level in enumerate(one.levels)
    }
    panel = CurvePanel(y=labelled(f"{one.names[j]} for a step of 1", gain), x=labelled("time", "s"), curves=lines)
    ends = ", ".join(f"{gain:.4g}" for gain in one.gains[:, j])
    return _drawing(
        "steps",
        f"Answer of {one.names[j]} to a step of {one.input} by {one.step:.4g}, at three operating points",
        f"In the end: {ends}. For a linear plant the lines are the same.",
        [panel],
        tuple(zip(curves.COLOURS, lines, strict=False)),
    )


def _drawing(
    name: str, caption: str, summary: str, panels: list[CurvePanel], keys: tuple[tuple[str, str], ...]
) -> Drawing:
    plot, figure = partial(curves.curves_plot, panels), partial(curves.curves_figure, panels)
    return Drawing(name=name, caption=caption, summary=summary, keys=keys, plot=plot, figure=figure)
