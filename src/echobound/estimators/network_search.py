"""The certified search over a law of networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from echobound.arrays import Rows
from echobound.data import Record, split
from echobound.errors import InputError
from echobound.estimators.experiments import FreeRunRegressor, records_of, seed_of, washout_of
from echobound.estimators.parameters import plan_defaults, with_parameters
from echobound.estimators.regressor import EchoStateCommittee, EchoStateRegressor
from echobound.identify import identify
from echobound.kernels import Status
from echobound.network import Committee, LeastSquares, NetworkLaw, ReservoirLaw, get_law
from echobound.plan import Plan
from echobound.scenario import Certificate
from echobound.scores import Score, get_score

SETTINGS = plan_defaults(
    "law",
    "trainer",
    "quick",
    "scores",
    "blocks",
    "washout",
    "seed",
    "seed_of_data",
    "criterion",
    "renewal",
    "numbering",
)
OWN = {"scoring": "fit", "validation": 0.25, "washout": None, "random_state": 0, "workers": None, "kernel": "cpu"}


@with_parameters({"law": "broad", **SETTINGS, **OWN, "run": None})
class EchoStateSearch(MetaEstimatorMixin, FreeRunRegressor):  # type: ignore[misc]  # untyped base
    """The best of N networks on validation data, with its certificate: `identify` as an estimator.

    Parameters
    ----------
    law, order, epsilon, beta, networks, bound, stop, target, discarded, joint, horizon, committee, members
        As in `identify`; so is every other field of `Plan`.
    scoring
        Name of the score that selects: ``"fit"``, ``"rmse"`` or a registered one.
    validation
        What is held out to select on: the end of the last experiment (a fraction if below 1, otherwise a number of
        samples), or a list of labels of whole experiments.
    washout
        As in `EchoStateRegressor`.
    random_state
        Seed of the networks.
    workers, kernel, run
        As in `identify`.

    Attributes
    ----------
    best_estimator_
        The best network as a fitted `EchoStateRegressor`, or the best committee as a fitted `EchoStateCommittee`; None
        if all of them diverged. It is not retrained on all data, since the certificate is about the network trained on
        what was not held out.
    best_score_, best_index_
        Its validation score and its index.
    results_
        Arrays over all networks: ``index``, ``score``, ``rank``, ``diverged``, ``order``, ``ridge``.
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
        """Draw, train and score all networks; select the best and certify it."""
        records, flat = records_of(self, X, y, groups)
        kept, held = _held_out(records, self.validation)
        score, settings = get_score(self.scoring), {name: getattr(self, name) for name in SETTINGS}
        washout, seed = washout_of(self.washout, [*kept, *held]), seed_of(self.random_state)
        plan = Plan(law=self.law, scores=[score], washout=washout, seed=seed, **settings)
        _require_reservoirs(plan)
        result = identify(kept, held, plan=plan, workers=self.workers, kernel=self.kernel, run=self.run)
        best = None
        picked = result.network or result.committee  # what the certificate is about: a network, or a committee
        if picked is not None:
            kind: Any = EchoStateCommittee if isinstance(picked, Committee) else EchoStateRegressor
            best = kind.of(picked, flat, kernel=self.kernel)
            if hasattr(self, "feature_names_in_"):
                best.feature_names_in_ = self.feature_names_in_
        record_outcome(self, best, result.certificate, score, result.table, "order", "ridge")
        return self

    def predict(self, X: ArrayLike, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Free run of the best network, as in `EchoStateRegressor.predict`."""
        best: EchoStateRegressor | EchoStateCommittee = best_of(self)
        return best.predict(X, groups)


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


def record_outcome(search: Any, best: Any, certificate: Certificate, score: Score, table: Rows, *columns: str) -> None:
    """Set the attributes of a finished search; `columns` of the table are added to ``results_``."""
    search.best_estimator_, search.certificate_, search.best_index_ = best, certificate, certificate.winner
    search.best_score_ = score.worst if certificate.threshold is None else certificate.threshold
    scores = table["scores"][:, 0]
    best_first = np.argsort(-scores if score.direction == "max" else scores, kind="stable")
    search.results_ = {
        "index": np.arange(len(table)),
        "score": scores.copy(),
        "rank": np.argsort(best_first) + 1,
        "diverged": table["status"] == Status.DIVERGED,
        **{name: table[name] for name in columns},
    }


def best_of(search: Any) -> Any:
    """The best estimator of a search; an error if there is none."""
    check_is_fitted(search, "certificate_")
    if search.best_estimator_ is None:
        raise InputError("all networks of this search failed: there is none to predict with; see certificate_")
    return search.best_estimator_


def _require_reservoirs(plan: Plan) -> None:
    """Refuse laws whose networks have no parameters by which an `EchoStateRegressor` could draw them."""
    given = list(plan.law) if isinstance(plan.law, list | tuple) else [plan.law or "mixed"]
    for law in [get_law(one) if isinstance(one, str) else one for one in given]:
        if isinstance(law, NetworkLaw) and not (
            isinstance(law, ReservoirLaw) and isinstance(law.training, LeastSquares)
        ):
            raise InputError(
                f"the law {law.name} draws what an EchoStateRegressor cannot be: take broad, paper or another law of"
                " networks that are trained by least squares, or use identify"
            )
