"""The linear baseline: what a linear model is worth on the same data, scored in the same way.

Candidates are ARX models of several orders, with and without coupling between outputs and direct feedthrough, and the
better uncoupled ones refined on the error of their free run (output error). The order is chosen by the folds that
networks are chosen by, with the same score, FIT; of blocks in turn, the choice is then fitted to all training data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from echobound.arrays import Signal
from echobound.data.record import Record
from echobound.diagnostics.arx import LinearModel, Pair, Regression, Structure
from echobound.diagnostics.output_error import refined
from echobound.diagnostics.paired import Difference
from echobound.kernels.blas import one_blas_thread
from echobound.kernels.problem import Fold, Segment
from echobound.scores import Summary, fit, mean_summary, summary

ORDERS = (1, 2, 3, 4, 6, 8, 10)
IMPULSE = 30  # inputs of the finite impulse response, the one candidate that cannot run off
REFINED = 2  # of the best uncoupled structures
Fitted = Callable[[Sequence[Pair]], LinearModel]


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear model beside the one that is delivered.

    Parameters
    ----------
    kind
        ``"ARX"`` or ``"output error"``.
    model
        Fitted to all training data.
    scores
        FIT and RMSE under ``validation`` and, where there are test data, ``test``, as those of the delivered model.
    outputs
        What was scored, fold by fold: of blocks in turn, by models fitted to the other blocks.
    difference, test_difference
        By how much the delivered model is better on validation and test data; None where one of them ran off.
    """

    kind: str
    model: LinearModel
    scores: dict[str, Summary]
    outputs: tuple[Signal, ...]
    difference: Difference | None = None
    test_difference: Difference | None = None

    @property
    def fit(self) -> float:
        """FIT on validation data, in per cent."""
        return self.scores["validation"]["fit"]

    @property
    def words(self) -> str:
        """What kind of model it is."""
        coupled = ", outputs coupled" if self.model.structure.coupled and len(self.model.c) > 1 else ""
        return f"{self.kind}: {self.model.structure.words}{coupled}"


def linear_model(
    records: Sequence[Record], folds: Sequence[Fold], *, horizon: int | None = None, test: Sequence[Record] = ()
) -> Linear:
    """The best linear model by the folds; `records` are those that the folds number.

    Examples
    --------
    >>> from echobound.kernels.problem import block_folds
    >>> u = np.sin(np.arange(400.0) ** 1.3)[:, None]
    >>> y = np.zeros_like(u)
    >>> for k in range(2, 400):
    ...     y[k] = 1.2 * y[k - 1] - 0.5 * y[k - 2] + u[k - 1]
    >>> record = Record(u, y)
    >>> found = linear_model([record], block_folds([record], 4, 20))
    >>> found.fit > 99.9, found.kind
    (True, 'output error')
    """
    with one_blas_thread():  # many small problems: threads would only wait for each other
        return _linear_model(records, folds, horizon, test)


def _linear_model(
    records: Sequence[Record], folds: Sequence[Fold], horizon: int | None, test: Sequence[Record]
) -> Linear:
    trained = [[_pair(records, segment) for segment in fold.training] for fold in folds]
    most = _most(trained)
    regressions = [Regression(pieces, most) for pieces in trained]
    scored: dict[tuple[str, Structure], tuple[float, tuple[Signal, ...]]] = {}

    def score(kind: str, structure: Structure, models: Sequence[LinearModel]) -> None:
        outputs = tuple(_outputs(m, records, fold, horizon) for m, fold in zip(models, folds, strict=True))
        fits = [float(fit(_measured(records, fold), y)) for fold, y in zip(folds, outputs, strict=True)]
        scored[kind, structure] = (float(np.mean(np.nan_to_num(fits, nan=-np.inf))), outputs)

    for structure in _structures(most, records[0].outputs):
        score("ARX", structure, [one.model(structure) for one in regressions])
    uncoupled = [key for key in scored if key[1].own and not key[1].coupled]
    for _, structure in sorted(uncoupled, key=lambda key: -scored[key][0])[:REFINED]:
        pairs = zip(regressions, trained, strict=True)
        score("output error", structure, [refined(one.model(structure), pieces) for one, pieces in pairs])
    kind, structure = max(scored, key=lambda key: scored[key][0])
    model = _last(records, folds, trained, regressions, kind, structure, most)
    outputs = scored[kind, structure][1]
    names = records[0].output_names
    each = [summary(_measured(records, fold), y, names) for fold, y in zip(folds, outputs, strict=True)]
    scores = {"validation": mean_summary(each)}
    if test:
        simulated = responses(model, test, folds[0].scored[0].washout, horizon)
        measured = np.concatenate([record.y[folds[0].scored[0].washout :] for record in test])
        scores["test"] = summary(measured, np.concatenate(simulated), names)
    return Linear(kind, model, scores, outputs)


def responses(model: LinearModel, records: Sequence[Record], washout: int, horizon: int | None = None) -> list[Signal]:
    """Outputs over each record after its washout: free runs, or predictions."""
    whole = [Segment(number, 0, len(record), washout) for number, record in enumerate(records)]
    return [_response(model, records, segment, horizon) for segment in whole]


def _last(
    records: Sequence[Record],
    folds: Sequence[Fold],
    trained: Sequence[Sequence[Pair]],
    regressions: Sequence[Regression],
    kind: str,
    structure: Structure,
    most: int,
) -> LinearModel:
    """The choice, fitted to all training data: of a hold-out these are those of its one fold."""
    if len(folds) == 1:
        pieces, regression = trained[0], regressions[0]
    else:
        pieces = [(record.u, record.y) for record in records]
        regression = Regression(pieces, most)
    model = regression.model(structure)
    return refined(model, pieces) if kind == "output error" else model


def _most(trained: Sequence[Sequence[Pair]]) -> int:
    """The largest order: pieces must be longer than their past, and equations more than coefficients."""
    shortest = min(sum(len(u) for u, _ in pieces) for pieces in trained)
    longest = min(max(len(u) for u, _ in pieces) for pieces in trained)
    channels = trained[0][0][0].shape[1] + trained[0][0][1].shape[1]
    return int(max(1, min(IMPULSE, longest // 4, shortest // (4 * channels))))


def _structures(most: int, outputs: int) -> list[Structure]:
    orders = [order for order in ORDERS if order <= most] or [1]
    impulse = [Structure(0, most + 1, 0)]
    return impulse + [
        Structure(order, order, delay, coupled)
        for order in orders
        for delay in (0, 1)
        for coupled in ((False, True) if outputs > 1 else (False,))
    ]


def _pair(records: Sequence[Record], segment: Segment) -> Pair:
    record = records[segment.record]
    return record.u[segment.start : segment.stop], record.y[segment.start : segment.stop]


def _measured(records: Sequence[Record], fold: Fold) -> Signal:
    return np.concatenate([_pair(records, segment)[1][segment.washout :] for segment in fold.scored])


def _outputs(model: LinearModel, records: Sequence[Record], fold: Fold, horizon: int | None) -> Signal:
    return np.concatenate([_response(model, records, segment, horizon) for segment in fold.scored])


def _response(model: LinearModel, records: Sequence[Record], segment: Segment, horizon: int | None) -> Signal:
    u, y = _pair(records, segment)
    if horizon is None:
        return model.simulate(u, y[: max(segment.washout, 1)], segment.washout)
    return model.predict(u, y, segment.washout, horizon)
