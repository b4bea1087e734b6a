import dataclasses

import pytest

from echobound.errors import InputError
from echobound.kernels import Fold, Segment
from echobound.network import broad
from echobound.plan import SettledPlan, settle_networks
from echobound.scenario import Patience


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
    """Run folders that exist must go on being readable."""
    assert a_plan().digest == "65bc4a4352b9dc17ac86a6dcf124d0815a978b695a3d3040ba63a15e68f323bc"
    assert a_plan(discarded=1).digest != a_plan(stop=Patience(beta=1e-7, draws=200)).digest != a_plan().digest
