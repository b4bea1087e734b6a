"""What all statements share: JSON and back, everything derived again, nothing that does not follow."""

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from echobound.errors import DamagedFile, InputError
from echobound.scenario import (
    Anytime,
    Between,
    BothEnds,
    ConformalBand,
    CoverageBand,
    DistributionBand,
    ErrorLimit,
    ExpectedGain,
    FailureRate,
    Families,
    Gain,
    JointScores,
    Looks,
    Mixture,
    Optimism,
    OuterRank,
    Patience,
    QuantileInterval,
    RankBand,
    Removal,
    Renewal,
    Statement,
    Stopped,
    StoppingRule,
)
from echobound.scenario.ordering import ordered
from echobound.typed import require_equal, written

SCORES = np.random.default_rng(0).normal(85, 3, size=120)
SCORES[[3, 50]] = np.nan
RMSE = np.exp(-SCORES / 50)
EPISODES = np.random.default_rng(1).random(40)
ERRORS = [np.random.default_rng(i).normal(size=(30, 2)) for i in range(40)]
FIT = {"score": "fit", "unit": "%"}
PATH = "certificate.json"

# How each statement is made; called again, it must give the same.
MAKERS = [
    lambda: Removal.of(SCORES, discarded=3, beta=1e-3, **FIT),
    lambda: Removal.of(RMSE, discarded=4, beta=1e-3, case="worst", score="rmse", direction="min"),
    lambda: RankBand.of(SCORES, beta=0.05, ranks=10, **FIT),
    lambda: RankBand.of(RMSE, beta=0.05, ranks=3, case="worst", direction="min"),
    lambda: DistributionBand.of(SCORES, beta=0.05, **FIT),
    lambda: BothEnds.of(SCORES[4:50], beta=0.05, **FIT),
    lambda: QuantileInterval.of(SCORES, level=0.5, beta=0.05, **FIT),
    lambda: Stopped.of(SCORES, Patience(beta=0.05, draws=20), **FIT),
    lambda: Stopped.of(SCORES, Anytime(beta=0.05, first=50), 101, **FIT),
    lambda: Stopped.of(RMSE, Mixture(beta=0.05), direction="min"),
    lambda: Stopped.of(SCORES, Between(beta=0.05, first=10, last=500), **FIT),
    lambda: Stopped.of(SCORES, Looks(beta=0.05, looks=(50, 100)), 100, **FIT),
    lambda: Families.of({"10": SCORES, "20": SCORES[:70]}, beta=0.05, **FIT),
    lambda: JointScores.of({"fit": SCORES, "rmse": RMSE}, beta=0.05, directions=("max", "min")),
    lambda: Gain.of(SCORES, **FIT),
    lambda: OuterRank.of(SCORES, 88.0, beta=0.05, blocks=5, **FIT),
    lambda: ExpectedGain.of(SCORES, beta=0.05, further=12, **FIT),
    lambda: FailureRate.of(EPISODES > 0.9, beta=0.05),
    lambda: ErrorLimit.of(EPISODES, beta=0.05, discarded=2, mixing=1e-3),
    lambda: ConformalBand.of(ERRORS, beta=0.1, names=("a", "b"), scales=[1.0, 2.0]),
    lambda: CoverageBand.of(ERRORS, beta=0.1, names=("a", "b"), scales=[1.0, 2.0]),
    lambda: CoverageBand.of(ERRORS, beta=0.1, window=2, discarded=1),
    lambda: Optimism.of(90.0, 88.0, **FIT),
    lambda: Renewal.of(SCORES, networks=120, beta=0.05, updates=3, depends_on_model=False, **FIT),
]
STATEMENTS = [(make(), make) for make in MAKERS]
IDS = [f"{number} {statement.kind}" for number, (statement, _) in enumerate(STATEMENTS)]
LABELS = ("score", "unit", "names")  # whoever stores a statement seals them, as a certificate's digest does


def changed(value):
    """Another value of the same type, and one of another type."""
    if isinstance(value, bool):
        return [not value, 1]
    if isinstance(value, list):
        return [[*value, *value], value[:-1], "list"]
    if isinstance(value, dict):
        return [{**value, "beta": 0.25}, "object"]
    if isinstance(value, str):
        return [value + "x", 3]
    if value is None:
        return [0.5]
    return [value * 1.0000001 + (1 if isinstance(value, int) else 1e-9), None, "1", True]


