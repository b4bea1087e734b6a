"""What an identification leaves in your hands: models, certificate, verdict, scores and data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echobound.arrays import Rows
from echobound.data.experiments import Experiments
from echobound.data.given import given_records
from echobound.diagnostics import Linear, Verdict
from echobound.displays import html_table, one_line
from echobound.errors import InputError
from echobound.export import Export, export_model
from echobound.network import Committee
from echobound.report import compare_figure
from echobound.runs.assessment import Assessment
from echobound.runs.diagnosing import Diagnostics
from echobound.runs.holding import Held
from echobound.scenario import Certificate, ErrorLimit, Generalisation, Optimism
from echobound.scores import Summary


@dataclass(frozen=True, eq=False)
class Identification:
    """What comes out: the model, the certificate, the table of all networks, and the model's scores.

    Parameters
    ----------
    model
        The model that is delivered: the committee or the picked network, as `delivered` says; None if all networks
        diverged.
    certificate
        What is promised about the picked network, and what is not.
    table
        One row for each network: family, index, status, scores, order, ridge; family after family.
    scores
        FIT and RMSE of the model on validation and, where given, test data.
    delivered, reason
        ``"network"`` or ``"committee"``, and why, in a sentence; both empty if all networks diverged.
    network, network_scores
        The best network on validation data, which the certificate is about, with its FIT and RMSE. None if all
        networks diverged, or if committees were drawn.
    committee, committee_scores
        The best networks as one model, with its FIT and RMSE; the certificate does not cover it, unless committees were
        drawn. None if not asked for.
    generalisation
        The second certificate, on test data: what the models are worth on new data. None without test data.
    chosen
        What was chosen because it was not given, a sentence each.
    held
        For how long the outputs of each model sit at a limit, as `runs.holding.held_of` gives it.
    assessment
        What the model is worth: first line, verdict, linear baseline and what the diagnostics found.
    diagnostics
        Tests of what is left over, predictions by horizon, step responses, coverage; a sentence each in `findings`.
    run
        The run folder, if one was asked for.
    experiments
        The data by their role, as they were used.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> result = identify(*ph_experiment(samples=(400, 300)), law="paper", order=10, networks=20)
    >>> result.table["index"].tolist() == list(range(20)), result.network.order, result.run
    (True, 10, None)
    >>> result.delivered, result.model is result.committee, len(result.model.members)
    ('committee', True, 10)
    """

    model: Any
    certificate: Certificate
    table: Rows
    scores: dict[str, Summary]
    delivered: str
    reason: str
    network: Any
    network_scores: dict[str, Summary] | None
    committee: Committee | None
    committee_scores: dict[str, Summary] | None
    generalisation: Generalisation | None
    chosen: tuple[str, ...]
    held: dict[str, Held]
    assessment: Assessment | None
    diagnostics: Diagnostics
    run: Path | None
    experiments: Experiments

    def __str__(self) -> str:
        return self.summary

    def _facts(self) -> dict[str, str]:
        fits = [f"{one['fit']:.4g} % on {role} data" for role, one in self.scores.items()]
        facts = {"model": self.delivered or "none, all networks diverged", "FIT": ", ".join(fits) or "none"}
        facts |= {} if self.verdict is None else {"verdict": self.verdict.grade}
        facts |= {"networks": str(self.certificate.networks)}
        return facts | ({} if self.run is None else {"run": str(self.run)})

    def __repr__(self) -> str:
        return one_line("Identification", self._facts())

    def _repr_html_(self) -> str:
        return html_table("Identification", {**self._facts(), "certificate": self.certificate.statement})

    def plot(self, data: Any = None, *, horizon: int | None = None) -> Any:
        """Draw the measured outputs and those of the models; a Matplotlib figure, whose ``axes`` can be changed.

        Parameters
        ----------
        data
            A record or what stands for one; the first test record of the run if not given, or the first validation
            record, or the first training record.
        horizon
            None draws the free run, k the prediction k samples ahead.
        """
        if self.model is None:
            raise InputError("there is no model to draw, since all networks diverged: identify with another law")
        own = [*self.experiments.test, *self.experiments.validation, *self.experiments.training]
        record = given_records(own[0] if data is None else data, self.model)[0]
        models = {"committee": self.committee, "network": self.network}
        return compare_figure(record, {n: m for n, m in models.items() if m is not None}, horizon=horizon)

    @property
    def summary(self) -> str:
        """What the model explains, what further draws would bring, whether it was tested; and the verdict."""
        found = self.assessment
        return "" if found is None else "\n".join([found.summary, *found.verdict.lines])

    @property
    def verdict(self) -> Verdict | None:
        """What the model is worth: ``grade``, ``reasons`` and what to do ``next``."""
        return None if self.assessment is None else self.assessment.verdict

    @property
    def linear(self) -> Linear | None:
        """The best linear model on the same data, scored in the same way; by how much it is worse, with an interval."""
        return None if self.assessment is None else self.assessment.linear

    @property
    def optimism(self) -> Optimism | None:
        """The pick's score on test data beside that on validation data; None without test data."""
        return None if self.generalisation is None else self.generalisation.optimism

    def export(self, path: str | Path, to: str, **options: Any) -> Export:
        """Export the delivered model with its certificate, as `model.export` does; `export_model` has the options."""
        if self.model is None:
            raise InputError("there is no model to export, since all networks diverged: identify with another law")
        return export_model(self.model, path, to, **options)

    @property
    def episodes(self) -> ErrorLimit | None:
        """What the model's errors in the test records say about new ones; None without test data."""
        if self.generalisation is None:
            return None
        beside = self.delivered == "committee" and "committee" in self.generalisation.seen
        return self.generalisation.limit("committee" if beside else "model")
