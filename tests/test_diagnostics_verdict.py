"""The verdict: its rule clause by clause, and the first line, which must be true of what it speaks of."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echobound.diagnostics.first_line import first_line
from echobound.diagnostics.verdict import GRADES, NO_MODEL, Evidence, level, verdict_of

ABOUT = {"epsilon": 0.05, "beta": 1e-7, "delivered": "committee", "networks": 315}


@pytest.mark.parametrize(
    ("changes", "grade"),
    [
        ({}, "good"),
        ({"lead": (-6.0, -9.0, -3.0)}, "usable"),
        ({"lead": (-6.0, -19.0, 7.0)}, "good"),
        ({"lead": (-4.0, -5.0, -3.0)}, "good"),
        ({"held": ("y1 sits at its limit",)}, "usable"),
        ({"outputs": {"y1": 99.0, "y2": 45.0}}, "usable"),
        ({"blocks": (99.0, 45.0)}, "usable"),
        ({"blocks": (99.0, -1.0)}, "poor"),
        ({"blocks": (99.0, None)}, "poor"),
        ({"fit": 60.0}, "usable"),
        ({"fit": 20.0}, "poor"),
        ({"fit": 8.8}, "unusable"),
        ({"fit": None}, "unusable"),
        ({"fit": 60.0, "tested": 1, "test": 80.0, "records": (80.0,)}, "good"),
        ({"fit": 20.0, "tested": 1, "test": 80.0, "records": (80.0,)}, "usable"),
        ({"blocks": (99.0, -1.0), "tested": 1, "test": 80.0}, "good"),
        ({"tested": 2, "test": 80.0, "records": (95.0, -5.0)}, "usable"),
        ({"tested": 1, "test": 29.0}, "poor"),
        ({"tested": 1, "test": None}, "unusable"),
        ({"tested": 1, "test": 80.0, "beyond": ("u1 leaves its training range",)}, "usable"),
        ({"horizon": 1, "naive": 95.0}, "usable"),
    ],
)
def test_the_rule(changes, grade):
    found = verdict_of(replace(Evidence(fit=90.0, blocks=(90.0, 90.0), linear=70.0), **changes))
    assert found.grade == grade
    assert found.reasons
    assert found.next


FIT = st.one_of(st.none(), st.floats(-500, 100))


@given(fit=FIT, test=FIT, tested=st.integers(0, 3), blocks=st.lists(FIT, max_size=4), naive=FIT)
def test_no_clause_lifts_a_grade_and_test_data_rule(fit, test, tested, blocks, naive):
    seen = Evidence(fit=fit, test=test, tested=tested, blocks=tuple(blocks), naive=naive, beyond=("u1",) * (tested > 1))
    value = test if tested else fit
    by_fit = level(-math.inf if value is None else value)
    found = verdict_of(seen)
    assert GRADES.index(found.grade) >= GRADES.index(by_fit)
    if tested:  # what a test FIT says is lowered from good to usable at most
        assert found.grade == by_fit or (by_fit, found.grade) == ("good", "usable")


def test_without_a_model():
    assert verdict_of(Evidence(model=False)) == NO_MODEL
    assert first_line(Evidence(model=False), **ABOUT) == "There is no model: all 315 networks diverged."


def test_the_first_line_speaks_of_what_is_so():
    line = first_line(Evidence(fit=89.9, linear=None), **ABOUT, blocks=4)
    assert "explains 89 % of held-out data (mean FIT of 4 blocks, each left out in turn; linear model: ran off)" in line
    assert "At most 5 % of further draws would beat the best of its networks (confidence 1 - 1e-07)" in line
    assert line.endswith("New data: not tested yet.")
    ahead = first_line(Evidence(fit=-3.2, linear=50.0, horizon=5), **{**ABOUT, "delivered": "network"})
    assert ahead.startswith(
        "Your model predicts nothing of held-out data 5 samples ahead (FIT -4 %; linear model: 50 %)"
    )
    assert "would beat it (" in ahead
    committees = first_line(Evidence(fit=90.0, linear=50.0), **ABOUT, members=10)
    assert "would beat it (" in committees
    tested = first_line(Evidence(fit=90.0, linear=50.0, tested=2, test=70.4, linear_test=69.9), **ABOUT)
    assert tested.endswith("New data: FIT 70.4 % on 2 test records (linear model: 69.9 %).")
    off = first_line(Evidence(fit=None, linear=50.0, tested=1, test=None, linear_test=2.0), **ABOUT)
    assert "Your model ran off on held-out data (linear model: 50 %)" in off
    assert "New data: the model ran off on 1 test record (linear model: 2 %)" in off
