"""The sections of the page, in order: each a small builder that looks at a run and returns what it shows, or None.

To add one, write a builder and a template of the same name, and put it into `SECTIONS`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from echobound.network import EchoStateNetwork
from echobound.report import figures, plots
from echobound.report.contents import Response, RunContents
from echobound.report.panels import EpisodePanel, ScorePanel, thinned
from echobound.runs.scoring import NOT_COVERED
from echobound.scenario.generalisation import CALLED
from echobound.scores import get_score

if TYPE_CHECKING:
    from bokeh.models import LayoutDOM
    from matplotlib.figure import Figure

__all__ = ["SECTIONS", "Drawing", "Section", "again", "responses_drawing"]

PRINTED_SAMPLES = 1500  # rows of an output on paper, at most
LISTED = 20  # diverged networks that are listed


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure of the page: to be looked at closely on a screen, and to be printed.

    Parameters
    ----------
    name
        What it is called in the page and, as a file, by ``echobound figures``.
    caption, summary
        What it is, and what it shows in words: for those who cannot see it, too.
    keys
        The legend: a colour of the page and what has it.
    plot, figure
        Make the one for the screen and the one for paper.
    """

    name: str
    caption: str
    summary: str
    keys: tuple[tuple[str, str], ...]
    plot: Callable[[], LayoutDOM]
    figure: Callable[..., Figure]


@dataclass(frozen=True, eq=False)
class Section:
    """A part of the page: its template and title, what the template shows, and figures."""

    name: str
    title: str
    content: Mapping[str, Any] = field(default_factory=dict)
    drawings: tuple[Drawing, ...] = ()


def outputs(run: RunContents) -> Section | None:
    """Measured and simulated outputs, with FIT and RMSE."""
    if not run.responses:
        return None
    return Section(
        "outputs",
        "The model against the data",
        {"responses": run.responses},
        tuple(
            responses_drawing(response, run.how, blocks=run.plan.blocks if response.role == "validation" else None)
            for response in run.responses
        ),
    )


def responses_drawing(response: Response, how: str, name: str | None = None, blocks: int | None = None) -> Drawing:
    """Measured outputs and those of one or several models; the name is that of the role if not given."""
    several = len(response.scores) > 1
    fits = [
        f"FIT of {name}{f' by {whose}' * several}: {part['fit']:.2f} %"
        for whose, scores in response.scores.items()
        for name, part in scores["per_output"].items()
    ]
    whose = " and the ".join(response.simulated)
    samples = int((~np.isnan(response.measured[:, 0])).sum())
    return Drawing(
        name=response.role if name is None else name,
        caption=(
            f"{response.role.capitalize()} data: measured output and {how} of the {whose}"
            if blocks is None
            else f"The {blocks} blocks one after the other: measured output and {how} of the {whose}, trained on the"
            " others"
        ),
        summary=f"{samples} samples after the washout. {', '.join(fits)}.",
        keys=(("measured", "measured"), *zip(plots.MODEL_COLOURS, response.simulated, strict=False)),
        plot=lambda: plots.outputs_plot(response),
        figure=lambda title="": _thin_outputs(response, title),
    )


def _thin_outputs(response: Response, title: str) -> Figure:
    signals = [response.measured, *response.simulated.values()]
    columns = np.concatenate([*signals, *(response.measured - y for y in signals[1:])], axis=1)
    rows = thinned(columns, PRINTED_SAMPLES * columns.shape[1])
    simulated = {name: y[rows] for name, y in response.simulated.items()}
    fits = {name: [p["fit"] for p in scores["per_output"].values()] for name, scores in response.scores.items()}
    return figures.outputs_figure(
        response.time[rows], response.measured[rows], simulated, response.names, response.units, title=title, fits=fits,
        band=response.band,
    )  # fmt: skip


def committee(run: RunContents) -> Section | None:
    """The median of the best networks, and that it is not covered."""
    several = run.folder.committee
    if several is None or not run.folder.models:
        return None
    return Section(
        "committee",
        "The committee, not covered by the certificate",
        {
            "statement": NOT_COVERED,
            "members": [run.named(member) for member in several.members],
        },
    )


