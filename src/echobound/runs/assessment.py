"""Assessment: what the model of a run is worth, beside a linear one, with reasons: numbers, findings and the verdict.

How it is kept, `runs/assessed.py` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from echobound.arrays import Signal
from echobound.data.record import Record
from echobound.diagnostics.arx import Regression, Structure
from echobound.diagnostics.coverage import coverage_of, excursions
from echobound.diagnostics.drift import drift_of
from echobound.diagnostics.finding import Finding, Piece
from echobound.diagnostics.first_line import first_line
from echobound.diagnostics.linear import Linear, linear_model, responses
from echobound.diagnostics.paired import difference
from echobound.diagnostics.residuals import residuals_of
from echobound.diagnostics.verdict import OFTEN, Evidence, Verdict, verdict_of
from echobound.kernels.blas import one_blas_thread
from echobound.runs.holding import held_of
from echobound.runs.scoring import measured_outputs, outputs_of
from echobound.scores import Summary, fit, mean_summary, summary

if TYPE_CHECKING:
    from echobound.runs.folder import RunFolder


@dataclass(frozen=True, eq=False)
class Assessment:
    """What a model is worth.

    Parameters
    ----------
    summary
        The first line: what the model explains, what further draws would bring, whether it was tested.
    verdict
        In a word, with reasons and what to do next.
    evidence
        The numbers that both rest on.
    scores
        FIT and RMSE of the delivered model under ``validation`` and, where there are test data, ``test``.
    linear
        The linear model beside it; None if there is no model.
    """

    summary: str
    verdict: Verdict
    evidence: Evidence
    scores: dict[str, Summary]
    linear: Linear | None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the diagnostics found."""
        return self.evidence.findings


def assess(folder: RunFolder) -> Assessment:
    """Assess the delivered model of a finished run, from its data and models.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> result = identify(*ph_experiment(samples=(600, 400)), law="paper", order=20, networks=20)
    >>> result.verdict.grade, result.linear.kind, len(result.assessment.findings)
    ('poor', 'ARX', 9)
    """
    if not folder.models:
        return assessment_of(folder, Evidence(model=False), {}, None)
    test = opened_records(folder)
    pieces, measured, delivered = held_out(folder)
    with one_blas_thread():  # small matrices, many of them; and the same sums everywhere
        linear = _linear(folder, measured, delivered, test)
        scores = _scores(folder, measured, delivered, test)
        evidence = _evidence(folder, pieces, measured, delivered, linear, scores, test)
    return assessment_of(folder, evidence, scores, linear)


def opened_records(folder: RunFolder) -> tuple[Record, ...]:
    """The test data that were opened: those of the second certificate, or of the run."""
    second = folder.generalisation
    return folder.experiments.test if second is None else folder.tested(second)


def held_out(folder: RunFolder) -> tuple[list[Piece], list[Signal], list[Signal]]:
    """Pieces that networks were scored on, with the outputs of the delivered model; and both sides fold by fold."""
    records = (*folder.experiments.training, *folder.experiments.validation)
    measured, delivered = measured_outputs(folder), outputs_of(folder)[folder.delivered]
    pieces = []
    for fold, y, simulated in zip(folder.plan.folds, measured, delivered, strict=True):
        done = 0
        for s in fold.scored:
            part = slice(done, done + s.counted)
            pieces.append(Piece(records[s.record].u[s.start + s.washout : s.stop], y[part], simulated[part]))
            done += s.counted
    return pieces, measured, delivered


def _linear(
    folder: RunFolder, measured: Sequence[Signal], delivered: Sequence[Signal], test: Sequence[Record]
) -> Linear:
    records = (*folder.experiments.training, *folder.experiments.validation)
    horizon, washout = folder.plan.horizon, folder.plan.washout
    found = linear_model(records, folder.plan.folds, horizon=horizon, test=test)
    apart = None
    if test:
        pairs = folder.respond(test)[folder.delivered]
        ours, theirs = [y for _, y in pairs], responses(found.model, test, washout, horizon)
        apart = difference([y for y, _ in pairs], ours, theirs)
    return replace(found, difference=difference(measured, delivered, found.outputs), test_difference=apart)


