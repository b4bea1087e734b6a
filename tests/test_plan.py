import dataclasses
import json
from typing import get_type_hints

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from echobound.campaign import Computing, ComputingSettings
from echobound.errors import InputError
from echobound.identify import identify
from echobound.kernels import Fold, Segment
from echobound.network import broad, paper
from echobound.plan import Plan, PlanSettings, RenewalStep, SettledPlan, settle_networks, settle_validation
from echobound.plants import ph_experiment
from echobound.scenario import Anytime, Patience
from echobound.scores import Score


def a_plan(**change):
    values = {
        "law": (broad(),),
        "seed": 3,
        "scores": ("fit", "rmse"),
        "folds": (Fold((Segment(0, 0, 500, 100),), (Segment(1, 0, 300, 100),)),),
        "horizon": None,
        "networks": 315,
        "epsilon": 0.05,
        "beta": 1e-7,
        "bound": "exact",
        "stop": None,
        "washout": 100,
        "committee": 10,
        "data": "abc",
    }
    return SettledPlan(**(values | change))


def test_round_trip():
    plan = a_plan()
    assert SettledPlan.from_dict(plan.to_dict()) == plan
    assert SettledPlan.from_dict(plan.to_dict()).digest == plan.digest


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 4},
        {"networks": 316},
        {"epsilon": 0.06},
        {"beta": 1e-6},
        {"bound": "explicit"},
        {"data": "abd"},
        {"scores": ("rmse", "fit")},
        {"horizon": 1},
        {"committee": 5},
        {"law": (broad(order=50),)},
        {"folds": (Fold((Segment(0, 0, 500, 99),), (Segment(1, 0, 300, 100),)),)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_field_counts(change):
    assert a_plan(**change).digest != a_plan().digest
    name = next(iter(change))
    tampered = a_plan().to_dict() | {name: a_plan(**change).to_dict()[name]}
    with pytest.raises(InputError, match="digest is not what was planned"):
        SettledPlan.from_dict(tampered)


def test_incomplete_plans_are_refused():
    content = a_plan().to_dict()
    for name in content:
        with pytest.raises(InputError):
            SettledPlan.from_dict({k: v for k, v in content.items() if k != name})
    with pytest.raises(InputError):
        SettledPlan.from_dict(content | {"more": 1})


def test_networks_and_epsilon_follow_from_each_other():
    assert settle_networks(0.05, 1e-7, None) == (315, 0.05)
    assert settle_networks(None, 1e-7, None) == (315, 0.05)
    assert settle_networks(0.05, 1e-7, None, "explicit") == (645, 0.05)
    assert settle_networks(None, 1e-7, 645) == (645, pytest.approx(0.0246796477917, rel=1e-10))
    assert settle_networks(0.05, 1e-7, 400) == (400, 0.05)
    with pytest.raises(InputError, match="315 are needed"):
        settle_networks(0.05, 1e-7, 314)
    with pytest.raises(InputError, match="at least 1"):
        settle_networks(None, 1e-7, 0)
    with pytest.raises(InputError, match="'exact' or 'explicit'"):
        settle_networks(None, 1e-7, 10, "tight")
    for epsilon, beta in ((0.0, 1e-7), (1.0, 1e-7), (0.05, 0.0), (0.05, 1.0), (float("nan"), 0.1), (-1, 0.1), (0.1, 2)):
        with pytest.raises(InputError):
            settle_networks(epsilon, beta, None)


def test_a_plan_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        a_plan().networks = 1


def test_a_plan_without_a_rule_keeps_its_digest():
    """Settings that came later leave it as it is, so that existing run folders stay readable."""
    before_clipping = a_plan(law=(dataclasses.replace(broad(), clip=False),))
    assert before_clipping.digest == "438c8b3818ddaa36e141b05e960fd165a42b8cf3f2ab9a4b5d13ba4a01dac4a6"
    assert a_plan().digest != before_clipping.digest
    assert a_plan(discarded=1).digest != a_plan(stop=Patience(beta=1e-7, draws=200)).digest != a_plan().digest


# A plan is asked for, settled, and can be asked for again -------------------------------------------------------------

RECORDS = ph_experiment(samples=(400, 300, 120, 130))
SETTLED = {
    "the default": {},
    "fixed": {"epsilon": 0.1, "networks": 200},
    "explicit": {"bound": "explicit", "epsilon": 0.1},
    "patience": {"stop": "patience:20", "epsilon": 0.2},
    "patience with a least number": {"stop": "patience:20,400"},
    "anytime": {"stop": "anytime:10", "beta": 1e-2},
    "looks": {"stop": "looks:20,60", "epsilon": 0.2, "beta": 1e-2},
    "mixture": {"stop": "mixture", "epsilon": 0.2, "beta": 1e-2},
    "a target": {"stop": "anytime", "target": 90.0, "epsilon": 0.2},
    "a target alone": {"target": 90.0},
    "families": {"law": "paper", "order": (5, 9)},
    "two laws": {"law": ["paper", "broad"], "networks": 400},
    "numbered families": {"law": "paper", "order": (5, 9), "numbering": (4, 2)},
    "joint": {"joint": True, "scores": ("fit", "rmse", "peak")},
    "set aside": {"discarded": 3},
    "joint, set aside, patience": {"joint": True, "discarded": 2, "stop": "patience:30"},
    "a law of one's own": {"law": dataclasses.replace(paper(7), norm=0.5), "washout": 30},
    "a score of one's own": {"scores": [Score("bias", lambda y, yhat: abs(float((y - yhat).mean())), "min"), "fit"]},
    "prediction": {"horizon": 3, "committee": 0, "seed": 11},
    "a renewal": {"renewal": RenewalStep(plan="abc", update=2, updates=4)},
}
DATA = {
    "hold-out": {"validation": RECORDS[1]},
    "end held out": {"blocks": 0},
    "blocks": {"blocks": 3},
    "left open": {},
    "test data": {"validation": RECORDS[1], "test": RECORDS[2:], "criterion": "fit>50"},
}


def settled(asked, *, validation=None, test=(), **settings):
    """As `identify` settles a plan."""
    plan = dataclasses.replace(asked, **settings)
    return plan.settle(settle_validation(RECORDS[0], validation, test, blocks=plan.blocks, washout=plan.washout))


def again(plan, data):
    return settled(plan.asked(), **{name: value for name, value in data.items() if name in ("validation", "test")})


@pytest.mark.parametrize("kind", SETTLED)
@pytest.mark.parametrize("data", DATA)
def test_a_settled_plan_that_is_asked_for_again_settles_to_itself(kind, data):
    plan = settled(Plan(**SETTLED[kind]), **DATA[data])
    assert again(plan, DATA[data]) == plan
    assert again(plan, DATA[data]).digest == plan.digest


@given(
    epsilon=st.none() | st.floats(0.01, 0.9),
    beta=st.floats(1e-9, 0.5),
    networks=st.none() | st.integers(1, 3000),
    bound=st.sampled_from(["exact", "explicit"]),
    stop=st.sampled_from([None, "patience:7", "anytime:5", "mixture"]),
    discarded=st.integers(0, 4),
    joint=st.booleans(),
    seed=st.integers(0, 2**40),
    committee=st.integers(0, 20),
)
@settings(max_examples=60, deadline=None)
def test_whatever_can_be_settled_settles_to_itself(**asked):
    try:
        plan = settled(Plan(**asked), validation=RECORDS[1])
    except InputError:
        assume(False)
    assert again(plan, {"validation": RECORDS[1]}) == plan
    assert SettledPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


@pytest.mark.parametrize(
    "change",
    [
        {"stop": Patience(beta=1e-7, draws=200)},
        {"stop": Anytime(beta=1e-7, first=10), "target": 90.0},
        {"discarded": 3},
        {"joint": True},
        {"criterion": "fit>80"},
        {"renewal": RenewalStep(plan="abc", update=1, updates=2)},
        {"law": (broad(order=5), broad(order=6))},
        {"law": (broad(order=5), broad(order=6)), "numbering": (3, 1)},
        {"horizon": 5, "committee": 0, "bound": "explicit"},
    ],
    ids=lambda change: ", ".join(change),
)
def test_round_trip_with_every_optional_setting(change):
    plan = a_plan(**change)
    back = SettledPlan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert back == plan
    assert (back.digest, back.families, back.measures) == (plan.digest, plan.families, plan.measures)
    assert set(plan.to_dict()) - {"laws"} >= set(change) - {"law"}


def test_every_field_of_a_plan_is_a_keyword_and_the_other_way_round():
    for kind, keywords in ((Plan, PlanSettings), (Computing, ComputingSettings)):
        hints = get_type_hints(kind)
        assert {field.name: hints[field.name] for field in dataclasses.fields(kind)} == get_type_hints(keywords)


def test_every_setting_has_a_help_text_or_is_for_programs_alone():
    for kind in (Plan, Computing):
        silent = {field.name for field in dataclasses.fields(kind) if not field.metadata.get("help")}
        assert silent <= {"renewal", "numbering"}


@pytest.mark.parametrize(("wrong", "right"), [("ordr", "order"), ("network", "networks"), ("worker", "workers")])
def test_an_unknown_setting_is_refused_and_the_known_ones_are_named(wrong, right):
    with pytest.raises(InputError, match=rf"unknown setting '{wrong}' \(is it '{right}'\?\): known are law, order,"):
        identify(RECORDS[0], **{wrong: 3})


def test_a_plan_that_makes_no_sense_is_refused_when_it_is_made():
    for wrong, match in (
        ({"committee": -1}, "committee"),
        ({"discarded": 40, "networks": 40}, "less than those drawn"),
        ({"scores": ()}, "at least one is needed"),
        ({"joint": True, "scores": ("fit",)}, "the only one"),
        ({"target": float("inf")}, "finite number"),
        ({"criterion": "fit<80"}, "write fit>80"),
    ):
        with pytest.raises(InputError, match=match):
            Plan(**wrong)
    with pytest.raises(InputError, match="as many different numbers"):
        _ = a_plan(numbering=(1, 2)).families
