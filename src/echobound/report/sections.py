"""The sections of the page, in order: each a small builder that looks at a run and returns what it shows, or None.

To add one, write a builder and a template of the same name, and put it into `SECTIONS`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from echobound.diagnostics.telling import told
from echobound.kernels import Status
from echobound.network import Committee, PlantModel, bound_words, law_drawn_from
from echobound.report import figures, plots
from echobound.report.contents import Response, RunContents
from echobound.report.panels import EpisodePanel, ScorePanel, labelled
from echobound.report.section import Drawing, Section
from echobound.report.worth import diagnostics
from echobound.runs.scoring import NOT_COVERED
from echobound.runs.verification import verification_of
from echobound.scores import get_score

LISTED = 20  # networks that diverged, or were held at a limit, that are listed


def delivered(run: RunContents) -> Section | None:
    """Which model is delivered, why, between what values it stays, and where it does not follow."""
    if not run.folder.models or run.folder.delivery is None:
        return None
    names, picked = run.names, run.names["model"]
    content = {
        "name": next(iter(names.values())),
        "picked": picked,
        "others": list(names.values())[1:],
        "reason": run.folder.delivery.reason,
        "bounds": [(called, bound_words(run.folder.models[name])) for name, called in names.items()],
        "scores": {response.role: next(iter(response.scores.values())) for response in run.responses},
        "blocks": run.plan.blocks,
        "held": [(role, called, one.words) for role, called, one in run.held],
    }
    return Section("delivered", "The delivered model", content)


def outputs(run: RunContents) -> Section | None:
    """Measured and simulated outputs, with FIT and RMSE."""
    if not run.responses:
        return None
    blocks = {"validation": run.plan.blocks}
    drawings = tuple(_responses(run, one, blocks=blocks.get(one.role)) for one in run.responses)
    content = {"tables": [_scores(run, one) for one in run.responses]}
    return Section("outputs", "The model against the data", content, drawings)


def _scores(run: RunContents, response: Response) -> dict[str, Any]:
    """A table: for each output its FIT and RMSE by each model, the linear one last."""
    linear = {} if run.folder.linear is None else {"linear model": run.folder.linear.scores.get(response.role)}
    models = {**response.scores, **{whose: scores for whose, scores in linear.items() if scores is not None}}
    rows = [
        (labelled(name, unit), [scores["per_output"][name] for scores in models.values()])
        for name, unit in zip(response.names, response.units, strict=True)
    ]
    return {"role": response.role, "models": list(models), "rows": rows}


def _responses(run: RunContents, response: Response, name: str | None = None, blocks: int | None = None) -> Drawing:
    """Measured outputs and those of one or several models; the name is that of the role if not given."""
    every, response = response, response.drawn
    several = len(response.scores) > 1
    fits = {whose: {n: p["fit"] for n, p in each["per_output"].items()} for whose, each in response.scores.items()}
    said = [
        f"FIT of {output}{f' by {whose}' * several}: {fit:.2f} %"
        for whose, each in fits.items()
        for output, fit in each.items()
    ]
    if len(response.names) >= figures.MANY:  # each of them is in the table
        said = [
            f"FIT{f' by {whose}' * several} from {each[worst]:.2f} % ({worst}) to {each[best]:.2f} % ({best})"
            for whose, each in fits.items()
            for worst, best in [(min(each, key=lambda n: each[n]), max(each, key=lambda n: each[n]))]
        ]
    what = f"measured output and {run.how} of the {' and the '.join(response.simulated)}"
    samples = int((~np.isnan(response.measured[:, 0])).sum())
    if len(response.names) < len(every.names):
        what += f", for the {len(response.names)} of {len(every.names)} outputs with the lowest FIT"
    if len(response.inputs) < len(every.inputs):
        what += f", with the first {len(response.inputs)} of {len(every.inputs)} inputs"
    return Drawing(
        name=response.role if name is None else name,
        caption=f"{response.role.capitalize()} data: {what}"
        if blocks is None
        else f"The {blocks} blocks one after the other: {what}, trained on the others",
        summary=f"{samples} samples after the washout. {', '.join(said)}.",
        keys=(("measured", "measured"), *zip(plots.MODEL_COLOURS, response.simulated, strict=False)),
        plot=partial(plots.outputs_plot, response, run.compared),
        figure=partial(
            figures.outputs_figure, response.time, response.measured, response.simulated, response.names,
            response.units, fits={whose: list(each.values()) for whose, each in fits.items()}, band=response.band,
            inputs=response.inputs,
        ),
    )  # fmt: skip


def committee(run: RunContents) -> Section | None:
    """The median of the best networks, and that it is not covered."""
    several = run.folder.best if run.folder.models else None
    if several is None:
        return None
    content = {"statement": NOT_COVERED, "members": [run.named(member) for member in several.members]}
    return Section("committee", "The committee, not covered by the certificate", content)


def generalisation(run: RunContents) -> Section | None:
    """The second certificate: what the models are worth on new data."""
    second = run.second
    if second is None:
        return None
    limits = {called: second.limit(name) for name, called in run.names.items()}
    panel = EpisodePanel(
        errors={
            called: np.array([np.inf if e is None else e for e in second.seen[name].rmse])
            for name, called in run.names.items()
        },
        limits={called: None if limit is None else limit.limit for called, limit in limits.items()},
        label=run.label(get_score("rmse")),
    )
    what = "block" if second.settled.blocks else "episode"
    errors = Drawing(
        name="episodes",
        caption=f"RMSE in each of {second.episodes} test {what}{'s' * (second.episodes != 1)}",
        summary=" ".join(f"{called.capitalize()}: {_errors(each)}" for called, each in panel.errors.items()),
        keys=tuple(
            (colour, f"{called}, its limit dashed")
            for called, colour in zip(panel.errors, plots.MODEL_COLOURS, strict=False)
        ),
        plot=partial(plots.episodes_plot, panel),
        figure=partial(figures.episodes_figure, panel),
    )
    episodes = [_episode(run, response, which, what) for which, response in run.episodes(second).items()]
    content = {"words": told(second), "not_stated": second.not_stated}
    # One record of the run itself is drawn with the model against the data; a dot and the same picture say no more.
    alone = second.episodes == 1 and any(response.role == "test" for response in run.responses)
    return Section("generalisation", "On new data", content, () if alone else (errors, *episodes))


def _errors(errors: Any) -> str:
    """As in "from 0.1 to 0.3, median 0.2": how large errors are."""
    finite = errors[np.isfinite(errors)]
    diverged = len(errors) - len(finite)
    said = f"from {finite.min():.4g} to {finite.max():.4g}, median {np.median(finite):.4g}" if len(finite) else "none"
    return said + (f"; diverged in {diverged}." if diverged else ".")


def _episode(run: RunContents, response: Response, which: str, what: str) -> Drawing:
    drawing = _responses(run, response, name=f"episode-{which}")
    caption = f"{'A typical' if which == 'typical' else 'The worst'} {what} of the {next(iter(response.simulated))}"
    if not any(half is not None for half in response.band):
        return replace(drawing, caption=caption)
    keys = (*drawing.keys, ("band", "where a new one stays throughout"))
    return replace(drawing, caption=f"{caption}, with its band", keys=keys)


def search(run: RunContents) -> Section:
    """The paper's sampling figure."""
    count, blocks = len(run.search), run.plan.blocks
    data = "the validation data" if blocks is None else f"{blocks} blocks of the training data in turn"
    drawing = _networks(run, "sampling", f"The {count} {run.drawn.many} of the search", run.search, testing=False)
    return Section("search", "The search", {"networks": count, "data": data, "one": run.drawn.one}, (drawing,))


