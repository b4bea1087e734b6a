"""Retraining: networks drawn and trained again, and compared with their rows and models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from echobound.arrays import Rows
from echobound.campaign import Engine, evaluate_draws
from echobound.candidates import Candidates, Committees, Networks
from echobound.draws import SEARCH, VERIFICATION, draw_keys
from echobound.files import jsonable
from echobound.kernels import Status
from echobound.kernels.sensitivity import TOLERANCE, model_moves, relative
from echobound.network import PlantModel
from echobound.runs import Progress, RunFolder
from echobound.runs.derivation import search_of
from echobound.runs.progress import TotalProgress
from echobound.runs.reader import stated_of
from echobound.runs.rows import NAMED
from echobound.scenario import claims_of
from echobound.scenario.words import noun

NAMES = {SEARCH: "search", VERIFICATION: "verification"}
Draw = tuple[int, int]  # family and index


@dataclass
class Retraining:
    """Networks drawn and trained again, and compared with their rows and models."""

    folder: RunFolder
    candidates: Sequence[Candidates]  # one for each family
    engine: Engine
    batch: int | None
    on_progress: Callable[[Progress], None] | None
    tied: set[Draw] = field(default_factory=set)  # two of their ridges are as good as equal

    def __post_init__(self) -> None:
        self.faults, self.drawn = self.folder.faults, noun(self.folder.plan.members)

    def check_rows(self, sample: int | None, seed: int) -> tuple[int, int, int]:
        """Train again; return how many carry a claim, how many others there are, and how many of those were trained."""
        fresh = self.faults.attempt("ledger.sqlite", lambda: self.folder.fresh)
        recorded = {SEARCH: self.folder.search, VERIFICATION: self.folder.search[:0] if fresh is None else fresh}
        table = {(s, int(row["family"]), int(row["index"])): row for s, rows in recorded.items() for row in rows}
        claimed = {(SEARCH, *draw) for draw in self.claimed()}
        others = sorted(set(table) - claimed)
        count = len(others) if sample is None else min(sample, len(others))
        picked = np.random.default_rng(seed).permutation(len(others))[:count]
        chosen = claimed | {others[position] for position in picked}
        self._require_disjoint(table)
        total = TotalProgress(self.on_progress, len(chosen), self.candidates[0].measures[0].direction)
        for stream, family in product(NAMES, self.candidates):
            drawn = family.on(stream)
            indices = sorted(index for s, number, index in chosen if (s, number) == (stream, family.family))
            rows = evaluate_draws(drawn, indices, self.engine, batch=self.batch, on_progress=total)
            self._compare(drawn, rows, [table[stream, family.family, i] for i in indices])
            total.next()
        return len(claimed), len(others), count

    def claimed(self) -> set[Draw]:
        """Networks of the search that carry a claim, by the ledger or by what certificate and committee say."""
        folder, plan, rows = self.folder, self.folder.plan, self.folder.search
        stated = self.faults.attempt("certificate.json", lambda: folder.stated) or {}
        positions: list[Any] = [stated_of(stated, "winner"), stated_of(stated, "worst", "index")]
        positions += claims_of(search_of(plan, rows))
        committee = self._stored("committee")
        members = [member.origin for member in (committee.members if committee else ())]
        named = {(origin.get("family"), origin.get("index")) for origin in members}
        of_committee = (draw for draw in self._draws(range(len(rows))) if draw in named)
        return {*self._kept(), *self._draws(positions), *of_committee}

    def _kept(self) -> list[Draw]:
        """Networks that are kept as models, the best first."""
        return self._draws(self.folder.kept)

    def _draws(self, positions: Iterable[Any]) -> list[Draw]:
        """Family and index of the networks at these positions of the search; what is no position is left out."""
        rows = self.folder.search
        known = (p for p in positions if isinstance(p, int | np.integer) and 0 <= p < len(rows))
        return [(int(rows["family"][p]), int(rows["index"][p])) for p in known]

    def _stored(self, name: str) -> Any:
        """A model of the folder; None if there is none that can be read."""
        file = self.folder.model_files.get(name)
        return None if file is None else self.faults.attempt(file, lambda: self.folder.stored_model(name))

    def _require_disjoint(self, table: Iterable[tuple[int, int, int]]) -> None:
        """No draw of the verification may be one of the search, nor one of a family one of another."""
        keys: list[tuple[int, ...]] = []
        for stream, family in product(NAMES, self.candidates):
            indices = sorted(i for s, number, i in table if (s, number) == (stream, family.family))
            draws = [draw for index in indices for draw in family.draws(index)]
            keys += map(tuple, draw_keys(family.seed, stream, family.family, draws).tolist())
        alike = len(keys) - len(set(keys))
        if alike:
            self.faults.report("draws of the verification", "", "none of the search", f"{alike} of them")

    def _compare(self, drawn: Candidates, rows: Rows, recorded: Sequence[Any]) -> None:
        different, stream, families = 0, NAMES[drawn.stream], self.folder.plan.families
        of = "".join(f" of {one.name}" for one in families if len(families) > 1 and one.number == drawn.family)
        for row, other in zip(rows, recorded, strict=True):
            name = f"{self.drawn.one} {row['index']}{of} of the {stream}"
            # Once several differ, the others are not probed for rounding: it takes long, and the case is clear.
            beyond = relative(row["scores"], other["scores"]) > TOLERANCE
            agreement = "different" if different >= NAMED and beyond else drawn.agreement(row, other)
            if agreement == "sensitive":
                said = f"{_row(drawn, row)} here, {_row(drawn, other)} in the ledger"
                self.faults.sensitive.append(f"{name}: {said}, a difference that rounding explains")
                # Of a committee, a member may have had another ridge.
                if drawn.stream == SEARCH and (row["ridge"] != other["ridge"] or isinstance(drawn, Committees)):
                    self.tied |= {(drawn.family, draw) for draw in drawn.draws(int(row["index"]))}
            elif agreement == "unconfirmed":
                said = f"{_row(drawn, row)} here, {_row(drawn, other)} in the ledger"
                self.faults.unconfirmed.append(f"{name}: {said}; rounding moves it visibly, but not there")
            elif agreement == "different":
                different += 1
                if different <= NAMED:
                    self.faults.report("ledger.sqlite", name, _row(drawn, row), _row(drawn, other))
        if different > NAMED:
            expected = f"the rows of {len(rows)} that were trained again"
            found = f"{different} that differ, those above among them"
            self.faults.report("ledger.sqlite", f"{self.drawn.many}{of} of the {stream}", expected, found)

    def check_models(self) -> None:
        """Train the picked network and the committee again."""
        kept, model, committee = self._kept(), self._stored("model"), self._stored("committee")
        if kept:
            self._require_confirmable(kept[0])
        files = {"model": "model.npz", "committee": "committee.npz"} | self.folder.model_files
        if model is not None and not kept:
            self.faults.report(files["model"], "", f"no model, since all {self.drawn.many} diverged", "one")
        if model is not None and kept:
            self._check_picked(files["model"], model, kept[0])
        if committee is not None and self.folder.plan.committee:
            stored = [(member.origin.get("family"), member.origin.get("index")) for member in committee.members]
            if stored != kept:
                ours, theirs = (_listed(draws, len(self.candidates)) for draws in (kept, stored))
                self.faults.report(files["committee"], "members", ours, theirs)
            for member, draw in zip(committee.members, stored, strict=True):
                if draw in kept:
                    self._check_model(files["committee"], f"network {draw[1]}", member, draw)

    def _require_confirmable(self, picked: Draw) -> None:
        """The rule of the plan by which a search refuses a best network that follows from rounding, applied again."""
        allowed, rows = self.folder.plan.confirm, self.folder.search
        drawn = next(one for one in self.candidates if one.family == picked[0])
        [row] = rows[(rows["family"] == picked[0]) & (rows["index"] == picked[1])]
        if allowed and (moved := drawn.moved(row)) > allowed:
            self.faults.unconfirmed.append(
                f"{self.drawn.one} {row['index']}, the best: {moved:.2g} of its score changes when its readout changes"
                f" in the twelfth digit, where the plan refuses more than {allowed:g}"
            )

    def _check_picked(self, file: str, model: Any, picked: Draw) -> None:
        """Train what was picked again: a network, or each member of a committee."""
        drawn = next(one for one in self.candidates if one.family == picked[0])
        if not isinstance(drawn, Committees):
            self._check_model(file, "", model, picked)
            return
        stored = [(member.origin.get("family"), member.origin.get("index")) for member in model.members]
        possible = [[(drawn.family, draw) for draw in kept] for kept in drawn.keeps(picked[1])]
        if stored not in possible:
            ours, theirs = (_listed(draws, len(self.candidates)) for draws in (possible[0], stored))
            self.faults.report(file, "members", ours, theirs)
        for member, draw in zip(model.members, stored, strict=True):
            if draw[0] == drawn.family and draw[1] in drawn.draws(picked[1]):
                self._check_model(file, f"network {draw[1]}", member, draw)

    def _check_model(self, file: str, part: str, stored: PlantModel, draw: Draw) -> None:
        drawn = next(one for one in self.candidates if one.family == draw[0])
        drawn = drawn.networks if isinstance(drawn, Committees) else drawn
        ours = drawn.make(draw[1]).model
        (header, arrays), (other_header, other_arrays) = ours.content(), stored.content()
        header, other_header = jsonable(header), jsonable(other_header)
        differs = sorted(key for key in set(header) | set(other_header) if header.get(key) != other_header.get(key))
        distances = {key: _distance(arrays[key], other_arrays.get(key)) for key in sorted(arrays)}
        differs += [key for key, distance in distances.items() if distance > TOLERANCE]
        if not differs:
            return
        # What training changes may differ by rounding: the readout, and the weights where they are trained too.
        moved = _moves(drawn, draw[1]) if set(differs) <= set(distances) else {}
        close = bool(moved) and all(distances[key] <= moved.get(key, 0.0) for key in differs)
        if close or (draw in self.tied and set(differs) <= {"origin", "readout"}):
            name = f"{file}, {part}" if part else file
            largest = max(distances.get(key, 0.0) for key in differs)
            self.faults.sensitive.append(f"{name}: its {', '.join(differs)} differ by {largest:.1e}, as by rounding")
        else:
            self.faults.report(file, part, f"network {draw[1]} trained again", f"another {', '.join(differs)}")


def _moves(drawn: Candidates, index: int) -> dict[str, float]:
    """How far rounding moves each array of a network."""
    return model_moves(drawn.problem, drawn.kernel, index) if isinstance(drawn, Networks) else {}


def _listed(draws: Sequence[tuple[Any, Any]], families: int) -> list[Any]:
    """Indices, with the family where there are several."""
    return [index for _, index in draws] if families == 1 else list(draws)


def _distance(ours: Any, theirs: Any) -> float:
    """Relative distance of two arrays, in norm; infinite for another shape, and for what is not finite."""
    if theirs is None or ours.shape != theirs.shape:
        return math.inf
    distance = float(np.linalg.norm(ours - theirs)) / max(float(np.linalg.norm(ours)), 1e-300)
    return distance if (ours != theirs).any() or not math.isfinite(distance) else 0.0


def _row(drawn: Candidates, row: Any) -> str:
    scores = [f"{s.name.upper()} {value:.10g}" for s, value in zip(drawn.measures, row["scores"], strict=True)]
    status = "diverged, " if row["status"] == Status.DIVERGED else ""
    ridge = "" if isinstance(drawn, Committees) else f", ridge {row['ridge']:g}"  # each of its members has one
    network = f" (order {row['order']}{ridge})" if row["order"] else ""  # only networks have an order
    return f"{status}{', '.join(scores)}{network}"
