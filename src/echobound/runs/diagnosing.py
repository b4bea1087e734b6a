"""Diagnostics: everything that can be looked at beyond a score, computed when it is asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from echobound.diagnostics.finding import Finding
from echobound.diagnostics.residuals import Residuals, residuals_of
from echobound.diagnostics.responses import (
    HorizonCurve,
    StepResponses,
    horizon_curve,
    step_responses,
    steps_finding,
)
from echobound.kernels import compiled_dynamics
from echobound.kernels.blas import one_blas_thread
from echobound.runs.assessment import held_out

if TYPE_CHECKING:
    from echobound.runs.folder import RunFolder


class Diagnostics:
    """What diagnostics say of the delivered model of a run, as MATLAB's `resid`, `advice`, `compare` and `step` do.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> found = identify(*ph_experiment(samples=(600, 400)), law="paper", order=20, networks=20).diagnostics
    >>> [one.name for one in found.findings][:4]
    ['white errors', 'missing dynamics', 'dead time', 'feedback']
    >>> found.prediction.horizons[:3], found.steps[0].input, list(found.residuals.own)
    ((1, 2, 5), 'q3', ['pH'])
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, a sentence each."""
        found = self._folder.assessment
        if found is None or not found.evidence.model:
            return ()
        return (*found.findings, self.prediction.finding, steps_finding(self.steps))

    @cached_property
    def residuals(self) -> Residuals:
        """Correlations of what the model leaves over on held-out data, with its own past and with the inputs."""
        first, horizon = self._folder.experiments.training[0], self._folder.plan.horizon
        with one_blas_thread():
            return residuals_of(held_out(self._folder)[0], first.input_names, first.output_names, horizon)

    @cached_property
    def prediction(self) -> HorizonCurve:
        """FIT by how far ahead the model predicts.

        It is on validation data where there are any; of blocks in turn, the model was trained on all of them.
        """
        data = self._folder.experiments
        own = not data.validation
        records, called = (data.training, "its training data") if own else (data.validation, "validation data")
        return horizon_curve(self._folder.model, records, called, dynamics=compiled_dynamics())

    @cached_property
    def steps(self) -> tuple[StepResponses, ...]:
        """Answers to a step of each input, at three operating points."""
        return step_responses(self._folder.model, self._folder.experiments.training, dynamics=compiled_dynamics())

    def __str__(self) -> str:
        return "\n".join(f"{one.mark:>4}  {one.name}: {one.words}" for one in self.findings)