def testing(run: RunContents) -> Section | None:
    """The paper's testing figure, and what the fresh networks say."""
    if not len(run.fresh):
        return None
    caption = f"{len(run.fresh)} fresh {run.drawn.many} against the certificate"
    drawing = _networks(run, "testing", caption, run.fresh, testing=True)
    return Section("testing", "Put to the test", {"verification": verification_of(run.folder)}, (drawing,))


def _networks(run: RunContents, name: str, caption: str, rows: Any, *, testing: bool) -> Drawing:
    panels = run.panels(rows, testing=testing)
    said = [
        f"{panel.label}: {panel.line_label}"
        + (f", {panel.counted}" if testing else "")
        + (f"; {panel.note}" if panel.note else "")
        for panel in panels
        if panel.line is not None
    ]
    violations = [("alert-ring", "a violation")] if testing else []
    return Drawing(
        name=name,
        caption=caption,
        summary=". ".join(said) + "." if said else f"All {run.drawn.many} diverged.",
        keys=(("dot", f"a {run.drawn.one}"), ("alert-line", "best or worst of the search"), *violations),
        plot=partial(plots.networks_plot, panels, rows["scores"], run.plan.scores, rows["order"], drawn=run.drawn),
        figure=partial(figures.networks_figure, panels, drawn=run.drawn),
    )


