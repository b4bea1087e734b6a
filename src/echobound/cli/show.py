"""A result, set for the terminal: certificates, distribution of scores, facts, files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from echobound.arrays import Scores
from echobound.cli.terminal import console, say
from echobound.diagnostics.paired import Difference
from echobound.diagnostics.telling import told
from echobound.diagnostics.verdict import SYMBOLS, WORDS
from echobound.identification import Identification
from echobound.network import bound_words
from echobound.report.panels import ScorePanel, histogram
from echobound.runs import RunFolder
from echobound.runs.assessed import linear_content
from echobound.runs.assessment import Assessment
from echobound.runs.holding import Held, held_of
from echobound.runs.scoring import COVERED, NOT_COVERED
from echobound.scenario import Generalisation, title_of
from echobound.scenario.words import Noun, noun, score_title, upward
from echobound.typed import to_json

if TYPE_CHECKING:
    from rich.text import Text

WIDEST = 100
COLOURS = {"good": "green", "usable": "cyan", "poor": "yellow", "unusable": "red"}
SAID = {"network": "the picked network", "committee": "the committee"}
BLOCKS = " ▁▂▃▄▅▆▇█"
ROWS = 4  # of the histogram, eight steps each


def model_facts(found: RunFolder | Identification) -> dict[str, Any]:
    """What there is to say of the models of a run: which is delivered and why, where each stays, and if it follows.

    `network` and `committee` are only there where the run has one.
    """
    if isinstance(found, RunFolder):
        delivery, held = found.delivery if found.models else None, held_of(found)
        delivered, reason = ("", "") if delivery is None else (delivery.delivered, delivery.reason)
    else:
        delivered, reason, held = found.delivered, found.reason, found.held
    if not delivered:
        return {"delivered": None, "reason": None, **_model_facts(None, {})}
    certificate, committee, network = found.certificate, found.committee, found.network
    facts: dict[str, Any] = {}
    if network is not None:
        facts["network"] = {"number": certificate.winner, **_model_facts(network, held["model"])}
    if committee is not None:
        members = [certificate.position(one.origin["family"], one.origin["index"]) for one in committee.members]
        certified = network is None
        facts["committee"] = {
            "members": [] if certified else members,
            "statement": COVERED if certified else NOT_COVERED,
            **_model_facts(committee, held["model" if certified else "committee"]),
        }
    of_model = {name: facts[delivered][name] for name in ("bound", "bounded", "held", "notes")}
    return {"delivered": delivered, "reason": reason, **of_model, **facts}


def _model_facts(model: Any, held: Held) -> dict[str, Any]:
    """Where the free runs of a model stay, and for how long its outputs sit at a limit on the data of the run."""
    bound = getattr(model, "bound", None)
    return {
        "bound": bound,
        "bounded": None if model is None else bound_words(model),
        "held": None
        if bound is None
        else {role: {one.output: one.share for one in each} for role, each in held.items()},
        "notes": [f"{role} data: {one.words}" for role, each in held.items() for one in each if one.too_long],
    }


def assessment_facts(found: Assessment | None) -> dict[str, Any]:
    """What JSON says first: the first line, the verdict, the linear model, the scores, and what diagnostics found."""
    if found is None:
        return {"summary": None, "verdict": None, "linear": None, "scores": {}, "diagnostics": []}
    return {
        "summary": found.summary,
        "verdict": found.verdict.to_dict(),
        "linear": linear_content(found.linear),
        "scores": found.scores,
        "diagnostics": [to_json(one) for one in found.findings],
    }


def print_result(content: Mapping[str, Any], scores: Scores, *, details: bool = False) -> None:
    """Print what `identify`, `demo` and `show` give: the first line, the verdict and the certificate's sentence.

    With details, or where there is no verdict, all of the certificate and everything else that is known follow.
    """
    if content.get("verdict"):
        _print_verdict(content)
        if not details:
            print_facts(_short(content))
            return
    _print_certificate(content, scores)


def _print_verdict(content: Mapping[str, Any]) -> None:
    """The first line, the verdict, its reasons and what to do next."""
    out, verdict = console(), content["verdict"]
    word, colour = WORDS[verdict["grade"]], COLOURS[verdict["grade"]]
    if not out.is_terminal:
        say(content["summary"])
        say(f"Verdict: {word}")
        print_facts([*(("because", one) for one in verdict["reasons"]), *(("next", one) for one in verdict["next"])])
        return
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    width = min(out.width, WIDEST)
    sign = f"{SYMBOLS[verdict['grade']]} " if "utf" in (out.encoding or "").lower() else ""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, said in (("because", verdict["reasons"]), ("next", verdict["next"])):
        for number, one in enumerate(said):
            table.add_row("" if number else name, Text(one))
    parts = Group(Text(content["summary"], style="bold"), Text(), table)
    heading = Text(f"{sign}{word}", style=f"bold {colour}")
    out.print(Panel(parts, title=heading, title_align="left", width=width, padding=(1, 2), border_style=colour))
    out.print()


def _short(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is worth a line without being asked for."""
    certificate, run = content["certificate"], Path(content["run"])
    yield "certificate", certificate["statement"]
    if words := (content.get("search") or {}).get("words"):
        yield "searches", words
    yield from _linear_facts(content["linear"])
    if content.get("delivered"):
        yield "delivered", f"{SAID[content['delivered']]}{_about(content)}"
        yield from _scores(content["scores"])
    yield from second_facts(content.get("generalisation"))
    if content.get("verification"):
        yield "verified", content["verification"]["statement"]
    for choice in content.get("chosen", ()):
        yield "note", choice
    if content.get("delivered"):
        yield "model", str(run / "model.npz")
    yield "page", str(run / "report.html")
    yield "details", f"echobound show {run} --details"


