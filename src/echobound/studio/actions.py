"""Actions: what can be done with a finished run, what each means for its certificate, and the command that does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from echobound.data.options import ReadingOptions
from echobound.errors import InputError
from echobound.export import TARGETS, get_target
from echobound.studio.drafts import call, names_in, read_like, text_in
from echobound.studio.form import typed_options
from echobound.studio.jobs import Jobs
from echobound.studio.workspace import EXPORTS, as_file

AFTERWARDS = (
    "A further run with other settings, chosen after this look, is not covered by this certificate: it has one of its"
    " own, and the studio lists it as another look at the same data."
)


@dataclass(frozen=True)
class Action:
    """Something that can be done with a finished run.

    Parameters
    ----------
    title
        What the button says.
    meaning
        What it means for the certificate, said before it is done.
    order
        From what a form gave to the arguments of the command and the same in Python.
    choices
        What there is to choose from, with titles.
    """

    title: str
    meaning: tuple[str, ...]
    order: Callable[[str, Mapping[str, Any], Jobs], tuple[list[str], str]]
    choices: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What a page shows of it."""
        return {"title": self.title, "meaning": self.meaning, "choices": self.choices}


def _whole(given: Mapping[str, Any], name: str, default: int, least: int = 0) -> int:
    value = given.get(name, default)
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a whole number, got {value!r:.40}") from None
    if number < least:
        raise InputError(f"{name} must be at least {least}, got {number}")
    return number


def _verify(run: str, given: Mapping[str, Any], _: Jobs) -> tuple[list[str], str]:
    fresh = _whole(given, "fresh", 500, 1)
    python = f"from echobound import verify\n\noutcome = verify({run!r}, fresh={fresh})\nprint(outcome['statement'])"
    return ["verify", run, "--fresh", str(fresh)], python


def _audit(run: str, given: Mapping[str, Any], _: Jobs) -> tuple[list[str], str]:
    arguments, keywords = ["audit", run], dict[str, Any]()
    if given.get("everything") is True:
        arguments.append("--all")
        keywords["everything"] = True
    else:
        keywords["sample"] = _whole(given, "sample", 20)
        arguments += ["--sample", str(keywords["sample"])]
    called = call("audit", keywords).replace("audit(", f"audit({run!r}, ", 1)
    return arguments, f"from echobound import audit\n\noutcome = {called}\nprint(outcome.statement)"


def _generalise(run: str, given: Mapping[str, Any], jobs: Jobs) -> tuple[list[str], str]:
    files, criterion = names_in(given, "files"), text_in(given, "criterion")
    for name in files:
        jobs.space.file(name)
    columns = jobs.columns_of(jobs.space.name_of(run)) if files else {}
    arguments = ["generalise", run, *(as_file(name) for name in files), *typed_options(ReadingOptions, columns)]
    arguments += ["--criterion", criterion] if criterion else []
    asked = f", criterion={criterion!r}" if criterion else ""
    if files:
        lines = [
            "from echobound import RunFolder, generalise, read_records",
            "",
            *read_like(run, columns),
            f"test = read_records({list(files)!r}, **columns)",
            f"second = generalise({run!r}, test{asked})",
        ]
    else:
        lines = ["from echobound import generalise", "", f"second = generalise({run!r}{asked})"]
    return arguments, "\n".join([*lines, "print(second.statements)"])


def _export(run: str, given: Mapping[str, Any], jobs: Jobs) -> tuple[list[str], str]:
    target = get_target(str(given.get("to") or "fmu"))
    name = jobs.space.name_of(run).rpartition("/")[2]
    output = f"{run}/{EXPORTS}/{name}-{target.name}" if target.folder else f"{run}/{EXPORTS}/{name}{target.suffix}"
    arguments = ["export", run, "--to", target.name, "--output", output]
    check = given.get("check") is True
    python = [
        "from echobound import RunFolder",
        "from echobound.export import export_model",
        "",
        f"folder = RunFolder({run!r})",
        f"exported = export_model(folder.model, {output!r}, {target.name!r}, certificate=folder.certificate)",
        *(["print(exported.check().largest_difference)"] if check else ["print(exported.files)"]),
    ]
    return [*arguments, *(["--check"] if check else [])], "\n".join(python)


ACTIONS: dict[str, Action] = {
    "verify": Action(
        "Draw fresh networks",
        (
            "Fresh networks come from a stream of their own, so that none is among those of the search. They test the"
            " certificate and do not change it: about a share epsilon of them may do better than the pick.",
            "A second time adds to the first. The pick stays as it is, also if a fresh network does better: to take"
            " that one instead would be a choice that the certificate does not cover.",
        ),
        _verify,
    ),
    "audit": Action(
        "Audit",
        (
            "Everything is derived again, as somebody else would: digests, law, every bound, and networks trained again"
            " by their numbers. Nothing in the folder is changed, and the certificate stays as it is.",
        ),
        _audit,
    ),
    "generalise": Action(
        "Open test data",
        (
            "Test data can be opened once. They give a second certificate, about the models on new data; the first one"
            " is about further draws on the validation data and stays as it is.",
            "From then on these data are no test data any more: whatever you choose after this look, by what it shows,"
            " is not covered by the second certificate.",
        ),
        _generalise,
    ),
    "export": Action(
        "Export",
        (
            "The model that is delivered is written in another language, with the digest and the statement of its"
            " certificate. The certificate stays as it is; whether it speaks of the delivered model or of the picked"
            " network beside it, its own sentence says.",
        ),
        _export,
        choices=tuple((target.name, target.title) for target in TARGETS.values()),
    ),
}


def order_of(kind: str, run: str, given: Mapping[str, Any], jobs: Jobs) -> tuple[list[str], str]:
    """Arguments and Python of an action on a run, after looking the run up."""
    if kind not in ACTIONS:
        raise InputError(f"unknown action {kind!r:.40}: known are {', '.join(ACTIONS)}")
    path = jobs.space.run(run)
    if not (path / "certificate.json").exists():
        raise InputError(f"{run} is not finished: wait for its certificate")
    arguments, python = ACTIONS[kind].order(jobs.space.typed(run), given, jobs)
    return [*arguments, "--json"], python