@pytest.mark.parametrize(("statement", "make"), STATEMENTS, ids=IDS)
class TestEveryStatement:
    def test_json_and_back(self, statement, make):
        stored = json.loads(json.dumps(statement.to_dict(), allow_nan=False))
        assert Statement.from_dict(stored) == statement
        assert stored["kind"] == statement.kind
        # Fields that came later are written where they are not at their default.
        assert set(stored) == {"kind", "words", *written(statement), *statement.derived}

    def test_of_committees(self, statement, make):
        """The same numbers, in the words of what was drawn; the number of members is stored."""
        ours = replace(statement, members=10)
        stored = json.loads(json.dumps(ours.to_dict(), allow_nan=False))
        assert (Statement.from_dict(stored), stored["members"]) == (ours, 10)
        assert {**stored, "members": 1, "words": ""} == {**statement.to_dict(), "members": 1, "words": ""}
        single = ours.words.replace("committee of 10 networks", "committee")
        assert "network" not in single
        assert single.count("ommittee") == statement.words.count("etwork")
        with pytest.raises(DamagedFile):
            Statement.from_dict({**stored, "members": 1})
        if ours.words != statement.words:
            with pytest.raises(DamagedFile):
                Statement.from_dict({**statement.to_dict(), "members": 10})

    def test_words(self, statement, make):
        words = statement.words
        assert words[0].isupper() or words[0].isdigit()
        assert words.endswith(".")
        assert not any(bad in words for bad in ("None", "nan", "inf ", "  ", "[", "Decimal"))

    def test_derived_again_from_its_data(self, statement, make):
        require_equal(make().to_dict(), statement.to_dict(), PATH)

    def test_what_does_not_follow_is_refused(self, statement, make):
        """Whatever entry is changed, either the file is refused, or the data tell; not so with mere names."""
        stored = statement.to_dict()
        for name in stored:
            for value in [0.3, None, "0.05"] if name == "beta" else changed(stored[name]):
                try:
                    again = Statement.from_dict({**stored, name: value})
                    require_equal(make().to_dict(), again.to_dict(), PATH)
                except DamagedFile:
                    continue
                assert name in LABELS, f"{name} = {value!r} went unnoticed"
                assert isinstance(value, str | list)

    def test_a_changed_number_with_everything_that_follows_from_it_is_told_by_the_data(self, statement, make):
        for f in fields(statement):
            value = getattr(statement, f.name)
            if isinstance(value, float) and f.name in ("threshold", "limit", "tail", "last_decade", "mean", "lower"):
                forged = type(statement)(**{**vars_of(statement), f.name: value * 1.01})
                again = Statement.from_dict(forged.to_dict())
                with pytest.raises(DamagedFile, match=f.name):
                    require_equal(make().to_dict(), again.to_dict(), PATH)

    def test_the_schema_of_its_kind_takes_it_and_nothing_else(self, statement, make):
        validator = Draft202012Validator(type(statement).json_schema())
        stored = json.loads(json.dumps(statement.to_dict()))
        validator.validate(stored)
        for name in stored:
            assert not validator.is_valid({k: v for k, v in stored.items() if k != name})
        assert not validator.is_valid({**stored, "more": 1})
        assert not validator.is_valid({**stored, "kind": "nothing"})

    def test_missing_and_unknown_entries(self, statement, make):
        stored = statement.to_dict()
        for name in stored:
            with pytest.raises(DamagedFile, match="missing" if name != "kind" else "kind"):
                Statement.from_dict({k: v for k, v in stored.items() if k != name})
        with pytest.raises(DamagedFile, match=r"more.*unknown"):
            Statement.from_dict({**stored, "more": 1})


def vars_of(statement):
    return {f.name: getattr(statement, f.name) for f in fields(statement)}


def test_a_nested_statement_is_refused_with_what_it_is_nested_in():
    stored = Patience(beta=0.05, draws=20).to_dict()
    assert StoppingRule.from_json(stored) == Patience(beta=0.05, draws=20)
    for change in ({"draws": 0}, {"draws": "20"}, {"mean": 3.0}, {"kind": "removal"}, {"more": 1}):
        with pytest.raises(InputError):
            StoppingRule.from_json({**stored, **change})
        with pytest.raises(DamagedFile, match=r"plan\.json"):
            StoppingRule.from_json({**stored, **change}, "plan.json")


@pytest.mark.parametrize("kind", [None, "nothing", 3, ["removal"], "__init__"])
def test_unknown_kinds(kind):
    with pytest.raises(DamagedFile, match="kind"):
        Statement.from_dict({"kind": kind})


def test_every_kind_is_tested():
    kinds = {cls.kind for cls in Statement.kinds.values()}
    nested = {statement.rule.kind for statement, _ in STATEMENTS if isinstance(statement, Stopped)}
    assert kinds == {statement.kind for statement, _ in STATEMENTS} | nested


def test_order_of_networks():
    scores = [1.0, math.nan, 3.0, 3.0, None, 2.0]
    assert ordered(scores) == ([2, 3, 5, 0, 1, 4], [3.0, 3.0, 2.0, 1.0, None, None])
    assert ordered(scores, "min") == ([0, 5, 2, 3, 1, 4], [1.0, 2.0, 3.0, 3.0, None, None])
    assert ordered(scores, "max", "worst") == ([1, 4, 0, 5, 2, 3], [None, None, 1.0, 2.0, 3.0, 3.0])
    for bad in ([], [[1.0]], 1.0):
        with pytest.raises(InputError, match="one score for each network"):
            ordered(bad)
    with pytest.raises(InputError, match="case"):
        ordered([1.0], "max", "middle")


def test_bad_settings():
    for beta in (0.0, 1.0, math.nan, -1, "x"):
        with pytest.raises(InputError, match="beta"):
            Removal.of(SCORES, discarded=0, beta=beta)
    with pytest.raises(InputError, match="direction"):
        BothEnds.of(SCORES, beta=0.1, direction="up")
    with pytest.raises(TypeError, match="sore"):
        BothEnds.of(SCORES, beta=0.1, sore="fit")
