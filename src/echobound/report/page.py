"""The page: statement, figures and model card in one file that opens offline."""

from __future__ import annotations

import io
import warnings
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from echobound.campaign.folder import RunFolder
from echobound.campaign.verification import verification_of
from echobound.files import write_whole
from echobound.kernels.base import Rows
from echobound.report.figures import compare_figure, networks_figure
from echobound.scenario.verification import upward
from echobound.scores import Score, get_score, summary

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.figure import Figure

__all__ = ["write_page"]


def write_page(folder: RunFolder) -> None:
    """Write ``report.html`` of a finished run into its folder."""
    html = _template().render(**_content(folder))
    write_whole(folder.path / "report.html", html.encode())


def _content(folder: RunFolder) -> dict[str, Any]:
    plan, certificate, rows = folder.plan, folder.certificate, folder.search
    fresh = folder.verification
    content: dict[str, Any] = {
        "title": f"Certified identification: {folder.path.name}",
        "certificate": certificate.to_dict(),
        "plan": plan.to_dict(),
        "verification": None,
        "figures": [],
        "model": None,
    }
    figures: list[tuple[str, Figure]] = []
    if certificate.winner is not None:
        content["model"] = _model_card(folder)
        how = "free run" if plan.horizon is None else f"prediction {plan.horizon} samples ahead"
        caption = f"Validation data: measured output and the model's {how}"
        figures.append((caption, _compare(folder, content["model"])))
    figures.append((f"The {len(rows)} networks of the search", _networks(folder, rows, testing=False)))
    if len(fresh):
        content["verification"] = verification_of(folder)
        figures.append((f"{len(fresh)} fresh networks against the certificate", _networks(folder, fresh, testing=True)))
    content["figures"] = [(caption, svg(figure)) for caption, figure in figures]
    return content


def _model_card(folder: RunFolder) -> dict[str, Any]:
    model, experiments = folder.model, folder.experiments
    card: dict[str, Any] = {
        "order": model.order,
        "stability": model.stability.statement,
        "scaling": model.scaling.kind,
        "washout": model.washout,
        "ridge": model.origin["ridge"],
        "hyper": {k: v for k, v in asdict(model.reservoir.hyper).items() if k != "order"},
        "channels": f"{', '.join(model.input_names)} → {', '.join(model.output_names)}",
        "sampling_time": model.sampling_time,
        "records": [(role, record.name, len(record)) for role, record in experiments.roles],
        "scores": {},
    }
    for role in ("validation", "test"):
        records = getattr(experiments, role)
        if records:
            measured, simulated = model.respond(records, folder.plan.horizon)
            card["scores"][role] = summary(measured, simulated, model.output_names)
            if role == "validation":
                card["signals"] = (measured, simulated)
    return card


def _compare(folder: RunFolder, card: dict[str, Any]) -> Figure:
    measured, simulated = card.pop("signals")
    first = folder.experiments.validation[0]
    per_output = card["scores"]["validation"]["per_output"].values()
    time = np.arange(folder.model.washout, folder.model.washout + len(measured), dtype=np.float64) * first.sampling_time
    return compare_figure(
        time, measured, simulated, first.output_names, first.output_units, fits=[entry["fit"] for entry in per_output]
    )


def _networks(folder: RunFolder, rows: Rows, *, testing: bool) -> Figure:
    """Best case of the first score above, worst case of the last below: the paper's pair of panels."""
    panels = []
    for case, position in (("best", 0), ("worst", len(folder.plan.scores) - 1)):
        score = get_score(folder.plan.scores[position])
        found = folder.search["scores"][:, position]
        best = found.max() if (score.direction == "max") == (case == "best") else found.min()
        panels.append(
            {
                "scores": rows["scores"][:, position],
                "threshold": float(best),
                "direction": score.direction,
                "case": case,
                "label": _label(score, folder),
                "circle_violations": testing,
            }
        )
    return networks_figure(panels)


def _label(score: Score, folder: RunFolder) -> str:
    """A score with its unit; RMSE has that of the outputs if they share one."""
    units = set(folder.experiments.training[0].output_units)
    unit = score.unit or (units.pop() if score.name == "rmse" and len(units) == 1 else "")
    return f"{score.name.upper()} ({unit})" if unit else score.name.upper()


def svg(figure: Figure) -> str:
    """The figure as SVG to stand in a page; many points are drawn as one path, so it stays small."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "echobound", "svg.fonttype": "path"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a name in a script that the font lacks
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    # Everything that comes from data or files is escaped; only our own SVG is marked safe.
    environment = Environment(
        loader=PackageLoader("echobound.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["upward"] = lambda value: upward(value, digits=4)
    return environment.get_template("page.html")
