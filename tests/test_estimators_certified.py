"""The certified search over any estimator: draws, refusals, its folder, and whether the certificate holds."""

import contextlib
import functools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import joblib
import numpy as np
import pytest
from coverage_harness import EPSILON, LEVEL, NETWORKS, count_p_value, miss_p_value, violation_counts
from docs_blocks import this_tree
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.random_projection import GaussianRandomProjection
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import check_random_state

import echobound.estimators.random_states as random_states
from echobound import RunFolder
from echobound.data import read_csv
from echobound.draws import SEARCH, VERIFICATION, draw_key, words
from echobound.errors import DamagedFile, InputError, RunError
from echobound.estimators import CertifiedSearch, EchoStateRegressor, draw_estimator
from echobound.files import digest

TANKS = Path(__file__).parents[1].parent / "shared" / "data" / "cascaded_tanks" / "dataBenchmark.csv"


class Chance(RegressorMixin, BaseEstimator):
    """The cheapest random model: its score is a random number, uniform in [0, 1)."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y=None):
        self.value_ = check_random_state(self.random_state).random_sample()
        return self

    def predict(self, X):
        return np.full(len(X), self.value_)

    def score(self, X, y=None):
        return self.value_


def rows_of(count=20):
    return np.arange(float(count))[:, None], np.sin(np.arange(float(count)))


# What is drawn.


def test_states_are_the_words_of_the_draw():
    pipeline = make_pipeline(GaussianRandomProjection(2), RandomForestRegressor())
    drawn = draw_estimator(pipeline, seed=11, index=5).get_params()
    key = draw_key(11, SEARCH, 0, 5)
    names = ["gaussianrandomprojection__random_state", "randomforestregressor__random_state"]
    for region, name in enumerate(names, start=16):
        assert (drawn[name].tomaxint(6) == words(key, region, 6) >> np.uint64(1)).all()
    assert pipeline[0].random_state is None, "the estimator that was given is left alone"


def test_no_two_states_are_the_same():
    pipeline = make_pipeline(GaussianRandomProjection(2), RandomForestRegressor())
    seen = set()
    for seed, index, stream in ((0, 0, 0), (0, 1, 0), (1, 0, 0), (0, 0, 1), (2**64 - 1, 2**32 - 1, 0)):
        drawn = draw_estimator(pipeline, seed, index, stream).get_params()
        seen |= {drawn[name].tomaxint() for name in drawn if name.endswith("__random_state")}
    assert len(seen) == 10


def test_a_draw_is_made_again_by_hand():
    X, y = rows_of(80)
    forest = RandomForestRegressor(4)
    search = CertifiedSearch(forest, networks=9, beta=0.2, random_state=6).fit(X, y)
    for index in (8, 0, 3):
        again = draw_estimator(forest, seed=6, index=index).fit(X[:60], y[:60])
        assert again.score(X[60:], y[60:]) == search.results_["score"][index]
    assert (
        search.best_estimator_.predict(X)
        == draw_estimator(forest, 6, search.best_index_).fit(X[:60], y[:60]).predict(X)
    ).all()
    search.certificate_.check(search.results_["score"])
    assert search.certificate_.law["drawn"] == ["random_state"]


# What is refused, before anything is fitted.


class Tape(BaseEstimator):
    """Notes whether it was fitted."""

    def __init__(self, random_state=None, rng=None, memory=None, warm_start=False, items=()):
        self.random_state, self.rng, self.memory = random_state, rng, memory
        self.warm_start, self.items = warm_start, items

    def fit(self, X, y=None):
        raise AssertionError("it was fitted")

    def score(self, X, y=None):
        return 0.0


class Keeping(Chance):
    """Its clones keep what was fitted."""

    def __sklearn_clone__(self):
        twin = type(self)(random_state=self.random_state)
        twin.__dict__ |= self.__dict__
        return twin


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Ridge(random_state=0), "Ridge has random_state=0, so that all draws would share it: set it to None"),
        (Tape(random_state=np.random.RandomState(0)), "Tape has random_state=RandomState"),
        (make_pipeline(StandardScaler(), Tape(3)), "Pipeline has tape__random_state=3"),
        (make_pipeline(GaussianRandomProjection(1, random_state=1), Tape()), "projection__random_state=1"),
        (EchoStateRegressor(), "EchoStateRegressor has random_state=0"),
        (LinearRegression(), "LinearRegression has no parameter random_state at any depth: there is nothing to draw"),
        (Tape(warm_start=True), "Tape has warm_start=True, so that a fit may start where another ended"),
        (MultiOutputRegressor(MLPRegressor(warm_start=True)), "estimator__warm_start=True"),
        (Pipeline([("tape", Tape())], memory="cache"), "Pipeline has memory='cache', a cache"),
        (Pipeline([("tape", Tape())], memory=joblib.Memory(None)), "a cache"),
        (Tape(rng=np.random.default_rng(0)), "Tape has rng=Generator.*randomness that all draws would share"),
        (Tape(rng=np.random.PCG64(0)), "randomness that all draws would share"),
        (Tape(items=iter([1, 2])), "used up by the first draw"),
        (make_pipeline(FrozenEstimator(StandardScaler().fit([[0.0], [1.0]])), Tape()), "frozenestimator keeps what"),
        (Keeping().fit([[0]]), "Keeping keeps what was fitted when it is cloned"),
        (Tape, "an estimator with get_params and fit is needed"),
        ("forest", "an estimator with get_params and fit is needed, got 'forest'"),
    ],
)  # fmt: skip
def test_what_would_share_anything_is_refused(estimator, message, tmp_path):
    with pytest.raises(InputError, match=message) as refused:
        CertifiedSearch(estimator, networks=5, beta=0.5, run=tmp_path / "run").fit(*rows_of())
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match=message):
        draw_estimator(estimator, 0, 0)


def test_what_only_sounds_like_a_cache_is_not_refused():
    assert random_states.drawn_parameters(Tape(memory=3)) == ["random_state"]  # samples, say


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scoring": ["r2", "max_error"]}, "one score is needed to pick by"),
        ({"validation": 0.0}, "leaves nothing to train or to score on of 20 rows"),
        ({"validation": 20}, "leaves nothing"),
        ({"validation": "half"}, "a fraction of the rows or their number, got 'half'"),
        ({"networks": 3, "beta": 1e-7, "epsilon": 0.1}, "3 networks cannot certify"),
        ({"networks": None, "stop": "anytime", "discarded": 2}, "not under the rule anytime: leave out one of the two"),
        ({"discarded": 5}, "networks to set aside must be less than those drawn and not negative, got 5"),
        ({"networks": None, "stop": "patience"}, "unknown stopping rule"),
        ({"random_state": -1}, "seed must be an integer from 0"),
    ],
)
def test_options_are_refused_in_a_sentence(options, message):
    with pytest.raises(InputError, match=message):
        CertifiedSearch(Chance(), **{"networks": 5, "beta": 0.5, **options}).fit(*rows_of())


class Global(Chance):
    """Random, but not by its random state."""

    def fit(self, X, y=None):
        self.value_ = np.random.random_sample()  # noqa: NPY002 (the point)
        return self


class Learning(Chance):
    """Adaptive: it goes on from what it saw in other draws, after a while."""

    seen = 0

    def fit(self, X, y=None):
        super().fit(X, y)
        Learning.seen += 1
        self.value_ += max(0, Learning.seen - 6)
        return self


class InPlace(Chance):
    def fit(self, X, y=None):
        X *= 2.0
        return super().fit(X, y)


class Counting(Chance):
    """Random, but not by its random state, nor by any generator."""

    count = 0

    def fit(self, X, y=None):
        Counting.count += 1
        self.value_ = float(Counting.count)
        return self


class Seeding(Chance):
    """Seeds the global generator by its random state, as many do: then all is determined by it."""

    def fit(self, X, y=None):
        np.random.seed(self.random_state.randint(2**31))  # noqa: NPY002
        self.value_ = np.random.random_sample()  # noqa: NPY002
        return self


def test_randomness_from_elsewhere_is_refused():
    shuffled = GridSearchCV(DecisionTreeRegressor(), {"max_depth": [1, 2]}, cv=ShuffleSplit(2))
    for estimator in (Global(), shuffled):
        with pytest.raises(InputError, match="draws from the global generator of NumPy or Python"):
            CertifiedSearch(estimator, networks=5, beta=0.5).fit(*rows_of())
    CertifiedSearch(shuffled.set_params(cv=ShuffleSplit(2, random_state=0)), networks=5, beta=0.5).fit(*rows_of())
    state = np.random.get_state()  # noqa: NPY002
    assert len(set(CertifiedSearch(Seeding(), networks=5, beta=0.5).fit(*rows_of()).results_["score"])) == 5
    np.random.set_state(state)  # noqa: NPY002


def test_what_scikit_learn_has_no_more_is_not_drawn():
    assert random_states.drawn_parameters(make_pipeline(Tape("deprecated"), Tape())) == ["tape-2__random_state"]


def test_a_draw_must_be_determined_by_its_state(tmp_path):
    with pytest.raises(InputError, match=r"draw 0 scored .* an estimator must be determined by its random_state alone"):
        CertifiedSearch(Counting(), networks=5, beta=0.5).fit(*rows_of())
    Learning.seen = 0
    with pytest.raises(InputError, match=r"draw 11 scored .* state that is kept between fits"):
        CertifiedSearch(Learning(), networks=12, beta=0.5, run=tmp_path / "run").fit(*rows_of())
    assert not (tmp_path / "run" / "certificate.json").exists()
    X, y = rows_of()
    with pytest.raises(InputError, match="changes the data in place"):
        CertifiedSearch(InPlace(), networks=5, beta=0.5).fit(X, y)
    assert (rows_of()[0] == X).all(), "the user's own data are not touched"


def test_a_search_inside_of_a_draw_is_part_of_it():
    X, y = rows_of(40)
    grid = GridSearchCV(MLPRegressor(solver="lbfgs", max_iter=5000), {"hidden_layer_sizes": [(2,), (3,)]}, cv=2)
    search = CertifiedSearch(grid, networks=3, beta=0.5).fit(X / 40, y)
    again = draw_estimator(grid, 0, 1).fit(X[:30] / 40, y[:30])
    assert again.score(X[30:] / 40, y[30:]) == pytest.approx(search.results_["score"][1], rel=1e-12)


# Failure is a row.


class Moody(Ridge):
    def fit(self, X, y):
        if self.random_state.randint(2):
            raise ValueError("not today")
        return super().fit(X, y)


class Overflowing(Chance):
    def score(self, X, y=None):
        return np.nan if self.value_ < 0.5 else np.inf if self.value_ < 0.7 else self.value_


def test_draws_that_fail_count_as_worst():
    X, y = rows_of()
    with pytest.warns(UserWarning, match="draws failed and count as worst, draw .*: not today"):
        search = CertifiedSearch(Moody(), networks=10, beta=0.1).fit(X, y)
    failed = [bool(draw_estimator(Moody(), 0, i).random_state.randint(2)) for i in range(10)]
    assert search.results_["diverged"].tolist() == failed
    assert search.certificate_.failures == sum(failed) > 0
    assert np.isneginf(search.results_["score"][failed]).all()
    with pytest.warns(UserWarning, match="failed and count as worst"):
        search = CertifiedSearch(Overflowing(), networks=30, beta=0.1).fit(X, y)
    assert search.results_["score"][~search.results_["diverged"]].min() >= 0.7
    assert search.results_["diverged"].sum() > 10


def test_if_all_fail_the_reason_is_raised():
    class Never(Chance):
        def fit(self, X, y=None):
            raise ZeroDivisionError("never")

    class Empty(Chance):
        def score(self, X, y=None):
            return np.nan

    with pytest.raises(ZeroDivisionError, match="never"):
        CertifiedSearch(Never(), networks=4, beta=0.5).fit(*rows_of())
    with pytest.warns(UserWarning, match="4 of 4 draws failed"):
        search = CertifiedSearch(Empty(), networks=4, beta=0.5).fit(*rows_of())
    assert search.certificate_.status == "all diverged"
    with pytest.raises(InputError, match="there is none to predict with"):
        search.score(*rows_of())


# Any model.


def test_a_perceptron_a_pipeline_and_a_forest():
    X, y = rows_of(60)
    X = np.hstack([X, X**2, np.cos(X)]) / 60
    perceptron = MLPRegressor(hidden_layer_sizes=(4,), solver="lbfgs", max_iter=20_000)
    for model in (
        perceptron,
        RandomForestRegressor(3),
        make_pipeline(StandardScaler(), GaussianRandomProjection(2), perceptron),
        EchoStateRegressor(order=5, random_state=None),
    ):
        search = CertifiedSearch(model, networks=6, beta=0.3, scoring="neg_root_mean_squared_error").fit(X, y)
        assert len(set(search.results_["score"])) == 6
        assert search.score(X[45:], y[45:]) == pytest.approx(search.best_score_, rel=1e-9)
        assert search.predict(X).shape == (60,)
        assert "neg_root_mean_squared_error" in search.certificate_.statement


def test_a_classifier():
    X, y = make_classification(200, random_state=0)
    labels = np.array(["cold", "warm"])[y]
    search = CertifiedSearch(RandomForestClassifier(3), networks=8, beta=0.2).fit(X, labels)
    assert search.classes_.tolist() == ["cold", "warm"]
    assert search.predict_proba(X).shape == (200, 2)
    assert search.best_score_ == (search.predict(X[150:]) == labels[150:]).mean()
    assert not hasattr(search, "decision_function")
    with pytest.raises(AttributeError, match="known after fit"):
        _ = clone(search).classes_


def test_without_targets():
    X = np.concatenate([np.zeros((20, 2)), np.ones((20, 2))])[np.arange(40).reshape(2, 20).T.ravel()]
    search = CertifiedSearch(KMeans(2, n_init=1), networks=4, beta=0.5).fit(X)
    assert search.best_score_ == pytest.approx(0.0)
    assert len(set(search.predict(X))) == 2
    with pytest.raises(InputError, match="requires y"):
        CertifiedSearch(Ridge()).fit(X)


class ReservoirpyRegressor(RegressorMixin, BaseEstimator):
    """A network of reservoirpy the scikit-learn way."""

    def __init__(self, units=20, leak=0.5, ridge=1e-6, warmup=50, random_state=None):
        self.units, self.leak, self.ridge, self.warmup, self.random_state = units, leak, ridge, warmup, random_state

    def fit(self, X, y):
        from reservoirpy.nodes import Reservoir
        from reservoirpy.nodes import Ridge as Readout

        entropy = check_random_state(self.random_state).randint(2**32, size=4, dtype=np.uint32)
        self.reservoir_ = Reservoir(self.units, lr=self.leak, sr=0.9, seed=np.random.default_rng(entropy))
        self.readout_ = Readout(ridge=self.ridge)
        self.readout_.fit(self.reservoir_.run(X)[self.warmup :], np.reshape(y, (len(X), -1))[self.warmup :])
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        self.reservoir_.reset()
        return self.readout_.run(self.reservoir_.run(X))[:, 0]

    def score(self, X, y):
        error = y[self.warmup :] - self.predict(X)[self.warmup :]
        return 100 * (1 - np.linalg.norm(error) / np.linalg.norm(y[self.warmup :] - y[self.warmup :].mean()))


def test_a_reservoirpy_network_on_real_data():
    if not TANKS.exists():
        pytest.skip("the shared data are not there")
    record = read_csv(TANKS, "uEst", "yEst", sampling_time=4.0)
    X, y = (record.u - record.u.mean()) / record.u.std(), record.y[:, 0]
    network = ReservoirpyRegressor()
    search = CertifiedSearch(network, networks=25, beta=1e-2, validation=300, random_state=3).fit(X, y)
    assert 0 < search.best_score_ < 100
    assert len(set(search.results_["score"])) == 25
    again = draw_estimator(network, 3, search.best_index_).fit(X[:-300], y[:-300])
    assert again.score(X[-300:], y[-300:]) == pytest.approx(search.best_score_, rel=1e-9)
    assert search.certificate_.law["packages"].keys() >= {"sklearn", "numpy"}


# The folder.


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_jobs_have_no_influence(backend):
    X, y = rows_of(60)
    forest = RandomForestRegressor(3)
    one = CertifiedSearch(forest, networks=12, beta=0.2).fit(X, y)
    with joblib.parallel_config(backend):
        two = CertifiedSearch(forest, networks=12, beta=0.2, n_jobs=2).fit(X, y)
    assert (one.results_["score"] == two.results_["score"]).all()
    assert one.certificate_ == two.certificate_


def test_the_folder_holds_plan_ledger_and_certificate(tmp_path):
    search = CertifiedSearch(Chance(), networks=30, beta=0.1, run=tmp_path / "run").fit(*rows_of())
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "certificate.json",
        "ledger.sqlite",
        "plan.json",
        "report.html",
    ]
    folder = RunFolder(tmp_path / "run")
    assert folder.certificate == search.certificate_
    assert (folder.search["scores"][:, 0] == search.results_["score"]).all()
    assert folder.plan.networks == 30
    [fold] = folder.plan.folds
    assert [(s.start, s.stop) for s in (*fold.training, *fold.scored)] == [(0, 15), (15, 20)]
    law = json.loads((tmp_path / "run" / "plan.json").read_text())["law"]
    assert law["drawn"] == ["random_state"]
    assert law["packages"]["sklearn"]
    assert folder.plan.law[0].content == law == search.certificate_.law
    assert search.certificate_ == CertifiedSearch(Chance(), networks=30, beta=0.1).fit(*rows_of()).certificate_


class Interrupted(Chance):
    left = 8

    def fit(self, X, y=None):
        Interrupted.left -= 1
        if not Interrupted.left:
            raise KeyboardInterrupt
        return super().fit(X, y)


def test_an_interrupted_search_goes_on(tmp_path):
    search = CertifiedSearch(Interrupted(), networks=20, beta=0.2, run=tmp_path / "run")
    Interrupted.left = 8
    with pytest.raises(KeyboardInterrupt):
        search.fit(*rows_of())
    done = RunFolder(tmp_path / "run").rows()["index"].tolist()
    assert done[:6] == list(range(6)), "the first was made twice"
    assert 6 not in done, "it was interrupted; the one that was handed out after it may have ended first"
    Interrupted.left = 100
    search.fit(*rows_of())
    assert 100 - Interrupted.left == 1 + 20 - len(done) + 1, "the first again, those missing, the best again"
    whole = CertifiedSearch(Interrupted(), networks=20, beta=0.2).fit(*rows_of())
    assert whole.certificate_ == search.certificate_ == RunFolder(tmp_path / "run").certificate


def test_a_killed_search_goes_on(tmp_path):
    (tmp_path / "slow.py").write_text(
        textwrap.dedent("""
        import sys, time
        import numpy as np
        from sklearn.base import BaseEstimator
        from echobound.estimators import CertifiedSearch

        class Slow(BaseEstimator):
            def __init__(self, random_state=None):
                self.random_state = random_state
            def fit(self, X, y=None):
                time.sleep(PAUSE)
                self.value_ = self.random_state.random_sample()
                return self
            def score(self, X, y=None):
                return self.value_

        PAUSE = float(sys.argv[1])
        CertifiedSearch(Slow(), networks=40, beta=0.2, run="run").fit(np.zeros((8, 1)))
        """)
    )
    call = functools.partial(subprocess.Popen, cwd=tmp_path, env={**os.environ, **this_tree()})
    running = call([sys.executable, "slow.py", "0.05"])
    try:
        for _ in range(600):
            time.sleep(0.1)
            with contextlib.suppress(RunError):
                if len(RunFolder(tmp_path / "run").rows()) > 5:
                    break
        running.send_signal(signal.SIGKILL)
    finally:
        running.kill()
    assert running.wait() != 0
    before = RunFolder(tmp_path / "run").rows()
    assert 5 < len(before) < 40
    assert call([sys.executable, "slow.py", "0"]).wait() == 0
    folder = RunFolder(tmp_path / "run")
    assert (folder.rows()[: len(before)] == before).all()
    assert folder.certificate.networks == 40


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"networks": 13}, "epsilon, networks"),
        ({"random_state": 1}, "seed"),
        ({"estimator": RandomForestRegressor(4)}, r"law \(parameters\)"),
        ({"estimator": ExtraTreesRegressor(3)}, r"law \(name, estimator, parameters\)"),
        ({"validation": 0.5}, "folds"),
        ({"scoring": "r2"}, "scores"),
    ],
)
def test_a_folder_of_another_plan_is_refused(tmp_path, change, named):
    X, y = rows_of(60)
    options = {"estimator": RandomForestRegressor(3), "networks": 12, "beta": 0.2, "run": tmp_path / "run"}
    CertifiedSearch(**options).fit(X, y)
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(RunError, match=rf"another plan \(other {named}\): nothing was changed"):
        CertifiedSearch(**{**options, **change}).fit(X, y)
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}


class Scorer:
    """A score without a name, as Python shows it with its address."""

    def __call__(self, estimator, X, y):
        return estimator.score(X, y)


def test_what_has_no_influence_is_not_part_of_the_plan(tmp_path):
    def search(**options):  # functions and objects are others each time, as in another process
        def halved(X):
            return X / 2

        forest = RandomForestRegressor(3, **options)
        model = make_pipeline(FunctionTransformer(halved), forest)
        return CertifiedSearch(model, networks=6, beta=0.3, scoring=Scorer(), run=tmp_path / "run").fit(*rows_of(60))

    assert search().certificate_ == search(n_jobs=2, verbose=0).certificate_
    law = RunFolder(tmp_path / "run").certificate.law
    assert law["estimator"] == "sklearn.pipeline.Pipeline"
    assert law["parameters"]["randomforestregressor__n_estimators"] == 3
    assert "0x" not in json.dumps(law)


def test_other_data_and_other_folders_are_refused(tmp_path):
    X, y = rows_of()
    search = CertifiedSearch(Chance(), networks=5, beta=0.5, run=tmp_path / "run").fit(X, y)
    with pytest.raises(RunError, match=r"the data have changed since the plan of .* was recorded"):
        search.fit(X + 1, y)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    with pytest.raises(RunError, match="is not empty and not a run folder: nothing was changed"):
        search.set_params(run=tmp_path / "full").fit(X, y)
    with pytest.raises(RunError, match="cannot make the folder"):
        search.set_params(run=tmp_path / "full" / "thesis.tex" / "run").fit(X, y)


def sealed(content, **changes):
    """Change a file as somebody who knows how its digest is made."""
    content.update(changes)
    del content["digest"]
    content["digest"] = digest(content)


def test_whatever_was_changed_is_noticed(tmp_path):
    search = CertifiedSearch(Chance(), networks=8, beta=0.3, stop=None, run=tmp_path / "run").fit(*rows_of())

    def changed(name, edit):
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(tmp_path / "run", copy)
        if name.endswith("json"):
            content = json.loads((copy / name).read_text())
            edit(content)
            (copy / name).write_text(json.dumps(content))
        else:
            with sqlite3.connect(copy / name) as db:
                db.execute(edit)
            db.close()
        return RunFolder(copy)

    for name, edit, part in (
        ("ledger.sqlite", "UPDATE rows SET score_0 = 2.0 WHERE number = 3", "not the ledger that was certified"),
        ("ledger.sqlite", "UPDATE rows SET score_0 = 1e-9 WHERE number = 3", "not the ledger that was certified"),
        ("ledger.sqlite", "DELETE FROM rows WHERE number = 7", "7 rows, none of network 7, but 8 networks are due"),
        ("plan.json", lambda plan: plan.update(networks=7), "digest"),
        ("plan.json", lambda plan: plan["law"].update(parameters={}), "digest"),
        ("plan.json", lambda plan: plan.pop("folds"), "digest"),
        ("plan.json", lambda plan: sealed(plan, networks=7), "belongs to another plan"),
        ("plan.json", lambda plan: sealed(plan, folds=None), "not a complete plan"),
        ("plan.json", lambda plan: sealed(plan, law={**plan["law"], "kind": "tree"}), "law .tree. is not known here"),
        ("certificate.json", lambda c: c.update(epsilon=0.01), "epsilon: .* follows, 0.01 is stated"),
    ):
        # A plan that was sealed again is no damaged file: its ledger belongs to another, or its law is not known.
        kind = RunError if "another plan" in part or "not known" in part else DamagedFile
        with pytest.raises(kind, match=part) as raised:
            _ = changed(name, edit).certificate
        assert raised.type is kind
    # Whoever changes the ledger and certifies that, is told by the draw itself.
    forged = changed("ledger.sqlite", "UPDATE rows SET score_0 = 2.0 WHERE number = 3")
    (forged.path / "certificate.json").unlink()
    with pytest.raises(InputError, match=r"draw 3 scored 2 and, made again .* a changed ledger"):
        search.set_params(run=forged.path).fit(*rows_of())


def test_versions_are_part_of_the_plan(tmp_path, monkeypatch):
    search = CertifiedSearch(RandomForestRegressor(2), networks=5, beta=0.5, run=tmp_path / "run").fit(*rows_of())
    monkeypatch.setattr("sklearn.__version__", "0.1")
    with pytest.raises(RunError, match=r"other law \(packages\)"):
        search.fit(*rows_of())
    assert RunFolder(tmp_path / "run").certificate == search.certificate_, "to read it, versions do not matter"


# Stopping, and further statements.


def test_patience_stops_where_the_scores_say(tmp_path):
    options = {"epsilon": 0.3, "beta": 0.1, "stop": "patience:15"}
    search = CertifiedSearch(Chance(), **options, run=tmp_path / "run", random_state=2).fit(*rows_of())
    stopped, scores = search.certificate_.stopped, search.results_["score"]
    by_hand = [draw_estimator(Chance(), 2, i).fit(None).value_ for i in range(len(scores))]
    assert scores.tolist() == by_hand
    assert stopped.networks == len(scores) == max(search.best_index_ + 1 + 15, stopped.rule.soonest)
    assert len(scores) > stopped.rule.soonest, "it went on from the least number"
    assert search.certificate_.rule == "patience"
    folder = RunFolder(tmp_path / "run")
    assert folder.certificate == search.certificate_
    assert [s.kind for s in folder.certificate.statements] == ["stopped", "both ends", "gain"]
    parallel = CertifiedSearch(Chance(), **options, n_jobs=2, random_state=2).fit(*rows_of())
    assert parallel.certificate_ == search.certificate_


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ({"networks": 30}, ["both ends", "gain"]),
        ({"epsilon": 0.2, "discarded": 3}, ["removal", "both ends", "gain"]),
        ({"epsilon": 0.2, "stop": "anytime:20"}, ["stopped", "gain"]),
    ],
)
def test_statements_are_those_of_the_plan(options, kinds, tmp_path):
    search = CertifiedSearch(Chance(), beta=0.1, run=tmp_path / "run", **options).fit(*rows_of())
    assert [statement.kind for statement in search.certificate_.statements] == kinds
    assert RunFolder(tmp_path / "run").certificate == search.certificate_


# Does the certificate hold?

CAMPAIGNS = 200


def campaigns(count):
    """Search and fresh scores of one seed for each campaign, the search by `CertifiedSearch` itself."""
    X, y = rows_of(4)
    for seed in range(count):
        search = CertifiedSearch(Chance(), networks=NETWORKS, beta=0.05, random_state=seed).fit(X, y)
        fresh = [draw_estimator(Chance(), seed, i, VERIFICATION).fit(X, y).score(X, y) for i in range(NETWORKS)]
        yield search.results_["score"], np.array(fresh)


def p_values(found):
    counts = violation_counts(lambda i: found[i], len(found))
    missed = miss_p_value(np.array([1 - scores.max() for scores, _ in found]), NETWORKS, EPSILON)
    return count_p_value(counts, NETWORKS, NETWORKS), missed


def test_violations_follow_the_exact_law():
    found = list(campaigns(CAMPAIGNS))
    by_count, by_miss = p_values(found)
    assert by_count > LEVEL
    assert by_miss > LEVEL
    everything = np.concatenate([np.concatenate(pair) for pair in found])
    assert len(np.unique(everything)) == everything.size


def test_mutant_states_come_back_every_few_draws(monkeypatch):
    true = draw_key
    for module in ("random_states", "candidates"):
        monkeypatch.setattr(
            f"echobound.estimators.{module}.draw_key",
            lambda seed, stream, family, index: true(seed, stream, family, index % 15 if stream == SEARCH else index),
        )
    by_count, by_miss = p_values(list(campaigns(CAMPAIGNS // 2)))
    assert by_count < LEVEL
    assert by_miss < LEVEL
