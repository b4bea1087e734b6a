"""`identify` and `demo`: from data to a certified model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer

import echobound
from echobound.cli.computing import ComputingOptions
from echobound.cli.inspect import look_at, print_inspection
from echobound.cli.options import Options
from echobound.cli.reading import Columns, Reading, TestFiles, ValidationFiles
from echobound.cli.show import assessment_facts, model_facts, print_result
from echobound.cli.terminal import AsJson, Quiet, print_json, progress, words
from echobound.data import Record
from echobound.errors import InputError
from echobound.identification import Identification
from echobound.network import PlantModel
from echobound.plan import Plan
from echobound.plants import ph_experiment
from echobound.runs.holding import ended
from echobound.scenario.words import noun

PANEL, DRAWN = "What is scored and certified", "What is drawn"
PANELS = dict.fromkeys(("law", "order", "trainer", "quick", "members", "committee", "seed"), DRAWN)
RunDir = Annotated[Path | None, typer.Option("--run", help="Run folder; a new one under runs/ if not given.")]
DEMO = Options(
    PANEL,
    base=Plan(law="paper", order=200, bound="explicit"),
    only=("order", "networks", "seed"),
    help={"order": "Number of states of each network.", "networks": "Number of networks; 645 by the paper's bound."},
)


def demo(
    plan: Annotated[Plan, DEMO],
    computing: ComputingOptions,
    run: RunDir = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Identify the built-in pH plant, with a certificate, a saved model and a page: the whole method in a minute.

    The data and the settings are those of the paper: 5000 training and 3000 validation samples with noise of
    0.05 pH, networks of 200 states, epsilon = 0.05 and beta = 1e-7, hence 645 networks by the explicit bound.
    """
    training, validation = ph_experiment()
    folder = new_folder("demo") if run is None else run
    with progress(noun(plan.members).many, quiet) as show:
        result = echobound.identify(training, validation, plan=plan, computing=computing, run=folder, on_progress=show)
    finish(result, as_json, [f"data: pH plant, {len(training)} training and {len(validation)} validation samples"])


def identify(
    data: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="CSV, Parquet, .mat, NPZ or Excel; several are several experiments."),
    ],
    reading: Columns,
    plan: Annotated[Plan, Options(PANEL, panels=PANELS)],
    computing: ComputingOptions,
    validation: ValidationFiles = None,
    test: TestFiles = None,
    run: RunDir = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Identify a system from files of its inputs and outputs, and certify the result.

    Only the columns have to be given; without them the first file is shown, as `inspect` does, with the command to
    type. Everything else is chosen by the data, and the output says what was chosen and why: short data are validated
    in blocks, and the end of long data is held out. The run folder holds the plan, the data, the scores of every
    network, the model, the certificate and a page. The same command resumes an interrupted run.
    """
    # Pieces between gaps that are shorter than the washout are useless; whole files may be as short as the data allow.
    if not reading.inputs or not reading.outputs:
        _show_columns(data[0], reading, as_json)
    shortest = plan.washout + 1 if plan.washout is not None else 101 if "split" in reading.missing else 2
    roles = reading.read_roles(data, shortest)
    training = roles["training"]
    picking, testing = (
        _of_role(roles, role, words(files), replace(reading, rows=None), shortest)
        for role, files in (("validation", validation), ("test", test))
    )
    with progress(noun(plan.members).many, quiet) as show:
        result = echobound.identify(
            training,
            picking,
            test=testing or (),
            plan=plan,
            computing=computing,
            run=Path("runs") / f"{Path(data[0]).stem}-{{plan}}" if run is None else run,
            on_progress=show,
        )
    finish(result, as_json, [*result.chosen, *reading.notes(training, data), *_defaults(plan)])


def _show_columns(file: str, reading: Reading, as_json: bool) -> NoReturn:
    """Show what is in a file instead of identifying from it, since nobody said which columns to use."""
    found = look_at(file, reading)
    if as_json:
        print_json(found.to_dict())
    else:
        print_inspection(found)
    missing = " and ".join(f"--{side}" for side in ("inputs", "outputs") if not getattr(reading, side))
    raise InputError(f"say which columns are meant with {missing}: the command above has a guess to start from")


def _of_role(
    roles: dict[str, list[Record]], role: str, files: list[str], reading: Reading, shortest: int
) -> list[Record] | None:
    """The records of a role, from files of their own or from rows of the one file."""
    if files and role in roles:
        raise InputError(f"--{role} and --rows {role}=... were both given: leave out one of them")
    return reading.read(files, shortest) if files else roles.get(role)


_LAWS = {
    "mixed": "law: mixed, which draws networks of several kinds, each with its hyper-parameters from a wide range",
    "quick": "law: quick, which draws large networks with and without feedback; the default takes longer, for better"
    " models",
    "broad": "law: broad, which draws every hyper-parameter that is not given from a wide range",
}


def _defaults(plan: Plan) -> list[str]:
    """What the defaults of a plan mean, a sentence each."""
    notes = []
    if plan.law is None:
        notes.append(
            _LAWS["quick" if plan.quick else "mixed" if plan.order is None and plan.trainer is None else "broad"]
        )
    if plan.epsilon is None and plan.networks is None:
        rule = plan.stop or ("anytime" if plan.target is not None else None)
        when = "settled before the first draw" if rule is None else f"by the rule {rule}"
        least = "at least " if plan.target is not None or str(rule).startswith("patience") else ""
        notes.append(
            f"{noun(plan.members).many}: {least}as many as certify epsilon = 0.05 at beta = {plan.beta:g}, {when}"
        )
    return notes


def finish(result: Identification, as_json: bool, chosen: Sequence[str]) -> None:
    """Print what came out; exit with code 1 if all networks diverged."""
    second, search = result.generalisation, result.certificate.provenance.get("search")
    facts = {"network": None, "committee": None, **model_facts(result)}
    for name, scores in (("network", result.network_scores), ("committee", result.committee_scores)):
        if facts[name] is not None:
            beside = "committee" if name == "committee" and result.network is not None else "model"
            limit = None if second is None else second.limit(beside)
            facts[name] |= {"scores": scores, "episodes": None if limit is None else limit.to_dict()}
    content = {
        **assessment_facts(result.assessment),
        "run": str(result.run),
        "chosen": list(chosen),
        "certificate": result.certificate.to_dict(),
        "search": None if search is None else {name: value for name, value in search.items() if name != "data"},
        "ended": ended(result.table),
        "stability": result.network.stability.to_dict() if isinstance(result.network, PlantModel) else None,
        "optimism": None if result.optimism is None else result.optimism.to_dict(),
        "episodes": None if result.episodes is None else result.episodes.to_dict(),
        "generalisation": None if second is None else second.to_dict(),
        **facts,
    }
    if as_json:
        print_json(content)
    else:
        print_result(content, result.table["scores"][:, 0])
    if result.model is None:
        raise typer.Exit(1)


def new_folder(name: str) -> Path:
    """The first of runs/name-1, runs/name-2, ... that does not exist yet."""
    number = 1
    while (path := Path("runs") / f"{name}-{number}").exists():
        number += 1
    return path
