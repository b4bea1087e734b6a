"""compare: the FIT of MATLAB, on the same samples for every model."""

import dataclasses
import math

import numpy as np
import pytest

from echobound import compare, identify
from echobound.data import Record
from echobound.errors import EchoboundError
from echobound.network import Simulation


class Shifted:
    """A model that is wrong by a known amount."""

    def __init__(self, error, washout=0):
        self.error, self.washout, self.output_names = error, washout, ("y1",)

    def simulate(self, inputs, *, washout=None):
        return Simulation(inputs.y[washout:] + self.error, washout, "shifted")

    def predict(self, record, horizon=1, washout=None):
        return Simulation(record.y[washout:] + self.error * horizon, washout, "shifted")


def record(rows=200, phase=0.0):
    k = np.arange(float(rows))
    return Record(u=np.sin(0.1 * k + phase), y=np.cos(0.2 * k + phase) * 3 + 5)


def test_fit_is_that_of_matlab():
    data = record()
    scores = compare(data, Shifted(0.5), Shifted(0.0, washout=40))
    y = data.y[40:, 0]  # the longest washout counts for all
    expected = 100 * (1 - np.linalg.norm(np.full(160, 0.5)) / np.linalg.norm(y - np.mean(y)))
    assert scores["model 1"]["fit"] == pytest.approx(expected, rel=1e-12)
    assert scores["model 1"]["rmse"] == pytest.approx(0.5, rel=1e-12)
    assert scores["model 2"]["fit"] == 100.0
    assert scores["model 1"]["per_output"]["y1"] == {
        "fit": pytest.approx(expected, rel=1e-12),
        "rmse": pytest.approx(0.5, rel=1e-12),
    }


def test_horizons():
    data = record()
    assert compare(data, Shifted(0.5), horizon=3)["model 1"]["rmse"] == pytest.approx(1.5)
    assert compare(data, Shifted(0.5), horizon=math.inf) == compare(data, Shifted(0.5))
    for wrong in (0, 1.5, -2, math.nan):
        with pytest.raises(EchoboundError, match="horizon"):
            compare(data, Shifted(0.5), horizon=wrong)


def test_several_experiments_count_together():
    scores = compare([record(), record(100, 1.0)], {"a": Shifted(1.0)}, washout=10)
    y = np.concatenate([record().y[10:], record(100, 1.0).y[10:]])
    expected = 100 * (1 - math.sqrt(len(y)) / np.linalg.norm(y - y.mean()))
    assert scores["a"]["fit"] == pytest.approx(expected, rel=1e-12)


def test_networks_and_pairs_of_arrays(ph_records):
    training, validation = ph_records
    result = identify(training, validation, law="paper", order=8, networks=5, beta=0.5)
    [scores] = compare((validation.u, validation.y), result.network).values()
    assert scores["fit"] == pytest.approx(result.certificate.threshold, abs=1e-9)
    whole = compare(validation, result.network, horizon=len(validation))["model 1"]
    assert whole["fit"] < compare(validation, result.network, horizon=1)["model 1"]["fit"]


def test_a_diverging_model_scores_worst():
    scores = compare(record(), Shifted(math.inf))["model 1"]
    assert (scores["fit"], scores["rmse"]) == (-math.inf, math.inf)


def test_nothing_to_compare():
    with pytest.raises(EchoboundError, match="at least one model"):
        compare(record())


def test_outputs_at_a_limit_are_told(ph_records):
    training, validation = ph_records
    result = identify(training, validation, law="broad", order=8, networks=5, beta=0.5)
    beyond = dataclasses.replace(validation, u=20 * validation.u)
    inside, outside = (compare(record, result.model)["model 1"] for record in (validation, beyond))
    assert (inside["held"], inside["notes"]) == ({"pH": 0.0}, [])
    assert 0.05 < outside["held"]["pH"] <= 1
    [note] = outside["notes"]
    assert note.startswith("pH sits at its limit ")
    paper = identify(training, validation, law="paper", order=8, networks=5, beta=0.5)
    assert compare(beyond, paper.model)["model 1"]["held"] is None
