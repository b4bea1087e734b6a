"""The page: statement, figures and model card in one file that opens offline."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from echobound.campaign.folder import RunFolder
from echobound.campaign.outcome import NOT_COVERED, committee_outputs, outcome_of
from echobound.campaign.plan import Plan
from echobound.campaign.verification import verification_of
from echobound.data.record import Signal
from echobound.files import write_whole
from echobound.kernels import compiled_dynamics, get_kernel
from echobound.kernels.base import Rows
from echobound.kernels.training import scored_outputs
from echobound.network import respond
from echobound.report.figures import compare_figure, networks_figure
from echobound.scenario.verification import upward
from echobound.scores import Score, get_score

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
        "committee": None,
    }
    figures: list[tuple[str, Figure]] = []
    if certificate.winner is not None:
        outputs = _outputs(folder)
        test = folder.experiments.test
        content["model"] = _model_card(folder)
        content["model"]["scores"] = outcome_of(folder.model, folder.problem, outputs[0], test).scores
        figures.append((_caption(plan, "model"), _compare(folder, outputs[0], content["model"]["scores"], "model")))
        if folder.committee is not None:
            together = committee_outputs(outputs)
            outcome = outcome_of(folder.committee, folder.problem, together, test)
            members = [member.origin["index"] for member in folder.committee.members]
            content["committee"] = {"members": members, "scores": outcome.scores, "episodes": outcome.episodes}
            content["committee"]["statement"] = NOT_COVERED
            figures.append((_caption(plan, "committee"), _compare(folder, together, outcome.scores, "committee")))
    figures.append((f"The {len(rows)} networks of the search", _networks(folder, rows, testing=False)))
    if len(fresh):
        content["verification"] = verification_of(folder)
        figures.append((f"{len(fresh)} fresh networks against the certificate", _networks(folder, fresh, testing=True)))
    content["figures"] = [(caption, svg(figure)) for caption, figure in figures]
    return content


def _model_card(folder: RunFolder) -> dict[str, Any]:
    model = folder.model
    return {
        "order": model.order,
        "stability": model.stability.statement,
        "scaling": model.scaling.kind,
        "washout": model.washout,
        "ridge": model.origin["ridge"],
        "hyper": {k: v for k, v in asdict(model.reservoir.hyper).items() if k != "order"},
        "channels": f"{', '.join(model.input_names)} → {', '.join(model.output_names)}",
        "sampling_time": model.sampling_time,
        "records": [(role, record.name, len(record)) for role, record in folder.experiments.roles],
    }


def _outputs(folder: RunFolder) -> list[list[Signal]]:
    """Simulated outputs on each fold, of the model alone or of every member of the committee, the model first.

    The networks of a hold-out are those that were scored; those of blocks are gone, and are trained again here.
    """
    networks = (folder.model,) if folder.committee is None else folder.committee.members
    if folder.plan.blocks is not None:
        kernel = get_kernel()
        return [scored_outputs(kernel, folder.problem, network.origin["index"]) for network in networks]
    records, horizon, fast = folder.experiments.validation, folder.plan.horizon, compiled_dynamics()
    runs = [respond(network, records, horizon, dynamics=fast) for network in networks]
    return [[np.concatenate([simulated for _, simulated in pairs])] for pairs in runs]


def _caption(plan: Plan, whose: str) -> str:
    how = "free run" if plan.horizon is None else f"prediction {plan.horizon} samples ahead"
    if plan.blocks is None:
        return f"Validation data: measured output and the {whose}'s {how}"
    return (
        f"The {plan.blocks} blocks one after the other: measured output and the {whose}'s {how}, trained on the others"
    )


def _compare(folder: RunFolder, outputs: Sequence[Signal], scores: dict[str, Any], whose: str) -> Figure:
    measured, simulated = np.concatenate(folder.problem.measured), np.concatenate(outputs)
    first = folder.experiments.training[0]
    per_output = scores["validation"]["per_output"].values()
    time = np.arange(folder.model.washout, folder.model.washout + len(measured), dtype=np.float64) * first.sampling_time
    return compare_figure(
        time,
        measured,
        simulated,
        first.output_names,
        first.output_units,
        fits=[entry["fit"] for entry in per_output],
        whose=whose,
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
