"""Files: what is in a run folder, held against itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from echobound.audit.log import Log
from echobound.campaign import Experiments, Ledger, Plan, RunFolder, rows_digest
from echobound.campaign.search import networks_of, statements_of
from echobound.draws import SEARCH, VERIFICATION
from echobound.files import digest, jsonable, read_json
from echobound.kernels import Problem, Rows, Status, blocks_in_turn, hold_out
from echobound.network import Committee, EchoStateNetwork
from echobound.scenario import Certificate, Patience, certify, ranking
from echobound.scenario.verification import goodness
from echobound.scores import get_score

__all__ = ["Files"]

NAMED = 5  # rows that are named one by one


@dataclass
class Files:
    """The files of a run, each read on its own, so that one that is damaged does not hide the others."""

    folder: RunFolder
    log: Log
    plan: Plan | None = None
    experiments: Experiments | None = None
    search: Rows | None = None
    complete: bool = False  # whether it has a row for each network
    fresh: Rows | None = None
    model: EchoStateNetwork | None = None
    committee: Committee | None = None
    stated: dict[str, Any] = field(default_factory=dict)  # the certificate as it is in the folder

    def read(self) -> None:
        """Read what can be read."""
        path, log = self.folder.path, self.log
        self.plan = self._plan()
        self.experiments = log.attempt("data.npz", lambda: Experiments.load(path / "data.npz"))
        if (path / "model.npz").exists():
            self.model = log.attempt("model.npz", lambda: EchoStateNetwork.load(path / "model.npz"))
        if (path / "committee.npz").exists():
            self.committee = log.attempt("committee.npz", lambda: Committee.load(path / "committee.npz"))
        if self.plan is None:
            return
        if self.experiments is not None:
            if self.experiments.digest != self.plan.data:
                log.find("plan.json, data", f"the digest of data.npz, {self.experiments.digest}", self.plan.data)
            self._check_folds(self.plan, self.experiments)
        log.attempt("ledger.sqlite", self._ledger)

    def _plan(self) -> Plan | None:
        """The plan; if only its digest does not fit, as it stands, to see what else does not."""
        log, path = self.log, self.folder.path / "plan.json"
        content = log.attempt("plan.json", lambda: read_json(path))
        if content is None:
            return None
        expected = digest({name: value for name, value in content.items() if name != "digest"})
        if content.get("digest") != expected:
            log.find("plan.json, digest", expected, content.get("digest", "nothing"))
        plan = log.attempt("plan.json", lambda: Plan.from_dict({**content, "digest": expected}))
        if plan is not None:
            unknown = log.attempt("plan.json, scores", lambda: [get_score(name) for name in plan.scores]) is None
            return None if unknown else plan
        return None

    def _check_folds(self, plan: Plan, experiments: Experiments) -> None:
        """What was trained on and scored must be what the data and the washout give."""
        washout, scores = plan.folds[0].scored[0].washout, [get_score(name) for name in plan.scores]
        options: dict[str, Any] = {"law": plan.law, "scores": scores, "washout": washout}

        def derived() -> Problem:
            if plan.blocks is None:
                return hold_out(experiments.training, experiments.validation, **options)
            return blocks_in_turn(experiments.training, plan.blocks, **options)

        problem = self.log.attempt("plan.json, folds", derived)
        if problem is not None and problem.folds != plan.folds:
            ours, theirs = (replace(plan, folds=folds).to_dict()["folds"] for folds in (problem.folds, plan.folds))
            self.log.find("plan.json, folds", ours, theirs)

    def _ledger(self) -> None:
        """The rows of search and verification, each complete, and nothing else."""
        assert self.plan is not None
        log, plan, path = self.log, self.plan, self.folder.path
        with Ledger(path / "ledger.sqlite", self.plan.digest, self.plan.scores, write=False) as ledger:
            counts, search, fresh = ledger.counts(), ledger.rows(SEARCH), ledger.rows(VERIFICATION)
        for stream, family in sorted(set(counts) - {(SEARCH, 0), (VERIFICATION, 0)}):
            log.find("ledger.sqlite", "rows of search and verification", f"some of stream {stream}, family {family}")
        planned = networks_of(plan, search["scores"][:, 0], get_score(plan.scores[0]).direction)
        self.search = search[(search["index"] >= 0) & (search["index"] < planned)]
        # Patience may learn late that it was enough: rows beyond do not count.
        beyond = len(search) > planned and not isinstance(plan.stop, Patience)
        self.complete = len(self.search) == planned
        if beyond or not self.complete:
            missing = np.setdiff1d(np.arange(planned), search["index"])
            said = [f"{len(search)} rows"] + ([f"none of network {missing[0]}"] if len(missing) else [])
            log.find("ledger.sqlite, rows of the search", f"one for each of {planned} networks", ", ".join(said))
        self.fresh = self._counted(fresh)
        for name, rows in (("search", self.search), ("verification", self.fresh)):
            diverged = rows["status"] == Status.DIVERGED
            wrong = ~np.isin(rows["status"], [int(status) for status in Status])
            wrong |= diverged & np.isfinite(rows["scores"]).any(axis=1)
            for row in rows[wrong][:NAMED]:
                found = f"status {row['status']}, score {row['scores'][0]:.9g}"
                log.find(f"ledger.sqlite, network {row['index']} of the {name}", "no score where it diverged", found)

    def _counted(self, fresh: Rows) -> Rows:
        """The fresh rows that a finished verification counts."""
        path = self.folder.path / "verification.json"
        if not path.exists():
            if len(fresh):
                self.log.notes.append(f"{len(fresh)} fresh networks are in the ledger, but no verification counts them")
            return fresh[:0]
        stored = self.log.attempt("verification.json", lambda: read_json(path)) or {}
        count = stored.get("fresh")
        if not isinstance(count, int) or not 0 <= count <= len(fresh):
            self.log.find("verification.json, fresh", f"at most the {len(fresh)} fresh rows of the ledger", count)
            count = len(fresh)
        rows = fresh[:count]
        if (rows["index"] != np.arange(count)).any():
            self.log.find(
                "ledger.sqlite, fresh rows", f"networks 0 to {count - 1}", f"others, up to {rows['index'].max()}"
            )
        self.log.compare("verification.json", {"fresh": count, "rows": rows_digest(rows)}, stored | {"fresh": count})
        if len(fresh) > count:
            self.log.notes.append(
                f"{len(fresh) - count} more fresh networks are in the ledger than verifications count"
            )
        return rows

    def check_certificate(self) -> None:
        """Hold each field of the certificate against what plan, data, ledger and models give."""
        log, path = self.log, self.folder.path / "certificate.json"
        stated = log.attempt("certificate.json", lambda: read_json(path))
        if stated is None or self.plan is None:
            return
        self.stated, before = stated, len(log.findings)
        expected = log.attempt("certificate.json, what is claimed", self._derived) or self._planned()
        found = {name: value for name, value in stated.items() if name != "provenance"}
        if len(expected) < len(found):
            found = {name: found.get(name, "nothing") for name in expected}
        log.compare("certificate.json", expected, found)
        if len(log.findings) == before:
            log.attempt("certificate.json", lambda: Certificate.from_dict(stated, path=path))

    def _planned(self) -> dict[str, Any]:
        """What the plan alone says of the certificate."""
        assert self.plan is not None
        plan = jsonable(self.plan.to_dict())
        fields = {name: plan[name] for name in ("law", "seed", "epsilon", "beta", "bound", "rule", "horizon")}
        return {**fields, "score": self.plan.scores[0], "blocks": self.plan.blocks}

    def _derived(self) -> dict[str, Any] | None:
        """The certificate, all of it, without its provenance."""
        plan, rows = self.plan, self.search
        if plan is None or rows is None or not self.complete:
            return None
        score = get_score(plan.scores[0])
        derived = certify(
            rows["scores"][:, 0],
            score=score.name,
            direction=score.direction,
            unit=score.unit,
            horizon=plan.horizon,
            blocks=plan.blocks,
            epsilon=plan.epsilon,
            beta=plan.beta,
            bound=plan.bound,
            law=jsonable(plan.law.to_dict()),
            seed=plan.seed,
            digests={
                "data": plan.data if self.experiments is None else self.experiments.digest,
                "plan": plan.digest,
                "ledger": rows_digest(rows),
                **self._models(any_left=bool(self.ranked)),
            },
            statements=statements_of(plan, rows["scores"][:, 0], score),
        ).to_dict()
        del derived["provenance"]
        return derived

    def _models(self, any_left: bool) -> dict[str, str]:
        """Digests of the models in the folder; of one that is missing or cannot be read, that it is."""
        digests = {}
        for name, model, wanted in (
            ("model", self.model, any_left),
            ("committee", self.committee, any_left and self.plan is not None and self.plan.committee > 0),
        ):
            digests[name] = "" if not wanted else f"that of a {name}.npz" if model is None else model.digest
        return digests

    @property
    def ranked(self) -> list[int]:
        """Networks that are kept as models, the best first."""
        if self.plan is None or self.search is None:
            return []
        best = ranking(*self._scores(self.search), max(self.plan.committee, 1))
        return [int(self.search["index"][position]) for position in best]

    @property
    def picked(self) -> float | None:
        """The best score of the search, by the ledger."""
        if self.search is None or not self.ranked:
            return None
        return float(self._scores(self.search)[0][self.search["index"] == self.ranked[0]][0])

    def claimed(self) -> set[int]:
        """Networks of the search that carry a claim, by the ledger or by what certificate and committee say."""
        assert self.search is not None
        indices = set(self.search["index"].tolist())
        worst = self.search["index"][np.argmin(goodness(*self._scores(self.search)))] if len(self.search) else None
        ranks = ranking(*self._scores(self.search), self.plan.discarded + 1) if self.plan else []
        named = [self.search["index"][position] for position in ranks]
        named += [self.stated.get("winner"), self.stated.get("worst", {}).get("index")]
        named += [member.origin.get("index") for member in (self.committee.members if self.committee else ())]
        return {int(i) for i in [*self.ranked, worst, *named] if isinstance(i, int | np.integer)} & indices

    def _scores(self, rows: Rows) -> tuple[Any, Any]:
        assert self.plan is not None
        return rows["scores"][:, 0], get_score(self.plan.scores[0]).direction

    def problem(self) -> Problem | None:
        """The problem of the search, if plan, data and ledger can be read."""
        plan, experiments = self.plan, self.experiments
        if plan is None or experiments is None or self.search is None:
            return None
        records = [*experiments.training, *experiments.validation]
        scores = [get_score(name) for name in plan.scores]
        return self.log.attempt("plan.json, folds", lambda: plan.problem(records, scores))
