"""The certified search over any estimator with a random state."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples

from echobound.campaign import Computing, run_search
from echobound.draws import SEARCH, draw_key
from echobound.errors import InputError
from echobound.estimators.candidates import EstimatorCandidates, HeldOutRows
from echobound.estimators.description import digest_of, law_of, shown
from echobound.estimators.experiments import seed_of
from echobound.estimators.network_search import best_of, record_outcome
from echobound.estimators.parameters import REQUIRED, plan_defaults, with_parameters
from echobound.estimators.random_states import drawn_parameters
from echobound.kernels.base import Status
from echobound.kernels.blas import one_blas_thread
from echobound.plan import Plan
from echobound.report import write_page
from echobound.runs import RunFolder, rows_digest
from echobound.runs.derivation import certificate_of, digests_of
from echobound.runs.journal import Journal, with_search
from echobound.runs.provenance import provenance
from echobound.scores import Score


def _of_best(name: str, doc: str) -> Any:
    """A method of the best draw, offered only where that draw, or before `fit` the estimator, has it."""

    def found(search: Any) -> bool:
        best = getattr(search, "best_estimator_", None)
        return hasattr(search.estimator if best is None else best, name)

    def method(self: Any, X: ArrayLike) -> Any:
        return getattr(best_of(self), name)(X)

    method.__name__, method.__doc__ = name, doc
    return available_if(found)(method)


OWN = {"scoring": None, "validation": 0.25, "random_state": 0, "n_jobs": None, "run": None}
# A draw of any estimator has no law by name, no trainer of ours, no blocks, no free run and no committee.
SETTINGS = plan_defaults(
    *(
        "law",
        "order",
        "trainer",
        "quick",
        "scores",
        "joint",
        "blocks",
        "washout",
        "horizon",
        "committee",
        "seed",
        "seed_of_data",
    ),
    *("criterion", "renewal", "numbering"),
)


@with_parameters({"estimator": REQUIRED, **SETTINGS, **OWN})
class CertifiedSearch(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """The best of N draws of any estimator with a ``random_state``; it certifies how unlikely a better draw is.

    What the certificate calls a network is one draw: a clone with other random states, fitted on the first part of the
    rows and scored on the rest. One that cannot be fitted or scored counts with the worst score; none is drawn again.
    `draw_estimator` makes any draw again from the seed and its index.

    Parameters
    ----------
    estimator
        With one or more parameters ``random_state`` at any depth, all None: they are what is drawn. What would make
        draws depend on each other is refused: a fixed random state, ``warm_start``, a cache, a frozen estimator, a
        global generator, data changed in place, and another score when the same draw is made again.
    epsilon, beta, networks, bound, stop, target, discarded
        As in `identify`.
    members
        1: committees are made of networks alone.
    scoring
        As in scikit-learn, larger is better; the estimator's own ``score`` if not given.
    validation
        How many of the last rows are held out for scoring: a fraction, or their number.
    random_state
        Seed of the draws.
    n_jobs
        Draws fitted at the same time, as in scikit-learn; it has no influence on the result beyond rounding.
    run
        Folder to record the search in; an interrupted search with the same plan is resumed. It holds neither data nor
        estimator, since both may be anything: pass `candidates_` to `verify` and `audit`.

    Attributes
    ----------
    best_estimator_
        The best draw, fitted on what was not held out; None if no draw had a finite score (if every draw raised an
        error, `fit` raises that of the first: there is nothing to certify). Its random states are used up: to fit
        the same draw to other data, use ``draw_estimator(estimator, seed, best_index_)``, not a clone.
    best_score_, best_index_
        Its score and its index.
    results_
        Arrays over all draws: ``index``, ``score``, ``rank``, ``diverged``.
    certificate_
        What is promised; ``certificate_.seed`` is the seed.
    candidates_
        What was drawn, for ``verify(run, candidates=[search.candidates_])`` and `audit`.

    Examples
    --------
    >>> from sklearn.neural_network import MLPRegressor
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> perceptron = MLPRegressor(hidden_layer_sizes=(3,), solver="lbfgs")
    >>> search = CertifiedSearch(perceptron, networks=5, beta=0.5).fit(X, X[:, 0] ** 2)
    >>> search.certificate_.networks, bool(search.best_index_ == search.results_["score"].argmax())
    (5, True)
    >>> from echobound.estimators import draw_estimator
    >>> redrawn = draw_estimator(perceptron, seed=0, index=search.best_index_).fit(X[:45], X[:45, 0] ** 2)
    >>> bool(np.isclose(redrawn.score(X[45:], X[45:, 0] ** 2), search.best_score_))
    True
    """

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> CertifiedSearch:
        """Fit and score all draws, keep the best, and certify it."""
        drawn = drawn_parameters(self.estimator)
        if y is None and get_tags(self.estimator).target_tags.required:
            raise InputError("this search requires y to be passed, but the target y is None")
        if isinstance(self.scoring, list | tuple | set | dict):
            raise InputError(f"one score is needed to pick by, got scoring={self.scoring!r}")
        training, held = _parts(X, y, self.validation)
        seed, name = seed_of(self.random_state), "score" if self.scoring is None else _name(self.scoring)
        draw_key(seed, SEARCH, 0, 0)  # refuses a bad seed here; within a draw, it would only count as a failed draw
        scorer = check_scoring(self.estimator, scoring=self.scoring)
        data = digest_of(_given(X, y))  # of all rows: the plan says how they are split
        measures = (Score(name, max, "max"),)
        candidates = EstimatorCandidates(self.estimator, drawn, scorer, measures, training, held, seed, data)

        # Everything is settled before the first draw.
        settings = {name: getattr(self, name) for name in SETTINGS}
        asked = Plan(law=law_of(self.estimator, drawn), scores=measures, committee=0, seed=seed, **settings)
        plan = asked.settle(HeldOutRows(int(_num_samples(training[0])), int(_num_samples(held[0])), data))

        with RunFolder.start(self.run, plan, None) as folder, one_blas_thread():
            # Entered before the first draw: whoever searches the same data again is told so.
            search = None
            if folder.stored:
                search = Journal(folder.path.absolute().parent).enter(plan.data, plan, folder.path.name)

            # Draw, fit and score.
            candidates.require_reproducible(folder.ledger)
            with _computing(self.n_jobs).open_engine() as engine:
                table = run_search(plan, [candidates], folder.ledger, engine)

            # Pick the best, and derive what that is worth.
            digests = {**digests_of(plan), "ledger": rows_digest(table)}
            ran, seconds = folder.ledger.origins(), float(table["seconds"].sum())
            origin = provenance(kernel=candidates.code, ran=ran, seconds=seconds)
            certificate = certificate_of(plan, table, digests=digests, provenance=origin)
            certificate = with_search(certificate, plan, search, plan.data)
            winner = certificate.winner
            made = candidates.make(winner or 0)  # if none could be fitted, this raises the reason
            if winner is not None:
                candidates.require_same(winner, float(table["scores"][winner, 0]), made.scores[0])
            folder.finish(certificate)
            if folder.stored:
                write_page(folder)
        if certificate.failures:
            first = int(table["index"][table["status"] == Status.DIVERGED][0])
            why = f", draw {first}: {(candidates.failure(first) or 'no finite score')[:200]}"
            warnings.warn(f"{certificate.failures} of {len(table)} draws failed and count as worst{why}", stacklevel=2)
        self.candidates_ = candidates
        record_outcome(self, None if winner is None else made.model, certificate, measures[0], table)
        return self

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X, as the best draw knows it."""
        if getattr(self, "best_estimator_", None) is None:
            raise AttributeError("n_features_in_ is known after fit")
        return int(self.best_estimator_.n_features_in_)

    @property
    def classes_(self) -> Any:
        """Labels of a classifier, as the best draw knows them."""
        if getattr(self, "best_estimator_", None) is None:
            raise AttributeError("classes_ are known after fit")
        return self.best_estimator_.classes_

    predict = _of_best("predict", "Prediction of the best draw.")
    predict_proba = _of_best("predict_proba", "Class probabilities according to the best draw.")
    decision_function = _of_best("decision_function", "Decision function of the best draw.")

    def score(self, X: ArrayLike, y: ArrayLike | None = None) -> float:
        """Score of the best draw on other data."""
        best = best_of(self)
        return float(check_scoring(best, scoring=self.scoring)(best, *_given(X, y)))

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in ("estimator_type", "regressor_tags", "classifier_tags", "target_tags", "input_tags"):
            setattr(tags, name, getattr(inner, name))
        return tags