def generalisation(run: RunContents) -> Section | None:
    """The second certificate: what the models are worth on new data."""
    second = run.second
    if second is None:
        return None
    limits = {who: second.limit(who) for who in second.seen}
    panel = EpisodePanel(
        errors={who: np.array([np.inf if e is None else e for e in seen.rmse]) for who, seen in second.seen.items()},
        limits={who: None if limit is None else limit.limit for who, limit in limits.items()},
        label=run.label(get_score("rmse")),
    )
    what = "block" if second.settled.blocks else "episode"
    errors = Drawing(
        name="episodes",
        caption=f"RMSE in each of {second.episodes} test {what}{'s' * (second.episodes != 1)}",
        summary=" ".join(f"{CALLED[who].capitalize()}: {_errors(panel.errors[who])}" for who in panel.errors),
        keys=tuple(
            (colour, f"{CALLED[who]}, dashed its limit")
            for who, colour in zip(panel.errors, plots.MODEL_COLOURS, strict=False)
        ),
        plot=lambda: plots.episodes_plot(panel),
        figure=lambda title="": figures.episodes_figure(panel, title=title),
    )
    return Section(
        "generalisation",
        "On new data",
        {"words": second.words, "not_stated": second.not_stated},
        (errors, *(_episode(response, which, what, run.how) for which, response in run.episodes(second).items())),
    )


def _errors(errors: Any) -> str:
    """As in "from 0.1 to 0.3, median 0.2": how large errors are."""
    finite = errors[np.isfinite(errors)]
    diverged = len(errors) - len(finite)
    said = f"from {finite.min():.4g} to {finite.max():.4g}, median {np.median(finite):.4g}" if len(finite) else "none"
    return said + (f"; diverged in {diverged}." if diverged else ".")


def _episode(response: Response, which: str, what: str, how: str) -> Drawing:
    drawing = responses_drawing(response, how, name=f"episode-{which}")
    drawn = any(half is not None for half in response.band)
    return replace(
        drawing,
        caption=f"{'A typical' if which == 'typical' else 'The worst'} {what} of the picked network"
        + (", with its band" if drawn else ""),
        keys=(*drawing.keys, *((("band", "where a new one stays, all along it"),) if drawn else ())),
    )


def search(run: RunContents) -> Section:
    """The paper's sampling figure."""
    count, blocks = len(run.search), run.plan.blocks
    data = "the validation data" if blocks is None else f"{blocks} blocks of the training data in turn"
    return Section(
        "search",
        "The search",
        {"networks": count, "data": data},
        (_networks(run, "sampling", f"The {count} networks of the search", run.search, testing=False),),
    )


def testing(run: RunContents) -> Section | None:
    """The paper's testing figure, and what the fresh networks say."""
    if run.verification is None:
        return None
    caption = f"{len(run.fresh)} fresh networks against the certificate"
    drawing = _networks(run, "testing", caption, run.fresh, testing=True)
    return Section("testing", "Put to the test", {"verification": run.verification}, (drawing,))


def _networks(run: RunContents, name: str, caption: str, rows: Any, *, testing: bool) -> Drawing:
    panels = run.panels(rows, testing=testing)
    said = [
        f"{panel.label}: {panel.line_label}"
        + (f", {panel.counted}" if testing else "")
        + (f"; {panel.note}" if panel.note else "")
        for panel in panels
        if panel.line is not None
    ]
    keys = [("dot", "a network"), ("alert-line", "best or worst of the search")]
    if testing:
        keys.append(("alert-ring", "a violation"))
    return Drawing(
        name=name,
        caption=caption,
        summary=". ".join(said) + "." if said else "All networks diverged.",
        keys=tuple(keys),
        plot=lambda: plots.networks_plot(panels, rows["scores"], run.plan.scores, rows["order"]),
        figure=lambda title="": figures.networks_figure(panels, title=title),
    )


def families(run: RunContents) -> Section | None:
    """Of several families: where the scores of each lie, and what is certified of its own best."""
    if not run.families:
        return None
    label = run.label(run.score)
    drawings: tuple[Drawing, ...] = ()
    seen = [family for family in run.families if family.best is not None]
    if seen:
        said = "; ".join(f"{family.name}: best {family.best:.6g}, median {family.median:.6g}" for family in seen)
        drawing = Drawing(
            name="families",
            caption=f"{label.split(' (')[0]} of each family",
            summary=f"{said}.",
            keys=(("accent", "best"), ("measured", "median"), ("dot", "half of the networks")),
            plot=lambda: plots.families_plot(run.families, label),
            figure=lambda title="": figures.families_figure(run.families, label, title=title),
        )
        drawings = (drawing,)
    return Section("families", "The families", {"families": run.families, "label": label}, drawings)


