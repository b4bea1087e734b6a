"""The certified search over a law of networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from echobound.data import Record, split
from echobound.errors import InputError
from echobound.estimators.experiments import in_time_order, records_of, seed_of, washout_of
from echobound.estimators.parameters import plan_defaults, with_parameters
from echobound.estimators.regressor import EchoStateRegressor
from echobound.identify import identify
from echobound.plan import Plan
from echobound.scores import get_score

__all__ = ["EchoStateSearch", "best_of", "results_of"]


OWN = {
    **{"scoring": "fit", "validation": 0.25, "washout": None, "random_state": 0},
    **{"workers": None, "kernel": "cpu", "run": None},
}
SETTINGS = plan_defaults("law", "scores", "blocks", "washout", "seed", "criterion", "renewal", "numbering")


@with_parameters("law", "broad", {**SETTINGS, **OWN})
class EchoStateSearch(RegressorMixin, MultiOutputMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """The certified search over a law as an estimator: N networks, the best on validation data, and its certificate.

    Parameters
    ----------
    law, order, epsilon, beta, networks, bound, stop, target, discarded, joint, horizon, committee
        As in `identify`, and so are all other fields of `Plan`.
    workers, kernel, run
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

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> EchoStateSearch:
        """Draw, train and score all networks, pick the best, and certify it."""
        records, flat = records_of(self, X, y, groups)
        kept, held = _held_out(records, self.validation)
        score, settings = get_score(self.scoring), {name: getattr(self, name) for name in SETTINGS}
        washout, seed = washout_of(self.washout, [*kept, *held]), seed_of(self.random_state)
        plan = Plan(law=self.law, scores=[score], washout=washout, seed=seed, **settings)
        result = identify(kept, held, plan=plan, workers=self.workers, kernel=self.kernel, run=self.run)
        table = result.table
        self.certificate_ = result.certificate
        self.results_ = results_of(
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
            self.best_estimator_ = EchoStateRegressor.of(result.model, flat, kernel=self.kernel)
            if hasattr(self, "feature_names_in_"):
                self.best_estimator_.feature_names_in_ = self.feature_names_in_
        return self

    def predict(self, X: ArrayLike, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Free run of the picked network, as `EchoStateRegressor.predict`."""
        best: EchoStateRegressor = best_of(self)
        return best.predict(X, groups)

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> float:
        """R² of the picked network, as `EchoStateRegressor.score`."""
        best: EchoStateRegressor = best_of(self)
        return best.score(X, y, sample_weight, groups)

    def __sklearn_tags__(self) -> Any:
        return in_time_order(super().__sklearn_tags__())


def _held_out(records: list[Record], validation: float | Sequence[Any]) -> tuple[list[Record], list[Record]]:
    if isinstance(validation, int | float):
        kept, held = split(records[-1], validation=validation)
        return [*records[:-1], kept], [held]
    wanted = {str(label) for label in validation}
    unknown = sorted(wanted - {record.name for record in records})
    if unknown or len(wanted) == len(records):
        what = f"there is no group {unknown[0]!r}" if unknown else "no experiment is left to train on"
        raise InputError(f"validation names the groups to hold out, but {what}: there are {len(records)} groups")
    return [r for r in records if r.name not in wanted], [r for r in records if r.name in wanted]


def results_of(scores: NDArray[np.float64], direction: str, **columns: Any) -> dict[str, Any]:
    """A table of all draws, as arrays by name."""
    better = -scores if direction == "max" else scores
    rank = np.empty(len(scores), dtype=np.int64)
    rank[np.argsort(better, kind="stable")] = np.arange(1, len(scores) + 1)
    return {"index": np.arange(len(scores)), "score": scores.copy(), "rank": rank, **columns}


def best_of(search: Any) -> Any:
    """The picked estimator of a search, which must be there."""
    check_is_fitted(search, "certificate_")
    if search.best_estimator_ is None:
        raise InputError("all networks of this search failed: there is none to predict with; see certificate_")
    return search.best_estimator_
