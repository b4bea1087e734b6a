"""Laws by name: what they draw, how they depend on the data, and what can be set."""

import dataclasses

import pytest
from scipy.stats import chisquare

from echobound.draws import draw_key
from echobound.errors import InputError
from echobound.network import (
    CascadeLaw,
    FreeRun,
    LogUniform,
    MixedLaw,
    ReservoirLaw,
    Shape,
    broad,
    family_names,
    get_law,
    get_laws,
    mixed,
    network_law_from_dict,
    paper,
    quick,
    small,
    without_feedback,
)
from echobound.plan.laws import settle_laws

NAMES = ["broad", "cascade", "mixed", "paper", "quick", "small", "without feedback"]


def test_looked_up_by_name():
    assert get_law("paper", 33) == paper(33)
    assert get_law(paper(10), 20) == dataclasses.replace(paper(10), order=20)
    assert get_law("broad") == broad() == broad(samples=19_999)
    long = broad(samples=20_000)
    assert get_law("broad", shape=Shape(20_000)) == long
    assert get_law("broad", 50, Shape(20_000)) == dataclasses.replace(long, order=50)
    assert (long.order, long.training.ridges[:2]) == (LogUniform(200, 400), (1e-12, 1e-11))
    assert dataclasses.replace(long, order=broad().order, training=broad().training) == broad()
    assert get_law("paper", 33, Shape(10**6)) == paper(33)
    with pytest.raises(InputError, match=f"known are {', '.join(NAMES)}; or give a ReservoirLaw"):
        get_law("narrow")


@pytest.mark.parametrize("name", NAMES)
def test_they_go_to_json_and_back(name):
    law = get_law(name, shape=Shape(30_000, 2, 3))
    assert network_law_from_dict(law.to_dict()) == law
    assert law.name == name
    kinds = law.laws if isinstance(law, MixedLaw) else (law,)
    assert {kind.clip for kind in kinds} == {name != "paper"}


def test_kinds_of_the_default():
    kinds = {law.name: law for law in mixed().laws}
    assert kinds == {
        "broad": broad(),
        "without feedback": without_feedback(),
        "small": small(),
        "cascade": CascadeLaw(),
    }
    assert [law.name for law in quick().laws] == ["broad", "without feedback"]
    never = kinds["without feedback"].draw(draw_key(1, 0, 0, 3))
    assert (never.feedback_scale, never.output_delays) == (0.0, 0)
    assert all(4 <= small().draw(draw_key(0, 0, 0, index)).order <= 10 for index in range(100))


@pytest.mark.parametrize("shape", [Shape(1000, 1, 1), Shape(1000, 3, 6)])
def test_kinds_are_drawn_as_often_as_their_weights_say(shape):
    law = mixed(shape)
    assert isinstance(law, MixedLaw)
    drawn = [law.component(draw_key(4, 0, 0, index)).name for index in range(2000)]
    expected = [2000 * weight / sum(law.weights) for weight in law.weights]
    assert chisquare([drawn.count(one.name) for one in law.laws], expected).pvalue > 1e-3


def test_what_costs_more_is_drawn_less_often():
    one, many = (mixed(Shape(1000, *n)) for n in ((1, 1), (3, 6)))
    shares = [law.weights[2] / sum(law.weights) for law in (one, many)]
    assert shares[1] < shares[0] / 4
    assert one.weights[:2] == many.weights[:2]


def test_order_and_training_can_be_set_where_there_is_one():
    assert get_law("broad", 50, training="free run").training == FreeRun()
    assert get_law("small", 3) == dataclasses.replace(small(), order=3)
    for name in ("mixed", "quick", "cascade"):
        with pytest.raises(InputError, match=f"the law {name} has no order that could be set"):
            get_law(name, 50)
    with pytest.raises(InputError, match="the law mixed has no order and no training that could be set"):
        get_law("mixed", 50, training="free run")


def test_without_a_law_it_is_mixed_unless_an_order_or_a_trainer_is_given():
    shape = Shape(500, 1, 1)
    assert settle_laws(None, None, None, shape) == (mixed(shape),)
    assert settle_laws(None, 50, None, shape) == (broad(50),)
    assert settle_laws(None, None, "free run", shape) == (dataclasses.replace(broad(), training=FreeRun()),)


def test_families_of_several_kinds_have_names():
    laws = get_laws(["mixed", "quick", "paper"])
    assert family_names(laws) == ("mixed", "quick", "paper")
    assert family_names([ReservoirLaw(order=5, name="a"), mixed()]) == ("a", "mixed")
