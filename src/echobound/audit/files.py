"""Files: what is in a run folder, held against itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from echobound.arrays import Rows
from echobound.audit.log import Log
from echobound.data.experiments import Experiments
from echobound.draws import SEARCH, VERIFICATION
from echobound.files import digest, jsonable, read_json
from echobound.kernels import Problem, Status, blocks_in_turn, hold_out
from echobound.network import Committee, EchoStateNetwork
from echobound.plan.plan import Plan
from echobound.runs.derivation import by_family, certificate_of, networks_due, search_rows, stops_at_will
from echobound.runs.folder import RunFolder
from echobound.runs.ledger import Ledger, rows_digest
from echobound.scenario import Certificate, Patience, ranking
from echobound.scenario.ordering import goodness
from echobound.scores import get_score

__all__ = ["Draw", "Files"]

Draw = tuple[int, int]  # family and index
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
        options: dict[str, Any] = {"law": plan.laws[0], "scores": scores, "washout": washout}

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
            counts, families = ledger.counts(), range(len(plan.laws))
            search, fresh = (
                np.concatenate([ledger.rows(s, family) for family in families]) for s in (SEARCH, VERIFICATION)
            )
        known = {(stream, family) for stream in (SEARCH, VERIFICATION) for family in families}
        for stream, family in sorted(set(counts) - known):
            log.find("ledger.sqlite", "rows of search and verification", f"some of stream {stream}, family {family}")
        self.search = search_rows(plan, search[search["index"] >= 0], self._stated_networks())
        apart = enumerate(by_family(plan, search))
        self.complete = min(self._complete(number, part) for number, part in apart)  # all are looked at
        self.fresh = self._counted(fresh)
        for name, rows in (("search", self.search), ("verification", self.fresh)):
            diverged = rows["status"] == Status.DIVERGED
            wrong = ~np.isin(rows["status"], [int(status) for status in Status])
            wrong |= diverged & np.isfinite(rows["scores"]).any(axis=1)
            for row in rows[wrong][:NAMED]:
                found = f"status {row['status']}, score {row['scores'][0]:.9g}"
                log.find(f"ledger.sqlite, network {row['index']} of the {name}", "no score where it diverged", found)

    def _stated_networks(self) -> int | None:
        """How many networks the certificate says there are, if it can be read."""
        path = self.folder.path / "certificate.json"
        stated = self.log.attempt("certificate.json", lambda: read_json(path)) or {}
        return stated["networks"] if isinstance(stated.get("networks"), int) else None

    def _complete(self, family: int, rows: Rows) -> bool:
        """Whether there is a row for each network of a family, and none beyond."""
        assert self.plan is not None
        plan = self.plan
        planned = networks_due(plan, rows["scores"][:, 0], get_score(plan.scores[0]).direction)
        if stops_at_will(plan):
            planned = self._stated_networks() or planned
        # Patience may learn late that it was enough, and who stops at will may go on: rows beyond do not count.
        beyond = len(rows) > planned and not (isinstance(plan.stop, Patience) or stops_at_will(plan))
        missing = np.setdiff1d(np.arange(planned), rows["index"])
        if beyond or len(missing):
            said = [f"{len(rows)} rows"] + ([f"none of network {missing[0]}"] if len(missing) else [])
            of = f" of {plan.families[family]['name']}" if plan.families else ""
            self.log.find(
                "ledger.sqlite, rows of the search", f"one for each of {planned} networks{of}", ", ".join(said)
            )
        return not len(missing)

    def _counted(self, fresh: Rows) -> Rows:
        """The fresh rows that a finished verification counts, family after family."""
        assert self.plan is not None
        parts = by_family(self.plan, fresh)
        path = self.folder.path / "verification.json"
        if not path.exists():
            if len(fresh):
                self.log.notes.append(f"{len(fresh)} fresh networks are in the ledger, but no verification counts them")
            return fresh[:0]
        stored = self.log.attempt("verification.json", lambda: read_json(path)) or {}
        count, most = stored.get("fresh"), min(len(part) for part in parts)
        if not isinstance(count, int) or not 0 <= count <= most:
            self.log.find("verification.json, fresh", f"at most the {most} fresh rows of the ledger", count)
            count = most
        rows = np.concatenate([part[:count] for part in parts])
        if (rows["index"] != np.tile(np.arange(count), len(parts))).any():
            self.log.find(
                "ledger.sqlite, fresh rows", f"networks 0 to {count - 1}", f"others, up to {rows['index'].max()}"
            )
        self.log.compare("verification.json", {"fresh": count, "rows": rows_digest(rows)}, stored | {"fresh": count})
        if len(fresh) > len(rows):
            self.log.notes.append(
                f"{len(fresh) - len(rows)} more fresh networks are in the ledger than verifications count"
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
        fields = {name: plan[name] for name in ("seed", "epsilon", "beta", "bound", "rule", "horizon")}
        fields["law"] = plan.get("law", {})
        return {**fields, "score": self.plan.scores[0], "blocks": self.plan.blocks}

    def _derived(self) -> dict[str, Any] | None:
        """The certificate, all of it, without its provenance."""
        plan, rows = self.plan, self.search
        if plan is None or rows is None or not self.complete:
            return None
        derived = certificate_of(
            plan,
            rows,
            [get_score(name) for name in plan.scores],
            digests={
                "data": plan.data if self.experiments is None else self.experiments.digest,
                "plan": plan.digest,
                "ledger": rows_digest(rows),
                **self._models(any_left=bool(self.ranked)),
            },
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
    def ranked(self) -> list[Draw]:
        """Networks that are kept as models, the best first."""
        if self.plan is None or self.search is None:
            return []
        return self._draws(ranking(*self._scores(self.search), max(self.plan.committee, 1)))

    @property
    def picked(self) -> float | None:
        """The best score of the search, by the ledger."""
        if self.search is None or not self.ranked:
            return None
        scores, direction = self._scores(self.search)
        return float(scores[ranking(scores, direction, 1)[0]])

    def claimed(self) -> set[Draw]:
        """Networks of the search that carry a claim, by the ledger or by what certificate and committee say."""
        assert self.search is not None
        assert self.plan is not None
        rows, first = self.search, get_score(self.plan.scores[0]).direction
        positions: list[Any] = [self.stated.get("winner"), self.stated.get("worst", {}).get("index")]
        if len(rows):
            positions += [*ranking(*self._scores(rows), self.plan.discarded + 1)]
            positions += [np.argmin(goodness(rows["scores"][:, 0], first))]
        for name, values in zip(self.plan.scores, rows["scores"].T, strict=True) if self.plan.joint else ():
            positions += ranking(values, get_score(name).direction, 1)
        for family in {*rows["family"].tolist()} if self.plan.families else ():
            [own] = np.nonzero(rows["family"] == family)
            positions += own[ranking(rows["scores"][own, 0], first, 1)].tolist()
        members = [member.origin for member in (self.committee.members if self.committee else ())]
        named = {(origin.get("family"), origin.get("index")) for origin in members}
        of_committee = (draw for draw in self._draws(range(len(rows))) if draw in named)
        return {*self.ranked, *self._draws(positions), *of_committee}

    def _draws(self, positions: Iterable[Any]) -> list[Draw]:
        """Family and index of the networks at these positions of the search; what is no position is left out."""
        assert self.search is not None
        rows = self.search
        known = (p for p in positions if isinstance(p, int | np.integer) and 0 <= p < len(rows))
        return [(int(rows["family"][p]), int(rows["index"][p])) for p in known]

    def _scores(self, rows: Rows) -> tuple[Any, Any]:
        assert self.plan is not None
        return rows["scores"][:, 0], get_score(self.plan.scores[0]).direction

    def problems(self) -> tuple[Problem, ...] | None:
        """The problem of the search for each family, if plan, data and ledger can be read."""
        plan, experiments = self.plan, self.experiments
        if plan is None or experiments is None or self.search is None:
            return None
        records = [*experiments.training, *experiments.validation]
        scores = [get_score(name) for name in plan.scores]
        return self.log.attempt("plan.json, folds", lambda: plan.problems(records, scores))
