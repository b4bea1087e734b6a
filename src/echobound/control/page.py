"""The page and the figure of closed loops: their scores side by side, and what is promised about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from echobound.control.closed_loop import ClosedLoop
from echobound.report.closed_loop import LoopPanel, closed_loop_figure, write_closed_loop_page
from echobound.report.panels import labelled

FEEDBACK = (
    "Nothing is promised about the stability of the closed loop: plans rest on the model's own outputs fed back, about"
    " which ||W_x|| says nothing. What is kept by construction are the bounds of inputs and of their rates."
)


def figure_of(loops: Mapping[str, ClosedLoop], title: str = "") -> Any:
    """The loops in one figure; they must have the same reference.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> from echobound.control import PI, PHProcess, simulate_closed_loop
    >>> model = identify(*ph_experiment(samples=(600, 400)), law="paper", order=20, networks=20).network
    >>> loop = simulate_closed_loop(PHProcess(), PI(model, 2.0, 80.0), np.repeat([7.1, 6.9], 20), preview=False)
    >>> len(figure_of({"PI": loop}).axes)
    2
    """
    first = next(iter(loops.values()))
    return closed_loop_figure(
        np.arange(len(first.y), dtype=np.float64) * first.sampling_time,
        first.reference,
        {name: LoopPanel(loop.y, loop.u) for name, loop in loops.items()},
        [labelled(*one) for one in zip(first.output_names, first.output_units, strict=True)],
        [labelled(*one) for one in zip(first.input_names, first.input_units, strict=True)],
        output_bounds=list(zip(first.bounds.output_low.tolist(), first.bounds.output_high.tolist(), strict=True)),
        input_bounds=list(zip(first.bounds.low.tolist(), first.bounds.high.tolist(), strict=True)),
        title=title,
    )


def table_of(loop: ClosedLoop) -> dict[str, str]:
    """The scores as they are shown, by name."""
    scores = loop.scores
    bounded = np.isfinite([loop.bounds.output_low, loop.bounds.output_high]).any()
    outside = f"{scores['output_violations']} samples, at most {scores['output_violation_largest']:.3g}"
    planned = np.isfinite(loop.converged).any()
    rows: dict[str, str] = {}
    rows |= {f"rms error of {name}": f"{value:.4g}" for name, value in scores["rms"].items()}
    rows |= {f"error of {name} at the end": f"{value:.3g}" for name, value in scores["offset"].items()}
    rows |= {f"sum of moves of {name}": f"{value:.4g}" for name, value in scores["effort"].items()}
    rows["input or rate bounds violated"] = str(scores["input_violations"] + scores["rate_violations"])
    rows["output bounds violated"] = outside if bounded else "none given"
    rows["measurements lost, refused"] = f"{scores['lost']}, {scores['outliers']}" if planned else "-"
    rows["plans not converged"] = f"{scores['not_converged']} of {scores['samples']}" if planned else "-"
    rows["time a sample"] = f"{scores['milliseconds_median']:.3g} ms, p99 {scores['milliseconds_p99']:.3g} ms"
    return rows


def write_page(path: str | Path, loops: Mapping[str, ClosedLoop], sentences: Sequence[Any], title: str) -> Path:
    """Write the page, and return where it is."""
    table = {name: table_of(loop) for name, loop in loops.items()}
    write_closed_loop_page(Path(path), title, figure_of(loops), table, [*map(str, sentences), FEEDBACK])
    return Path(path)
