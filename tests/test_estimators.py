"""The scikit-learn way: its own checks, pipelines and searches, and the promises of the certificate."""

import subprocess
import sys
import warnings
from dataclasses import fields
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, SGDClassifier, SGDRegressor
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from echobound import EchoStateNetwork, identify
from echobound.data import Record
from echobound.errors import EchoboundError, InputError
from echobound.estimators import CertifiedSearch, EchoStateRegressor, EchoStateSearch
from echobound.plan import Plan

IN_TIME_ORDER = {
    "check_methods_sample_order_invariance": "rows are samples in time order: in another order it is another signal",
    "check_methods_subset_invariance": "a free run depends on all rows before: a part of them is another signal",
}
CONSTANT = "the check's outputs are constant over the rows held out, and FIT is undefined for a constant"


def signals(rows=400, phase=0.0, outputs=1):
    k = np.arange(float(rows))
    u = np.sin(0.1 * k + phase) + 0.7 * np.sin(0.37 * k)
    y = np.zeros(rows)
    for t in range(1, rows):
        y[t] = 0.7 * y[t - 1] + 0.3 * np.tanh(u[t - 1])
    return u[:, None], y if outputs == 1 else np.stack([y, y**2], axis=1)


@pytest.mark.parametrize(
    ("estimator", "exceptions"),
    [
        (EchoStateRegressor(order=10), IN_TIME_ORDER),
        (
            EchoStateSearch(law="paper", order=5, networks=3, beta=0.5),
            IN_TIME_ORDER | dict.fromkeys(["check_positive_only_tag_during_fit", "check_estimators_nan_inf"], CONSTANT),
        ),
        (CertifiedSearch(SGDRegressor(), networks=3, beta=0.5), {}),
        (CertifiedSearch(SGDClassifier(), networks=3, beta=0.5), {}),
        (CertifiedSearch(make_pipeline(StandardScaler(), SGDRegressor()), networks=3, beta=0.5), {}),
        (CertifiedSearch(GaussianMixture(2), networks=3, beta=0.5), {}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_checks_of_scikit_learn(estimator, exceptions):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tiny data, and of checks that are skipped
        outcomes = check_estimator(estimator, expected_failed_checks=exceptions, on_fail=None)
    assert len(outcomes) > 30
    assert [o["check_name"] for o in outcomes if o["status"] == "failed"] == []
    # Every exception is still needed: one that passes would hide a change.
    assert {o["check_name"] for o in outcomes if o["status"] == "xfail"} == set(exceptions)


def test_the_free_run_is_that_of_the_network():
    X, y = signals()
    network = EchoStateRegressor(order=30, feedback_scale=0.5).fit(X[:300], y[:300])
    assert network.model_.order == 30
    assert (network.predict(X[300:]) == network.model_.simulate(X[300:]).y[:, 0]).all()
    residual = y[300:] - network.predict(X[300:])
    by_hand = 1 - (residual**2).sum() / ((y[300:] - y[300:].mean()) ** 2).sum()
    assert network.score(X[300:], y[300:]) == pytest.approx(by_hand, rel=1e-12)
    assert EchoStateRegressor(order=30).fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.9


def test_several_outputs_keep_their_shape():
    X, y = signals(outputs=2)
    assert EchoStateRegressor(order=10).fit(X, y).predict(X).shape == y.shape
    assert EchoStateRegressor(order=10).fit(X, y[:, :1]).predict(X).shape == (400, 1)
    assert EchoStateRegressor(order=10).fit(X, y[:, 0]).predict(X).shape == (400,)


def test_groups_are_experiments():
    (X1, y1), (X2, y2) = signals(200), signals(160, phase=1.0)
    X, y, groups = np.concatenate([X1, X2]), np.concatenate([y1, y2]), np.repeat(["a", "b"], [200, 160])
    network = EchoStateRegressor(order=15, washout=20).fit(X, y, groups=groups)
    apart = np.concatenate([network.predict(X1), network.predict(X2)])
    assert (network.predict(X, groups=groups) == apart).all()
    assert not (network.predict(X) == apart).all()
    as_one = EchoStateRegressor(order=15, washout=20).fit(X, y)
    assert not np.allclose(as_one.model_.readout, network.model_.readout)
    with pytest.raises(InputError, match="comes back later"):
        network.predict(X, groups=np.arange(360) % 2)
    with pytest.raises(InputError, match="one label for each of the 360 rows"):
        network.fit(X, y, groups=[1, 2])


def test_pipelines_grids_and_clones():
    X, y = signals()
    pipeline = make_pipeline(StandardScaler(), EchoStateRegressor(order=10))
    grid = GridSearchCV(pipeline, {"echostateregressor__leak": [0.3, 1.0]}, cv=TimeSeriesSplit(2))
    assert grid.fit(X, y).best_params_["echostateregressor__leak"] in (0.3, 1.0)
    network = EchoStateRegressor(order=12, random_state=5, draw=3)
    again = clone(network)
    assert again.get_params() == network.get_params()
    assert (network.fit(X, y).predict(X) == again.fit(X, y).predict(X)).all()
    assert not (network.predict(X) == clone(network).set_params(draw=4).fit(X, y).predict(X)).all()


def test_saved_without_pickle(tmp_path):
    X, y = signals()
    network = EchoStateRegressor(order=12, leak=0.5, random_state=3, ridge=1e-6, washout=30).fit(X, y)
    network.save(tmp_path / "network.npz")
    again = EchoStateRegressor.load(tmp_path / "network.npz")
    assert (again.predict(X) == network.predict(X)).all()
    assert again.get_params() == network.get_params()
    assert (clone(again).fit(X, y).predict(X) == network.predict(X)).all()
    assert EchoStateNetwork.load(tmp_path / "network.npz").order == 12
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(EchoboundError, match=r"other\.npz is damaged"):
        EchoStateRegressor.load(tmp_path / "other.npz")


def test_a_diverging_network_scores_worst():
    X, y = signals(200)
    network = EchoStateRegressor(order=10).fit(X, y)
    network.predict = lambda X, groups=None: np.full(len(X), np.inf)
    assert network.score(X, y) == -np.inf


def test_the_search_is_that_of_identify():
    X, y = signals(outputs=2)
    search = EchoStateSearch(law="paper", order=8, networks=25, beta=1e-2, washout=40, random_state=7).fit(X, y)
    same = identify(
        Record(X[:300], y[:300]), Record(X[300:], y[300:]), law="paper", order=8, networks=25, beta=1e-2,
        washout=40, seed=7, scores=["fit"],
    )  # fmt: skip
    assert search.certificate_.statement == same.certificate.statement
    assert (search.results_["score"] == same.table["scores"][:, 0]).all()
    assert search.best_score_ == search.results_["score"][search.best_index_] == search.results_["score"].max()
    assert search.results_["rank"][search.best_index_] == 1
    assert (search.predict(X) == same.network.simulate(X).y).all()
    search.certificate_.check(search.results_["score"])


def test_the_best_estimator_can_be_drawn_again():
    X, y = signals()
    search = EchoStateSearch(order=20, networks=12, beta=0.1, washout=40).fit(X, y)
    best = search.best_estimator_
    again = clone(best).fit(X[:300], y[:300])
    assert np.allclose(again.predict(X), best.predict(X), rtol=1e-6)
    assert search.score(X[300:], y[300:]) == best.score(X[300:], y[300:])


def test_whole_experiments_can_be_held_out():
    parts = [signals(150, phase) for phase in (0.0, 1.0, 2.0)]
    X, y = (np.concatenate(side) for side in zip(*parts, strict=True))
    groups = np.repeat([1, 2, 3], 150)
    search = EchoStateSearch(law="paper", order=8, networks=5, beta=0.5, validation=[2], washout=20)
    same = identify(
        [Record(*parts[0]), Record(*parts[2])],
        Record(*parts[1]),
        law="paper",
        order=8,
        networks=5,
        beta=0.5,
        washout=20,
    )
    assert search.fit(X, y, groups=groups).best_score_ == same.certificate.threshold
    for wrong, message in (([4], "there is no group '4'"), ([1, 2, 3], "no experiment is left to train on")):
        with pytest.raises(InputError, match=message):
            search.set_params(validation=wrong).fit(X, y, groups=groups)


def test_the_search_stops_by_a_rule():
    X, y = signals()
    search = EchoStateSearch(law="paper", order=5, epsilon=0.3, beta=0.1, stop="patience:12", discarded=2, washout=40)
    search.fit(X, y)
    stopped = search.certificate_.stopped
    assert stopped.rule.draws == 12
    assert len(search.results_["score"]) == stopped.networks >= search.best_index_ + 1 + 12
    assert {statement.kind for statement in search.certificate_.statements} >= {
        "stopped",
        "removal",
        "both ends",
        "gain",
    }
    search.certificate_.check(search.results_["score"])


def test_random_states_stand_for_seeds_of_64_bits():
    X, y = signals(120)
    seeds = {
        EchoStateRegressor(order=3, random_state=np.random.RandomState(i)).fit(X, y).model_.origin["seed"]
        for i in range(5)
    }
    assert len(seeds) == 5
    assert max(seeds) > 2**32


def test_metadata_are_routed():
    X, y = signals(120)
    groups = np.repeat([0, 1], 60)
    with sklearn.config_context(enable_metadata_routing=True):
        network = EchoStateRegressor(order=5, washout=5).set_fit_request(groups=True)
        pipeline = make_pipeline(StandardScaler(), network).fit(X, y, groups=groups)
    apart = clone(network).fit(StandardScaler().fit_transform(X), y, groups=groups)
    assert (pipeline[-1].model_.readout == apart.model_.readout).all()


def test_parameters_are_the_fields_of_the_plan():
    plan = {field.name: field.default for field in fields(Plan)}
    assert signature(EchoStateSearch).parameters["law"].default == "broad", "of networks that a regressor can be"
    for search, more in ((EchoStateSearch, {"law"}), (CertifiedSearch, {"estimator"})):
        parameters = signature(search).parameters
        shared = parameters.keys() & plan.keys() - {"law"}
        assert not shared & {"trainer", "quick"}, "what they draw is trained in one way"
        assert {"epsilon", "beta", "networks", "bound", "stop", "target", "discarded"} <= shared
        assert {name: parameters[name].default for name in shared} == {name: plan[name] for name in shared}
        assert {n for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD} == more
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilom'"):
        CertifiedSearch(SGDRegressor(), epsilom=0.1)


def test_without_its_extra_the_estimators_name_it():
    code = "import sys; sys.modules['sklearn'] = None\nimport echobound\nimport echobound.estimators"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'echobound[sklearn]'" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("file", "inputs", "outputs"),
    [
        ("daisy_dryer/dryer.dat", [0], [1]),
        ("daisy_cstr/cstr.dat", [1], [2, 3]),
        ("daisy_exchanger/exchanger.dat", [1], [2]),
        ("daisy_evaporator/evaporator.dat", [0, 1, 2], [3, 4, 5]),
        ("daisy_glassfurnace/glassfurnace.dat", [1, 2, 3], [4, 5, 6, 7, 8, 9]),
    ],
)
def test_the_defaults_are_not_worse_than_a_linear_regression_on_lagged_inputs(file, inputs, outputs):
    path = Path(__file__).parents[1].parent / "shared" / "data" / file
    if not path.exists():
        pytest.skip("the shared data are not there")
    data, lags = np.loadtxt(path), 20
    u, y = data[:, inputs], data[:, outputs]
    cut = int(0.6 * len(u))
    lagged = np.hstack([np.vstack([np.repeat(u[:1], d, axis=0), u[: len(u) - d]]) for d in range(lags + 1)])
    linear = LinearRegression().fit(lagged[:cut], y[:cut]).predict(lagged[cut:])
    network = EchoStateRegressor().fit(u[:cut], y[:cut]).predict(u[cut:])
    errors = [np.linalg.norm((y[cut:] - one)[100:], axis=0).sum() for one in (network.reshape(linear.shape), linear)]
    assert errors[0] <= errors[1]
