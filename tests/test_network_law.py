import numpy as np
import pytest

from echobound.draws import draw_key, draw_keys
from echobound.errors import InputError
from echobound.network import Choice, LeastSquares, LogUniform, ReservoirLaw, Uniform, broad, paper


def drawn(law, count=2000):
    return [law.draw(draw_key(0, 0, 0, i)) for i in range(count)]


def test_paper_law_is_the_papers_model():
    hyper = paper(order=70).draw(draw_key(0, 0, 0, 0))
    assert (hyper.order, hyper.norm, hyper.leak, hyper.bias_scale) == (70, 0.99, 1.0, 0.0)
    assert (hyper.input_delays, hyper.present_input, hyper.output_delays, hyper.constant) == (1, False, 0, False)
    assert hyper.scaling == "minmax"
    assert hyper.columns(inputs=1, outputs=1) == 71
    assert paper().training == LeastSquares((1e-8,))


def test_broad_law_has_the_recommended_distribution():
    draws = drawn(broad())
    orders = np.array([h.order for h in draws])
    assert orders.min() >= 100
    assert orders.max() <= 300
    assert np.isclose(np.median(orders), np.sqrt(100 * 300), rtol=0.05)
    assert 0.3 <= min(h.norm for h in draws) < 0.32
    assert 0.97 < max(h.norm for h in draws) <= 0.99
    assert np.isclose(np.mean([h.feedback_scale == 0 for h in draws]), 0.1, atol=0.03)
    assert min(h.bias_scale for h in draws) > 0.049
    assert np.isclose(np.mean([h.leak_spread == 0 for h in draws]), 0.5, atol=0.05)
    assert np.isclose(np.mean([h.output_delays == 2 for h in draws]), 0.5, atol=0.05)
    assert {h.input_delays for h in draws} == {1, 2, 5, 10, 20}
    assert {h.scaling for h in draws} == {"standard", "minmax"}
    noise = np.array([h.training_noise for h in draws])
    assert np.isclose((noise == 0).mean(), 0.5, atol=0.05)
    assert noise[noise > 0].min() >= 1e-4
    assert noise.max() <= 0.1
    assert (broad().padding, broad().training) == (100, LeastSquares((1e-10, 1e-8, 1e-6, 1e-4)))


def test_hyperparameters_of_one_field_do_not_move_with_another():
    one = drawn(ReservoirLaw(order=20, norm=Uniform(0.1, 0.9), leak=LogUniform(0.1, 1)), 50)
    two = drawn(ReservoirLaw(order=20, norm=0.5, leak=LogUniform(0.1, 1)), 50)
    assert [h.leak for h in one] == [h.leak for h in two]


def test_most_columns_bounds_every_draw():
    law = broad()
    assert max(h.columns(2, 3) for h in drawn(law, 500)) <= law.most_columns(2, 3) == 300 + 21 * 2 + 2 * 3 + 1


def test_json_round_trip():
    for law in (paper(30), broad(), broad(order=40)):
        assert ReservoirLaw.from_dict(law.to_dict()) == law


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("order", 0),
        ("order", -3),
        ("norm", 1.0),
        ("norm", 1.5),
        ("norm", 0.0),
        ("norm", Uniform(0.5, 1.0)),
        ("norm", float("nan")),
        ("leak", 0.0),
        ("leak", 1.1),
        ("input_scale", -1.0),
        ("scaling", "centred"),
        ("scaling", Choice(("minmax", "centred"))),
        ("pattern", "dense"),
        ("nonzeros", 0),
        ("padding", -1),
        ("training", "guessing"),
        ("training", 1e-8),
        ("order", "many"),
    ],
)
def test_refused(field, value):
    with pytest.raises(InputError, match=field):
        ReservoirLaw(**{"order": 10, field: value})


def test_unknown_fields_in_a_file_are_refused():
    with pytest.raises(InputError, match="fields"):
        ReservoirLaw.from_dict(paper(10).to_dict() | {"dropout": 0.5})


@pytest.mark.parametrize("law", [paper(30), broad()])
def test_many_draws_are_made_as_one_by_one(law):
    keys = draw_keys(0, 0, 0, range(20))
    assert law.draw_all(keys) == [law.draw(key) for key in keys]
    assert law.draw_all(keys[:0]) == []
