"""RunReader: the files of a run, each read once and compared with the others.

A fault is raised, or collected (`Faults`): the audit is a reader that collects. The ledger is opened and checked once:
by the writer for as long as it writes, otherwise on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from echobound.arrays import Signal
from echobound.candidates import Candidates
from echobound.data.experiments import Experiments, records_digest
from echobound.data.record import Record
from echobound.errors import DamagedFile, RunError
from echobound.files import jsonable
from echobound.kernels import Kernel
from echobound.network import Committee, load_model, model_from_content, of_run, respond
from echobound.plan import Validation, settle_questions
from echobound.runs.delivery import Delivery, delivery_of
from echobound.runs.derivation import certificate_of, digests_of
from echobound.runs.drawn import candidates_of
from echobound.runs.faults import Faults, Unusable
from echobound.runs.ledger import rows_digest
from echobound.runs.provenance import require_provenance
from echobound.runs.rows import RowReader, part
from echobound.scenario import Certificate, Generalisation, Questions

READ_AS = {"model": "_picked", "committee": "_several"}  # what reads a model, by its digest


class RunReader(RowReader):
    """Everything in a run folder, checked."""

    def __init__(self, path: str | Path, faults: Faults | None = None) -> None:
        super().__init__(path, faults)
        self.outputs: dict[str, list[Signal]] = {}  # by model, on the scored samples of each fold, where at hand
        self._responses: dict[str, dict[str, tuple[Signal, Signal]]] = {}

    @part("data.npz")
    def experiments(self) -> Experiments:
        """The records as used, after checking that they are those of the plan."""
        if not self.stores_data:
            raise RunError(f"{self.path} does not hold its data: only what was drawn and what it scored is stored")
        experiments = Experiments.load(self.path / "data.npz")
        if experiments.digest != self.plan.data:
            if not self.faults.collect:  # as with the models, the file to restore is named
                raise DamagedFile(self.path / "data.npz", "digest", "these are not the data of plan.json")
            self.faults.report("plan.json", "data", experiments.digest, self.plan.data)
        if self.plan.samples:
            why = "the seed does not follow from these samples"
            ours, theirs = experiments.samples, self.plan.samples
            self.faults.require("plan.json", "samples", expected=ours, found=theirs, why=why)
        self._require_folds(experiments)
        return experiments

    def _require_folds(self, experiments: Experiments) -> None:
        """The folds of the plan must be those that follow from the data, the blocks and the washout."""
        plan = self.plan
        scheme = Validation(experiments, plan.blocks, plan.washout)
        derived = self.faults.attempt("plan.json, folds", lambda: scheme.folds)
        if derived is not None and derived != plan.folds:
            ours, theirs = (replace(plan, folds=folds).to_dict()["folds"] for folds in (derived, plan.folds))
            self.faults.report("plan.json", "folds", ours, theirs)

    def candidates(self, kernel: str | Kernel = "cpu") -> tuple[Candidates, ...]:
        """The candidates of each family on the stream of the search, made from plan and data."""
        # Without its data, this says what cannot be redone.
        return candidates_of(self.plan, self.experiments if self.stores_data else Experiments((), ()), kernel)

    @property
    def model_files(self) -> dict[str, str]:
        """The file of each model that is there, under ``model`` (the pick, as in the certificate) and ``committee``."""
        return {name: self._file(name) for name in READ_AS if self.has(self._file(name))}

    def _file(self, name: str) -> str:
        """The file of a model that is there, or should be.

        ``model.npz`` is the model that is delivered, and the other one stands beside it under its own name.
        """
        beside = self._pick_beside()
        return {"model": "network.npz", "committee": "model.npz"}[name] if beside else f"{name}.npz"

    def _pick_beside(self) -> bool:
        """Whether ``model.npz`` is a committee of the best, so that the pick has a file of its own."""
        if self.has("committee.npz") and not self.has("network.npz"):
            return False  # also in folders of earlier versions, whatever is delivered
        delivery = self.faults.attempt("ledger.sqlite", lambda: self.delivery)
        if delivery is None:  # all networks diverged, or an audit cannot tell
            return self.has("network.npz")
        return delivery.delivered == "committee" and self.plan.committee > 0

    @part(lambda self: self._file("model"))
    def _picked(self) -> Any:
        # A law of another kind loads its own models.
        load: Callable[[Path], Any] = getattr(self.plan.law[0], "load_model", load_model)
        return load(self.path / self._file("model"))

    @part(lambda self: self._file("committee"))
    def _several(self) -> Committee:
        member = getattr(self.plan.law[0], "model_from_content", model_from_content)
        return Committee.load(self.path / self._file("committee"), member)

    @cached_property
    def picked(self) -> Any:
        """The best of what was drawn, which the certificate is about and which must be that of the certificate."""
        return self._certified("_picked")

    @property
    def network(self) -> Any:
        """The picked network; None where committees were drawn, so that the pick is one."""
        return None if isinstance(self.picked, Committee) else self.picked

    @cached_property
    def best(self) -> Committee | None:
        """The best networks as one model, beside the pick; None if there is none."""
        several: Committee | None = self._certified("_several") if "committee" in self.model_files else None
        return several

    @property
    def committee(self) -> Committee | None:
        """The committee: that of the best networks, or the pick where committees were drawn; None if there is none."""
        return self.picked if isinstance(self.picked, Committee) else self.best

    def stored_model(self, name: str) -> Any:
        """A model by its name in `model_files`."""
        return self.picked if name == "model" else self.best

    @property
    def picked_score(self) -> float | None:
        """The score of the pick on validation data by which test data are scored, too; None if all diverged."""
        best = self.ranked(1)
        return float(self.search["scores"][best[0], self.plan.plain]) if len(best) else None

    @cached_property
    def delivery(self) -> Delivery | None:
        """Which model is delivered, and why, derived again; None if all networks diverged."""
        return delivery_of(self.plan, len(self.kept))

    @cached_property
    def model(self) -> Any:
        """The model that is delivered."""
        return self.committee if self.delivery is not None and self.delivery.delivered == "committee" else self.network

    def require_delivered(self) -> None:
        """Note where ``model.npz`` is not the model that is delivered; that it is what it should be, digests say."""
        several = self.delivery is not None and self.delivery.delivered == "committee" and self.plan.committee > 0
        if several and not self._pick_beside():
            self.faults.notes.append(
                "model.npz is the picked network, as in folders of earlier versions; the model that is delivered now,"
                " the committee, is in committee.npz"
            )

    def _certified(self, part: str) -> Any:
        """A model with the certificate, which must follow and be about it."""
        if self.faults.collect:  # an audit looks at the models of a certificate that does not follow, too
            return getattr(self, part)
        certificate = self.certificate  # first: if it does not follow, that is what to say
        return of_run(getattr(self, part), certificate)

    @property
    def models(self) -> dict[str, Any]:
        """What simulates, by the names of the second certificate; nothing if all diverged.

        They are the pick as ``model``, and the committee of the best where there is one.
        """
        if self.certificate.winner is None or "model" not in self.certificate.digests:
            return {}
        return {"model": self.picked} | ({} if self.best is None else {"committee": self.best})

    @property
    def delivered(self) -> str:
        """The name that the delivered model has in `models`."""
        return "committee" if "committee" in self.models and self.model is self.best else "model"

    def respond(self, records: Sequence[Record]) -> dict[str, list[tuple[Signal, Signal]]]:
        """Measured and simulated outputs of each record, by model; no model runs over the same record twice."""
        found: dict[str, list[tuple[Signal, Signal]]] = {name: [] for name in self.models}
        for record in records:
            key = records_digest([record])  # a record read from a file again is still the same record
            if key not in self._responses:
                runs = {name: respond(model, [record], self.plan.horizon) for name, model in self.models.items()}
                self._responses[key] = {name: pair for name, [pair] in runs.items()}
            for name, pair in self._responses[key].items():
                found[name].append(pair)
        return found

    @part("certificate.json")
    def certificate(self) -> Certificate:
        """The certificate, every number of it derived again from plan, data, ledger and models."""
        _ = self.plan  # whoever names a folder that is no run should hear that, not that a file is missing
        stated = self.stated
        found = {name: value for name, value in stated.items() if name != "provenance"}
        before = len(self.faults.findings)
        derived = self.faults.attempt("certificate.json, what is claimed", self._derived)
        expected = self._planned() if derived is None else derived
        if derived is None:
            found = {name: found.get(name, "nothing") for name in expected}
        self._name_other_files(expected, found)
        self.faults.compare("certificate.json", expected, found)
        if len(self.faults.findings) > before:
            raise Unusable("certificate.json does not follow")
        certificate = Certificate.from_dict(stated, path=self.path / "certificate.json")
        require_provenance(certificate.provenance, self.path / "certificate.json")
        return certificate

    def _name_other_files(self, expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Raise an error that names the file which is not the one that was certified.

        An audit lists digests instead: it cannot know whether the file or the certificate was changed.
        """
        files = {"ledger": "ledger.sqlite", "model": self._file("model"), "committee": self._file("committee")}
        for name, file in files.items() if not self.faults.collect else ():
            if stated_of(expected, "digests", name) != stated_of(found, "digests", name):
                what = "picked model" if name == "model" else name
                raise DamagedFile(self.path / file, "digest", f"this is not the {what} that was certified")

    def _derived(self) -> dict[str, Any] | None:
        """The certificate, all of it, without its provenance; None if rows are missing."""
        rows, plan = self.search, self.plan
        if not self.complete:
            return None
        digests = {**digests_of(plan), "ledger": rows_digest(rows)}
        if self.stores_data:
            experiments = self.faults.attempt("data.npz", lambda: self.experiments)
            digests["data"] = plan.data if experiments is None else experiments.digest
            digests |= self._model_digests()
        derived = certificate_of(plan, rows, digests=digests).to_dict()
        del derived["provenance"]
        return derived

    def _model_digests(self) -> dict[str, str]:
        """Digests of the models in the folder; of one that should be there and cannot be read, that it should."""
        found = {"model": "", "committee": ""}
        if not self.ranked(1):  # all networks diverged
            return found
        wanted = ["model", "committee"] if self.plan.committee else ["model"]
        for name in wanted:
            # A file that is missing is a finding by its digest alone.
            file, there = self._file(name), name in self.model_files or not self.faults.collect
            model = self.faults.attempt(file, partial(getattr, self, READ_AS[name])) if there else None
            found[name] = model.digest if model else f"that of a {file}"
        return found

    def _planned(self) -> dict[str, Any]:
        """Fields of the certificate that follow from the plan alone."""
        plan = jsonable(self.plan.to_dict())
        fields = {name: plan[name] for name in ("seed", "epsilon", "beta", "bound", "rule", "horizon")}
        return {**fields, "law": plan.get("law", {}), "score": self.plan.scores[0], "blocks": self.plan.blocks}

    @part("generalisation.json")
    def generalisation(self) -> Generalisation | None:
        """The second certificate, every statement derived again from what was seen; None if there is none.

        The errors that were seen are taken as stored, like the rows of the ledger: only an audit runs the models again.
        """
        certificate, file = self.certificate, "generalisation.json"
        if not self.has(file):
            return None
        found = Generalisation.from_dict(self.json(file), self.path / file)
        for name in ("model", "committee"):
            ours, theirs = certificate.digests.get(name, ""), found.digests.get(name)
            self.faults.require(file, f"digest of the {name}", expected=ours, found=theirs)
        optimism = found.optimism
        scored = (optimism.score, optimism.direction, optimism.unit, optimism.validation)
        stated = (found.horizon, optimism.horizon, optimism.blocks, *scored)
        score = self.plan.measures[self.plan.plain]
        how = (certificate.horizon, certificate.horizon, certificate.blocks)
        expected = (*how, score.name, score.direction, score.unit, self.picked_score)
        self.faults.require(file, "optimism", expected=expected, found=stated)
        if self.tested(found) is self.experiments.test:
            why = "a criterion that is not in plan.json was named when the test data had been opened"
            self.faults.require(file, "late", expected=self.comes_late(found.settled), found=found.late, why=why)
        return found

    def comes_late(self, questions: Questions) -> bool:
        """Whether a criterion for the run's own test data was named once these were open: it is not in the plan."""
        planned = settle_questions(self.plan.criterion).criterion
        return questions.criterion is not None and questions.criterion != planned

    def tested(self, second: Generalisation) -> tuple[Record, ...]:
        """The records that a second certificate is about: the run's own test data, or those given later."""
        own, wanted = self.experiments.test, second.digests.get("test")
        if own and records_digest(own) == wanted:
            return own
        later = Experiments.load(self.path / "test.npz").test
        why = "these are not the data of generalisation.json"
        self.faults.require("test.npz", "digest", expected=records_digest(later), found=wanted, why=why)
        return later


def stated_of(content: Mapping[str, Any], *names: str) -> Any:
    """A value inside nested objects; None where there is none."""
    value: Any = content
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