def _scores(
    folder: RunFolder, measured: Sequence[Signal], delivered: Sequence[Signal], test: Sequence[Record]
) -> dict[str, Summary]:
    names = folder.picked.output_names
    folds = [summary(y, simulated, names) for y, simulated in zip(measured, delivered, strict=True)]
    found = {"validation": mean_summary(folds)}
    if test:
        y, simulated = (np.concatenate(side) for side in zip(*folder.respond(test)[folder.delivered], strict=True))
        found["test"] = summary(y, simulated, names)
    return found


def _evidence(
    folder: RunFolder,
    pieces: Sequence[Piece],
    measured: Sequence[Signal],
    delivered: Sequence[Signal],
    linear: Linear,
    scores: dict[str, Summary],
    test: Sequence[Record],
) -> Evidence:
    training, horizon = folder.experiments.training, folder.plan.horizon
    first = training[0]
    last = scores.get("test", scores["validation"])
    lead = linear.test_difference if test else linear.difference
    residuals = residuals_of(pieces, first.input_names, first.output_names, folder.plan.horizon)
    held = held_of(folder)[folder.delivered]
    role = "test" if test and "test" in held else next(iter(held), "")
    each = folder.respond(test)[folder.delivered] if test else []
    beyond = excursions(training, np.concatenate([record.u for record in test])) if test else []
    return Evidence(
        fit=known(scores["validation"]["fit"]),
        test=known(scores["test"]["fit"]) if test else None,
        tested=len(test),
        blocks=tuple(known(float(fit(y, s))) for y, s in zip(measured, delivered, strict=True)),
        outputs={name: known(one["fit"]) for name, one in last["per_output"].items()},
        records=tuple(known(float(fit(y, s))) for y, s in each),
        linear=known(linear.fit),
        linear_test=known(linear.scores["test"]["fit"]) if test else None,
        lead=None if lead is None else (lead.fit, lead.low, lead.high),
        held=tuple(one.words for one in held.get(role, ()) if one.too_long),
        beyond=tuple(one.words for one in beyond if one.share > OFTEN),
        naive=None if horizon is None else _naive(folder, horizon),
        single_step=_single_step(folder),
        horizon=horizon,
        findings=(*residuals.findings, drift_of(pieces, first.output_names), *coverage_of(training)),
    )


def _naive(folder: RunFolder, horizon: int) -> float | None:
    """FIT of holding the output measured `horizon` samples before."""
    records, fits = (*folder.experiments.training, *folder.experiments.validation), []
    for fold in folder.plan.folds:
        pairs = []
        for s in fold.scored:
            y = records[s.record].y[s.start : s.stop]
            pairs.append((y[s.washout :], y[np.maximum(np.arange(s.washout, len(y)) - horizon, 0)]))
        fits.append(float(fit(*(np.concatenate(side) for side in zip(*pairs, strict=True)))))
    return known(float(np.mean(fits)))


def _single_step(folder: RunFolder) -> float | None:
    """FIT of a linear prediction one sample ahead, fold by fold as everything else."""
    records, fits = (*folder.experiments.training, *folder.experiments.validation), []
    for fold in folder.plan.folds:
        pieces = [(records[s.record].u[s.start : s.stop], records[s.record].y[s.start : s.stop]) for s in fold.training]
        order = min(4, max(1, max(len(u) for u, _ in pieces) // 10))
        model = Regression(pieces, order).model(Structure(order, order))
        both = []
        for s in fold.scored:
            u, y = records[s.record].u[s.start : s.stop], records[s.record].y[s.start : s.stop]
            both.append((y[s.washout :], model.predict(u, y, s.washout, 1)))
        fits.append(float(fit(*(np.concatenate(side) for side in zip(*both, strict=True)))))
    return known(float(np.mean(fits)))


def known(value: float) -> float | None:
    """A FIT, or None of a model that ran off."""
    return float(value) if np.isfinite(value) else None


def assessment_of(
    folder: RunFolder, evidence: Evidence, scores: dict[str, Summary], linear: Linear | None
) -> Assessment:
    """What follows from the numbers: the first line and the verdict."""
    certificate, delivery = folder.certificate, folder.delivery
    line = first_line(
        evidence,
        epsilon=certificate.epsilon,
        beta=certificate.beta,
        delivered="" if delivery is None else delivery.delivered,
        networks=certificate.networks,
        blocks=certificate.blocks,
        members=certificate.members,
    )
    return Assessment(line, verdict_of(evidence), evidence, scores, linear)
