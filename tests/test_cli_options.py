"""Options are made from the fields of `Plan`, `Computing` and `Reading`: a new field is a new option."""

from dataclasses import dataclass, fields, replace
from typing import Annotated, Literal

import pytest
import typer
from typer.testing import CliRunner

from echobound.campaign import Computing
from echobound.cli.identify import demo
from echobound.cli.main import COMMANDS, app
from echobound.cli.options import Options, with_options
from echobound.cli.reading import Reading
from echobound.errors import InputError
from echobound.plan import Plan
from echobound.plan.plan import setting

NOT_OPTIONS = {"renewal", "numbering"}  # set by `renew` and `reproduce`, not by users


@dataclass(frozen=True, kw_only=True)
class LongerPlan(Plan):
    leak: float = setting(0.5, "Leak rate of every unit.")
    shape: Literal["ring", "grid"] = setting("ring", "How units are connected.", option="topology")
    lags: tuple[int, ...] = setting((), "Delays, separated by commas.", text="numbers")
    bias: bool = setting(False, "Give each unit a bias.")
    internal: int = 3


def called(command, *arguments):
    """What a command was called with, and what was printed."""
    seen = {}

    def record(**given):
        seen.update(given)

    record.__signature__, record.__annotations__ = command, {}
    small = typer.Typer()
    small.command()(with_options(record))
    result = CliRunner().invoke(small, list(arguments), env={"COLUMNS": "200"})
    return seen, result


def signature(**annotations):
    import inspect

    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature([inspect.Parameter(name, kind, annotation=a) for name, a in annotations.items()])


def options_of(name):
    command = typer.main.get_command(app).commands[name]
    return {option: one for one in command.params for option in one.opts}


def test_a_field_that_is_added_is_an_option():
    command = signature(plan=Annotated[LongerPlan, Options("The plan")])
    _, page = called(command, "--help")
    for text in (
        "The plan",
        "--leak",
        "Leak rate of every unit.",
        "0.5",
        "--topology",
        "--lags",
        "--bias",
        "--epsilon",
    ):
        assert text in page.stdout
    for text in ("--shape", "--internal", "--renewal", "--no-bias"):
        assert text not in page.stdout
    seen, result = called(
        command, "--leak", "0.25", "--lags", "1,2,5", "--topology", "grid", "--bias", "--law", "paper,broad"
    )
    assert result.exit_code == 0, result.output
    assert seen["plan"] == LongerPlan(leak=0.25, lags=(1, 2, 5), shape="grid", bias=True, law=("paper", "broad"))
    assert called(command)[0]["plan"] == LongerPlan(), "nothing given is the default"


def test_values_are_checked_by_the_object_and_by_their_type():
    command = signature(plan=Annotated[Plan, Options("The plan")])
    assert isinstance(called(command, "--joint", "--scores", "fit")[1].exception, InputError)
    for arguments in (["--networks", "many"], ["--order", "5,ten"]):
        assert called(command, *arguments)[1].exit_code == 2


def test_a_command_has_its_own_defaults_helps_and_fields():
    base = Plan(law="paper", order=(50, 100), beta=0.01)
    mark = Options("The plan", base=base, only=("order", "beta", "seed"), required=("seed",), help={"seed": "Any."})
    command = signature(plan=Annotated[Plan, mark])
    assert called(command)[1].exit_code == 2, "the seed is required"
    seen, _ = called(command, "--seed", "3")
    assert seen["plan"] == replace(base, seed=3)
    _, page = called(command, "--help")
    assert "50,100" in page.stdout
    assert "Any." in page.stdout
    assert "--epsilon" not in page.stdout


def test_every_setting_of_the_plan_is_an_option_of_identify_with_its_help():
    options = options_of("identify")
    described = {one.name: one.metadata["help"] for one in fields(Plan) if one.metadata}
    assert set(described) == {one.name for one in fields(Plan)} - NOT_OPTIONS
    for name, text in described.items():
        assert options[f"--{name.replace('_', '-')}"].help == text
    for name in ("--law", "--scores"):
        assert options[name].default is None, "the one depends on what else is given, the other on the law"
    assert options["--quick"].default is False
    assert not any(f"--{name}" in options for name in NOT_OPTIONS)


@pytest.mark.parametrize("command", ["demo", "identify", "verify", "renew", "audit", "reproduce"])
def test_every_command_that_computes_says_how(command):
    options = options_of(command)
    for one in fields(Computing):
        option = options["--" + (one.metadata["option"] or one.name)]
        assert (option.help, option.default) == (one.metadata["help"], one.default)
    assert "--device" in options


@pytest.mark.parametrize(
    "command", ["identify", "simulate", "audit", "generalise", "renew", "adapt", "compare", "predict"]
)
def test_every_command_that_reads_files_reads_them_alike(command):
    options = options_of(command)
    for one in fields(Reading):
        assert "--" + one.name.replace("_", "-") in options
    assert options["--inputs"].required is options["--outputs"].required is False, "without them a file is shown"


def test_the_commands_of_the_table_are_those_of_the_overview():
    found = typer.main.get_command(app).commands
    assert list(COMMANDS) == list(found)
    assert found["demo"].callback.__wrapped__.__wrapped__ is demo
    for name, (_, example) in COMMANDS.items():
        assert found[name].epilog == f"Example: echobound {name} {example}".rstrip()


def test_the_help_is_grouped():
    page = CliRunner().invoke(app, ["identify", "--help"], env={"COLUMNS": "80"}).stdout
    places = [page.index(title) for title in ("Data", "What is drawn", "What is scored and certified", "Computing")]
    assert places == sorted(places)
    assert max(map(len, page.splitlines())) <= 80
