"""The scikit-learn way: one network as a regressor, and certified searches as meta-estimators.

Rows of ``X`` are samples in time order, not independent ones: a free run is simulated through them. Several
experiments are given as `groups`, one label for each row; each experiment is a run of equal labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echobound.campaign import settle_networks
from echobound.campaign.plan import Bound
from echobound.campaign.provenance import provenance
from echobound.data import Record
from echobound.draws import SEARCH, draw_key
from echobound.errors import InputError, MissingExtra
from echobound.files import digest
from echobound.identify import identify
from echobound.kernels import get_kernel, hold_out
from echobound.kernels.training import train_network
from echobound.network import EchoStateNetwork, ReservoirLaw
from echobound.scenario import certify, select
from echobound.scores import get_score

try:
    from sklearn.base import BaseEstimator, MetaEstimatorMixin, MultiOutputMixin, RegressorMixin, clone
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtra("echobound.estimators", extra="sklearn") from None

__all__ = ["CertifiedSearch", "EchoStateRegressor", "EchoStateSearch"]

Labels = NDArray[Any]
LAW = (
    *("order", "norm", "input_scale", "feedback_scale", "bias_scale", "leak", "leak_spread", "input_delays"),
    *("present_input", "output_delays", "constant", "training_noise", "scaling", "nonzeros", "pattern", "padding"),
)


class EchoStateRegressor(RegressorMixin, MultiOutputMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """One echo state network, drawn and trained; `predict` is its free run from the training mean of the outputs.

    Parameters
    ----------
    order, norm, input_scale, feedback_scale, bias_scale, leak, leak_spread
        The reservoir, as in `ReservoirLaw`, each a constant.
    input_delays, present_input, output_delays, constant, training_noise, scaling, nonzeros, pattern, padding
        The readout and the rest, likewise.
    ridge
        Relative ridge of the least squares.
    washout
        Samples at the start of each experiment that are not trained on; a tenth of the shortest one, at most 100, if
        not given.
    random_state, draw
        They name the network: draw number `draw` of this seed.
    kernel
        How to compute: ``"cpu"`` or ``"reference"``.

    Attributes
    ----------
    model_
        The `EchoStateNetwork`, which can do more: simulate from measured outputs, predict, save.

    Examples
    --------
    >>> u = np.sin(0.1 * np.arange(400.0)) + np.sin(0.37 * np.arange(400.0))
    >>> y = np.convolve(u, [0.0, 0.5, 0.3])[:400]
    >>> network = EchoStateRegressor(order=30).fit(u[:300, None], y[:300])
    >>> network.predict(u[300:, None]).shape
    (100,)
    >>> network.score(u[300:, None], y[300:]) > 0.9
    True
    """

    def __init__(
        self,
        order: int = 100,
        *,
        norm: float = 0.9,
        input_scale: float = 1.0,
        feedback_scale: float = 0.0,
        bias_scale: float = 0.5,
        leak: float = 1.0,
        leak_spread: float = 0.0,
        input_delays: int = 1,
        present_input: bool = True,
        output_delays: int = 0,
        constant: bool = True,
        training_noise: float = 0.0,
        scaling: str = "minmax",
        nonzeros: int = 10,
        pattern: str = "diagonals",
        padding: int = 100,
        ridge: float = 1e-8,
        washout: int | None = None,
        random_state: Any = 0,
        draw: int = 0,
        kernel: str = "cpu",
    ) -> None:
        self.order = order
        self.norm = norm
        self.input_scale = input_scale
        self.feedback_scale = feedback_scale
        self.bias_scale = bias_scale
        self.leak = leak
        self.leak_spread = leak_spread
        self.input_delays = input_delays
        self.present_input = present_input
        self.output_delays = output_delays
        self.constant = constant
        self.training_noise = training_noise
        self.scaling = scaling
        self.nonzeros = nonzeros
        self.pattern = pattern
        self.padding = padding
        self.ridge = ridge
        self.washout = washout
        self.random_state = random_state
        self.draw = draw
        self.kernel = kernel

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> EchoStateRegressor:
        """Draw the network and train its readout on ``X`` (inputs) and ``y`` (outputs), in time order."""
        records, flat = _records(self, X, y, groups)
        law = ReservoirLaw(**{name: getattr(self, name) for name in LAW}, ridges=(self.ridge,), name="regressor")
        problem = hold_out(
            records,
            records,
            law=law,
            scores=[get_score("rmse")],
            washout=_washout(self.washout, records),
            seed=_seed(self.random_state),
        )
        model, _ = train_network(get_kernel(self.kernel), problem, self.draw)
        return self._take(model, flat)

    def predict(self, X: ArrayLike, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Simulate over inputs: a free run from the training mean of the outputs, anew for each experiment."""
        check_is_fitted(self, "model_")
        u = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        y = np.concatenate([self.model_.simulate(u[start:stop]).y for start, stop in _runs(groups, len(u))])
        return y[:, 0] if self.flat_ else y

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> float:
        """R² of the free run, minus infinity if it diverges; FIT is 100 (1 - sqrt(1 - R²)) for one output."""
        from sklearn.metrics import r2_score

        simulated = self.predict(X, groups)
        return float(r2_score(y, simulated, sample_weight=sample_weight)) if np.isfinite(simulated).all() else -np.inf

    def save(self, path: str | Path) -> None:
        """Save without pickle: an NPZ file in which nothing can be run, see `load`."""
        check_is_fitted(self, "model_")
        self.model_.save(path)

    @classmethod
    def load(cls, path: str | Path) -> EchoStateRegressor:
        """Load a saved network as a fitted estimator with the parameters that it was made with.

        Examples
        --------
        >>> import tempfile
        >>> X = np.sin(0.3 * np.arange(100.0))[:, None]
        >>> network = EchoStateRegressor(order=20).fit(X, X[:, 0] ** 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     network.save(f"{folder}/network.npz")
        ...     again = EchoStateRegressor.load(f"{folder}/network.npz")
        >>> bool((again.predict(X) == network.predict(X)).all()), again.order
        (True, 20)
        """
        return cls._of(EchoStateNetwork.load(path))

    @classmethod
    def _of(cls, model: EchoStateNetwork, flat: bool | None = None, **options: Any) -> EchoStateRegressor:
        """A fitted estimator around a network, with the parameters by which `fit` would draw the same."""
        origin = model.origin
        try:
            options = {
                **asdict(model.reservoir.hyper),
                **{name: origin["law"][name] for name in ("nonzeros", "pattern")},
                **{"ridge": origin["ridge"], "random_state": origin["seed"], "draw": origin["index"]},
                **{"padding": model.padding, "washout": model.washout},
                **options,
            }
        except (KeyError, TypeError):
            raise InputError("this network does not say how it was drawn: use EchoStateNetwork.load for it") from None
        flat = bool(origin.get("flat", len(model.output_names) == 1)) if flat is None else flat
        return cls(**options)._take(model, flat)

    def _take(self, model: EchoStateNetwork, flat: bool) -> EchoStateRegressor:
        self.model_ = replace(model, origin={**model.origin, "flat": flat})
        self.flat_ = flat
        self.n_features_in_ = len(model.input_names)
        return self

    def __sklearn_tags__(self) -> Any:
        return _tags(super().__sklearn_tags__())


