"""Laws of several kinds: how often each is drawn, and that a draw is one of its kind's own law."""

import dataclasses

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from echobound.draws import draw_key
from echobound.errors import InputError
from echobound.kernels import Status, get_kernel, hold_out
from echobound.network import MixedLaw, ReservoirLaw, broad, network_law_from_dict, paper
from echobound.plan.laws import law_from_json
from echobound.scores import get_score

LAWS = (paper(7), dataclasses.replace(paper(9), clip=True, padding=30), broad(order=11))
MIXED = MixedLaw(LAWS, (5, 3, 2), name="three kinds")


@pytest.mark.parametrize("weights", [(5, 3, 2), (1, 1, 1), (0.02, 0.9, 0.08)])
@pytest.mark.parametrize(("seed", "stream", "family"), [(0, 0, 0), (7, 1, 4)])
def test_kinds_are_drawn_as_often_as_their_weights_say(weights, seed, stream, family):
    law, count = MixedLaw(LAWS, weights), 3000
    kinds = [law.component(draw_key(seed, stream, family, index)) for index in range(count)]
    seen = [sum(kind is one for kind in kinds) for one in LAWS]
    expected = count * np.array(weights) / np.sum(weights)
    assert scipy.stats.chisquare(seen, expected).pvalue > 1e-4


def test_without_weights_all_are_equally_likely():
    assert MixedLaw(LAWS).weights == (1.0, 1.0, 1.0)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**40), st.integers(0, 3), st.integers(0, 50), st.integers(0, 10**6))
def test_given_its_kind_a_draw_is_that_of_its_own_law(seed, stream, family, index):
    draw = MIXED.draw_at(2, 1, seed, stream, family, index)
    law = MIXED.component(draw_key(seed, stream, family, index))
    alone = law.draw_at(2, 1, seed, stream, family, index)
    assert draw.law is law
    assert draw.hyper == alone.hyper == MIXED.draw(draw_key(seed, stream, family, index))
    for name in ("values", "columns", "W_u", "W_y", "bias", "leak"):
        assert (getattr(draw.reservoir, name) == getattr(alone.reservoir, name)).all()


def test_the_kind_has_words_of_its_own():
    """Which kind a draw is of says nothing about its weights: W_u is uniform within each kind."""
    draws = [MIXED.draw_at(1, 1, 0, 0, 0, index) for index in range(300)]
    of_kind = [np.concatenate([d.reservoir.W_u.ravel() for d in draws if d.law is law]) for law in LAWS[:2]]
    assert scipy.stats.ks_2samp(*of_kind).pvalue > 1e-4
    assert scipy.stats.kstest(of_kind[1], scipy.stats.uniform(-1, 2).cdf).pvalue > 1e-4


@pytest.mark.parametrize("name", ["reference", "cpu"])
def test_rows_are_those_of_the_kinds_alone(name, ph_records):
    kernel = get_kernel(name)
    problem = hold_out(*ph_records, law=MIXED, scores=[get_score("fit"), get_score("rmse")], washout=60, seed=3)
    rows = kernel.evaluate(problem, range(8))
    for row in rows:
        law = MIXED.component(problem.key(int(row["index"])))
        [alone] = kernel.evaluate(problem.of_law(law), [int(row["index"])])
        for column in ("stream", "family", "index", "status", "order", "ridge", "scores"):
            assert (row[column] == alone[column]).all(), column
    assert {7, 9} <= set(rows["order"].tolist())
    assert (rows["status"] != Status.DIVERGED).all()


def test_json_and_back():
    content = MIXED.to_dict()
    assert set(content) == {"kind", "name", "laws", "weights"}
    assert content["kind"] == "mixed"
    assert MixedLaw.from_dict(content) == network_law_from_dict(content) == law_from_json(content) == MIXED
    assert network_law_from_dict(content["laws"][0]) == paper(7)
    assert "clip" not in content["laws"][0], "laws without limits are written as before there were any"


def test_columns_are_those_of_the_largest_kind():
    assert MIXED.most_columns(2, 2) == max(law.most_columns(2, 2) for law in LAWS)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (((),), "one or more laws"),
        ((LAWS, (1, 2)), "3 laws and the weights"),
        ((LAWS, (1, 2, 0)), "positive weight"),
        ((LAWS, (1, 2, -1)), "positive weight"),
        ((LAWS, (1, 2, float("nan"))), "positive weight"),
        ((LAWS, (1, 2, float("inf"))), "positive weight"),
        ((LAWS, (1, 2, "much")), "positive weight"),
        (((MIXED, paper(5)),), "give their parts instead"),
        ((("paper",),), "got 'paper'"),
    ],
)
def test_refusals(arguments, match):
    with pytest.raises(InputError, match=match):
        MixedLaw(*arguments)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ({"kind": "mixed", "laws": []}, "has the fields kind, laws, name, weights"),
        ({**MIXED.to_dict(), "more": 1}, "has the fields"),
        ({"kind": "blend"}, "unknown kind of law 'blend'"),
        ({**MIXED.to_dict(), "laws": [{"kind": "blend"}]}, "unknown kind of law 'blend'"),
        ({**MIXED.to_dict(), "laws": 5}, "a list"),
    ],
)
def test_json_that_is_no_law(content, match):
    with pytest.raises(InputError, match=match):
        network_law_from_dict(content)


def test_a_mixed_law_itself_has_neither_training_nor_limits():
    for name in ("training", "clip", "padding"):
        assert not hasattr(MIXED, name), "each kind has its own"
        assert all(hasattr(law, name) for law in LAWS)
    assert isinstance(LAWS[0], ReservoirLaw)
