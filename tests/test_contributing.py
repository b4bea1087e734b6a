"""CONTRIBUTING's table "To add ...": each recipe is followed here, and what was added is found where the table says."""

import json
import re
from concurrent.futures import Future
from dataclasses import dataclass, make_dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

import jsonschema
import numpy as np
import pytest
from second_model_class import TapsLaw
from test_cli import echobound
from typer.testing import CliRunner

from echobound import (
    Plan,
    Record,
    ReservoirLaw,
    RunFolder,
    Score,
    audit,
    identify,
    ph_experiment,
    read_csv,
    register_score,
    scores,
    verify,
)
from echobound.campaign.engines import Engine
from echobound.campaign.engines.base import evaluate
from echobound.cli.main import app
from echobound.cli.options import Options, with_options
from echobound.data import formats
from echobound.estimators.parameters import plan_defaults
from echobound.kernels.reference import ReferenceKernel
from echobound.network.training import LeastSquares, Trained, Trainer
from echobound.network.training import base as training
from echobound.plan import PlanSettings, setting
from echobound.report import page, sections
from echobound.scenario import Statement, schema, stopping
from echobound.scenario.ordering import ranking
from echobound.scenario.statements import registry
from echobound.scenario.statements.base import ScoreStatement
from echobound.scenario.stopping import StoppingRule

TABLE = Path(__file__).parents[1] / "CONTRIBUTING.md"
SMALL = {"law": "paper", "order": 6, "networks": 15, "beta": 1e-2, "washout": 30, "committee": 2}


@pytest.fixture(scope="module")
def data():
    return ph_experiment(samples=(200, 160))


def page_of(run):
    return (Path(run) / "report.html").read_text(encoding="utf-8")


def test_every_row_of_the_table_has_a_test():
    text = TABLE.read_text().split("## To add ...")[1]
    rows = re.findall(r"^\| ([a-z ]+?) \| ", text, flags=re.MULTILINE)[1:]
    tests = {name for name in globals() if name.startswith("test_a_")}
    assert {f"test_a_{row.replace(' ', '_')}" for row in rows} == tests


def test_a_score(data, tmp_path, monkeypatch):
    monkeypatch.setattr(scores, "_REGISTRY", dict(scores._REGISTRY))
    register_score(Score("drift", lambda y, yhat: abs((y - yhat).mean()), "min", "pH"))
    run = identify(*data, **SMALL, scores=("drift", "fit"), run=tmp_path / "run").run
    folder = RunFolder(run)
    assert folder.plan.scores[0] == folder.certificate.score == "drift"
    assert "a drift below" in folder.certificate.statement
    assert "DRIFT (pH)" in page_of(run)


def test_a_law(data, tmp_path):
    law = ReservoirLaw(order=5, leak=0.4, name="slow")
    run = identify(*data, **{**SMALL, "law": law, "order": None}, run=tmp_path / "run").run
    folder = RunFolder(run)
    assert folder.plan.law == (law,)
    assert folder.certificate.law["name"] == folder.network.origin["law"]["name"] == "slow"
    assert "law slow" in page_of(run)


def test_a_trainer(data, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "_known", dict(training._known))

    @training.register_trainer
    @dataclass(frozen=True)
    class Shrunken(Trainer):
        """Least squares, the readout shrunk by a factor."""

        kind: ClassVar[str] = "shrunken"
        factor: float = 0.9

        def train(self, draw, data, tools):
            [best] = LeastSquares().train(draw, data, tools)
            return [Trained(self.factor, self.factor * best.readout)]

    law = ReservoirLaw(order=6, training="shrunken")
    run = identify(*data, **{**SMALL, "law": law, "order": None}, run=tmp_path / "run").run
    plain = identify(*data, **SMALL)
    folder = RunFolder(run)
    stored = {"kind": "shrunken", "factor": 0.9}
    assert json.loads((run / "plan.json").read_text())["law"]["training"] == stored
    assert folder.certificate.law["training"] == folder.network.origin["law"]["training"] == stored
    assert (folder.search["scores"] != plain.table["scores"]).all()
    assert (folder.search["ridge"] == 0.9).all()
    assert audit(run, sample=3, seed=1).passed


def test_a_setting():
    extended = make_dataclass(
        "Extended", [("sparkle", int, setting(3, "How much it sparkles."))], bases=(Plan,), frozen=True, kw_only=True
    )
    given = []

    def command(plan: Plan) -> None:
        given.append(plan)

    command.__annotations__["plan"] = Annotated[extended, Options("The plan")]
    made = with_options(command)
    parameters = made.__signature__.parameters
    assert parameters["sparkle"].default == 3
    made(**{name: parameter.default for name, parameter in parameters.items()} | {"sparkle": 5, "order": "10,20"})
    assert (given[0].sparkle, given[0].order, given[0].law) == (5, (10, 20), None)
    # Everything that is made from the fields of Plan finds all of them: nothing lists them again.
    listed = {name for name in parameters if name != "sparkle"}
    assert listed == {name for name, field in Plan.__dataclass_fields__.items() if field.metadata}
    assert set(plan_defaults()) == set(Plan.__dataclass_fields__) == set(PlanSettings.__annotations__)


