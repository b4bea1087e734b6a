"""Retraining: networks drawn and trained again, and held against their rows and models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from echobound.audit.files import NAMED, Files
from echobound.audit.log import Log
from echobound.campaign import Engine, Progress, evaluate_draws
from echobound.draws import SEARCH, VERIFICATION, draw_keys
from echobound.files import jsonable
from echobound.kernels import Kernel, Problem, Rows, Status
from echobound.kernels.sensitivity import TOLERANCE, compare_rows, readout_moves, relative
from echobound.kernels.training import train_network
from echobound.network import EchoStateNetwork

__all__ = ["Retraining"]

NAMES = {SEARCH: "search", VERIFICATION: "verification"}


@dataclass
class Retraining:
    """Networks drawn and trained again, and held against their rows and models."""

    problem: Problem
    kernel: Kernel
    files: Files
    log: Log
    engine: Engine
    block: int | None
    on_progress: Callable[[Progress], None] | None
    tied: set[int] = field(default_factory=set)  # two of their ridges are as good as equal

    def check_rows(self, sample: int | None, seed: int) -> tuple[int, int, int]:
        """Train again; return how many carry a claim, how many others there are, and how many of those were trained."""
        recorded = {SEARCH: self.files.search, VERIFICATION: self.files.fresh}
        table = {(s, int(row["index"])): row for s, rows in recorded.items() if rows is not None for row in rows}
        claimed = {(SEARCH, index) for index in self.files.claimed()}
        others = sorted(set(table) - claimed)
        count = len(others) if sample is None else min(sample, len(others))
        picked = np.random.default_rng(seed).permutation(len(others))[:count]
        chosen = claimed | {others[position] for position in picked}
        self._require_disjoint(table)
        for stream, name in NAMES.items():
            indices = sorted(index for s, index in chosen if s == stream)
            problem = self.problem.on(stream=stream)
            rows = evaluate_draws(
                self.kernel, problem, indices, block=self.block, engine=self.engine, on_progress=self.on_progress
            )
            self._compare(problem, name, rows, [table[stream, index] for index in indices])
        return len(claimed), len(others), count

    def _require_disjoint(self, table: Iterable[tuple[int, int]]) -> None:
        """No draw of the verification may be one of the search."""
        seed, family = self.problem.seed, self.problem.family
        keys = {s: draw_keys(seed, s, family, sorted(i for t, i in table if t == s)) for s in NAMES}
        alike = {tuple(key) for key in keys[SEARCH].tolist()} & {tuple(key) for key in keys[VERIFICATION].tolist()}
        if alike:
            self.log.find("draws of the verification", "none of the search", f"{len(alike)} of them")

    def _compare(self, problem: Problem, stream: str, rows: Rows, recorded: Sequence[Any]) -> None:
        different = 0
        for row, other in zip(rows, recorded, strict=True):
            where = f"network {row['index']} of the {stream}"
            # Once many differ, the others are not probed: it takes long, and the case is clear.
            beyond = relative(row["scores"], other["scores"]) > TOLERANCE
            agreement = "different" if different >= NAMED and beyond else compare_rows(problem, self.kernel, row, other)
            if agreement == "sensitive":
                said = f"{_row(problem, row)} here, {_row(problem, other)} in the ledger"
                self.log.sensitive.append(f"{where}: {said}, which is what rounding does to it")
                if problem.stream == SEARCH and row["ridge"] != other["ridge"]:
                    self.tied.add(int(row["index"]))
            elif agreement == "different":
                different += 1
                if different <= NAMED:
                    self.log.find(f"ledger.sqlite, {where}", f"{_row(problem, row)}", _row(problem, other))
        if different > NAMED:
            self.log.find(
                f"ledger.sqlite, networks of the {stream}",
                f"the rows of {len(rows)} that were trained again",
                f"{different} that differ, those above among them",
            )

    def check_models(self) -> None:
        """Train the picked network and the committee again."""
        ranked, files = self.files.ranked, self.files
        assert files.plan is not None
        if files.model is not None and not ranked:
            self.log.find("model.npz", "no model, since all networks diverged", "one")
        if files.model is not None and ranked:
            self._check_model("model.npz", files.model, ranked[0])
        if files.committee is not None and files.plan.committee:
            members = files.committee.members
            stored = [member.origin.get("index") for member in members]
            if stored != ranked:
                self.log.find("committee.npz, members", ranked, stored)
            for member, index in zip(members, stored, strict=True):
                if index in ranked:
                    self._check_model(f"committee.npz, network {index}", member, index)

    def _check_model(self, name: str, stored: EchoStateNetwork, index: int) -> None:
        ours, _ = train_network(self.kernel, self.problem, index)
        (header, arrays), (other_header, other_arrays) = ours.content(), stored.content()
        header, other_header = jsonable(header), jsonable(other_header)
        differs = sorted(key for key in set(header) | set(other_header) if header.get(key) != other_header.get(key))
        distances = {key: _distance(arrays[key], other_arrays.get(key)) for key in sorted(arrays)}
        differs += [key for key, distance in distances.items() if distance > TOLERANCE]
        if not differs:
            return
        close = differs == ["readout"] and distances["readout"] <= self._readout_moves(index)
        if close or (index in self.tied and set(differs) <= {"origin", "readout"}):
            self.log.sensitive.append(f"{name}: its readout differs by {distances['readout']:.1e}, as by rounding")
        else:
            self.log.find(name, f"network {index} trained again", f"another {', '.join(differs)}")

    def _readout_moves(self, index: int) -> float:
        trial, law = self.kernel.trial(self.problem, index), self.problem.law
        ridge = law.ridges[trial.pick(self.problem)[0]]
        one = replace(self.problem, law=replace(law, ridges=(ridge,)))
        return readout_moves(self.problem.refitted(ridge) if len(self.problem.folds) > 1 else one, self.kernel, index)


def _distance(ours: Any, theirs: Any) -> float:
    """Relative distance of two arrays, in norm; infinite for another shape, and for what is not finite."""
    if theirs is None or ours.shape != theirs.shape:
        return math.inf
    distance = float(np.linalg.norm(ours - theirs)) / max(float(np.linalg.norm(ours)), 1e-300)
    return distance if (ours != theirs).any() or not math.isfinite(distance) else 0.0


def _row(problem: Problem, row: Any) -> str:
    scores = [f"{s.name.upper()} {value:.10g}" for s, value in zip(problem.scores, row["scores"], strict=True)]
    status = "diverged, " if row["status"] == Status.DIVERGED else ""
    return f"{status}{', '.join(scores)} (order {row['order']}, ridge {row['ridge']:g})"