def families(run: RunContents) -> Section | None:
    """Where the scores of each of several families lie, and what is certified of its own best."""
    if not run.families:
        return None
    label, seen = run.label(run.score), [family for family in run.families if family.best is not None]
    drawing = Drawing(
        name="families",
        caption=f"{label.split(' (')[0]} of each family",
        summary="; ".join(f"{one.name}: best {one.best:.6g}, median {one.median:.6g}" for one in seen) + ".",
        keys=(("accent", "best"), ("measured", "median"), ("dot", f"middle half of the {run.drawn.many}")),
        plot=partial(plots.families_plot, run.families, label),
        figure=partial(figures.families_figure, run.families, label),
    )
    content = {"families": run.families, "label": label, "drawn": run.drawn}
    return Section("families", "The families", content, (drawing,) if seen else ())


def distribution(run: RunContents) -> Section | None:
    """How the scores are distributed."""
    [panel, *_] = run.panels(run.search, testing=False)
    if not np.isfinite(panel.scores).any():
        return None
    beta, many = run.certificate.beta, run.drawn.many
    band = [("band", f"all {many}, confidence 1 − {beta:g}")] if run.band is not None else []
    drawing = Drawing(
        name="distribution",
        caption=f"Distribution of the {panel.label.split(' (')[0]} of all {many}",
        summary=_spread(panel, many),
        keys=(("accent", f"{many} of the search"), *band),
        plot=partial(plots.distribution_plot, panel, run.band, drawn=run.drawn),
        figure=partial(figures.distribution_figure, panel, run.band, beta=beta, drawn=run.drawn),
    )
    return Section("distribution", "Distribution of scores", {"band": run.band, "beta": beta, "many": many}, (drawing,))


def _spread(panel: ScorePanel, many: str) -> str:
    quartiles = np.quantile(panel.scores[np.isfinite(panel.scores)], [0.0, 0.25, 0.5, 0.75, 1.0])
    low, first, median, third, high = (f"{value:.5g}" for value in quartiles)
    note = f" {panel.note}." if panel.note else ""
    return f"{panel.label}: from {low} to {high}, half of the {many} from {first} to {third}, median {median}.{note}"


def learning(run: RunContents) -> Section | None:
    """Whether more networks would be worth their time."""
    if run.learning is None or len(run.learning[0]) < 2:
        return None
    sizes, curve = run.learning
    label, words = run.label(run.score), [one.words for one in run.certificate.statements if one.kind == "gain"]
    drawing = Drawing(
        name="learning",
        caption=f"Mean best score of a search, by its number of {run.drawn.many}",
        summary=f"From {curve[0]:.5g} with {sizes[0]:.0f} to {curve[-1]:.5g} with {sizes[-1]:.0f} {run.drawn.many}.",
        keys=(("accent", "mean best score of a search of this size"),),
        plot=partial(plots.learning_plot, sizes, curve, label, drawn=run.drawn),
        figure=partial(figures.learning_figure, sizes, curve, label, drawn=run.drawn),
    )
    return Section("learning", "Is it worth training more?", {"words": " ".join(words)}, (drawing,))