def _about(content: Mapping[str, Any]) -> str:
    """What the certificate is about, where that is not the delivered model."""
    if "network" in content and content["network"] is not None and content["delivered"] == "committee":
        return " (the certificate is about its best network)"
    return ""


def _linear_facts(linear: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    if linear is None:
        return
    said = linear["words"]
    for role, name in (("difference", "held-out"), ("test_difference", "test")):
        if linear[role] is not None:
            said += f"; on {name} data your model is {Difference(**linear[role]).words}"
    yield "linear model", said


def _print_certificate(content: Mapping[str, Any], scores: Scores) -> None:
    """The certificate in a panel on a terminal, plain lines when piped; then all facts."""
    out, certificate = console(), content["certificate"]
    title = "Certificate" if certificate["status"] == "certified" else f"All {_drawn(certificate).many} diverged"
    if not out.is_terminal:
        say(f"{title}: {certificate['statement']}\n{certificate['worst']['statement']}")
        print_facts(_facts(content))
        return
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    width = min(out.width, WIDEST)
    parts: list[Any] = [Text(certificate["statement"], style="bold")]
    parts += [Text(), Text(certificate["worst"]["statement"], style="dim")]
    if certificate["winner"] is not None and width >= 40:
        unicode = "utf" in (out.encoding or "").lower()
        parts += [Text(), _distribution(certificate, scores, width - 8, unicode=unicode)]
    heading = Text(title, style="bold green" if certificate["status"] == "certified" else "bold red")
    out.print(Panel(Group(*parts), title=heading, title_align="left", width=width, padding=(1, 3), border_style="dim"))
    out.print()
    print_facts(_facts(content))


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values: in two columns on a terminal, plain lines when piped."""
    out = console()
    if not out.is_terminal:
        say("\n".join(f"{name}: {value}" for name, value in facts))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, width=min(out.width, WIDEST), padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    last = ""
    for name, value in facts:
        table.add_row("" if name == last else name, Text(value))
        last = name
    out.print(table)


def _distribution(certificate: Mapping[str, Any], scores: Scores, width: int, *, unicode: bool) -> Text:
    """The scores as a small histogram, the best of them marked at its end."""
    from rich.text import Text

    best = certificate["threshold"]
    name, direction = score_title(certificate["score"]), certificate["direction"]
    panel = ScorePanel(scores=scores, threshold=best, direction=direction, case="best", label=name)
    seen = scores[~panel.off]
    low, high = float(seen.min()), float(seen.max())
    if low == high:
        low, high = panel.limits
    counts, _ = histogram(seen, (low, high), min(width, 72))
    unit = f" {certificate['unit']}" if certificate["unit"] else ""
    text = Text(f"{name} of {len(scores)} {_drawn(certificate).many}\n", style="dim")
    for line in bars(counts.tolist(), ROWS if unicode else 2 * ROWS, unicode=unicode):
        text.append(line + "\n", style="cyan")
    left, right = f"{low:.5g}{unit}", f"{high:.5g}{unit}"
    text.append(left + right.rjust(len(counts) - len(left)))
    note = f"; {panel.note}" if panel.note else ""
    text.append(f"\nbest {best:.6g}{unit}, {_drawn(certificate).one} {certificate['winner']}{note}", style="dim")
    return text


def bars(counts: list[int], rows: int, *, unicode: bool = True) -> list[str]:
    """Lines of a histogram, from the top; something is drawn wherever there is a network.

    Examples
    --------
    >>> bars([0, 1, 4, 8], rows=2)
    ['   █', ' ▂██']
    >>> bars([0, 1, 2], rows=2, unicode=False)
    ['  #', ' ##']
    """
    steps = len(BLOCKS) - 1 if unicode else 1
    most = max(*counts, 1)
    heights = [-(-count * rows * steps // most) for count in counts]
    blocks = BLOCKS if unicode else " #"
    return [
        "".join(blocks[min(max(height - row * steps, 0), steps)] for height in heights) for row in reversed(range(rows))
    ]


def _drawn(certificate: Mapping[str, Any]) -> Noun:
    """What was drawn, as a certificate calls it."""
    return noun(certificate.get("members", 1))


def _facts(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    certificate, run = content["certificate"], Path(content["run"])
    families = certificate["families"]
    each = f", {families[0]['networks']} of each family" if len(families) > 1 else ""
    rule = "exactly" if certificate["rule"] in ("fixed", "patience") else f"by the rule {certificate['rule']}"
    drawn = f"{certificate['networks']}{each}, {certificate['failures']} of them diverged"
    drawn += f", {content['ended']['held']} held at a limit" if "ended" in content else ""
    certified = f"{drawn}; together they certify epsilon = {upward(certificate['epsilon_exact'])} {rule}"
    yield _drawn(certificate).many, certified
    yield from _linear_facts(content.get("linear"))
    for one in content.get("diagnostics", ()):
        mark = "look: " if one["alarm"] else ""
        yield one["name"], " ".join([f"{mark}{one['words']}", *([one["advice"]] if one["advice"] else [])])
    for statement in certificate["statements"]:
        yield title_of(statement["kind"], certificate.get("members", 1)), statement["words"]
    for name in ("rank", "quantile"):
        if name in content:
            yield name, content[name]["words"]
    if words := (content.get("search") or {}).get("words"):
        yield "searches", words
    if certificate["winner"] is not None:
        order = f", {content['order']} states" if "order" in content else ""
        named = [one["names"][one["best"]] for one in certificate["statements"] if one["kind"] == "families"]
        family = f" ({named[0]})" if named else ""
        yield "picked", f"{_drawn(certificate).one} {certificate['winner']}{family}{order}"
    if content.get("delivered"):
        yield from _delivered(content)
    if content.get("stability"):
        yield "stability", f"of the picked network: {content['stability']['statement']}"
    yield from second_facts(content.get("generalisation"))
    if content.get("verification"):
        yield "verified", content["verification"]["statement"]
        yield "", content["verification"]["worst"]["statement"]
    for choice in content.get("chosen", ()):
        yield "note", choice
    if content.get("delivered"):
        yield "model", str(run / "model.npz")
    yield "certificate", str(run / "certificate.json")
    yield "page", str(run / "report.html")


def _delivered(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Which model is delivered, and what is to be said of each, the delivered one first."""
    delivered, committee = content["delivered"], content.get("committee")
    said = SAID
    covers = "the certificate is about it"
    if "network" in content and delivered == "committee":
        covers = "the certificate is about the picked network, not about the committee"
    yield "delivered", f"{said[delivered]} ({covers}). {content['reason']}"
    if committee and committee["members"]:
        yield "committee", f"median of networks {', '.join(map(str, committee['members']))}"
    if not any("scores" in content.get(name, {}) for name in said if content.get(name)):
        yield from _scores(content.get("scores", {}), f"{delivered}, ")
    yield "bound", f"of {said[delivered]}: {content['bounded'][0].lower()}{content['bounded'][1:]}"
    for name in sorted(said, key=lambda name: name != delivered):
        if content.get(name):
            yield from _scores(content[name].get("scores", {}), f"{name}, ")
            yield from ((f"{name}, held", note) for note in content[name]["notes"])


def second_facts(second: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """What the second certificate says, from its JSON; nothing without one."""
    for about, says in told(Generalisation.from_dict(second)) if second else ():
        yield (about if about == "on test data" else f"new data, {about}"), says


def _scores(scores: Mapping[str, Any], whose: str = "") -> Iterator[tuple[str, str]]:
    for role, part in scores.items():
        for name, entry in part["per_output"].items():
            yield f"{whose}{role}", f"{name}: FIT {entry['fit']:.5g} %, RMSE {entry['rmse']:.5g}"