def test_a_statement(data, tmp_path, monkeypatch):
    monkeypatch.setattr(Statement, "kinds", dict(Statement.kinds))

    @dataclass(frozen=True, kw_only=True)
    class Third(ScoreStatement):
        """The third best, named."""

        kind = "third"
        title = "third place"
        derived = ("behind",)

        networks: int
        best: float
        third: float

        @property
        def behind(self) -> float:
            """By how much it is behind."""
            return self.best - self.third

        @property
        def words(self):
            return f"The third best network is {self.behind:.6g} behind the best."

        @classmethod
        def of_search(cls, search):
            places = ranking(search.first, search.direction, 3)
            best, third = search.first[places[0]], search.first[places[2]]
            scoring = search.scoring
            return cls(beta=search.beta, networks=len(search.table), best=float(best), third=float(third), **scoring)

        @classmethod
        def claims(cls, search):
            return ranking(search.first, search.direction, 3)

    monkeypatch.setattr(registry, "OF_SEARCH", (*registry.OF_SEARCH, Third))
    run = identify(*data, **{**SMALL, "committee": 1}, run=tmp_path / "run").run
    folder = RunFolder(run)
    [third] = [one for one in folder.certificate.statements if one.kind == "third"]
    assert third.behind > 0
    jsonschema.validate(json.loads((run / "certificate.json").read_text()), schema())
    assert "third" in json.dumps(schema())
    assert third.words in page_of(run)
    assert registry.title_of("third") == "third place"
    outcome = audit(run, sample=0, seed=1)
    assert outcome.passed
    assert outcome.claimed == 4, "the three best and the worst"
    # Its numbers are derived again: one that was changed is found.
    content = json.loads((run / "certificate.json").read_text())
    content["statements"][-1]["third"] += 1
    (run / "certificate.json").write_text(json.dumps(content))
    assert not audit(run, sample=0, seed=1).passed


def test_a_stopping_rule(data, tmp_path, monkeypatch):
    monkeypatch.setattr(Statement, "kinds", dict(Statement.kinds))

    @dataclass(frozen=True, kw_only=True)
    class Twice(StoppingRule):
        """Spend half of beta at each of two looks."""

        kind = "twice"
        takes = (2, 2)
        example = "twice:20,40"

        first: int
        second: int

        def epsilon(self, networks):
            passed = [n for n in (self.first, self.second) if n <= networks]
            return 1 - (self.beta / 2) ** (1 / passed[-1]) if passed else 1.0

        @property
        def words(self):
            return f"Look at {self.first} and at {self.second} networks."

    monkeypatch.setattr(stopping, "RULES", (*stopping.RULES, Twice))
    settings = {**SMALL, "networks": None, "epsilon": 0.5, "stop": "twice:12,24"}
    run = identify(*data, **settings, run=tmp_path / "run").run
    folder = RunFolder(run)
    assert folder.plan.rule == folder.certificate.rule == "twice"
    assert folder.certificate.networks == 12
    assert folder.certificate.epsilon_exact == 1 - 0.005 ** (1 / 12)
    assert "by the rule 'twice'" in page_of(run).replace("&#39;", "'")


@pytest.mark.parametrize("blocks", [0, 3])
def test_a_kind_of_candidates(data, tmp_path, blocks):
    """A second class of models, in one file: finite impulse responses with random delays."""
    settings = {**SMALL, "law": "taps", "order": None, "blocks": blocks}
    result = identify(data[0], run=tmp_path / "run", **settings)
    folder = RunFolder(tmp_path / "run")
    assert folder.plan.law == (TapsLaw(),)
    assert folder.certificate.law == {"kind": "taps", "taps": 5, "longest": 40}
    assert folder.certificate.threshold == result.table["scores"][:, 0].max()
    assert folder.model.digest == result.model.digest
    assert folder.committee.members[0].delays.tolist() == result.network.delays.tolist()
    assert result.scores["validation"]["fit"] == pytest.approx(folder.certificate.threshold)
    assert verify(tmp_path / "run", fresh=20)["fresh"] == 20
    outcome = audit(tmp_path / "run", sample=5, seed=1)
    assert outcome.passed, outcome.findings
    assert folder.certificate.statement in page_of(tmp_path / "run")
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "run")])
    assert "network" in shown.output
    # Elsewhere its class has to be imported first, and that is what is said.
    elsewhere = echobound("show", "run", cwd=tmp_path, code=2)
    assert "the kind of law 'taps' is not known here: import the module that registers it first" in elsewhere.stderr