def model(run: RunContents) -> Section | None:
    """The card of the picked network."""
    network = run.folder.models.get("model")
    if isinstance(network, Committee) and run.plan.members > 1:
        members = [(member, law_drawn_from(member.origin)) for member in network.members]
        which = {"members": members, "number": run.certificate.winner, "of": run.plan.members}
        return Section("members", "The picked committee", {**which, "records": run.folder.experiments.roles})
    if not isinstance(network, PlantModel):
        return None
    content = {
        "network": network,
        "number": run.named(network),
        "hyper": {k: v for k, v in network.hyper.items() if k != "order" and v is not None},
        "records": run.folder.experiments.roles,
        "law": network.origin["law"],
        "kind": law_drawn_from(network.origin),
        "bound": bound_words(network),
    }
    return Section("model", "The picked network", content)


def effort(run: RunContents) -> Section:
    """Failures and timing."""
    rows, seconds = run.search, run.search["seconds"]
    # Numbers as in the certificate, family after family.
    ended = {how: np.flatnonzero(rows["status"] == how) for how in (Status.DIVERGED, Status.HELD)}
    listed = {how: [(int(n), int(rows["order"][n])) for n in found[:LISTED]] for how, found in ended.items()}
    content = {
        "one": run.drawn.one,
        "networks": len(rows),
        "diverged": len(ended[Status.DIVERGED]),
        "held": len(ended[Status.HELD]),
        "listed": listed[Status.DIVERGED],
        "listed_held": listed[Status.HELD],
        "fresh": len(run.fresh),
        "fresh_diverged": int((run.fresh["status"] == Status.DIVERGED).sum()),
        "fresh_held": int((run.fresh["status"] == Status.HELD).sum()),
        "total": float(seconds.sum()),
        "median": float(np.median(seconds)),
        "slowest": float(seconds.max()),
        "slowest_index": int(seconds.argmax()),
    }
    return Section("effort", "Failures and timing", content)


def origin(run: RunContents) -> Section:
    """Digests, versions, seeds, and the command that repeats the run."""
    named = {"model": run.names["model"]} if run.folder.models else {}
    laws = run.plan.families if len(run.plan.families) > 1 else run.plan.law[:1]
    content = {
        "plan": run.plan.to_dict(),
        "names": [law.name for law in laws],
        "many": run.drawn.many,
        "digests": {named.get(part, part): value for part, value in run.certificate.digests.items() if value},
        "provenance": run.certificate.provenance,
        # What was drawn by a law of another kind is not in the folder, and no command can draw it again.
        "command": rerun_command(run.name) if run.folder.stores_data else None,
        "described": {} if run.folder.stores_data else run.plan.law[0].to_dict(),
    }
    return Section("origin", "How to derive it again", content)


def rerun_command(name: str) -> str:
    """The command that repeats the whole run of this name, from the plan and the data of its own folder."""
    old, new = (json.dumps(one, ensure_ascii=False) for one in (name, f"{name}-again"))
    code = (
        f"from echobound import RunFolder, identify; old = RunFolder({old}); data = old.experiments;"
        f" new = identify(data.training, data.validation or None, test=data.test, plan=old.plan, run={new});"
        " print(new.certificate.statement, new.certificate == old.certificate)"
    )
    return f"python -c {shlex.quote(code)}"


SECTIONS: tuple[Callable[[RunContents], Section | None], ...] = (
    outputs, diagnostics, delivered, committee, generalisation, search, testing, families, distribution, learning,
    model, effort, origin,
)  # fmt: skip
