"""RunContents: what the page and the figures say about a run folder, read and computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echobound.campaign.folder import RunFolder
from echobound.campaign.plan import Plan
from echobound.campaign.verification import verification_of
from echobound.data.record import Signal
from echobound.kernels.base import Rows
from echobound.report.panels import ScorePanel, labelled
from echobound.scenario import Certificate
from echobound.scenario.verification import Case
from echobound.scores import Score, get_score, summary

__all__ = ["Response", "RunContents"]

Array = NDArray[np.float64]
MOST_IN_BAND = 20_000  # networks: the band takes seconds there, and minutes beyond


@dataclass(frozen=True, eq=False)
class Response:
    """Measured and simulated outputs of the records of one role, one after the other with a row of NaN between them.

    Parameters
    ----------
    role
        ``"validation"`` or ``"test"``.
    time
        In seconds, counted on from record to record.
    measured, simulated
        Signals ``(time, channel)``; simulated ones by what simulates.
    names, units
        Of the outputs.
    scores
        FIT and RMSE of each that simulates, as `scores.summary` gives them.
    """

    role: str
    time: Array
    measured: Signal
    simulated: Mapping[str, Signal]
    names: tuple[str, ...]
    units: tuple[str, ...]
    scores: Mapping[str, Mapping[str, Any]]


class RunContents:
    """A run folder as the page sees it; everything in it was checked when it was opened.

    Parameters
    ----------
    folder
        The run folder.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    @property
    def name(self) -> str:
        """What the run is called: its folder."""
        return self.folder.path.resolve().name

    @property
    def plan(self) -> Plan:
        """What was planned."""
        return self.folder.plan

    @property
    def certificate(self) -> Certificate:
        """What is promised."""
        return self.folder.certificate

    @property
    def search(self) -> Rows:
        """The networks of the search."""
        return self.folder.search

    @cached_property
    def fresh(self) -> Rows:
        """The networks of all verifications."""
        return self.folder.verification

    @cached_property
    def verification(self) -> dict[str, Any] | None:
        """What they say; None if there are none."""
        return verification_of(self.folder) if len(self.fresh) else None

    @property
    def score(self) -> Score:
        """The score that selects."""
        return get_score(self.plan.scores[0])

    @cached_property
    def responses(self) -> list[Response]:
        """The model on validation and, where there are any, test data; nothing if all networks diverged."""
        if self.certificate.winner is None:
            return []
        return [self._response(role) for role in ("validation", "test") if getattr(self.folder.experiments, role)]

    def _response(self, role: str) -> Response:
        model, horizon = self.folder.model, self.plan.horizon
        times, measured, simulated, offset = [], [], [], 0
        for record in getattr(self.folder.experiments, role):
            run = model.simulate(record) if horizon is None else model.predict(record, horizon)
            times.append((offset + np.arange(run.first, len(record))) * record.sampling_time)
            measured.append(record.y[run.first :])
            simulated.append(np.where(np.isnan(run.y), np.inf, run.y))  # diverged; NaN is a gap between records
            offset += len(record)
        scores = summary(np.concatenate(measured), np.concatenate(simulated), model.output_names)
        return Response(
            role=role,
            time=np.concatenate([np.r_[t, t[-1]] for t in times])[:-1],
            measured=_joined(measured),
            simulated={"model": _joined(simulated)},
            names=model.output_names,
            units=model.output_units,
            scores={"model": scores},
        )

    def panels(self, rows: Rows, *, testing: bool) -> list[ScorePanel]:
        """Best case of the first score above, worst case of the last below: the paper's pair of panels."""
        cases: tuple[tuple[Case, int], ...] = (("best", 0), ("worst", len(self.plan.scores) - 1))
        panels = []
        for case, position in cases:
            score = get_score(self.plan.scores[position])
            found = self.search["scores"][:, position]
            best = found.max() if (score.direction == "max") == (case == "best") else found.min()
            panels.append(
                ScorePanel(
                    scores=rows["scores"][:, position],
                    threshold=float(best),
                    direction=score.direction,
                    case=case,
                    label=self.label(score),
                    circle_violations=testing,
                )
            )
        return panels

    def label(self, score: Score) -> str:
        """A score with its unit; RMSE has that of the outputs if they share one."""
        units = set(self.folder.experiments.training[0].output_units)
        unit = score.unit or (units.pop() if score.name == "rmse" and len(units) == 1 else "")
        return labelled(score.name.upper(), unit)

    @cached_property
    def band(self) -> tuple[Array, Array] | None:
        """For each rank, limits for the share of all networks that do better, all at once; None if not at hand."""
        theory = _theory("band")
        if theory is None or not 1 < len(self.search) <= MOST_IN_BAND:
            return None
        scores = self.search["scores"][:, 0]
        band = theory.DistributionBand.of(scores, beta=self.certificate.beta, direction=self.score.direction)
        return np.array(band.lower), np.array(band.upper)

    @cached_property
    def learning(self) -> tuple[Array, Array, str] | None:
        """Sizes of a search, the mean best score of each, and in words what more networks would gain."""
        theory = _theory("gain")
        count = len(self.search)
        if theory is None or count < 2:
            return None
        scores, score = self.search["scores"][:, 0], self.score
        sizes = np.unique(np.geomspace(1, count, 60).round().astype(int))
        curve = theory.learning_curve(scores, sizes, score.direction)
        finite = np.isfinite(curve)
        gain = theory.Gain.of(
            scores, score=score.name, direction=score.direction, unit=score.unit, horizon=self.plan.horizon
        )
        return sizes[finite].astype(np.float64), curve[finite], gain.words


def _theory(module: str) -> Any | None:
    """A part of `scenario` that this page shows if it is there."""
    try:
        return import_module(f"echobound.scenario.{module}")
    except ModuleNotFoundError:
        return None


def _joined(signals: list[Signal]) -> Signal:
    """One after the other, a row of NaN between two."""
    gap = np.full((1, signals[0].shape[1]), np.nan)
    return np.concatenate([part for signal in signals for part in (signal, gap)])[:-1]