def test_a_kernel(data, tmp_path):
    class Own(ReferenceKernel):
        name = "own"

    result = identify(*data, **SMALL, kernel=Own(), run=tmp_path / "run")
    assert result.certificate.provenance["kernel"] == "own"
    assert (result.table["scores"] == identify(*data, **SMALL, kernel="reference").table["scores"]).all()


class Inline(Engine):
    """Everything at once, here."""

    name = "inline"
    workers = 1

    def start(self, candidates):
        self.candidates = candidates

    def submit(self, indices):
        future = Future()
        future.set_result(evaluate(self.candidates, indices))
        return future


def test_a_engine(data):
    result = identify(*data, **SMALL, engine=Inline())
    assert result.certificate.provenance["ran"][0]["engine"] == "inline"
    assert result.certificate == identify(*data, **SMALL).certificate


def test_a_file_format(tmp_path, monkeypatch):
    """Text whose first line is a signature."""

    def read_signed(path):
        (tmp_path / "bare.csv").write_bytes(path.read_bytes().split(b"\n", 1)[1])
        return formats.read_text(tmp_path / "bare.csv")

    monkeypatch.setitem(formats._SIGNATURES, b"SIGNED", "signed text")
    monkeypatch.setitem(formats.READERS, "signed text", read_signed)
    (tmp_path / "data.signed").write_text("SIGNED\nu,y\n1,2\n3,4\n5,6\n")
    record = read_csv(tmp_path / "data.signed", "u", "y")
    assert record.u[:, 0].tolist() == [1, 3, 5]


def test_a_plant():
    def simulate(samples, seed=0):
        u = np.sin(0.3 * np.arange(samples) + seed)
        return Record(u=u, y=np.convolve(np.tanh(u), [0.0, 0.4, 0.3])[:samples], name="tanh filter")

    result = identify(simulate(200), simulate(150, seed=1), **SMALL)
    assert result.certificate.threshold > 50


def test_a_section_of_the_page(data, tmp_path, monkeypatch):
    from jinja2 import ChoiceLoader, DictLoader

    def greeting(run):
        return sections.Section("greeting", "Hello", {"name": run.name})

    monkeypatch.setattr(sections, "SECTIONS", (*sections.SECTIONS, greeting))
    monkeypatch.setattr(page, "SECTIONS", (*page.SECTIONS, greeting), raising=False)
    environment = page._environment()
    monkeypatch.setattr(
        environment,
        "loader",
        ChoiceLoader([environment.loader, DictLoader({"greeting.html": "<p>Hi {{ content.name }}</p>"})]),
    )
    run = identify(*data, **SMALL, run=tmp_path / "mine").run
    assert "<p>Hi mine</p>" in page_of(run)
    assert '<a href="#greeting">Hello</a>' in page_of(run)


def test_a_target(data, tmp_path, monkeypatch):
    from echobound.export import TARGETS, Target

    class Table(Target):
        name, title, suffix = "table", "the equations as text", ".txt"

        def make(self, job, path):
            return {path: "\n".join(job.card.lines).encode()}

        def run(self, job, path, u, initial):
            return job.stepper.run(u, initial)

    monkeypatch.setitem(TARGETS, "table", Table())
    model = identify(*data, **SMALL).model
    model.save(tmp_path / "m.npz")
    arguments = ["export", str(tmp_path / "m.npz"), "--to", "table", "--output", str(tmp_path / "m.txt"), "--check"]
    assert "largest difference" in CliRunner().invoke(app, arguments).output
    assert model.digest in (tmp_path / "m.txt").read_text()


def test_a_command(monkeypatch):
    import typer

    def hello(name: str = "you") -> None:
        """Say hello."""
        typer.echo(f"hello {name}")

    before = list(app.registered_commands)
    app.command()(with_options(hello))
    try:
        assert "hello" in CliRunner().invoke(app, ["--help"]).output
        assert CliRunner().invoke(app, ["hello", "--name", "plant"]).output == "hello plant\n"
    finally:
        app.registered_commands[:] = before


def test_plans_without_new_settings_keep_their_digest(data):
    """A setting that came later is left out of plan.json at its default."""
    from echobound.plan import settle_validation

    plan = Plan(**{**SMALL, "order": 6}).settle(settle_validation(*data, washout=30))
    content = plan.to_dict()
    assert not {"numbering", "renewal", "criterion", "target"} & set(content)
    assert replace(plan, target=None).digest == plan.digest