def distribution(run: RunContents) -> Section | None:
    """How the scores are distributed."""
    [panel, *_] = run.panels(run.search, testing=False)
    if not np.isfinite(panel.scores).any():
        return None
    beta = run.certificate.beta
    keys = [("accent", "networks of the search")]
    if run.band is not None:
        keys.append(("band", f"all networks, confidence 1 − {beta:g}"))
    drawing = Drawing(
        name="distribution",
        caption=f"Distribution of the {panel.label.split(' (')[0]} of all networks",
        summary=_spread(panel),
        keys=tuple(keys),
        plot=lambda: plots.distribution_plot(panel, run.band),
        figure=lambda title="": figures.distribution_figure(panel, run.band, beta=beta, title=title),
    )
    return Section("distribution", "Distribution of scores", {"band": run.band, "beta": beta}, (drawing,))


def _spread(panel: ScorePanel) -> str:
    quartiles = np.quantile(panel.scores[np.isfinite(panel.scores)], [0.0, 0.25, 0.5, 0.75, 1.0])
    low, first, median, third, high = (f"{value:.5g}" for value in quartiles)
    note = f" {panel.note}." if panel.note else ""
    return f"{panel.label}: from {low} to {high}, half of the networks from {first} to {third}, median {median}.{note}"


def learning(run: RunContents) -> Section | None:
    """Whether more networks would be worth their time."""
    if run.learning is None or len(run.learning[0]) < 2:
        return None
    sizes, curve = run.learning
    label = run.label(run.score)
    drawing = Drawing(
        name="learning",
        caption="Mean best score of a search, by its number of networks",
        summary=f"From {curve[0]:.5g} with {sizes[0]:.0f} to {curve[-1]:.5g} with {sizes[-1]:.0f} networks.",
        keys=(("accent", "mean best of so many of the networks"),),
        plot=lambda: plots.learning_plot(sizes, curve, label),
        figure=lambda title="": figures.learning_figure(sizes, curve, label, title=title),
    )
    return Section("learning", "Is it worth training more?", {"words": run.words_of("gain")}, (drawing,))


def model(run: RunContents) -> Section | None:
    """The model card."""
    network = run.folder.models.get("model")
    if not isinstance(network, EchoStateNetwork):
        return None
    return Section(
        "model",
        "The model",
        {
            "network": network,
            "number": run.named(network),
            "hyper": {k: v for k, v in asdict(network.reservoir.hyper).items() if k != "order" and v is not None},
            "records": run.folder.experiments.roles,
            "law": network.origin["law"],
        },
    )


def effort(run: RunContents) -> Section:
    """Failures and timing."""
    rows = run.search
    failed = np.flatnonzero(rows["status"] != 0)  # numbers as in the certificate, family after family
    seconds = rows["seconds"]
    return Section(
        "effort",
        "Failures and timing",
        {
            "networks": len(rows),
            "failures": len(failed),
            "listed": [(int(number), int(rows["order"][number])) for number in failed[:LISTED]],
            "fresh": len(run.fresh),
            "fresh_failures": int((run.fresh["status"] != 0).sum()),
            "total": float(seconds.sum()),
            "median": float(np.median(seconds)),
            "slowest": float(seconds.max()),
            "slowest_index": int(seconds.argmax()),
        },
    )


def origin(run: RunContents) -> Section:
    """Digests, versions, seeds, and the command that makes the run again."""
    return Section(
        "origin",
        "How to derive it again",
        {
            "plan": run.plan.to_dict(),
            "names": [family.name for family in run.plan.families]
            if len(run.plan.families) > 1
            else [run.plan.law[0].name],
            "digests": {part: value for part, value in run.certificate.digests.items() if value},
            "provenance": run.certificate.provenance,
            # What was drawn by a law of another kind is not in the folder, and no command can draw it again.
            "command": again(run) if run.folder.stores_data else None,
            "described": {} if run.folder.stores_data else run.plan.law[0].to_dict(),
        },
    )


def again(run: RunContents) -> str:
    """The command that makes the whole run again, from the plan and the data of its own folder."""
    old, new = (json.dumps(name, ensure_ascii=False) for name in (run.name, f"{run.name}-again"))
    code = (
        f"from echobound import RunFolder, identify; old = RunFolder({old}); data = old.experiments;"
        f" new = identify(data.training, data.validation or None, test=data.test, plan=old.plan, run={new});"
        " print(new.certificate.statement, new.certificate == old.certificate)"
    )
    return f"python -c {shlex.quote(code)}"


SECTIONS: tuple[Callable[[RunContents], Section | None], ...] = (
    outputs,
    committee,
    generalisation,
    search,
    testing,
    families,
    distribution,
    learning,
    model,
    effort,
    origin,
)