class EchoStateSearch(RegressorMixin, MultiOutputMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """The certified search over a law as an estimator: N networks, the best on validation data, and its certificate.

    Parameters
    ----------
    law, order, epsilon, beta, networks, bound, workers, kernel, run
        As in `identify`.
    scoring
        Score that selects, by name: ``"fit"``, ``"rmse"`` or a registered one.
    validation
        What is held out to pick on: the last part of the last experiment (below 1 a fraction, else samples), or a list
        of the labels of whole experiments.
    washout
        As in `EchoStateRegressor`.
    random_state
        Seed of the networks.

    Attributes
    ----------
    best_estimator_
        The picked network as a fitted `EchoStateRegressor`, trained on what was not held out: it is the network that
        the certificate speaks of, and is not trained again on all data. None if all networks diverged.
    best_score_, best_index_
        Its validation score and its index.
    results_
        Arrays over all networks: ``index``, ``score``, ``order``, ``ridge``, ``diverged``, ``rank``.
    certificate_
        What is promised.

    Examples
    --------
    >>> u = np.sin(0.1 * np.arange(400.0)) + np.sin(0.37 * np.arange(400.0))
    >>> y = np.convolve(u, [0.0, 0.5, 0.3])[:400]
    >>> search = EchoStateSearch(law="paper", order=20, networks=20, beta=1e-3).fit(u[:, None], y)
    >>> bool(search.best_score_ == search.certificate_.threshold == search.results_["score"].max())
    True
    """

    def __init__(
        self,
        law: str | ReservoirLaw = "broad",
        *,
        order: int | None = None,
        epsilon: float | None = None,
        beta: float = 1e-7,
        networks: int | None = None,
        bound: Bound = "exact",
        scoring: str = "fit",
        validation: float | Sequence[Any] = 0.25,
        washout: int | None = None,
        random_state: Any = 0,
        workers: int | None = None,
        kernel: str = "cpu",
        run: str | Path | None = None,
    ) -> None:
        self.law = law
        self.order = order
        self.epsilon = epsilon
        self.beta = beta
        self.networks = networks
        self.bound = bound
        self.scoring = scoring
        self.validation = validation
        self.washout = washout
        self.random_state = random_state
        self.workers = workers
        self.kernel = kernel
        self.run = run

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> EchoStateSearch:
        """Draw, train and score all networks, pick the best, and certify it."""
        records, flat = _records(self, X, y, groups)
        kept, held = _held_out(records, self.validation)
        score = get_score(self.scoring)
        result = identify(
            kept,
            held,
            law=self.law,
            order=self.order,
            epsilon=self.epsilon,
            beta=self.beta,
            networks=self.networks,
            bound=self.bound,
            scores=[score],
            washout=_washout(self.washout, [*kept, *held]),
            seed=_seed(self.random_state),
            workers=self.workers,
            kernel=self.kernel,
            run=self.run,
        )
        table = result.table
        self.certificate_ = result.certificate
        self.results_ = _results(
            table["scores"][:, 0],
            score.direction,
            order=table["order"],
            ridge=table["ridge"],
            diverged=table["status"] > 0,
        )
        self.best_index_ = result.certificate.winner
        self.best_score_ = score.worst if result.certificate.threshold is None else result.certificate.threshold
        self.best_estimator_ = None
        if result.model is not None:
            self.best_estimator_ = EchoStateRegressor._of(result.model, flat, kernel=self.kernel)
            _carry(self, self.best_estimator_)
        return self

    def predict(self, X: ArrayLike, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Free run of the picked network, as `EchoStateRegressor.predict`."""
        best: EchoStateRegressor = _best(self)
        return best.predict(X, groups)

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> float:
        """R² of the picked network, as `EchoStateRegressor.score`."""
        best: EchoStateRegressor = _best(self)
        return best.score(X, y, sample_weight, groups)

    def __sklearn_tags__(self) -> Any:
        return _tags(super().__sklearn_tags__())


class CertifiedSearch(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Best of N draws of any estimator with a ``random_state``, certified: how unlikely it is that another does better.

    Each draw is a clone with another random state, fitted on the first part of the data and scored on the rest. One
    that cannot be fitted or scored counts with the worst score; none is drawn again.

    Parameters
    ----------
    estimator
        With a parameter ``random_state``; nested ones by `parameter`.
    epsilon, beta, networks, bound
        As in `identify`.
    scoring
        As in scikit-learn, larger is better; the estimator's own ``score`` if not given.
    validation
        Part of the rows, from the end, that are held out: a fraction, or their number.
    random_state
        Seed of the random states.
    parameter
        Name of the parameter that is drawn, such as ``"regressor__random_state"`` in a pipeline.

    Attributes
    ----------
    best_estimator_, best_score_, best_index_, results_, certificate_
        As in `EchoStateSearch`; ``results_`` has ``random_state`` in place of order and ridge.

    Examples
    --------
    >>> from sklearn.neural_network import MLPRegressor
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> perceptron = MLPRegressor(hidden_layer_sizes=(3,), solver="lbfgs")
    >>> search = CertifiedSearch(perceptron, networks=5, beta=0.5).fit(X, X[:, 0] ** 2)
    >>> search.certificate_.networks, bool(search.best_index_ == search.results_["score"].argmax())
    (5, True)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        epsilon: float | None = None,
        beta: float = 1e-7,
        networks: int | None = None,
        bound: Bound = "exact",
        scoring: Any = None,
        validation: float = 0.25,
        random_state: Any = 0,
        parameter: str = "random_state",
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.beta = beta
        self.networks = networks
        self.bound = bound
        self.scoring = scoring
        self.validation = validation
        self.random_state = random_state
        self.parameter = parameter

    def fit(self, X: ArrayLike, y: ArrayLike) -> CertifiedSearch:
        """Fit and score all draws, keep the best, and certify it."""
        from sklearn.metrics import check_scoring
        from sklearn.utils import _safe_indexing, indexable
        from sklearn.utils.validation import _num_samples

        if self.parameter not in self.estimator.get_params():
            raise InputError(f"{type(self.estimator).__name__} has no parameter {self.parameter!r}: nothing is drawn")
        if y is None:
            raise InputError("this search requires y to be passed, but the target y is None")
        X, y = indexable(X, y)
        rows = int(_num_samples(X))
        if rows < 2:
            raise InputError(f"n_samples = {rows}: at least two rows are needed, to train on and to score on")
        held = round(self.validation * rows) if self.validation < 1 else int(self.validation)
        if not 0 < held < rows:
            raise InputError(f"validation={self.validation} leaves nothing to train or to score on of {rows} rows")
        parts = [np.arange(rows - held), np.arange(rows - held, rows)]
        (X_train, y_train), (X_held, y_held) = ((_safe_indexing(X, p), _safe_indexing(y, p)) for p in parts)
        count, epsilon = settle_networks(self.epsilon, self.beta, self.networks, self.bound)
        scorer, seed = check_scoring(self.estimator, scoring=self.scoring), _seed(self.random_state)
        states = [int(draw_key(seed, SEARCH, 0, index)[0]) % 2**31 for index in range(count)]
        scores, failures = np.full(count, -np.inf), []
        self.best_estimator_: Any = None
        for index, state in enumerate(states):
            candidate = clone(self.estimator).set_params(**{self.parameter: state})
            try:
                candidate.fit(X_train, y_train)
                value = float(scorer(candidate, X_held, y_held))
            except Exception as error:  # whatever it is, the draw counts: leaving it out would change the law
                failures.append(f"draw {index}: {error}")
                if len(failures) == count:  # not a matter of chance: the data or the estimator are not usable
                    raise
                continue
            scores[index] = value if np.isfinite(value) else -np.inf
            if select(scores[: index + 1], "max") == index:
                self.best_estimator_ = candidate
        if failures:
            warnings.warn(
                f"{len(failures)} of {count} draws failed and count as worst, {failures[0][:200]}", stacklevel=2
            )
        self.certificate_ = certify(
            scores,
            score=self.scoring if isinstance(self.scoring, str) else "score",
            direction="max",
            epsilon=epsilon,
            beta=float(self.beta),
            bound=self.bound,
            law={"estimator": repr(self.estimator), "drawn": self.parameter},
            seed=seed,
            digests={"data": digest([_content(X), _content(y)])},
            provenance=provenance(kernel="scikit-learn", seconds=0.0),
        )
        self.best_index_ = self.certificate_.winner
        self.best_score_ = -np.inf if self.certificate_.threshold is None else self.certificate_.threshold
        self.results_ = _results(scores, "max", random_state=np.array(states), diverged=~np.isfinite(scores))
        return self

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X, as the best draw knows it."""
        if getattr(self, "best_estimator_", None) is None:
            raise AttributeError("n_features_in_ is known after fit")
        return int(self.best_estimator_.n_features_in_)

    def predict(self, X: ArrayLike) -> Any:
        """Prediction of the best draw."""
        return _best(self).predict(X)

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Score of the best draw on other data."""
        from sklearn.metrics import check_scoring

        best = _best(self)
        return float(check_scoring(best, scoring=self.scoring)(best, X, y))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.regressor_tags = inner.estimator_type, inner.regressor_tags
        tags.classifier_tags, tags.target_tags = inner.classifier_tags, inner.target_tags
        tags.input_tags = inner.input_tags
        return tags


def _records(estimator: Any, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None) -> tuple[list[Record], bool]:
    """One record for each experiment, named by its label; and whether y has one dimension."""
    u, measured = validate_data(
        estimator, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2
    )
    flat = measured.ndim == 1
    outputs = np.asarray(measured, dtype=np.float64).reshape(len(u), -1)
    names = tuple(getattr(estimator, "feature_names_in_", ()))
    labels = None if groups is None else np.asarray(groups)
    return [
        Record(u[a:b], outputs[a:b], input_names=names, name="record" if labels is None else str(labels[a]))
        for a, b in _runs(groups, len(u))
    ], flat


def _runs(groups: ArrayLike | None, length: int) -> list[tuple[int, int]]:
    """First and last (exclusive) row of each experiment."""
    if groups is None:
        return [(0, length)]
    labels = np.asarray(groups)
    if labels.shape != (length,):
        raise InputError(f"groups must have one label for each of the {length} rows, got shape {labels.shape}")
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    if len(starts) > len(np.unique(labels)):
        raise InputError(
            "rows of one experiment must follow each other: a label of groups comes back later, so sort them"
        )
    return list(zip(starts.tolist(), [*starts[1:].tolist(), length], strict=True))


def _held_out(records: list[Record], validation: float | Sequence[Any]) -> tuple[list[Record], list[Record]]:
    from echobound.data import split

    if isinstance(validation, int | float):
        kept, held = split(records[-1], validation=validation)
        return [*records[:-1], kept], [held]
    wanted = {str(label) for label in validation}
    unknown = sorted(wanted - {record.name for record in records})
    if unknown or len(wanted) == len(records):
        what = f"there is no group {unknown[0]!r}" if unknown else "no experiment is left to train on"
        raise InputError(f"validation names the groups to hold out, but {what}: there are {len(records)} groups")
    return [r for r in records if r.name not in wanted], [r for r in records if r.name in wanted]


def _washout(washout: int | None, records: Sequence[Record]) -> int:
    return min(100, min(map(len, records)) // 10) if washout is None else washout


def _seed(random_state: Any) -> int:
    from sklearn.utils import check_random_state

    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def _results(scores: NDArray[np.float64], direction: str, **columns: Any) -> dict[str, Any]:
    better = -scores if direction == "max" else scores
    rank = np.empty(len(scores), dtype=np.int64)
    rank[np.argsort(better, kind="stable")] = np.arange(1, len(scores) + 1)
    return {"index": np.arange(len(scores)), "score": scores.copy(), "rank": rank, **columns}


def _content(data: Any) -> Any:
    """Data as numbers or text, for their digest."""
    if hasattr(data, "tocoo"):
        sparse = data.tocoo()
        return [list(sparse.shape), *(np.asarray(part) for part in (sparse.row, sparse.col, sparse.data))]
    array = np.asarray(data)
    return array if array.dtype.kind in "fiubc" else [str(value) for value in array.ravel().tolist()]


def _carry(search: Any, best: EchoStateRegressor) -> None:
    if hasattr(search, "feature_names_in_"):
        best.feature_names_in_ = search.feature_names_in_


def _best(search: Any) -> Any:
    check_is_fitted(search, "certificate_")
    if search.best_estimator_ is None:
        raise InputError("all networks of this search failed: there is none to predict with; see certificate_")
    return search.best_estimator_


def _tags(tags: Any) -> Any:
    # Rows are a time series: shuffled or independent rows, as scikit-learn's checks draw them, are not predictable.
    tags.regressor_tags.poor_score = True
    return tags
