"""The linear baseline: equations recovered, scored as networks are, and the ARX references where the data are there."""

from pathlib import Path

import numpy as np
import pytest
from scipy.signal import lfilter

from echobound import Record, identify
from echobound.diagnostics.arx import Regression, Structure
from echobound.diagnostics.linear import linear_model
from echobound.diagnostics.paired import difference
from echobound.kernels.problem import block_folds, hold_out_folds
from echobound.scores import fit, summary

DATA = Path(__file__).parents[2] / "shared" / "data"


def plant(samples, seed, size=0.0):
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((samples, 2))
    y1 = lfilter([0, 0, 1.0, 0.5], [1, -1.4, 0.6], u[:, 0]) + 3.0
    y2 = lfilter([0, 0.4], [1, -0.8], u[:, 1]) + lfilter([0, 0.2], [1, -0.5], u[:, 0])
    y = np.stack([y1, y2], axis=1)
    return Record(u, y + size * rng.standard_normal(y.shape))


def test_a_linear_plant_is_found():
    record = plant(1500, 0)
    found = linear_model([record], block_folds([record], 4, 50))
    assert found.fit > 99.99
    noisy = [plant(1500, seed, 0.3) for seed in (1, 2)]
    found = linear_model(noisy, hold_out_folds(noisy[:1], noisy[1:], 50))
    best = fit(noisy[1].y[50:], plant(1500, 2).y[50:])
    assert found.fit > best - 2.0, "as good as the truth, but for its coefficients"


def test_predictions_are_what_stepping_gives():
    record = plant(200, 3, 0.1)
    model = Regression([(record.u, record.y)], 4).model(Structure(3, 2, 1, True))
    for horizon in (1, 5):
        found = model.predict(record.u, record.y, 20, horizon)
        for k in (20, 57, 199):
            known = k - horizon + 1
            assert model.simulate(record.u[: k + 1], record.y[:known])[-1] == pytest.approx(found[k - 20])
    free = model.simulate(record.u, record.y[:20])
    assert model.predict(record.u, record.y, 20, 180)[-1] == pytest.approx(free[-1])


def test_coupled_and_uncoupled_runs_are_the_same_where_nothing_is_coupled():
    record = plant(300, 4)
    one = Regression([(record.u, record.y)], 3).model(Structure(2, 2))
    two = type(one)(Structure(2, 2, 1, True), one.a, one.b, one.c, one.centre, one.spread)
    assert one.simulate(record.u, record.y[:9]) == pytest.approx(two.simulate(record.u, record.y[:9]))


def test_it_is_scored_as_the_model_is(ph_records):
    training, validation = ph_records
    result = identify(training, validation, law="paper", order=8, networks=20, washout=60)
    [outputs] = result.linear.outputs
    expected = summary(validation.y[60:], outputs, ["pH"])
    assert result.linear.scores["validation"] == expected
    lead = result.scores["validation"]["fit"] - expected["fit"]
    assert result.linear.difference.fit == pytest.approx(lead)
    assert result.linear.difference.low < lead < result.linear.difference.high


def test_the_interval_holds_the_difference_as_often_as_it_says():
    rng, held = np.random.default_rng(0), 0
    for _ in range(200):
        y = rng.standard_normal((800, 1))
        found = difference([y], [y + 0.1 * rng.standard_normal(y.shape)], [y + 0.2 * rng.standard_normal(y.shape)])
        held += found.low < 10.0 < found.high
    assert 175 <= held <= 200


def test_what_ran_off_has_no_difference():
    y = np.random.default_rng(0).standard_normal((100, 1))
    assert difference([y], [y], [np.full_like(y, np.nan)]) is None


@pytest.mark.skipif(not DATA.exists(), reason="the public data are not here")
@pytest.mark.parametrize(
    ("file", "u", "y", "cut", "figure"),
    [
        ("daisy_dryer/dryer.dat", [1], [2], 600, 83.0),
        ("daisy_robot_arm/robot_arm.dat", [1], [2], 614, 95.2),
        ("daisy_glassfurnace/glassfurnace.dat", [2, 3, 4], [5, 6, 7, 8, 9, 10], 748, 45.3),
    ],
)
def test_the_arx_references_are_reproduced(file, u, y, cut, figure):
    rows = np.loadtxt(DATA / file)
    inputs, outputs = (rows[:, [one - 1 for one in columns]] for columns in (u, y))
    regression = Regression([(inputs[:cut], outputs[:cut])], 6)
    models = [regression.model(Structure(order, order, 0, True)) for order in (2, 4, 6)]
    found = [fit(outputs[cut + 50 :], one.simulate(inputs[cut:], outputs[cut : cut + 50])) for one in models]
    assert max(found) == pytest.approx(figure, abs=1.0), "their order was picked on the test part, and so is this one"