def _parts(X: Any, y: Any, validation: Any) -> Iterable[tuple[Any, ...]]:
    """Rows to fit to and rows to score on."""
    X, y = indexable(X, y)
    rows = int(_num_samples(X))
    if rows < 2:
        raise InputError(f"n_samples = {rows}: at least two rows are needed, to train on and to score on")
    if not isinstance(validation, int | float | np.integer | np.floating):
        raise InputError(f"validation must be a fraction of the rows or their number, got {validation!r}")
    held = round(float(validation) * rows) if validation < 1 else int(validation)
    if not 0 < held < rows:
        raise InputError(f"validation={validation} leaves nothing to train or to score on of {rows} rows")
    parts = np.arange(rows - held), np.arange(rows - held, rows)
    return [_given(_safe_indexing(X, p), None if y is None else _safe_indexing(y, p)) for p in parts]


def _given(X: Any, y: Any) -> tuple[Any, ...]:
    return (X,) if y is None else (X, y)


def _computing(n_jobs: int | None) -> Computing:
    """Where draws are fitted: here, or as many at a time as joblib says, in its processes or threads."""
    import joblib

    workers = int(joblib.effective_n_jobs(n_jobs))
    backend, _ = joblib.parallel.get_active_backend()
    if workers == 1 or getattr(backend, "supports_sharedmem", False):  # joblib's mark of threads
        return Computing(workers=workers)
    if client := getattr(backend, "client", None):  # joblib's backend for Dask
        return Computing(workers=workers, engine=client.get_executor())
    # Not our own processes: joblib's start without running the user's script again, guarded or not.
    from joblib.externals.loky import get_reusable_executor

    return Computing(workers=workers, engine=get_reusable_executor(max_workers=workers))


def _name(scoring: Any) -> str:
    return scoring if isinstance(scoring, str) else str(getattr(scoring, "__name__", None) or shown(scoring))
