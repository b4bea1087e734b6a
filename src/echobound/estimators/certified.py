"""The certified search over any estimator with a random state."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.validation import _num_samples

from echobound.campaign import settle_networks
from echobound.campaign.plan import Bound
from echobound.campaign.provenance import provenance
from echobound.draws import SEARCH, draw_key
from echobound.errors import InputError
from echobound.estimators.experiments import seed_of
from echobound.estimators.search import best_of, results_of
from echobound.files import digest
from echobound.scenario import certify, select

__all__ = ["CertifiedSearch"]


class CertifiedSearch(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Best of N draws of any estimator with a ``random_state``, certified: how unlikely it is that another does better.

    What the certificate calls a network is one draw: a clone with another random state, fitted on the first part of the
    data and scored on the rest. One that cannot be fitted or scored counts with the worst score; none is drawn again.

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
        scorer, seed = check_scoring(self.estimator, scoring=self.scoring), seed_of(self.random_state)
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
        self.results_ = results_of(scores, "max", random_state=np.array(states), diverged=~np.isfinite(scores))
        return self

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X, as the best draw knows it."""
        if getattr(self, "best_estimator_", None) is None:
            raise AttributeError("n_features_in_ is known after fit")
        return int(self.best_estimator_.n_features_in_)

    def predict(self, X: ArrayLike) -> Any:
        """Prediction of the best draw."""
        return best_of(self).predict(X)

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Score of the best draw on other data."""
        best = best_of(self)
        return float(check_scoring(best, scoring=self.scoring)(best, X, y))

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.regressor_tags = inner.estimator_type, inner.regressor_tags
        tags.classifier_tags, tags.target_tags = inner.classifier_tags, inner.target_tags
        tags.input_tags = inner.input_tags
        return tags


def _content(data: Any) -> Any:
    """Data as numbers or text, for their digest."""
    if hasattr(data, "tocoo"):
        sparse = data.tocoo()
        return [list(sparse.shape), *(np.asarray(part) for part in (sparse.row, sparse.col, sparse.data))]
    array = np.asarray(data)
    return array if array.dtype.kind in "fiubc" else [str(value) for value in array.ravel().tolist()]
