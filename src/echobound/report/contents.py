"""RunContents: what the page and the figures say about a run folder, read and computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from echobound.arrays import Array, Rows, Signal
from echobound.data.record import Record
from echobound.diagnostics.telling import vacuous
from echobound.network import Holding, PlantModel
from echobound.report.panels import FamilyRange, ScorePanel, labelled
from echobound.runs.folder import RunFolder
from echobound.runs.holding import held_of
from echobound.runs.opening import episodes_of
from echobound.runs.scoring import measured_outputs, outputs_of, scores_of
from echobound.scenario import DistributionBand, Families, Generalisation, learning_curve
from echobound.scenario.generalisation import CALLED
from echobound.scenario.ordering import Case
from echobound.scenario.words import noun
from echobound.scores import Score, summary

MOST_IN_BAND = 20_000  # networks: the band takes seconds there, and minutes beyond
MOST_DRAWN = 6  # outputs, and inputs: those of 80 would take a minute to draw, and nobody could look at them


@dataclass(frozen=True, eq=False)
class Response:
    """Measured and simulated outputs of the records of one role, one after the other with a row of NaN between them.

    With blocks, each is simulated by the networks that were trained on the others. Time is in seconds, counted on from
    record to record. Signals, and the scores that `scores.summary` gives, are kept by what simulates: picked network,
    committee, the delivered one first. The band is half the width of its band in new episodes, for each output; empty
    where it is not drawn.
    """

    role: str
    time: Array
    measured: Signal
    simulated: Mapping[str, Signal]
    names: tuple[str, ...]
    units: tuple[str, ...]
    scores: Mapping[str, Mapping[str, Any]]
    band: tuple[float | None, ...] = ()
    inputs: Mapping[str, Array] = field(default_factory=dict)  # by label, with gaps as the outputs have

    @property
    def drawn(self) -> Response:
        """What a figure shows of it: of many outputs those with the lowest FIT of the delivered model, in their order.

        Of many inputs it shows the first.
        """
        inputs = dict(list(self.inputs.items())[:MOST_DRAWN])
        if len(self.names) <= MOST_DRAWN:
            return replace(self, inputs=inputs)
        fits = [one["fit"] for one in next(iter(self.scores.values()))["per_output"].values()]
        which = np.sort(np.argsort(np.nan_to_num(fits, nan=-np.inf), kind="stable")[:MOST_DRAWN])
        names = tuple(self.names[i] for i in which)
        return replace(
            self,
            measured=self.measured[:, which],
            simulated={whose: y[:, which] for whose, y in self.simulated.items()},
            names=names,
            units=tuple(self.units[i] for i in which),
            scores={
                whose: {**each, "per_output": {name: each["per_output"][name] for name in names}}
                for whose, each in self.scores.items()
            },
            band=tuple(self.band[i] for i in which) if self.band else (),
            inputs=inputs,
        )


class RunContents:
    """A run folder as the page sees it; everything in it was checked when it was opened."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.plan, self.certificate, self.second = folder.plan, folder.certificate, folder.generalisation
        self.search, self.fresh = folder.search, folder.fresh
        self.name = folder.path.resolve().name  # a folder given as "." has a name, too
        self.score = self.plan.measures[0]  # the one that selects
        self.drawn = noun(self.plan.members)
        self.how = "free run" if self.plan.horizon is None else f"prediction {self.plan.horizon} samples ahead"

    @cached_property
    def responses(self) -> list[Response]:
        """Model and committee on validation and, where there are any, test data; nothing where no model is stored."""
        if not self.folder.models:
            return []
        data = self.folder.experiments
        held_out = self._blocks() if self.plan.blocks is not None else self._records("validation", data.validation)
        return [held_out, *([self._records("test", data.test)] if data.test else [])]

    @property
    def compared(self) -> int:
        """How many figures of the page show measured outputs beside those of the models; they share its size."""
        return len(self.responses) + (2 if self.second is not None and self.second.episodes > 1 else 0)

    def episodes(self, second: Generalisation) -> dict[str, Response]:
        """A typical episode (median RMSE) of the delivered model and its worst, by these names."""
        records = episodes_of(self.folder.tested(second), second.settled, self.folder.model.washout)
        errors = second.seen[self.folder.delivered].rmse
        order = np.argsort([np.inf if error is None else error for error in errors], kind="stable")
        named = {"typical": order[(len(order) - 1) // 2]} if len(order) > 1 else {}
        band = second.band(self.folder.delivered)
        # A band that every other episode leaves is not where a new one stays.
        shown = () if band is None or vacuous(band) else band.widths
        return {
            which: replace(self._records("test", [records[number]]), band=shown)
            for which, number in {**named, "worst": order[-1]}.items()
        }

    @property
    def names(self) -> dict[str, str]:
        """What each model is called, by its name in the second certificate, the delivered model first."""
        first = self.folder.delivered
        drawn = {"model": "committee"} if self.folder.network is None else {}
        return {name: {**CALLED, **drawn}[name] for name in sorted(self.folder.models, key=lambda one: one != first)}

    @cached_property
    def held(self) -> list[tuple[str, str, Holding]]:
        """Role of the data and name of the model, for each output that sits at a limit for too long."""
        found = held_of(self.folder) if self.folder.models else {}
        return [
            (role, name, one)
            for key, name in (self.names if found else {}).items()
            for role, each in found[key].items()
            for one in each
            if one.too_long
        ]

    def named(self, network: PlantModel) -> str:
        """A network by its number, with its family where there are several."""
        position = self.certificate.position(network.origin["family"], network.origin["index"])
        family = self.certificate.family_name(position)
        return f"{position} ({family})" if family else str(position)

    def _records(self, role: str, records: Sequence[Record]) -> Response:
        pairs = self.folder.respond(records)
        first, offset = self.folder.model.washout, 0
        times: list[Any] = []
        for record in records:
            times.append((offset + np.arange(first, len(record))) * record.sampling_time)
            offset += len(record)
        measured = [y for y, _ in pairs[self.folder.delivered]]
        simulated = {name: [yhat for _, yhat in each] for name, each in pairs.items()}
        y, channels = np.concatenate(measured), self.folder.model.output_names
        scores = {name: summary(y, np.concatenate(each), channels) for name, each in simulated.items()}
        return self._response(role, times, measured, simulated, scores, [record.u[first:] for record in records])

    def _blocks(self) -> Response:
        training, times = self.folder.experiments.training, []
        lengths = np.cumsum([0, *(len(record) for record in training)])
        for fold in self.plan.folds:
            parts = [lengths[s.record] + np.arange(s.start + s.washout, s.stop) for s in fold.scored]
            times.append(np.concatenate(parts) * self.folder.model.sampling_time)
        scores = {name: each["validation"] for name, each in scores_of(self.folder).items()}
        driven = [
            np.concatenate([training[s.record].u[s.start + s.washout : s.stop] for s in fold.scored])
            for fold in self.plan.folds
        ]
        signals = measured_outputs(self.folder), outputs_of(self.folder)
        return self._response("validation", times, *signals, scores, driven)

    def _response(
        self,
        role: str,
        times: list[Array],
        measured: list[Signal],
        simulated: Mapping[str, list[Signal]],
        scores: Mapping[str, Mapping[str, Any]],
        driven: list[Signal],
    ) -> Response:
        # What is not finite has diverged; NaN alone is a gap between records.
        shown = {
            called: _joined([np.where(np.isnan(y), np.inf, y) for y in simulated[name]])
            for name, called in self.names.items()
        }
        scored = {called: scores[name] for name, called in self.names.items()}
        time, model = np.concatenate([np.r_[t, t[-1]] for t in times])[:-1], self.folder.model
        labels = [labelled(*each) for each in zip(model.input_names, model.input_units, strict=True)]
        inputs = dict(zip(labels, _joined(driven).T, strict=True))
        outputs = model.output_names, model.output_units
        return Response(role, time, _joined(measured), shown, *outputs, scored, inputs=inputs)

    def panels(self, rows: Rows, *, testing: bool) -> list[ScorePanel]:
        """Best case of the first score above, worst case of the last below: the paper's pair of panels."""
        first, last = self.plan.measures[0], self.plan.measures[-1]
        return [self._panel(rows, 0, first, "best", testing), self._panel(rows, -1, last, "worst", testing)]

    def _panel(self, rows: Rows, column: int, score: Score, case: Case, testing: bool) -> ScorePanel:
        found = self.search["scores"][:, column]
        return ScorePanel(
            scores=rows["scores"][:, column],
            threshold=float(found.max() if (score.direction == "max") == (case == "best") else found.min()),
            direction=score.direction,
            case=case,
            label=self.label(score),
            circle_violations=testing,
        )

    def label(self, score: Score) -> str:
        """A score with its unit; RMSE has that of the outputs if they share one."""
        units = set(self.folder.experiments.training[0].output_units) if self.folder.stores_data else set()
        unit = score.unit or (units.pop() if score.name == "rmse" and len(units) == 1 else "")
        return labelled(score.name.upper(), unit)

    @cached_property
    def families(self) -> list[FamilyRange]:
        """Where the scores of each of several families lie; empty if there is one family only."""
        statement = next((s for s in self.certificate.statements if isinstance(s, Families)), None)
        if statement is None:
            return []
        parts = np.split(self.search["scores"][:, 0], np.cumsum(statement.networks)[:-1])
        named = zip(statement.names, parts, statement.epsilons, strict=True)
        return [FamilyRange.of(name, scores, self.score.direction, epsilon) for name, scores, epsilon in named]

    @cached_property
    def band(self) -> tuple[Array, Array] | None:
        """For each rank, limits for the share of all networks that do better, all at once.

        None for very many networks, for several families (they are not a sample of one law), and for a search that was
        stopped at will (its number of networks depends on the scores, and the band does not allow for that).
        """
        if not 1 < len(self.search) <= MOST_IN_BAND or len(self.plan.families) > 1 or self.plan.at_will:
            return None
        scores = self.search["scores"][:, 0]
        band = DistributionBand.of(scores, beta=self.certificate.beta, direction=self.score.direction)
        return np.array(band.lower), np.array(band.upper)

    @cached_property
    def learning(self) -> tuple[Array, Array] | None:
        """Sizes of a search, and the mean best score of each."""
        count = len(self.search)
        if count < 2 or len(self.plan.families) > 1:
            return None
        sizes = np.unique(np.geomspace(1, count, 60).round().astype(int))
        curve = learning_curve(self.search["scores"][:, 0], sizes, self.score.direction)
        finite = np.isfinite(curve)
        return sizes[finite].astype(np.float64), curve[finite]


def _joined(signals: list[Signal]) -> Signal:
    """One after the other, a row of NaN between two."""
    gap = np.full((1, signals[0].shape[1]), np.nan)
    return np.concatenate([part for signal in signals for part in (signal, gap)])[:-1]
